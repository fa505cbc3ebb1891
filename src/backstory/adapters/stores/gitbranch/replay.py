"""From the ref to the local store: what changed there since the store last looked, whoever wrote it.

The store stands for one commit of each ref. After a replay the lines of that commit are those of the memories that are
believed here: a line that no change explains is somebody else's memory, and one that is missing was taken away.
"""

from __future__ import annotations

import logging
import sqlite3
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime

from backstory.adapters.stores.gitbranch import index
from backstory.adapters.stores.gitbranch.reference import File, Reference
from backstory.adapters.stores.gitbranch.tree import (
    CHANGES,
    DELETIONS,
    PROJECTS,
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
from backstory.adapters.stores.sqlite.rows import to_us
from backstory.codecs.change import decode_change
from backstory.codecs.logfmt import Deletion, Line, Record, parse_lines
from backstory.domain.history import Action, Change, Edit
from backstory.domain.ids import ChangeId, MemoryId, ProjectId, is_ulid
from backstory.domain.memory import Active, Deleted, Memory
from backstory.domain.provenance import Origin, trust
from backstory.errors import InputError

log = logging.getLogger(__name__)


@dataclass(slots=True)
class Replayed:
    """What a replay found: changes and lines that cannot be read, and are left where they are."""

    problems: list[str] = field(default_factory=list)


def replay(
    raw: sqlite3.Connection, reference: Reference, tip: str, *, project: ProjectId | None, trusted: bool
) -> Replayed:
    """Bring the store to a commit. ``project`` is this repository's, as it is known here.

    What was not written here is not believed about its origin unless ``trusted``: whoever can push could otherwise put
    words into the user's mouth. Costs one process and a read of what is new; all of it where the ref was set back.
    """
    known = index.known_tip(raw, reference.name)
    if known is not None and reference.reader.read(f"{known}^{{tree}}") is None:
        known = None
    files = reference.files_between(known, tip)
    if known is not None and any(file.path.startswith(CHANGES) and file.old is not None for file in files):
        known, files = None, reference.files_between(None, tip)
    work = _Replay(raw, reference, tip, project=project, trusted=trusted, anew=known is None)
    work.run(files)
    index.set_tip(raw, reference.name, tip)
    for problem in work.found.problems:
        log.warning("event=unreadable ref=%s what=%s", reference.name, problem)
    return work.found


class _Replay:
    def __init__(
        self, raw: sqlite3.Connection, reference: Reference, tip: str, *, project: ProjectId | None, trusted: bool,
        anew: bool,
    ) -> None:  # fmt: skip
        self.raw = raw
        self.reference = reference
        self.tip = tip
        self.project = project
        self.trusted = trusted
        self.anew = anew
        self.found = Replayed()
        self.own = index.own_changes(raw)
        self.known_as: set[str] = set()
        self.settled: dict[MemoryId, Memory] = {}
        self.last: dict[MemoryId, str] = {}
        self.claims: dict[tuple[ChangeId, MemoryId], Origin] = {}
        self.expected: Counter[str] = Counter()
        self.by_digest: defaultdict[str, list[MemoryId]] = defaultdict(list)

    def run(self, files: Sequence[File]) -> None:
        before = index.memories_on(self.raw, self.reference.name) if self.anew else set()
        if self.anew:
            index.drop_history(self.raw, self.reference.name)
        self.known_as = self._projects()
        self._take_changes([file for file in files if file.path.startswith(CHANGES) and file.new is not None])
        self._take_lines(files)
        for gone in before - set(self.settled):
            index.drop_memory(self.raw, gone)
        for memory_id, last in self.last.items():
            index.make_one_line(self.raw, memory_id, last=ChangeId(last))

    def _projects(self) -> set[str]:
        tree = self.reference.reader.read(f"{self.tip}:{PROJECTS.rstrip('/')}")
        if tree is None:
            return set()
        listed = self.reference.git.run("ls-tree", "--name-only", "--full-tree", self.tip, PROJECTS).decode(
            "ascii", "replace"
        )
        names = (name.removeprefix(PROJECTS).removesuffix(".json") for name in listed.splitlines())
        return {name for name in names if is_ulid(name)}

    # --- what was written down --------------------------------------------------------------------------------------

    def _take_changes(self, files: Sequence[File]) -> None:
        changes = sorted(self._read_changes(files), key=lambda change: (change.at, change.id))
        candidates: defaultdict[MemoryId, list[tuple[int, int, str, Memory]]] = defaultdict(list)
        for change in changes:
            for edit in change.edits:
                candidates[edit.after.id].append((edit.after.revision, to_us(change.at), change.id, edit.after))
                elsewhere = index.ref_of(self.raw, edit.after.id) not in (None, self.reference.name)
                if elsewhere and edit.before is not None and not self.anew:
                    self._expect(edit.before, -1)
        newest = {memory_id: self._newest(memory_id, images) for memory_id, images in candidates.items()}
        for image, _, is_new in newest.values():  # two may have exchanged numbers, or one left its number to another
            if is_new:
                index.vacate(self.raw, image, self.reference.name)
        self.last |= {memory_id: index.last_decision(self.raw, memory_id)[1] for memory_id in newest}
        for image, change_id, is_new in newest.values():
            self._settle(image, change_id if is_new else None)
        for change in changes:
            if not index.knows_change(self.raw, change.id):
                index.insert_change(self.raw, change)
            index.note_change(self.raw, change.id, self.reference.name, recorded=True, own=change.id in self.own,
                              local=False)  # fmt: skip

    def _read_changes(self, files: Sequence[File]) -> Iterable[Change]:
        contents = self.reference.contents([file.new for file in files if file.new is not None])
        for file, data in zip(files, contents, strict=True):
            try:
                yield self._here(decode_change(data.decode("utf-8", "replace")))
            except InputError as error:
                self.found.problems.append(f"{file.path}: {error}")

    def _here(self, change: Change) -> Change:
        """A change as it counts here: with this repository's project under the id it has here, and with no more trust
        than the change deserves."""
        believed = self.trusted or change.id in self.own
        edits = []
        for edit in change.edits:
            before = None if edit.before is None else self._image_here(edit.before, believed=believed)
            after = self._image_here(edit.after, believed=believed)
            if after.origin is not edit.after.origin:
                self.claims[change.id, after.id] = edit.after.origin
            edits.append(Edit(before=before, after=after))
        return replace(change, edits=tuple(edits))

    def _image_here(self, image: Memory, *, believed: bool) -> Memory:
        if self.project is not None and image.project in self.known_as:
            image = replace(image, project=self.project)
        if believed or trust(image.origin) <= trust(Origin.PEER):
            return image
        here = index.memory(self.raw, image.id)
        known = here is not None and here.content == image.content
        return replace(image, origin=here.origin if here is not None and known else Origin.PEER)

    def _newest(self, memory_id: MemoryId, images: list[tuple[int, int, str, Memory]]) -> tuple[Memory, ChangeId, bool]:
        """The image that counts, of the highest revision the newest decision; the change it is from; and whether it is
        new here."""
        revision, at, change_id, image = max(images, key=lambda item: item[:3])
        current = None if self.anew else self._current(memory_id)
        if current is not None:
            here = (index.head_of(self.raw, memory_id), *index.last_decision(self.raw, memory_id))
            if here > (revision, at, change_id):
                return current, ChangeId(here[2]), False
        return image, ChangeId(change_id), True

    def _current(self, memory_id: MemoryId) -> Memory | None:
        """A memory of this ref as it is known here."""
        stands_here = index.ref_of(self.raw, memory_id) == self.reference.name
        return index.memory(self.raw, memory_id) if stands_here else None

    def _settle(self, image: Memory, change_id: ChangeId | None) -> None:
        here = index.memory(self.raw, image.id)
        stands_on = None if here is None else index.ref_of(self.raw, image.id)
        if here is not None and stands_on is None and placed(image) is None:
            return  # it is kept here alone, and the ref has no line of it
        if here is not None and stands_on not in (None, self.reference.name):
            self._expect(image, 1)
            return  # another ref has it too, and comes first
        if stands_on is not None and here is not None and not self.anew:
            self._expect(here, -1)
        if change_id is None:
            index.record(self.raw, image.id)
        else:
            image = self._believed(image, change_id)
        self._expect(image, 1)

    def _believed(self, image: Memory, change_id: ChangeId) -> Memory:
        claimed = self.claims.get((change_id, image.id))
        stored = index.put(self.raw, image)
        index.stand_on(
            self.raw, image.id, self.reference.name, recorded=True, head=image.revision,
            claimed=None if claimed is None else claimed.value,
        )  # fmt: skip
        self.settled[image.id] = stored
        self.last[image.id] = change_id
        return stored

    def _expect(self, memory: Memory, count: int) -> None:
        line = placed(memory)
        if line is not None:
            self.expected[line.digest] += count
            self.by_digest[line.digest].append(memory.id)

    # --- what only lines say ----------------------------------------------------------------------------------------

    def _take_lines(self, files: Sequence[File]) -> None:
        gone, come = self._lines(files, "old"), self._lines(files, "new")
        unexplained = Counter({told: len(lines) for told, lines in come.items()})
        unexplained.subtract({told: len(lines) for told, lines in gone.items()})
        unexplained.subtract(self.expected)
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
        for file, data in zip(meant, self.reference.contents([getattr(file, side) for file in meant]), strict=True):
            for line in parse_lines(text_of(data)):
                if line.record is not None:
                    found[digest(line.text)].append((file.path, line))
                elif line.problem is not None and side == "new":
                    self.found.problems.append(f"{file.path}: {line.problem}")
        return dict(found)

    def _audits(self) -> list[Deletion]:
        return list(parse_deletions(self.reference.file(self.tip, DELETIONS)))

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
        ids = list(self.by_digest.get(told, []))
        if lines:
            try:
                content = adopted(lines[0][1], lines[0][0], nth=0, namespace="", project=None).content
            except InputError:
                return None
            ids += [memory.id for memory in index.memories_saying(self.raw, content, self.reference.name)]
        for memory_id in ids:
            memory = index.memory(self.raw, memory_id)
            line = None if memory is None else placed(memory)
            if line is not None and line.digest == told:
                return memory
        return None

    def _rewrite(self, memory: Memory, path: str, line: Line) -> bool:
        """The original tool's update: new words in the old place, with the moment of the update as their time."""
        try:
            new = adopted(line, path, nth=0, namespace=self.reference.namespace, project=memory.project)
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
                memory = adopted(line, path, nth=nth, namespace=self.reference.namespace, project=self.project)
            except InputError as error:
                self.found.problems.append(f"{path}: {error}")
                return
            here = index.memory(self.raw, memory.id)
            if here is None or (self.anew and memory.id not in self.settled):
                break
            nth += 1
        self._derive(Edit(before=None, after=replace(memory, revision=1)), Action.ADD, at=memory.times.learned)

    def _gone_with(self, path: str, line: Line) -> Memory | None:
        """The forgotten memory that had this line."""
        try:
            content = adopted(line, path, nth=0, namespace="", project=None).content
        except InputError:
            return None
        for memory in index.memories_saying(self.raw, content, self.reference.name):
            if isinstance(memory.status, Deleted) and not (self.anew and memory.id not in self.settled):
                standing = placed(replace(memory, status=Active()))
                if standing is not None and standing.digest == digest(line.text):
                    return memory
        return None

    def _derive(self, edit: Edit, action: Action, *, at: datetime, reason: str | None = None) -> None:
        stored = index.put(self.raw, edit.after)
        self.settled[stored.id] = stored
        index.stand_on(self.raw, stored.id, self.reference.name, recorded=False, head=stored.revision, claimed=None)
        change = found_change(replace(edit, after=stored), action, at=at, reason=reason)
        if not index.knows_change(self.raw, change.id):
            index.insert_change(self.raw, change)
        index.note_change(self.raw, change.id, self.reference.name, recorded=False, own=False, local=False)
        self.last[stored.id] = change.id

    def _time(self, text: str | None) -> datetime:
        try:
            if text is not None:
                return parse_ts(text)
        except InputError:
            pass
        return datetime.fromtimestamp(self.reference.committed_at(self.tip), UTC)


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
