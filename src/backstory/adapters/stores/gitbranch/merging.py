"""Two histories of one ref become one: the same in whichever clone it happens.

The union of all changes, and of all lines. Where both sides decided about one memory, the newer decision stands, but
that a memory is not shared any more stands against every other, and the stricter sensitivity; a change that says so is
added. Where both gave one number to two memories, the later memory gets another.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta

from backstory.adapters.stores.gitbranch.git import FALLBACK_EMAIL, FALLBACK_NAME
from backstory.adapters.stores.gitbranch.merge_sides import Head, Side, read_changes, read_side
from backstory.adapters.stores.gitbranch.publishing import UNSHARED, appended, replaced
from backstory.adapters.stores.gitbranch.reference import Commit, File, Reference
from backstory.adapters.stores.gitbranch.tree import (
    CHANGES,
    DELETIONS,
    change_path,
    derived_id,
    digest,
    is_day_file,
    placed,
    text_of,
)
from backstory.codecs.change import encode_change
from backstory.codecs.logfmt import parse_line, parse_lines, render_lines
from backstory.domain.history import Action, Author, Change, Edit
from backstory.domain.ids import ChangeId, MemoryId
from backstory.domain.memory import Counters, Deleted, Memory, stricter
from backstory.ports.synchronisation import Disagreement, Renumbered

_NEWER = "changed in two clones; the newer change stands"
_WITHDRAWN = "a clone does not share it any more, whatever another made of it"
_STRICTER = "changed in two clones; the newer change stands, the stricter sensitivity too"
_RATED = "called useful or irrelevant in two clones; both count"
_NUMBER = "two clones had given its number to two memories"
_MOST_RATINGS = (1 << 63) - 1  # whatever is written on a ref: the local file holds no larger number
_AFTER = timedelta(microseconds=1)  # so that a merge is newer than what it merges


@dataclass(frozen=True, slots=True, kw_only=True)
class Merge:
    """A commit that joins two histories, its time, and what had to be decided."""

    commit: Commit
    at: int
    received: int
    sent: int
    disagreements: Sequence[Disagreement]
    renumbered: Sequence[Renumbered]


def merge(reference: Reference, ours: str, theirs: str, base: str | None, *, highest: int) -> Merge:
    """Join two commits, neither of which contains the other. ``highest`` is the highest number on our side."""
    one, other = read_side(reference, base, ours), read_side(reference, base, theirs)
    for side, rest in ((one, other), (other, one)):
        read_changes(reference, side, rest)
    highest = max([highest, *(n for side in (one, other) for _, _, n in side.added.values())])
    decided, disagreements, renumbered = _decide(one, other, highest)
    contents = _Contents(reference, base, one, other)
    contents.join(_live_lines(one, other, decided))
    for change in decided:
        contents.settle(change, [side.heads[change.edits[0].after.id] for side in (one, other)
                                 if change.edits[0].after.id in side.heads])  # fmt: skip
    first, second = sorted((ours, theirs), key=lambda commit: (reference.committed_at(commit), commit))
    return Merge(
        commit=Commit(
            message=f"memory: merge {len(one.changes)} and {len(other.changes)} changes\n" if first == ours else
            f"memory: merge {len(other.changes)} and {len(one.changes)} changes\n",
            who=f"{FALLBACK_NAME} <{FALLBACK_EMAIL}>",
            parents=(first, second),
            files=contents.against(first),
        ),
        at=max(reference.committed_at(ours), reference.committed_at(theirs)),
        received=_changes_among(file for path, file in other.files.items() if path not in one.files),
        sent=_changes_among(file for path, file in one.files.items() if path not in other.files),
        disagreements=disagreements,
        renumbered=renumbered,
    )  # fmt: skip


def changes_between(reference: Reference, old: str | None, new: str) -> int:
    """In how many changes a commit differs from an earlier one: those that it has more, and those that it has no more,
    as when a backup was restored."""
    return _changes_among(reference.files_between(old, new))


def _changes_among(files: Iterable[File]) -> int:
    return sum(file.path.startswith(CHANGES) for file in files)


def _decide(one: Side, other: Side, highest: int) -> tuple[list[Change], list[Disagreement], list[Renumbered]]:
    """The changes that settle what the two sides do not agree on, in the order of the memories' ids."""
    numbers = _fresh_numbers(one, other, highest)
    decided, disagreements, renumbered = [], [], []
    for memory_id in sorted({*(one.heads.keys() & other.heads.keys()), *numbers}):
        heads = [side.heads[memory_id] for side in (one, other) if memory_id in side.heads]
        heads.sort(key=lambda head: (_is_withdrawn(head.image), head.at, head.change))
        other_head, standing = heads[0], heads[-1]
        n = numbers.get(memory_id, min(head.image.n for head in heads))
        differ = not _says_the_same(other_head.image, standing.image)
        counters = standing.image.counters
        for side in (one, other):
            if side.heads.get(memory_id) is not standing:
                counters = _rated_too(counters, side, memory_id)
        rated = any(_ratings(head.image.counters) != _ratings(counters) for head in heads)
        if not differ and not rated and all(head.image.n == n for head in heads):
            continue
        after = replace(
            standing.image,
            n=n,
            revision=max(head.image.revision for head in heads) + 1,
            counters=counters,
            sensitivity=stricter(other_head.image.sensitivity, standing.image.sensitivity),
        )
        at = max(head.at for head in heads) + _AFTER
        decided.append(
            Change(
                id=ChangeId(derived_id(at, "merge", memory_id, *(head.change for head in heads), str(n))),
                at=at,
                author=Author.SYSTEM,
                action=Action.UPDATE,
                edits=(Edit(before=other_head.image, after=after),),
                reason=_reason(standing.image, after) if differ else _RATED if rated else _NUMBER,
            )
        )
        if differ:
            disagreements.append(
                Disagreement(memory=memory_id, n=n, kept=standing.image.content, set_aside=other_head.image.content)
            )
        if memory_id in numbers:
            renumbered.append(Renumbered(memory=memory_id, old=standing.image.n, new=n))
    return decided, disagreements, renumbered


def _ratings(counters: Counters) -> tuple[int, int]:
    return counters.helpful, counters.irrelevant


def _rated_too(counters: Counters, side: Side, memory_id: MemoryId) -> Counters:
    """What one side counts as helpful and irrelevant, with what another side has counted besides."""
    if memory_id not in side.heads:
        return counters
    start, head = side.starts[memory_id].before, side.heads[memory_id].image
    before = (0, 0) if start is None else _ratings(start.counters)
    sums = zip(_ratings(counters), _ratings(head.counters), before, strict=True)
    helpful, irrelevant = (min(max(own + now - then, 0), _MOST_RATINGS) for own, now, then in sums)
    return replace(counters, helpful=helpful, irrelevant=irrelevant)


def _fresh_numbers(one: Side, other: Side, highest: int) -> dict[MemoryId, int]:
    """New numbers for the later of two memories that have the same one."""
    first_with = {n: (at, change, memory_id) for memory_id, (at, change, n) in one.added.items()}
    losers = []
    for memory_id, (at, change, n) in other.added.items():
        rival = first_with.get(n)
        if rival is not None and rival[2] != memory_id:
            losers.append(max(rival, (at, change, memory_id)))
    return {memory_id: highest + nth for nth, (_, _, memory_id) in enumerate(sorted(losers), start=1)}


def _is_withdrawn(image: Memory) -> bool:
    """Whether somebody made a memory private or local-only: what is on the ref then says only that it is gone."""
    return isinstance(image.status, Deleted) and image.status.reason == UNSHARED


def _reason(standing: Memory, after: Memory) -> str:
    if _is_withdrawn(standing):
        return _WITHDRAWN
    return _NEWER if after.sensitivity is standing.sensitivity else _STRICTER


def _says_the_same(one: Memory, other: Memory) -> bool:
    if isinstance(one.status, Deleted) and isinstance(other.status, Deleted):
        return True
    return replace(one, n=0, revision=0, counters=other.counters, times=other.times) == replace(other, n=0, revision=0)


def _live_lines(one: Side, other: Side, decided: Sequence[Change]) -> Counter[str]:
    """How often a line must be there at least: once for each memory that has it."""
    images = {memory_id: head.image for side in (one, other) for memory_id, head in side.heads.items()}
    images |= {change.edits[0].after.id: change.edits[0].after for change in decided}
    return Counter(line.digest for image in images.values() if (line := placed(image)) is not None)


class _Contents:
    """The files of the merge, as far as they differ from the base."""

    def __init__(self, reference: Reference, base: str | None, one: Side, other: Side) -> None:
        self._reference = reference
        self._base = base
        self._one = one
        self._other = other
        self._files: dict[str, bytes | None] = {}

    def join(self, needed: Counter[str]) -> None:
        """Put together what both sides have done."""
        for path in sorted({*self._one.files, *self._other.files}):
            one, other = self._one.files.get(path), self._other.files.get(path)
            if one is None or other is None or one.new == other.new:
                file = one or other
                assert file is not None
                self._files[path] = None if file.new is None else self._reference.contents([file.new])[0]
            else:
                self._files[path] = self._both(path, one, other, needed)

    def settle(self, change: Change, heads: Sequence[Head]) -> None:
        """Write down a decision, and leave just the line it leads to."""
        self._files[change_path(change)] = encode_change(change).encode()
        wanted = placed(change.edits[0].after)
        for line in (placed(head.image) for head in heads):
            if line is not None and (wanted is None or line.digest != wanted.digest):
                self._files[line.path], _ = replaced(self._file(line.path), line.digest, None)
        if wanted is not None:
            standing = {digest(line.text) for line in parse_lines(text_of(self._file(wanted.path)))}
            if wanted.digest not in standing:
                self._files[wanted.path] = appended(self._file(wanted.path), [wanted.text])

    def against(self, parent: str) -> Mapping[str, bytes | None]:
        """The files that differ from a parent's."""
        standing = self._reference.reader.read_all([f"{parent}:{path}" for path in self._files])
        return {
            path: data
            for (path, data), found in zip(self._files.items(), standing, strict=True)
            if data != (None if found is None else found.data)
        }

    def _file(self, path: str) -> bytes | None:
        return self._files[path] if path in self._files else self._reference.file(self._base, path)

    def _both(self, path: str, one: File, other: File, needed: Counter[str]) -> bytes | None:
        old, ours, theirs = (self._content(name) for name in (one.old, one.new, other.new))
        if is_day_file(path) or path == DELETIONS:
            return joined_lines(old, ours, theirs, needed=needed if path != DELETIONS else Counter())
        present = sorted(data for data in (ours, theirs) if data is not None)
        return present[0] if present else None

    def _content(self, name: str | None) -> bytes | None:
        return None if name is None else self._reference.contents([name])[0]


def joined_lines(base: bytes | None, one: bytes | None, other: bytes | None, *, needed: Counter[str]) -> bytes:
    """A file of lines that both sides changed: what either added, without what either removed.

    A line that both added is one, except where more memories have it. Records in the order of their times, whatever is
    no record after them; so the order of the two does not matter.
    """
    before, *after = (Counter(_texts(data)) for data in (base, one, other))
    lines: Counter[str] = Counter()
    for text in {*after[0], *after[1]}:
        old = before[text]
        added = max(0, *(side[text] - old for side in after))
        removed = max(0, *(old - side[text] for side in after))
        lines[text] = max(old + added - removed, min(needed[digest(text)], after[0][text] + after[1][text]))
    return render_lines(sorted(lines.elements(), key=_by_time)).encode("utf-8", "surrogateescape")


def _texts(data: bytes | None) -> Iterable[str]:
    return (line.text for line in parse_lines(text_of(data)))


def _by_time(text: str) -> tuple[bool, str, str]:
    line = parse_line(text)
    ts = line.record.ts if line.record else line.deletion.ts if line.deletion else None
    return ts is None, ts or "", text
