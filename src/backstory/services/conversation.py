"""Take what a host tells about its sessions into the archive: once each, cleaned, and never what we put there."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from datetime import datetime
from functools import partial
from typing import Protocol, TypeVar

from backstory.domain.admission import admit_evidence
from backstory.domain.capture import MOST_CAPTURED
from backstory.domain.capture import Captured as Statement
from backstory.domain.conversation import Message, Part, Role, Session
from backstory.domain.echo import is_echo
from backstory.domain.history import Author
from backstory.domain.ids import MessageId, PartId, SessionId
from backstory.domain.memory import Source
from backstory.domain.part_admission import CleanedTexts, KeepLimits, admit_message, admit_name, admit_part, blobs_once
from backstory.domain.provenance import Origin, Provenance
from backstory.domain.scope import Viewer
from backstory.errors import InputError, StoreError
from backstory.ports.conversation import ConversationStore
from backstory.ports.system import Clock
from backstory.services.remember import Draft, Remember, Remembered
from backstory.services.wishes import Captured, Prompt, wishes

__all__ = ["CAPTURED_TAG", "Aside", "Captured", "Conversations", "Prompt", "at_once"]

CAPTURED_TAG = "user-requested"
_RECENT_BLOCKS = 20
_PAGE = 500


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
        keep: KeepLimits | None = None,
        aside: Aside = at_once,
    ) -> None:
        """``keep`` says what of a part is set apart as too large. ``aside`` runs the cleaning of messages, which takes
        up to 2 s for the largest part."""
        self._keep = keep or KeepLimits()
        self._cleaned = CleanedTexts()
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
        if len(found) == MOST_CAPTURED:
            refused.append(f"of one message only the first {MOST_CAPTURED} requests are kept; it may have more")
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
        return wishes(prompt) if self._capture else []

    async def take_session(self, session: Session) -> None:
        """Add a session, or bring it up to date."""
        if self._archive:
            await self._store.put_session(
                replace(session, title=admit_name(session.title), directory=admit_evidence(session.directory))
            )

    async def take_messages(self, messages: Sequence[Message]) -> None:
        """Add messages, or bring them up to date; parts are cleaned. Also for catching up after missed events."""
        if self._archive and messages:
            admitted = await self._aside(
                lambda: [admit_message(message, self._keep, self._cleaned) for message in messages]
            )
            await self._store.put_messages([item.message for item in admitted], blobs=blobs_once(admitted))

    async def take_part(self, part: Part, *, message: MessageId, session: SessionId, role: Role | None = None) -> None:
        """Add a part, or replace it. ``role`` is who speaks; None when that is not known."""
        if self._archive:
            admitted = await self._aside(partial(admit_part, part, role, self._keep, self._cleaned))
            await self._store.put_part(admitted.part, message=message, session=session, blobs=admitted.blobs)

    async def mark_missing(self, session: SessionId, history: Sequence[Message]) -> list[MessageId]:
        """Mark what the host took back unheard: kept messages between the first and last of its ``history``, but not
        in it. Returns those that were not marked yet."""
        if not self._archive or not history:
            return []
        told = {message.id for message in history}
        times = [message.created_at for message in history]
        offset = 0
        missing: list[MessageId] = []
        while kept := await self._store.messages(session, limit=_PAGE, offset=offset):
            for message in kept:
                if message.id not in told and min(times) <= message.created_at <= max(times):
                    await self._store.mark_removed(message.id, at=self._clock.now())
                    if message.removed_at is None:
                        missing.append(message.id)
            offset += len(kept)
        return missing

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
