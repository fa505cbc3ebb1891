"""Take what a host tells about its sessions into the archive: once each, cleaned, and never what we put there."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from backstory.domain.admission import admit_evidence
from backstory.domain.capture import Captured as Request
from backstory.domain.capture import capture
from backstory.domain.conversation import Message, Part, Role, Session
from backstory.domain.echo import is_echo, strip_injected
from backstory.domain.history import Author
from backstory.domain.ids import MessageId, PartId, SessionId
from backstory.domain.memory import Source
from backstory.domain.provenance import Origin, Provenance
from backstory.domain.redaction import strip_private
from backstory.domain.scope import Viewer
from backstory.errors import InputError
from backstory.ports.conversation import ConversationStore
from backstory.ports.system import Clock
from backstory.services.remember import Draft, Remember, Remembered

CAPTURED_TAG = "user-requested"
DETAIL_MAX_CHARS = 200_000  # one part's JSON; a larger one is cut, and says so
_RECENT_BLOCKS = 20
_PAGE = 500


@dataclass(frozen=True, slots=True, kw_only=True)
class Prompt:
    """A user's message, before the model sees it.

    ``typed`` is what a person typed of it, if that is not the whole text. ``author`` is the agent for a sub-agent's.
    """

    text: str
    message: MessageId
    session: SessionId
    agent: str | None = None
    typed: str | None = None
    author: Author = Author.USER


@dataclass(frozen=True, slots=True, kw_only=True)
class Captured:
    """What a prompt asked to be remembered: what was stored, and what could not be and why."""

    remembered: tuple[Remembered, ...] = ()
    refused: tuple[str, ...] = ()


class Conversations:
    """The archive of evidence, and capture from prompts."""

    def __init__(
        self, store: ConversationStore, remember: Remember, *, clock: Clock, archive: bool, capture: bool
    ) -> None:
        self._store = store
        self._remember = remember
        self._clock = clock
        self._archive = archive
        self._capture = capture

    async def capture(self, prompt: Prompt, viewer: Viewer) -> Captured:
        """Store what the prompt asks to be remembered, without a model.

        A prompt delivered again stores nothing more. Text that we injected ourselves is never captured. A statement
        that cannot be stored (too long, all private) is refused with a reason and does not stop the others.
        """
        found = self._requests(prompt)
        if not found:
            return Captured()
        shown = [block.text for block in await self._store.recent_blocks(session=prompt.session, limit=_RECENT_BLOCKS)]
        lines = [line for text in shown for line in text.splitlines()]
        remembered: list[Remembered] = []
        refused: list[str] = []
        for position, item in enumerate(found):
            if is_echo(item.content, lines):
                continue
            draft = Draft(
                content=item.content,
                kind=item.kind,
                tags=(CAPTURED_TAG,) if prompt.author is Author.USER else (),
                origin=Origin.USER if prompt.author is Author.USER else Origin.AGENT,
                source=Source.CAPTURED,
                provenance=Provenance(session=prompt.session, messages=(prompt.message,), agent=prompt.agent),
                key=f"capture:{prompt.message}:{position}",
            )
            try:
                remembered.append(await self._remember.remember(draft, viewer=viewer, author=prompt.author))
            except InputError as error:
                refused.append(str(error))
        return Captured(remembered=tuple(remembered), refused=tuple(refused))

    def asks(self, prompt: Prompt) -> bool:
        """Whether the prompt asks for anything to be remembered."""
        return bool(self._requests(prompt))

    def _requests(self, prompt: Prompt) -> list[Request]:
        text = prompt.text if prompt.typed is None else prompt.typed
        return capture(strip_injected(strip_private(text))) if self._capture else []

    async def take_session(self, session: Session) -> None:
        """Add a session, or bring it up to date."""
        if self._archive:
            title = None if session.title is None else admit_evidence(session.title)
            await self._store.put_session(replace(session, title=title))

    async def take_messages(self, messages: Sequence[Message]) -> None:
        """Add messages, or bring them up to date; parts are cleaned. Also for catching up after missed events."""
        if self._archive and messages:
            await self._store.put_messages([_cleaned_message(message) for message in messages])

    async def take_part(self, part: Part, *, message: MessageId, session: SessionId, role: Role | None = None) -> None:
        """Add a part, or replace it. ``role`` is who speaks; None when that is not known."""
        if self._archive:
            await self._store.put_part(_cleaned(part, role), message=message, session=session)

    async def mark_missing(self, session: SessionId, history: Sequence[Message]) -> None:
        """Mark what the host took back unheard: kept messages between the first and last of its ``history``, but not
        in it."""
        if not self._archive or not history:
            return
        told = {message.id for message in history}
        times = [message.created_at for message in history]
        offset = 0
        while kept := await self._store.messages(session, limit=_PAGE, offset=offset):
            for message in kept:
                if message.id not in told and min(times) <= message.created_at <= max(times):
                    await self._store.mark_removed(message.id, at=self._clock.now())
            offset += len(kept)

    async def message_removed(self, message: MessageId) -> None:
        """The host took a message back."""
        if self._archive:
            await self._store.mark_removed(message, at=self._clock.now())

    async def part_removed(self, part: PartId) -> None:
        """The host took a part back."""
        if self._archive:
            await self._store.remove_part(part)

    async def session_deleted(self, session_id: SessionId, *, at: datetime) -> None:
        """The host deleted a session. The evidence stays, marked, until a person removes it."""
        known = await self._store.session(session_id)
        if known is not None:
            await self._store.put_session(replace(known, deleted_at=at, updated_at=at))


def _cleaned_message(message: Message) -> Message:
    return replace(message, parts=tuple(_cleaned(part, message.role) for part in message.parts))


def _cleaned(part: Part, role: Role | None) -> Part:
    """A part without secrets and private text, whoever wrote it, and a user's without our own blocks."""
    pasted = part.kind == "text" and role is not Role.ASSISTANT
    text = admit_evidence(strip_injected(part.text) if pasted else part.text)
    detail = None if part.detail is None else _cleaned_detail(part.detail)
    return replace(part, text=text, detail=detail)


def _cleaned_detail(detail: str) -> str:
    """JSON, cleaned text by text, since JSON writes line breaks and quotes in signs of its own; then as a whole, since
    a secret's name may be the key and the secret the value."""
    with contextlib.suppress(ValueError, RecursionError):  # not JSON after all: cleaned as the text it is
        detail = json.dumps(_cleaned_json(json.loads(detail)), ensure_ascii=False)
    detail = admit_evidence(detail)
    if len(detail) <= DETAIL_MAX_CHARS:
        return detail
    return json.dumps({"cut": len(detail), "start": detail[:DETAIL_MAX_CHARS]}, ensure_ascii=False)


def _cleaned_json(value: Any) -> Any:  # Any: JSON of any shape
    if isinstance(value, str):
        return admit_evidence(value)
    if isinstance(value, dict):
        return {admit_evidence(key): _cleaned_json(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_cleaned_json(item) for item in value]
    return value
