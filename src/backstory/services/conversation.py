"""Take what a host tells about its sessions into the archive: once each, cleaned, and never what we put there."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from functools import partial
from typing import Any, Protocol, TypeVar

from backstory.domain.admission import admit_evidence
from backstory.domain.capture import Captured as Statement
from backstory.domain.capture import capture
from backstory.domain.conversation import Message, Part, Role, Session
from backstory.domain.echo import is_echo, strip_injected
from backstory.domain.history import Author
from backstory.domain.ids import MessageId, PartId, SessionId
from backstory.domain.memory import Source
from backstory.domain.provenance import Origin, Provenance
from backstory.domain.redaction import strip_private
from backstory.domain.scope import Viewer
from backstory.errors import InputError, StoreError
from backstory.ports.conversation import ConversationStore
from backstory.ports.system import Clock
from backstory.services.remember import Draft, Remember, Remembered

CAPTURED_TAG = "user-requested"
PART_MAX_CHARS = 200_000  # of one part's text, and of its JSON; a larger one is cut, and says so
_BEYOND_CHARS = 20_000  # cleaned with what is kept, so that no secret is cut in two unseen; keys are far shorter
_RECENT_BLOCKS = 20
_PAGE = 500


@dataclass(frozen=True, slots=True, kw_only=True)
class Prompt:
    """A user's message, before the model sees it.

    ``typed`` is what a person typed of it, if that is not the whole text. ``author`` is the agent for a sub-agent's.
    ``notes`` are sentences for the block beside it, whatever else stands there.
    """

    text: str
    message: MessageId
    session: SessionId
    agent: str | None = None
    typed: str | None = None
    author: Author = Author.USER
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Captured:
    """What a prompt asked to be remembered: what was stored, and what could not be and why."""

    remembered: tuple[Remembered, ...] = ()
    refused: tuple[str, ...] = ()


T = TypeVar("T")


class Aside(Protocol):
    """Runs what takes long where it holds nobody up."""

    def __call__(self, fn: Callable[[], T], /) -> Awaitable[T]: ...


async def at_once(fn: Callable[[], T], /) -> T:
    """No aside at all, for callers whom nobody waits for."""
    return fn()


class Conversations:
    """The archive of evidence, and capture from prompts."""

    def __init__(
        self,
        store: ConversationStore,
        remember: Remember,
        *,
        clock: Clock,
        archive: bool,
        capture: bool,
        aside: Aside = at_once,
    ) -> None:
        """``aside`` runs the cleaning of messages, which takes up to 0.3 s for a large part."""
        self._aside = aside
        self._unstored: set[MessageId] = set()
        self._store = store
        self._remember = remember
        self._clock = clock
        self._archive = archive
        self._capture = capture

    async def capture(self, prompt: Prompt, viewer: Viewer) -> Captured:
        """Store what the prompt asks to be remembered, without a model.

        A prompt delivered again stores nothing more. Text that we injected ourselves is never captured. A statement
        that cannot be stored (too long, all private) is refused with a reason and does not stop the others. When the
        store fails, the whole call may be repeated; ``failed`` tells of it.
        """
        found = self._statements(prompt)
        if not found:
            return Captured()
        try:
            return await self._store_all(found, prompt, viewer)
        except StoreError:
            self._unstored.add(prompt.message)
            raise

    async def _store_all(self, found: Sequence[Statement], prompt: Prompt, viewer: Viewer) -> Captured:
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
        return bool(self._statements(prompt))

    def failed(self, message: MessageId) -> bool:
        """Whether the store failed when this message was captured last. Tells it once."""
        failed = message in self._unstored
        self._unstored.discard(message)
        return failed

    def _statements(self, prompt: Prompt) -> list[Statement]:
        text = prompt.text if prompt.typed is None else prompt.typed
        return capture(strip_injected(strip_private(text))) if self._capture else []

    async def take_session(self, session: Session) -> None:
        """Add a session, or bring it up to date."""
        if self._archive:
            await self._store.put_session(
                replace(session, title=_cleaned_name(session.title), directory=admit_evidence(session.directory))
            )

    async def take_messages(self, messages: Sequence[Message]) -> None:
        """Add messages, or bring them up to date; parts are cleaned. Also for catching up after missed events."""
        if self._archive and messages:
            await self._store.put_messages(await self._aside(lambda: list(map(_cleaned_message, messages))))

    async def take_part(self, part: Part, *, message: MessageId, session: SessionId, role: Role | None = None) -> None:
        """Add a part, or replace it. ``role`` is who speaks; None when that is not known."""
        if self._archive:
            cleaned = await self._aside(partial(_cleaned, part, role))
            await self._store.put_part(cleaned, message=message, session=session)

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
    return replace(
        message,
        agent=_cleaned_name(message.agent),
        model=_cleaned_name(message.model),
        parts=tuple(_cleaned(part, message.role) for part in message.parts),
    )


def _cleaned_name(name: str | None) -> str | None:
    return None if name is None else _cleaned_text(name)


def _cleaned(part: Part, role: Role | None) -> Part:
    """A part without secrets and private text, whoever wrote it, and a user's without our own blocks."""
    pasted = part.kind == "text" and role is not Role.ASSISTANT
    text = _cleaned_text(part.text, without_blocks=pasted)
    detail = None if part.detail is None else _cleaned_detail(part.detail)
    return replace(part, kind=_cleaned_text(part.kind), text=text, tool=_cleaned_name(part.tool), detail=detail)


def _cleaned_text(text: str, *, without_blocks: bool = False) -> str:
    """The text cleaned. One that is too long is cut first, since cleaning takes time for every character, and ends
    with its size."""
    if len(text) <= PART_MAX_CHARS:
        return admit_evidence(strip_injected(text) if without_blocks else text)
    start = text[: PART_MAX_CHARS + _BEYOND_CHARS]
    start = admit_evidence(strip_injected(start) if without_blocks else start)
    # what was masked has moved the rest to the front: the end, where a secret may be cut in two, goes in any case
    start = start[: max(0, min(PART_MAX_CHARS, len(start) - _BEYOND_CHARS))]
    return f"{start}\n[cut: the whole had {len(text):,} characters]"


def _cleaned_detail(detail: str) -> str:
    """JSON, cleaned text by text, since JSON writes line breaks and quotes in signs of its own; then as a whole, since
    a secret's name may be the key and the secret the value."""
    size = len(detail)
    with contextlib.suppress(ValueError, RecursionError):  # not JSON after all: cleaned as the text it is
        detail = json.dumps(_Cleaning().clean(json.loads(detail)), ensure_ascii=False)
    if len(detail) <= PART_MAX_CHARS:
        return admit_evidence(detail)
    start = admit_evidence(detail[: PART_MAX_CHARS + _BEYOND_CHARS])
    start = start[: max(0, min(PART_MAX_CHARS, len(start) - _BEYOND_CHARS))]
    return json.dumps({"cut": size, "start": start}, ensure_ascii=False)


class _Cleaning:
    """Cleans the texts in one JSON value until ``PART_MAX_CHARS`` are reached; the later ones are left out."""

    def __init__(self) -> None:
        self._left = PART_MAX_CHARS

    def clean(self, value: Any) -> Any:  # Any: JSON of any shape
        if isinstance(value, str):
            if self._left <= 0:
                return "[cut]"
            self._left -= len(value)
            return _cleaned_text(value)
        if isinstance(value, dict):
            return {self.clean(key): self.clean(item) for key, item in value.items()}
        if isinstance(value, list):
            return [self.clean(item) for item in value]
        return value
