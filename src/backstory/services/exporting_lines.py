"""Everything as lines of our own format, one after the other, so that a store of any size is written in little memory.

What may leave is as in ``exporting.py``; how a line looks is in ``codecs/jsonl_records.py``.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime

from backstory.codecs.jsonl import encode_line
from backstory.codecs.jsonl_records import (
    Object,
    change_object,
    digest_objects,
    header_object,
    keepsake_object,
    memory_object,
    message_objects,
    session_object,
)
from backstory.codecs.record import format_time
from backstory.domain.blob import Blob
from backstory.domain.conversation import Message, Session
from backstory.domain.history import Change, Edit, with_counted
from backstory.domain.ids import ChangeId, MemoryId, SessionId
from backstory.domain.memory import Memory
from backstory.domain.scope import Viewer, may_read
from backstory.domain.selection import Selection
from backstory.domain.time_range import TimeRange
from backstory.ports.backend import Backend
from backstory.ports.store import Order
from backstory.ports.system import Clock
from backstory.services.exporting import PAGE, ExportPolicy, Run, goes_along

MEMORIES, HISTORY, SESSIONS, KEEPSAKES = "memories", "history", "sessions", "keepsakes"
HOLDS = (MEMORIES, HISTORY, SESSIONS, KEEPSAKES)
"""What a file may hold, in the order in which it holds it but for the history, which comes before the memories."""
_ALL = 1 << 31


class ExportingLines:
    """A store as lines."""

    def __init__(self, backend: Backend, *, clock: Clock, run: Run) -> None:
        self._backend = backend
        self._clock = clock
        self._run = run

    def lines(
        self, viewer: Viewer, policy: ExportPolicy, *, holds: Iterable[str], formats: Iterable[str]
    ) -> Iterator[str]:
        """The lines of a file that holds memories and whatever else ``holds`` names: what the viewer sees. ``formats``
        are those whose keepsakes go along.

        What changes while it is written may be in it or not; a memory that stands still is.
        """
        wanted = [name for name in HOLDS if name == MEMORIES or name in set(holds)]
        for record in self._objects(viewer, policy, wanted, formats):
            yield encode_line(record)

    def _objects(
        self, viewer: Viewer, policy: ExportPolicy, holds: Sequence[str], formats: Iterable[str]
    ) -> Iterator[Object]:
        selection = Selection(viewer=viewer, now=self._clock.now(), states=policy.states)
        projects = self._run(self._backend.projects.projects())
        named = [project for project in projects.values() if viewer.all_projects or project.id == viewer.project]
        yield header_object(exported_at=format_time(self._clock.now()), holds=holds, projects=named)
        if HISTORY in holds:
            yield from self._history(selection, policy)
        gone: set[str] = set()  # the memories and sessions that have left
        for memory in self._memories(selection, policy):
            gone.add(memory.id)
            yield memory_object(memory)
        if SESSIONS in holds:
            for session in self._readable(viewer):
                gone.add(session.id)
                yield from self._session(session)
        for name in formats if KEEPSAKES in holds else ():
            for keepsake in self._run(self._backend.keepsakes.kept(name)):
                if goes_along(keepsake, gone, whole_stores=viewer.all_projects):
                    yield keepsake_object(keepsake)

    def _memories(self, selection: Selection, policy: ExportPolicy) -> Iterator[Memory]:
        """The memories, oldest first, read in pages that begin where the last one ended, however many go meanwhile."""
        since: datetime | None = None
        seen: set[MemoryId] = set()
        limit = PAGE
        while True:
            span = None if since is None else TimeRange(since=since)
            page = self._run(
                self._backend.memories.select(replace(selection, learned=span), limit=limit, order=Order.OLDEST)
            )
            fresh = [memory for memory in page if memory.id not in seen]
            yield from (memory for memory in fresh if policy.lets_out(memory))
            if len(page) < limit:
                return
            last = page[-1].times.learned
            limit = PAGE if fresh and last != since else 2 * limit  # more than a page of one moment
            same = {memory.id for memory in page if memory.times.learned == last}
            seen = seen | same if last == since else same
            since = last

    def _history(self, selection: Selection, policy: ExportPolicy) -> Iterator[Object]:
        """The changes of the memories that are exported, oldest first: first which they are, then each of them."""
        moments: dict[ChangeId, datetime] = {}
        let_out: set[MemoryId] = set()
        for memory in self._memories(selection, policy):
            let_out.add(memory.id)
            for change in self._run(self._backend.memories.history(memory=memory.id, limit=_ALL)):
                moments[change.id] = change.at
        for change_id in sorted(moments, key=lambda name: (moments[name], name)):
            known = self._run(self._backend.memories.change(change_id))
            found = None if known is None else self._let_out(known, let_out, policy)
            if found is not None:
                yield change_object(found)

    def _let_out(self, change: Change, let_out: set[MemoryId], policy: ExportPolicy) -> Change | None:
        """A change with the edits that may leave; None where none of them may. How often a memory was used is no
        decision, and is told with its first one."""
        current = self._run(self._backend.memories.get([edit.after.id for edit in change.edits]))
        edits = [edit for edit in change.edits if edit.after.id in let_out and _may_leave(edit, policy)]
        if not edits:
            return None
        return replace(change, edits=tuple(_counted(edit, current) for edit in edits))

    def _readable(self, viewer: Viewer) -> Sequence[Session]:
        sessions = self._run(self._backend.conversations.sessions(limit=_ALL))
        readable = [session for session in sessions if may_read(session, viewer)]
        return sorted(readable, key=lambda session: (session.created_at, session.id))

    def _session(self, session: Session) -> Iterator[Object]:
        yield session_object(session)
        for message in self._messages(session.id):
            yield from message_objects(message, self._blobs(message))
        digest = self._run(self._backend.digests.digest(session.id))
        if digest is not None:
            yield from digest_objects(digest)

    def _messages(self, session: SessionId) -> Iterator[Message]:
        offset = 0
        while page := self._run(self._backend.conversations.messages(session, limit=PAGE // 5, offset=offset)):
            yield from page
            offset += len(page)

    def _blobs(self, message: Message) -> Iterator[Blob]:
        for name in dict.fromkeys(ref.hash for part in message.parts for ref in part.blobs):
            blob = self._run(self._backend.conversations.blob(name))
            if blob is not None:
                yield blob


def _may_leave(edit: Edit, policy: ExportPolicy) -> bool:
    return policy.lets_out(edit.after) and (edit.before is None or policy.lets_out(edit.before))


def _counted(edit: Edit, current: Mapping[MemoryId, Memory]) -> Edit:
    now = current.get(edit.after.id)
    return edit if now is None or edit.before is not None else replace(edit, after=with_counted(edit.after, of=now))
