"""What only the lines of a ref say: another tool added a memory, wrote it anew, or took it away."""

from __future__ import annotations

import sqlite3
from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime

from backstory.adapters.stores.gitbranch import index, local
from backstory.adapters.stores.gitbranch.reference import File, Reference
from backstory.adapters.stores.gitbranch.tree import (
    DELETIONS,
    UPDATED,
    adopted,
    digest,
    found_change,
    is_day_file,
    marked,
    parse_deletions,
    parse_ts,
    placed,
    text_of,
)
from backstory.codecs.logfmt import Deletion, Line, Record, parse_lines
from backstory.domain.history import Action, Edit
from backstory.domain.ids import MemoryId, ProjectId
from backstory.domain.memory import Active, Deleted, Memory
from backstory.domain.provenance import Origin
from backstory.errors import InputError


@dataclass(slots=True, kw_only=True)
class Reading:
    """A commit that is being read, and what was found so far. ``anew`` reads all of it, as if the store knew nothing.

    ``settled`` are the memories that were put into the store, ``last`` the changes that made them what they are.
    ``expected`` says how many lines of a digest the changes explain, ``by_digest`` whose they are; ``problems`` are
    changes and lines that cannot be read, and are left where they are.
    """

    raw: sqlite3.Connection
    reference: Reference
    tip: str
    project: ProjectId | None
    anew: bool
    problems: list[str] = field(default_factory=list)
    settled: dict[MemoryId, Memory] = field(default_factory=dict)
    last: dict[MemoryId, str] = field(default_factory=dict)
    expected: Counter[str] = field(default_factory=Counter)
    by_digest: defaultdict[str, list[MemoryId]] = field(default_factory=lambda: defaultdict(list))


class ForeignLines:
    """The lines that no change explains."""

    def __init__(self, reading: Reading) -> None:
        self._raw = reading.raw
        self._reference = reading.reference
        self._reading = reading

    def take(self, files: Sequence[File]) -> None:
        """Adopt the lines that are new and unexplained, and let go of the memories whose lines are gone."""
        gone, come = self._lines(files, "old"), self._lines(files, "new")
        unexplained = Counter({told: len(lines) for told, lines in come.items()})
        unexplained.subtract({told: len(lines) for told, lines in gone.items()})
        unexplained.subtract(self._reading.expected)
        audits = self._audits() if any(count < 0 for count in unexplained.values()) else []
        added = [(told, come[told][-1]) for told, count in unexplained.items() for _ in range(count) if told in come]
        added.sort(key=lambda item: (item[1][1].record.ts if item[1][1].record else "", item[0]))
        for told, count in sorted(unexplained.items()):
            for _ in range(-count):
                self._lose(told, gone.get(told, []), audits, added)
        for _, (path, line) in added:
            self._adopt(path, line)

    def _lines(self, files: Sequence[File], side: str) -> dict[str, list[tuple[str, Line]]]:
        """The records in day files on one side, by digest, with the file each stands in."""
        meant = [file for file in files if is_day_file(file.path) and getattr(file, side) is not None]
        found: defaultdict[str, list[tuple[str, Line]]] = defaultdict(list)
        for file, data in zip(meant, self._reference.contents([getattr(file, side) for file in meant]), strict=True):
            for line in parse_lines(text_of(data)):
                if line.record is not None:
                    found[digest(line.text)].append((file.path, line))
                elif line.problem is not None and side == "new":
                    self._reading.problems.append(f"{file.path}: {line.problem}")
        return dict(found)

    def _audits(self) -> list[Deletion]:
        return list(parse_deletions(self._reference.file(self._reading.tip, DELETIONS)))

    def _lose(
        self, told: str, lines: Sequence[tuple[str, Line]], audits: Sequence[Deletion],
        added: list[tuple[str, tuple[str, Line]]],
    ) -> None:  # fmt: skip
        """A line of a memory is gone: another tool forgot the memory, or wrote it anew."""
        memory = self._memory_of(told, lines)
        if memory is None:
            return
        audit = _audit_of(lines[0][1].record if lines else None, audits)
        for position, (_, (path, line)) in enumerate(added):
            if audit is not None and _is_update(audit, line) and self._rewrite(memory, path, line):
                del added[position]
                return
        at = self._time(audit.ts if audit else None)
        reason = audit.reason if audit else None
        after = replace(memory, status=Deleted(since=at, reason=reason), revision=memory.revision + 1)
        self._derive(Edit(before=memory, after=after), Action.FORGET, at=at, reason=reason)

    def _memory_of(self, told: str, lines: Sequence[tuple[str, Line]]) -> Memory | None:
        ids = list(self._reading.by_digest.get(told, []))
        if lines:
            try:
                content = adopted(lines[0][1], lines[0][0], nth=0, namespace="", project=None).content
            except InputError:
                return None
            ids += [memory.id for memory in index.memories_saying(self._raw, content, self._reference.name)]
        for memory_id in ids:
            memory = index.memory(self._raw, memory_id)
            line = None if memory is None else placed(memory)
            if line is not None and line.digest == told:
                return memory
        return None

    def _rewrite(self, memory: Memory, path: str, line: Line) -> bool:
        """The original tool's update: new words in the old place, with the moment of the update as their time."""
        try:
            new = adopted(line, path, nth=0, namespace=self._reference.namespace, project=memory.project)
        except InputError:
            return False
        at = new.times.learned
        after = replace(
            memory, content=new.content, tags=new.tags, issue=new.issue, origin=Origin.IMPORTED,
            revision=memory.revision + 1, times=replace(memory.times, updated=at, confirmed=at),
        )  # fmt: skip
        after = replace(after, provenance=replace(after.provenance, raw=marked(after, line, path).provenance.raw))
        self._derive(Edit(before=memory, after=after), Action.UPDATE, at=at)
        return True

    def _adopt(self, path: str, line: Line) -> None:
        """A line that nothing explains is somebody else's memory; or one of ours came back after it was gone."""
        if (gone := self._gone_with(path, line)) is not None:
            after = replace(gone, status=Active(), revision=gone.revision + 1)
            self._derive(Edit(before=gone, after=after), Action.UNDO, at=self._time(None))
            return
        nth = 0
        while True:
            try:
                memory = adopted(
                    line, path, nth=nth, namespace=self._reference.namespace, project=self._reading.project
                )
            except InputError as error:
                self._reading.problems.append(f"{path}: {error}")
                return
            here = index.memory(self._raw, memory.id)
            if here is None or (self._reading.anew and memory.id not in self._reading.settled):
                break
            nth += 1
        self._derive(Edit(before=None, after=replace(memory, revision=1)), Action.ADD, at=memory.times.learned)

    def _gone_with(self, path: str, line: Line) -> Memory | None:
        """The forgotten memory that had this line."""
        try:
            content = adopted(line, path, nth=0, namespace="", project=None).content
        except InputError:
            return None
        for memory in index.memories_saying(self._raw, content, self._reference.name):
            if isinstance(memory.status, Deleted) and not (
                self._reading.anew and memory.id not in self._reading.settled
            ):
                standing = placed(replace(memory, status=Active()))
                if standing is not None and standing.digest == digest(line.text):
                    return memory
        return None

    def _derive(self, edit: Edit, action: Action, *, at: datetime, reason: str | None = None) -> None:
        stored = local.put(self._raw, edit.after)
        self._reading.settled[stored.id] = stored
        index.stand_on(self._raw, stored.id, self._reference.name, recorded=False, head=stored.revision, claimed=None)
        change = found_change(replace(edit, after=stored), action, at=at, reason=reason)
        if not index.knows_change(self._raw, change.id):
            local.insert_change(self._raw, change)
        index.note_change(self._raw, change.id, self._reference.name, recorded=False, own=False, local=False)
        self._reading.last[stored.id] = change.id

    def _time(self, text: str | None) -> datetime:
        try:
            if text is not None:
                return parse_ts(text)
        except InputError:
            pass
        return datetime.fromtimestamp(self._reference.committed_at(self._reading.tip), UTC)


def _audit_of(record: Record | None, audits: Sequence[Deletion]) -> Deletion | None:
    """The last audit line about a record; labels do not matter."""
    if record is None:
        return None
    meant = (record.ts, record.type, record.scope, record.content)
    found = [
        audit
        for audit in audits
        if (audit.record.ts, audit.record.type, audit.record.scope, audit.record.content) == meant
    ]
    return found[-1] if found else None


def _is_update(audit: Deletion, line: Line) -> bool:
    record = line.record
    return record is not None and (record.type, record.scope, f"{UPDATED}{record.content}") == (
        audit.record.type,
        audit.record.scope,
        audit.reason,
    )
