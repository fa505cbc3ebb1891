"""What a ref and the file beside it must say alike. Each rule gets the ref at one commit and a view of the file, and
yields what is wrong."""

from __future__ import annotations

import contextlib
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace

from backstory.adapters.stores.gitbranch.reference import File, Reference
from backstory.adapters.stores.gitbranch.tree import CHANGES, adopted, digest, placed
from backstory.adapters.stores.sqlite.looking import Look
from backstory.adapters.stores.sqlite.rows import COLUMNS, memory_from_image, memory_from_row
from backstory.codecs.change import decode_change
from backstory.codecs.logfmt import Line, render_lines
from backstory.domain.ids import MemoryId
from backstory.domain.memory import Memory, Sensitivity
from backstory.errors import InputError, StoreDamaged
from backstory.ports.upkeep import Finding, Invariant, Severity


@dataclass(frozen=True, slots=True, kw_only=True)
class Tip:
    """What stands on a ref at one commit."""

    reference: Reference
    files: list[File]
    lines: list[tuple[str, str, list[Line]]]
    """The day files: path, text, and the lines in it."""


def unreadable(tip: Tip, look: Look) -> Iterator[Finding]:
    """Lines and changes that somebody else wrote and nobody can read; they stay where they are."""
    for path, text, lines in tip.lines:
        if text.strip() and render_lines(line.text for line in lines) != text:
            yield _kept(path, "it would be written with other ends of lines")
        for line in lines:
            problem = line.problem or (_not_a_memory(line, path) if look.full else None)
            if problem is not None:
                yield _kept(path, problem)
    if look.full:
        for path, data in _change_files(tip):
            try:
                decode_change(data.decode("utf-8", "replace"))
            except InputError as error:
                yield _kept(path, str(error))


def _kept(path: str, problem: str) -> Finding:
    return Finding(
        invariant=Invariant.READABLE,
        severity=Severity.NOTE,
        what=f"{problem}; it is kept as it is",
        where=path,
        way_out="whoever wrote it can correct it; what cannot be read is no memory",
    )


def differing_changes(tip: Tip, look: Look) -> Iterator[str]:
    """What is written down on the ref is in the history here, and the other way round; with ``full`` also that it says
    of a memory what is believed here."""
    written = {path.rpartition("/")[2].removesuffix(".jsonl"): path for path in _paths(tip, CHANGES)}
    statement = "SELECT change FROM git_changes WHERE ref = ? AND recorded = 1"
    known = {change for (change,) in look.raw.execute(statement, (tip.reference.name,))}
    for change in sorted(written.keys() - known):
        yield f"{written[change]}: is not in the history of this store"
    for change in sorted(known - written.keys()):
        yield f"change {change}: is not written down on the ref"
    if look.full:
        yield from _heads(tip, look)


def _heads(tip: Tip, look: Look) -> Iterator[str]:
    heads: dict[MemoryId, tuple[int, str, str, Memory]] = {}
    for _, data in _change_files(tip):
        try:
            change = decode_change(data.decode("utf-8", "replace"))
        except InputError:
            continue
        for edit in change.edits:
            told = (edit.after.revision, change.at.isoformat(), str(change.id), edit.after)
            heads[edit.after.id] = max(heads.get(edit.after.id, told), told, key=lambda item: item[:3])
    statement = "SELECT after FROM change_edits e JOIN memories m ON m.n = e.n WHERE m.id = ? AND e.change = ?"
    alone = "SELECT id FROM memories WHERE id NOT IN (SELECT memory FROM git_memories)"
    kept_here = {memory for (memory,) in look.raw.execute(alone)}  # made private: the ref was told an older text
    for memory_id, (_, _, change_id, head) in heads.items():
        if memory_id in kept_here:
            continue
        row = look.raw.execute(statement, (memory_id, change_id)).fetchone()
        if row is None or memory_from_image(row[0]).content != head.content:
            yield f"memory {memory_id}: its last change on the ref is not the one that is known here"


def differing_lines(tip: Tip, look: Look) -> Iterator[str]:
    """There is a line for each memory that is believed and shared, and no other line that could be one."""
    standing = _memories(look, "m.id IN (SELECT memory FROM git_memories WHERE ref = ?)", tip.reference.name)
    missing = Counter(place.digest for memory in standing if (place := placed(memory)) is not None)
    elsewhere = Counter(_shared_elsewhere(tip, look).values())
    strange = 0
    for path, _, lines in tip.lines:
        for line in lines:
            told = digest(line.text)
            if line.record is not None and missing[told] > 0:
                missing[told] -= 1
            elif line.record is not None and elsewhere[told] > 0:
                elsewhere[told] -= 1
            elif line.record is not None and _not_a_memory(line, path) is None:
                strange += 1
    if missing.total():
        yield f"{tip.reference.name}: {missing.total()} memories that are believed here have no line on the ref"
    if strange:
        yield f"{tip.reference.name}: {strange} lines on the ref are no memory here"


def _not_a_memory(line: Line, path: str) -> str | None:
    """Why a record cannot be a memory; None for one that can, and for what is no record."""
    if line.record is None:
        return None
    try:
        adopted(line, path, nth=0, namespace="", project=None)
    except InputError as error:
        return str(error)
    return None


def _memories(look: Look, condition: str, *parameters: str) -> Iterator[Memory]:
    """The memories that can be read, among those that a condition selects."""
    tags = "SELECT tag FROM memory_tags WHERE n = ? ORDER BY position"
    for row in look.raw.execute(f"SELECT {COLUMNS} FROM memories m WHERE {condition} ORDER BY m.n", parameters):
        with contextlib.suppress(StoreDamaged):  # told by another rule
            yield memory_from_row(row, tuple(str(tag) for (tag,) in look.raw.execute(tags, (row[0],))))


def _shared_elsewhere(tip: Tip, look: Look) -> dict[MemoryId, str]:
    """The lines of memories that are kept here alone, where the last that the ref says of one is another clone's."""
    statement = (
        "SELECT m.id, e.after, g.own FROM memories m JOIN change_edits e ON e.n = m.n "
        "JOIN changes c ON c.id = e.change JOIN git_changes g ON g.change = c.id AND g.ref = ? AND g.recorded = 1 "
        "WHERE m.id NOT IN (SELECT memory FROM git_memories) ORDER BY c.at_us, c.id"
    )
    last = {row[0]: row[1:] for row in look.raw.execute(statement, (tip.reference.name,))}
    lines = {memory_id: placed(memory_from_image(after)) for memory_id, (after, own) in last.items() if not own}
    return {MemoryId(memory_id): line.digest for memory_id, line in lines.items() if line is not None}


def shared_though_private(tip: Tip, look: Look) -> Iterator[Finding]:
    """What is private or local-only stands in this file alone, unless another clone shares it again."""
    noted = {memory for (memory,) in look.raw.execute("SELECT memory FROM git_memories")}
    lines = {digest(line.text) for _, _, found in tip.lines for line in found}
    elsewhere = _shared_elsewhere(tip, look)
    for memory in _memories(look, "m.sensitivity <> 'normal'"):
        line = placed(replace(memory, sensitivity=Sensitivity.NORMAL))
        if elsewhere.get(memory.id) in lines:
            yield Finding(
                invariant=Invariant.WITHHELD,
                severity=Severity.NOTE,
                what="it is private or local-only here, and another clone shares what it had said before",
                where=f"#{memory.n}",
                way_out="ask there that it be forgotten; here nothing needs to be done",
            )
        elif memory.id in noted or (line is not None and line.digest in lines):
            yield Finding(
                invariant=Invariant.WITHHELD,
                severity=Severity.DAMAGE,
                what="it is private or local-only here, and yet stands on the ref",
                where=f"#{memory.n}",
                way_out="`backstory forget` it here, and remove its line from the ref; what was pushed stays known",
            )


def _paths(tip: Tip, under: str) -> list[str]:
    return [file.path for file in tip.files if file.path.startswith(under)]


def _change_files(tip: Tip) -> Iterator[tuple[str, bytes]]:
    files = [file for file in tip.files if file.path.startswith(CHANGES)]
    contents = tip.reference.contents([file.new for file in files if file.new is not None])
    yield from zip((file.path for file in files), contents, strict=True)
