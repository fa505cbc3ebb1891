"""Sessions of a file into the archive: as evidence that a file told, beside what hosts tell and never in its place."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from backstory.domain.admission import admit_evidence
from backstory.domain.attached_text import kept_bytes
from backstory.domain.blob import Blob, content_of, make_blob
from backstory.domain.conversation import BlobHash, Message, Part, Session
from backstory.domain.ids import MessageId, PartId, SessionId
from backstory.domain.interchange import (
    HISTORY_HOST,
    IMPORTED_HOST,
    ForeignMessages,
    ForeignSession,
    is_history,
    is_imported,
)
from backstory.domain.part_admission import AdmittedMessage, CleanedTexts, KeepLimits, admit_message, admit_name
from backstory.domain.truncation import truncate_chars
from backstory.errors import InputError
from backstory.ports.backend import Backend
from backstory.ports.system import Clock
from backstory.services.conversation import Aside
from backstory.services.import_report import ImportReport
from backstory.services.imported_places import ImportedPlaces
from backstory.services.imported_texts import FUTURE, check_aware, check_names

BATCH = 100
"""Messages that are written together."""
_PATH_MAX_CHARS = 4096
_TITLE_MAX_CHARS = 1000  # it is listed, to models too
_MOST_PARTS = 10_000


@dataclass(frozen=True, slots=True, kw_only=True)
class _Arriving:
    message: Message
    where: str
    blobs: tuple[Blob, ...]


class SessionImport:
    """The sessions and messages of one import.

    A session that a host told here is never touched, but that the person's own history adds the messages that nobody
    heard. One that a file told before gets what is new in the file.
    """

    def __init__(
        self, backend: Backend, places: ImportedPlaces, report: ImportReport, *, clock: Clock, keep: KeepLimits,
        dry_run: bool, archive: bool, aside: Aside,
    ) -> None:  # fmt: skip
        self._store = backend.conversations
        self._places = places
        self._report = report
        self._clock = clock
        self._keep = keep
        self._cleaned = CleanedTexts()
        self._dry_run = dry_run
        self._archive = archive
        self._aside = aside
        self._open: dict[SessionId, bool] = {}
        self._batch: dict[MessageId, _Arriving] = {}

    async def take_session(self, record: ForeignSession) -> None:
        """Take a session in, unless a host told it. Raises InputError for one that cannot come in."""
        session = self._admitted(record)
        if session.id in self._open:
            raise InputError(f"the session {session.id} stands twice; the first one counts", field="session")
        if not self._archive:
            self._open[session.id] = False
            self._report.remarks.add(f"{record.where}: sessions are not kept (archive.enabled is off); left out")
            return
        project = await self._places.project(record.place, named=session.project)
        known = await self._store.session(session.id)
        if not record.heard and await self._is_the_hosts(session.id, known):
            self._open[session.id] = False
            self._report.conflicts.add(f"{record.where}: the session {session.id} was told here by its host; kept")
            return
        self._open[session.id] = True
        session = replace(session, project=project if known is None else known.project)
        if known is None:
            self._report.new.sessions += 1
        elif _adds_nothing(session, known) or not (is_imported(known) or is_history(known)):
            self._report.known.sessions += 1
            return
        else:
            self._report.updated.sessions += 1
        if not self._dry_run:
            await self._store.put_session(session)

    async def take_messages(self, record: ForeignMessages) -> None:
        """Take messages in; they are written with their batch."""
        if not await self.accepts(record.session):
            return
        blobs = {blob.hash: blob for blob in record.blobs}
        for message in record.messages:
            try:
                self._take_message(message, record, blobs)
            except InputError as error:
                self._report.refused.add(f"{record.where}: message {message.id[:60]!r}: {error}")
            if len(self._batch) >= BATCH:
                await self.flush()

    async def accepts(self, session: SessionId) -> bool:
        """Whether records of a session come in. Raises InputError where no such session came before."""
        if session not in self._open:
            known = await self._store.session(session)
            if known is None or not is_imported(known):  # into a history that was heard only what it tells itself
                raise InputError(f"its session {session[:60]!r} is not there", field="session")
            self._open[session] = self._archive
        return self._open[session]

    async def flush(self) -> None:
        """Write the messages that are waiting."""
        batch, self._batch = self._batch, {}
        known = {message.id: message for message in await self._store.find_messages(list(batch))}
        owners = await self._store.part_owners([part.id for item in batch.values() for part in item.message.parts])
        wanted: list[_Arriving] = []
        for item in batch.values():
            try:
                if self._is_wanted(item, known.get(item.message.id), owners):
                    wanted.append(item)
            except InputError as error:
                self._report.refused.add(f"{item.where}: message {item.message.id!r}: {error}")
        if wanted and not self._dry_run:
            admitted = await self._aside(lambda: [self._admit(item) for item in wanted])
            blobs = {blob.hash: blob for item in admitted for blob in item.blobs}
            await self._store.put_messages([item.message for item in admitted], blobs=list(blobs.values()))

    async def _is_the_hosts(self, session: SessionId, known: Session | None) -> bool:
        if known is not None:
            return not is_imported(known)
        return bool(await self._store.message_ids(session))  # a host may tell messages before their session

    def _admitted(self, record: ForeignSession) -> Session:
        session = record.session
        check_names((session.id, session.parent, session.host))
        check_aware(session.created_at, session.updated_at, session.deleted_at)
        directory = " ".join(admit_evidence(session.directory).split())
        if len(directory) > _PATH_MAX_CHARS:
            raise InputError(f"its folder has {len(directory)} characters", field="directory")
        now = self._clock.now()
        told_by = session.host.removeprefix(IMPORTED_HOST).removeprefix(HISTORY_HOST)
        host = f"{HISTORY_HOST if record.heard else IMPORTED_HOST}{told_by}"
        return replace(
            session, host=host, title=_title(session.title), directory=directory,
            parent=None if session.parent == session.id else session.parent,
            created_at=min(session.created_at, now + FUTURE), updated_at=min(session.updated_at, now + FUTURE),
        )  # fmt: skip

    def _take_message(self, message: Message, record: ForeignMessages, blobs: dict[BlobHash, Blob]) -> None:
        if message.session != record.session:
            raise InputError("it belongs to another session", field="session")
        if message.id in self._batch:
            raise InputError("it stands twice; the first one counts", field="id")
        if len(message.parts) > _MOST_PARTS:
            raise InputError(f"it has {len(message.parts)} parts; the limit is {_MOST_PARTS}", field="parts")
        check_names((message.id, *(part.id for part in message.parts)))
        if len({part.id for part in message.parts}) < len(message.parts):
            raise InputError("two of its parts have the same id", field="parts")
        check_aware(message.created_at, message.completed_at, message.removed_at)
        if message.created_at > self._clock.now() + FUTURE:
            raise InputError(f"it is dated {message.created_at:%Y-%m-%d}, which is to come", field="created_at")
        named = {ref.hash for part in message.parts for ref in part.blobs}
        own = tuple(blobs[name] for name in named if name in blobs)
        self._batch[message.id] = _Arriving(message=message, where=record.where, blobs=own)

    def _is_wanted(self, item: _Arriving, known: Message | None, owners: Mapping[PartId, MessageId]) -> bool:
        """Whether a message is to be written, and the count of it. A finished one that is kept stays as it is."""
        message = item.message
        if known is not None and known.session != message.session:
            raise InputError("a message of another session has this id", field="id")
        if any(owners.get(part.id, message.id) != message.id for part in message.parts):
            raise InputError("a part of another message has the id of one of its parts", field="parts")
        if known is None:
            self._report.new.messages += 1
            return True
        grew = known.completed_at is None and (message.completed_at is not None or _is_longer(message, known))
        if not grew:
            self._report.known.messages += 1
            return False
        self._report.updated.messages += 1
        return True

    def _admit(self, item: _Arriving) -> AdmittedMessage:
        """The message without secrets and private passages, with the contents that came with it."""
        told = admit_message(item.message, self._keep, self._cleaned)
        brought = {name: blob for blob in item.blobs for name, blob in self._clean_blob(blob)}
        parts = tuple(
            _with_brought(part, was, brought) for part, was in zip(told.message.parts, item.message.parts, strict=True)
        )
        named = {ref.hash for part in parts for ref in part.blobs}
        blobs = {blob.hash: blob for blob in (*told.blobs, *brought.values()) if blob.hash in named}
        return AdmittedMessage(message=replace(told.message, parts=parts), blobs=tuple(blobs.values()))

    def _clean_blob(self, blob: Blob) -> Sequence[tuple[BlobHash, Blob]]:
        """A content that came with a file, under the name by which it is known there; none where it is not what its
        name says, is too large, or could not be kept as it is."""
        if blob.size > max(self._keep.attachment_bytes, 8 * 1_200_000):
            return ()
        try:
            content = content_of(blob)
        except ValueError:
            return ()
        return ((blob.hash, make_blob(content)),) if kept_bytes(content, self._cleaned.clean) == content else ()


def _title(title: str | None) -> str | None:
    name = admit_name(title)
    return None if name is None else truncate_chars(name, _TITLE_MAX_CHARS)


def _with_brought(part: Part, was: Part, brought: dict[BlobHash, Blob]) -> Part:
    """A part that still refers to the contents that came with it, as far as its texts name them."""
    said = f"{part.text}\n{part.detail}"
    refs = {ref.hash: ref for ref in part.blobs}
    for ref in was.blobs:
        if ref.hash in brought and ref.hash in said:
            refs.setdefault(ref.hash, brought[ref.hash].ref(ref.media_type))
    return replace(part, blobs=tuple(refs.values()))


def _is_longer(message: Message, known: Message) -> bool:
    return {part.id for part in message.parts} > {part.id for part in known.parts}


def _adds_nothing(session: Session, known: Session) -> bool:
    """Whether a store would stay as it is: it keeps what a second telling leaves out."""

    def newest(moment: datetime | None) -> bool:
        return moment is None or moment <= known.updated_at

    return (
        newest(session.updated_at)
        and session.title in (None, known.title)
        and session.parent in (None, known.parent)
        and (session.deleted_at is None or known.deleted_at is not None)
    )
