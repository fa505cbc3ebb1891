"""Take what a host tells about its sessions into the archive: once each, cleaned, and never what we put there."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from backstory.domain.admission import admit_evidence
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
_RECENT_BLOCKS = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Prompt:
    """A user's message as it is typed, before the model sees it."""

    text: str
    message: MessageId
    session: SessionId
    agent: str | None = None


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
        if not self._capture:
            return Captured()
        found = capture(strip_injected(strip_private(prompt.text)))
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
                tags=(CAPTURED_TAG,),
                origin=Origin.USER,
                source=Source.CAPTURED,
                provenance=Provenance(session=prompt.session, messages=(prompt.message,), agent=prompt.agent),
                key=f"capture:{prompt.message}:{position}",
            )
            try:
                remembered.append(await self._remember.remember(draft, viewer=viewer, author=Author.USER))
            except InputError as error:
                refused.append(str(error))
        return Captured(remembered=tuple(remembered), refused=tuple(refused))

    async def take_session(self, session: Session) -> None:
        """Add a session, or bring it up to date."""
        if self._archive:
            title = None if session.title is None else admit_evidence(session.title)
            await self._store.put_session(replace(session, title=title))

    async def take_messages(self, messages: Sequence[Message]) -> None:
        """Add messages, or bring them up to date; parts are cleaned. Also for catching up after missed events."""
        if self._archive and messages:
            await self._store.put_messages([_cleaned_message(message) for message in messages])

    async def take_part(self, part: Part, *, message: MessageId, session: SessionId) -> None:
        """Add a part, or replace it."""
        if self._archive:
            await self._store.put_part(_cleaned(part, None), message=message, session=session)

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
    """A part without secrets, private text and our own blocks, whoever wrote it."""
    text = admit_evidence(strip_injected(part.text) if role is not Role.ASSISTANT else part.text)
    detail = None if part.detail is None else admit_evidence(part.detail)
    return replace(part, text=text, detail=detail)
