"""A file that holds everything, as the records of a foreign store and back (docs/reference/jsonl-format.md).

Its lines say what they are by ``type``; one without is a memory, so that version 1 is read by the same rules.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace

from backstory.codecs.evidence import (
    decode_blob,
    decode_digest_state,
    decode_message,
    decode_piece,
    decode_session,
    encode_digest,
    encode_piece,
    encode_session,
)
from backstory.codecs.fields import Fields, as_object
from backstory.codecs.jsonl import FORMAT, WHOLE_VERSION, BadLine, Entry, Header, decode_entries, memory_line
from backstory.codecs.messages import encode_blob, encode_message
from backstory.codecs.record import decode_memory, encode_memory, format_time
from backstory.domain.blob import Blob
from backstory.domain.conversation import Message, Session
from backstory.domain.digest import DigestState, Piece, SessionDigest
from backstory.domain.history import Action, Author, Change, Edit
from backstory.domain.ids import ChangeId, MemoryId, SessionId, is_ulid
from backstory.domain.interchange import (
    ForeignDigest,
    ForeignHistory,
    ForeignMemory,
    ForeignMessages,
    ForeignRecord,
    ForeignSession,
    Keepsake,
    Remark,
    Unreadable,
)
from backstory.domain.memory import Memory
from backstory.domain.project import Project
from backstory.errors import InputError

Object = dict[str, object]
MOST_WAITING_BYTES = 64_000_000
"""Of contents that stand before the message that refers to them."""
_PARTS_MAX_CHARS = 1_000_000
_CHANGE_FIELDS = frozenset({"id", "at", "author", "action", "reason", "session", "undoes", "key", "edits"})


def header_object(*, exported_at: str, holds: Iterable[str], projects: Iterable[Project]) -> Object:
    """The first line of a file that may hold everything."""
    places = [{"id": project.id, "name": project.name, "root": project.root} for project in projects]
    return {
        "format": FORMAT, "version": WHOLE_VERSION, "exported_at": exported_at, "holds": list(holds),
        "projects": places,
    }  # fmt: skip


def memory_object(memory: Memory) -> Object:
    """A line with a memory."""
    return {"type": "memory", **encode_memory(memory)}


def session_object(session: Session) -> Object:
    """A line with a session."""
    return {"type": "session", **encode_session(session)}


def message_objects(message: Message, blobs: Iterable[Blob]) -> Iterator[Object]:
    """The lines of a message: contents that it refers to, and the message. A large one takes several lines, each with
    some of its parts."""
    for blob in blobs:
        yield {"type": "blob", **encode_blob(blob)}
    waiting: list[int] = []
    size = 0
    for number, part in enumerate(message.parts):
        length = len(part.text) + len(part.detail or "")
        if waiting and size + length > _PARTS_MAX_CHARS:
            yield _some_parts(message, waiting)
            waiting, size = [], 0
        waiting.append(number)
        size += length
    yield _some_parts(message, waiting)


def _some_parts(message: Message, numbers: list[int]) -> Object:
    return {"type": "message", **encode_message(replace(message, parts=tuple(message.parts[n] for n in numbers)))}


def digest_objects(digest: SessionDigest) -> Iterator[Object]:
    """The lines of a digest: its state, then each piece."""
    yield {"type": "digest", **encode_digest(digest)}
    for piece in digest.pieces:
        yield {"type": "piece", **encode_piece(piece)}


def keepsake_object(keepsake: Keepsake) -> Object:
    """A line with a keepsake."""
    return {"type": "keepsake", **{name: getattr(keepsake, name) for name in Keepsake.__slots__}}


def change_object(change: Change) -> Object:
    """A line with a change of the history."""
    edits = [
        {"before": None if edit.before is None else encode_memory(edit.before), "after": encode_memory(edit.after)}
        for edit in change.edits
    ]
    return {
        "type": "change", "id": change.id, "at": format_time(change.at), "author": change.author.value,
        "action": change.action.value, "reason": change.reason, "session": change.session, "undoes": change.undoes,
        "key": change.key, "edits": edits,
    }  # fmt: skip


def foreign_records(lines: Iterable[str | BadLine]) -> Iterator[ForeignRecord]:
    """The records of a file, of version 1 or 2, each bad line reported in its place.

    Raises InputError at the first record where the first line is not a header that is known here.
    """
    header, entries = decode_entries(lines)
    reading = _Reading(header)
    for entry in entries:
        yield from reading.take(entry)
    yield from reading.finish()


class _Reading:
    """What of a file is read and not yet complete: a message with its contents, or a digest."""

    def __init__(self, header: Header) -> None:
        self._header = header
        self._blobs: list[Blob] = []
        self._message: tuple[Message, str] | None = None
        self._digest: tuple[DigestState, int, list[Piece], str] | None = None

    def take(self, entry: Entry) -> Iterator[ForeignRecord]:
        """Read one line more."""
        where = f"line {entry.number}"
        if entry.record is None:
            yield Unreadable(where=where, reason=entry.error or "it cannot be read")
            return
        kind = entry.record.pop("type", "memory") if self._header.version == WHOLE_VERSION else "memory"
        try:
            if kind == "memory":
                yield from self._memory(entry, where)
            elif kind == "blob":
                self._keep_blob(decode_blob(entry.record))
            elif kind == "message":
                yield from self._take_message(decode_message(entry.record), where)
            elif kind == "piece":
                self._take_piece(decode_piece(entry.record))
            else:
                yield from self.finish()
                yield from self._whole(str(kind)[:60], entry.record, where)
        except InputError as error:
            yield Unreadable(where=where, reason=str(error))

    def finish(self) -> Iterator[ForeignRecord]:
        """What was waiting for more of it."""
        if self._message is not None:
            message, where = self._message
            yield ForeignMessages(session=message.session, messages=(message,), blobs=tuple(self._blobs), where=where)
            self._message, self._blobs = None, []
        if self._digest is not None:
            state, wanted, pieces, where = self._digest
            self._digest = None
            if len(pieces) == wanted:
                yield ForeignDigest(digest=SessionDigest(state=state, pieces=tuple(pieces)), where=where)
            else:
                yield Unreadable(where=where, reason=f"the digest has {len(pieces)} of its {wanted} pieces")

    def _memory(self, entry: Entry, where: str) -> Iterator[ForeignRecord]:
        yield from self.finish()
        line = memory_line(entry)
        if line.memory is None:
            yield Unreadable(where=where, reason=line.error or "it cannot be read")
            return
        project = line.memory.project
        place = line.project_name if project is None else self._header.places.get(project, line.project_name)
        yield ForeignMemory(memory=line.memory, place=place if project is not None else None, where=where)

    def _whole(self, kind: str, record: Object, where: str) -> Iterator[ForeignRecord]:
        if kind == "session":
            session = decode_session(record)
            place = None if session.project is None else self._header.places.get(session.project)
            yield ForeignSession(session=session, place=place, where=where)
        elif kind == "digest":
            state, pieces = decode_digest_state(record)
            self._digest = (state, pieces, [], where)
        elif kind == "change":
            yield ForeignHistory(change=_decode_change(record), places=self._header.places, where=where)
        elif kind == "keepsake":
            yield _decode_keepsake(record)
        else:
            yield Remark(where=where, text=f"the type {kind!r} is not known; left out")

    def _keep_blob(self, blob: Blob) -> None:
        if sum(len(known.packed) for known in self._blobs) + len(blob.packed) > MOST_WAITING_BYTES:
            raise InputError("more contents stand before one message than a message can have", field="blob")
        self._blobs.append(blob)

    def _take_message(self, message: Message, where: str) -> Iterator[ForeignRecord]:
        """A message waits for the next line, which may hold more of its parts. Contents stand before their message, so
        those read since belong to this one."""
        if self._message is not None and self._message[0].id == message.id:
            known, first = self._message
            self._message = (replace(known, parts=(*known.parts, *message.parts)), first)
            return
        if self._message is not None:
            before, first = self._message
            own = _named_in(before)
            yield ForeignMessages(
                session=before.session, messages=(before,), where=first,
                blobs=tuple(blob for blob in self._blobs if blob.hash in own),
            )  # fmt: skip
            new = _named_in(message)
            self._blobs = [blob for blob in self._blobs if blob.hash in new]
        self._message = (message, where)

    def _take_piece(self, piece: Piece) -> None:
        if self._digest is None or len(self._digest[2]) >= self._digest[1]:
            raise InputError("the piece stands outside of its digest", field="piece")
        self._digest[2].append(piece)


def _named_in(message: Message) -> frozenset[str]:
    return frozenset(ref.hash for part in message.parts for ref in part.blobs)


def _decode_keepsake(record: Mapping[str, object]) -> Keepsake:
    fields = Fields(record, known=frozenset(Keepsake.__slots__), path="")
    session, memory = fields.text("session"), fields.text("memory")
    return Keepsake(
        format=fields.required_text("format"),
        store=fields.text("store") or "",
        key=fields.required_text("key"),
        text=fields.required_text("text"),
        session=None if session is None else SessionId(session),
        memory=None if memory is None else MemoryId(memory),
    )


def _decode_change(record: Mapping[str, object]) -> Change:
    fields = Fields(record, known=_CHANGE_FIELDS, path="")
    name, at = fields.required_text("id"), fields.time("at")
    if not is_ulid(name) or at is None:
        raise InputError("a change needs a ULID as its id, and a date", field="id")
    session, undoes, edits = fields.text("session"), fields.text("undoes"), fields.raw("edits")
    if not isinstance(edits, list) or not edits:
        raise InputError("the change names no memory", field="edits")
    fields.required_text("author")
    fields.required_text("action")
    return Change(
        id=ChangeId(name),
        at=at,
        author=fields.choice("author", Author, Author.SYSTEM),
        action=fields.choice("action", Action, Action.IMPORT),
        edits=tuple(_decode_edit(as_object(edit, "edits")) for edit in edits),
        reason=fields.text("reason"),
        session=None if session is None else SessionId(session),
        undoes=None if undoes is None else ChangeId(undoes),
        key=fields.text("key"),
    )


def _decode_edit(record: Mapping[str, object]) -> Edit:
    before = record.get("before")
    return Edit(
        before=None if before is None else decode_memory(as_object(before, "edits.before")),
        after=decode_memory(as_object(record.get("after"), "edits.after")),
    )
