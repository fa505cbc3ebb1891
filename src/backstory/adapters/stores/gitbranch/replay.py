"""From the ref to the local store: what changed there since the store last looked, whoever wrote it.

The store stands for one commit of each ref. After a replay the lines of that commit are those of the memories that are
believed here: a line that no change explains is somebody else's memory, and one that is missing was taken away.
"""

from __future__ import annotations

import logging
import sqlite3
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import replace

from backstory.adapters.stores.gitbranch import index, local
from backstory.adapters.stores.gitbranch.foreign_lines import ForeignLines, Reading
from backstory.adapters.stores.gitbranch.reference import File, Reference
from backstory.adapters.stores.gitbranch.tree import (
    CHANGES,
    PROJECTS,
    is_shared,
    placed,
)
from backstory.adapters.stores.sqlite.rows import to_us
from backstory.codecs.change import decode_change
from backstory.domain.history import Change, Edit
from backstory.domain.ids import ChangeId, MemoryId, ProjectId, is_ulid
from backstory.domain.memory import Memory
from backstory.domain.provenance import Origin, trust
from backstory.errors import InputError

log = logging.getLogger(__name__)


def replay(
    raw: sqlite3.Connection, reference: Reference, tip: str, *, project: ProjectId | None, trusted: bool
) -> list[str]:
    """Bring the store to a commit. ``project`` is this repository's, as it is known here.

    What was not written here is not believed about its origin unless ``trusted``: whoever can push could otherwise put
    words into the user's mouth. Returns what cannot be read; it is left where it is. Costs one process and a read of
    what is new; all of it where the ref was set back.
    """
    known = index.known_tip(raw, reference.name)
    if known is not None and reference.reader.read(f"{known}^{{tree}}") is None:
        known = None
    files = reference.files_between(known, tip)
    if known is not None and any(file.path.startswith(CHANGES) and file.old is not None for file in files):
        known, files = None, reference.files_between(None, tip)
    reading = Reading(raw=raw, reference=reference, tip=tip, project=project, anew=known is None)
    _Replay(reading, trusted=trusted).run(files)
    index.set_tip(raw, reference.name, tip)
    for problem in reading.problems:
        log.warning("event=unreadable ref=%s what=%s", reference.name, problem)
    return reading.problems


class _Replay:
    def __init__(self, reading: Reading, *, trusted: bool) -> None:
        self._raw = reading.raw
        self._reference = reading.reference
        self._reading = reading
        self._trusted = trusted
        self._own = index.own_changes(reading.raw)
        vouched_for = index.known_tip(reading.raw, reading.reference.name) is None
        self._own_words = None if vouched_for else index.own_words(reading.raw)
        self._known_as: set[str] = set()
        self._claims: dict[tuple[ChangeId, MemoryId], Origin] = {}

    def run(self, files: Sequence[File]) -> None:
        before = index.memories_on(self._raw, self._reference.name) if self._reading.anew else set()
        if self._reading.anew:
            local.drop_history(self._raw, self._reference.name)
        self._known_as = self._projects()
        self._take_changes([file for file in files if file.path.startswith(CHANGES) and file.new is not None])
        ForeignLines(self._reading).take(files)
        for gone in before - set(self._reading.settled):
            local.drop_memory(self._raw, gone)
        for memory_id, last in self._reading.last.items():
            local.make_one_line(self._raw, memory_id, last=ChangeId(last))

    def _projects(self) -> set[str]:
        tree = self._reference.reader.read(f"{self._reading.tip}:{PROJECTS.rstrip('/')}")
        if tree is None:
            return set()
        listed = self._reference.git.look("ls-tree", "--name-only", "--full-tree", self._reading.tip, PROJECTS).decode(
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
                elsewhere = index.ref_of(self._raw, edit.after.id) not in (None, self._reference.name)
                if elsewhere and edit.before is not None and not self._reading.anew:
                    self._expect(edit.before, -1)
        newest = {memory_id: self._newest(memory_id, images) for memory_id, images in candidates.items()}
        for image, _, is_new in newest.values():  # two may have exchanged numbers, or one left its number to another
            if is_new:
                local.vacate(self._raw, image, self._reference.name)
        self._reading.last |= {memory_id: index.last_decision(self._raw, memory_id)[1] for memory_id in newest}
        for image, change_id, is_new in newest.values():
            self._settle(image, change_id if is_new else None)
        for change in changes:
            if not index.knows_change(self._raw, change.id):
                local.insert_change(self._raw, change)
            index.note_change(self._raw, change.id, self._reference.name, recorded=True, own=change.id in self._own,
                              local=False)  # fmt: skip

    def _read_changes(self, files: Sequence[File]) -> Iterable[Change]:
        contents = self._reference.contents([file.new for file in files if file.new is not None])
        for file, data in zip(files, contents, strict=True):
            try:
                yield self._here(decode_change(data.decode("utf-8", "replace")))
            except InputError as error:
                self._reading.problems.append(f"{file.path}: {error}")

    def _here(self, change: Change) -> Change:
        """A change as it counts here: with this repository's project under the id it has here, and with no more trust
        than the change deserves."""
        edits = []
        for edit in change.edits:
            before = None if edit.before is None else self._image_here(edit.before, change.id)
            after = self._image_here(edit.after, change.id)
            if after.origin is not edit.after.origin:
                self._claims[change.id, after.id] = edit.after.origin
            edits.append(Edit(before=before, after=after))
        return replace(change, edits=tuple(edits))

    def _image_here(self, image: Memory, change: ChangeId) -> Memory:
        if self._reading.project is not None and image.project in self._known_as:
            image = replace(image, project=self._reading.project)
        if self._trusted or trust(image.origin) <= trust(Origin.PEER) or self._is_ours(image, change):
            return image
        here = index.memory(self._raw, image.id)
        known = here is not None and here.content == image.content
        return replace(image, origin=here.origin if here is not None and known else Origin.PEER)

    def _is_ours(self, image: Memory, change: ChangeId) -> bool:
        """Whether a change made here says this, in these words and of this origin. Its name alone proves nothing: the
        file of it can be written anew by whoever pushes."""
        if change not in self._own or self._own_words is None:
            return change in self._own
        return (image.content, image.origin.value) in self._own_words.get(change, ())

    def _newest(self, memory_id: MemoryId, images: list[tuple[int, int, str, Memory]]) -> tuple[Memory, ChangeId, bool]:
        """The image that counts, of the highest revision the newest decision; the change it is from; and whether it is
        new here."""
        revision, at, change_id, image = max(images, key=lambda item: item[:3])
        current = None if self._reading.anew else self._current(memory_id)
        if current is not None:
            here = (index.head_of(self._raw, memory_id), *index.last_decision(self._raw, memory_id))
            if here > (revision, at, change_id):
                return current, ChangeId(here[2]), False
        return image, ChangeId(change_id), True

    def _current(self, memory_id: MemoryId) -> Memory | None:
        """A memory of this ref as it is known here."""
        stands_here = index.ref_of(self._raw, memory_id) == self._reference.name
        return index.memory(self._raw, memory_id) if stands_here else None

    def _settle(self, image: Memory, change_id: ChangeId | None) -> None:
        here = index.memory(self._raw, image.id)
        stands_on = None if here is None else index.ref_of(self._raw, image.id)
        if here is not None and stands_on is None and placed(image) is None:
            return  # it is kept here alone, and the ref has no line of it
        if here is not None and stands_on is None and not is_shared(here):
            self._expect(image, 1)
            return  # another clone shares it again; here it was made private, and stays so
        if here is not None and stands_on not in (None, self._reference.name):
            self._expect(image, 1)
            return  # another ref has it too, and comes first
        if stands_on is not None and here is not None and not self._reading.anew:
            self._expect(here, -1)
        if change_id is None:
            index.record(self._raw, image.id)
        else:
            image = self._believed(image, change_id)
        self._expect(image, 1)

    def _believed(self, image: Memory, change_id: ChangeId) -> Memory:
        claimed = self._claims.get((change_id, image.id))
        stored = local.put(self._raw, image)
        index.stand_on(
            self._raw, image.id, self._reference.name, recorded=True, head=image.revision,
            claimed=None if claimed is None else claimed.value,
        )  # fmt: skip
        self._reading.settled[image.id] = stored
        self._reading.last[image.id] = change_id
        return stored

    def _expect(self, memory: Memory, count: int) -> None:
        line = placed(memory)
        if line is not None:
            self._reading.expected[line.digest] += count
            self._reading.by_digest[line.digest].append(memory.id)
