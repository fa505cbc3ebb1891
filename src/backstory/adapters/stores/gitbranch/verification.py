"""Whether a ref and the file beside it are whole, and say the same. Nothing is written.

The invariants of the file are those of any SQLite store; those that the ref adds are here.
"""

from __future__ import annotations

import contextlib
import re
import subprocess
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from backstory.adapters.stores.gitbranch import index
from backstory.adapters.stores.gitbranch.git import Git, environment
from backstory.adapters.stores.gitbranch.reader import Reader
from backstory.adapters.stores.gitbranch.reference import File, Reference
from backstory.adapters.stores.gitbranch.tree import CHANGES, adopted, digest, is_day_file, placed, text_of
from backstory.adapters.stores.sqlite.looking import MOST_FINDINGS, Look, Rule
from backstory.adapters.stores.sqlite.rows import COLUMNS, memory_from_image, memory_from_row
from backstory.adapters.stores.sqlite.verification import RULES, verify_file
from backstory.codecs.change import decode_change
from backstory.codecs.logfmt import Line, parse_lines, render_lines
from backstory.domain.evidence_passages import PassageLimits
from backstory.domain.ids import MemoryId
from backstory.domain.memory import Memory, Sensitivity
from backstory.errors import InputError, StoreDamaged, StoreUnavailable
from backstory.ports.upkeep import Finding, Invariant, Severity

FETCH = (
    "fetch the ref from a clone that has it: `git fetch REMOTE REF`; or `backstory restore` a backup, which writes all "
    "memories to the ref anew"
)
_TAKEN_OVER = "nothing needs to be done"
_TELLING = re.compile(r"(?:error|fatal): (.*)")
_LONGEST_S = 600.0


@dataclass(frozen=True, slots=True, kw_only=True)
class _Tip:
    """What stands on a ref at one commit."""

    reference: Reference
    files: list[File]
    lines: list[tuple[str, str, list[Line]]]
    """The day files: path, text, and the lines in it."""


def verify_git(repository: Path, name: str, file: Path, *, full: bool, limits: PassageLimits) -> list[Finding]:
    """Every invariant of the store, as of one moment. Raises StoreUnavailable where there is neither ref nor file."""
    git = Git(repository)
    with contextlib.closing(Reader(git)) as reader:
        reference = Reference(git, reader, name)
        tip = _tip(reference)
        if tip is None and not file.exists():
            raise StoreUnavailable(f"there is no store on {name} in {repository}, and none at {file}")
        findings = _verify_objects(reference, tip, full=full)
        if not file.exists():
            what = "the file beside the ref is not there; the next use makes it from the ref"
            return [*findings, _note(what, str(file))]
        beside = _Beside(reference, is_whole=not findings)
        findings += verify_file(file, full=full, limits=limits, rules=(*RULES, *_rules_of(beside)))
    return sorted(findings, key=lambda finding: finding.invariant.number)


def _tip(reference: Reference) -> str | None:
    """Where the ref is, also where what it names cannot be read."""
    git = reference.git
    listed = git.run("for-each-ref", "--format=%(objectname)", reference.name).decode("ascii", "replace").split()
    return listed[0] if listed else None


def _verify_objects(reference: Reference, tip: str | None, *, full: bool) -> list[Finding]:
    """Objects of the ref that are missing or changed: with ``full`` all of them, else those of its newest commit."""
    if tip is None:
        return []
    some = ["rev-list", "--objects", "--verify-objects", "--quiet", *([] if full else ["--no-walk"]), tip]
    said = _complaints(reference.git, *some)
    if not full and not said:
        said = _complaints(reference.git, "rev-list", "--count", tip)
    return [
        Finding(
            invariant=Invariant.WHOLE, severity=Severity.DAMAGE, what=what, where=reference.name, way_out=FETCH
        )
        for what in said[:MOST_FINDINGS]
    ]  # fmt: skip


def _complaints(git: Git, *arguments: str) -> list[str]:
    """What git complains about, each thing once; it does not always fail when it does."""
    command = git.command(*arguments, settings=["core.commitGraph=false"])  # which would spare git a look at commits
    try:
        done = subprocess.run(
            command, env=environment(), stdin=subprocess.DEVNULL, capture_output=True, timeout=_LONGEST_S
        )
    except subprocess.TimeoutExpired as error:
        raise StoreUnavailable(f"git needs more than {_LONGEST_S:g} s to look at all objects") from error
    said = [found[1] for line in done.stderr.decode("utf-8", "replace").splitlines() if (found := _TELLING.match(line))]
    if done.returncode and not said:
        said = [f"git {arguments[0]} failed"]
    return list(dict.fromkeys(said))


def _note(what: str, where: str) -> Finding:
    return Finding(
        invariant=Invariant.FORMAT, severity=Severity.NOTE, what=what, where=where, way_out=_TAKEN_OVER
    )  # fmt: skip


# --- what the file must say of the commit that it stands for ----------------------------------------------------------


class _Beside:
    """The ref as the file's view knows it: read once, at the commit that the file stands for."""

    def __init__(self, reference: Reference, *, is_whole: bool) -> None:
        self._reference = reference
        self._is_whole = is_whole
        self._tip: _Tip | None = None

    def moved(self, look: Look) -> Iterator[Finding]:
        """Whether the ref is elsewhere now."""
        tip, known = _tip(self._reference), index.known_tip(look.raw, self._reference.name)
        if tip is None and known is not None:
            what = f"the ref is gone; the next write makes it again from {known}, as far as git still has that"
        elif known is None and tip is not None:
            what = "the file beside the ref has not read it yet; the next use does"
        else:
            what = "somebody else has written to the ref, or set it back; the next use takes that over"
        if tip != known:
            yield _note(what, self._reference.name)

    def rule(
        self, invariant: Invariant, severity: Severity, check: Callable[[_Tip, Look], Iterator[str | Finding]]
    ) -> Rule:
        """A rule about the file and that commit, which finds nothing where git cannot read it."""

        def looked(look: Look) -> Iterator[str | Finding]:
            if self._tip is None and self._is_whole:
                self._tip = self._read(look)
            return check(self._tip, look) if self._tip is not None else iter(())

        return Rule(invariant=invariant, severity=severity, check=looked)

    def _read(self, look: Look) -> _Tip | None:
        known = index.known_tip(look.raw, self._reference.name)
        if known is None or self._reference.reader.read(f"{known}^{{tree}}") is None:
            return None
        files = self._reference.files_between(None, known)
        days = [file for file in files if is_day_file(file.path)]
        contents = self._reference.contents([file.new for file in days if file.new is not None])
        texts = [(file.path, text_of(data)) for file, data in zip(days, contents, strict=True)]
        return _Tip(
            reference=self._reference, files=files, lines=[(path, text, parse_lines(text)) for path, text in texts]
        )


def _rules_of(beside: _Beside) -> tuple[Rule, ...]:
    return (
        Rule(invariant=Invariant.FORMAT, severity=Severity.NOTE, check=beside.moved),
        beside.rule(Invariant.READABLE, Severity.NOTE, _unreadable),
        beside.rule(Invariant.LOOKUPS, Severity.OUT_OF_STEP, _changes),
        beside.rule(Invariant.LOOKUPS, Severity.OUT_OF_STEP, _lines),
        beside.rule(Invariant.WITHHELD, Severity.DAMAGE, _private),
    )


def _unreadable(tip: _Tip, look: Look) -> Iterator[Finding]:
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


def _changes(tip: _Tip, look: Look) -> Iterator[str]:
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


def _heads(tip: _Tip, look: Look) -> Iterator[str]:
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


def _lines(tip: _Tip, look: Look) -> Iterator[str]:
    """There is a line for each memory that is believed and shared, and no other line that could be one."""
    standing = _memories(look, "m.id IN (SELECT memory FROM git_memories WHERE ref = ?)", tip.reference.name)
    missing = Counter(place.digest for memory in standing if (place := placed(memory)) is not None)
    strange = 0
    for path, _, lines in tip.lines:
        for line in lines:
            told = digest(line.text)
            if line.record is not None and missing[told] > 0:
                missing[told] -= 1
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


def _private(tip: _Tip, look: Look) -> Iterator[Finding]:
    """What is private or local-only stands in this file alone."""
    noted = {memory for (memory,) in look.raw.execute("SELECT memory FROM git_memories")}
    lines = {digest(line.text) for _, _, found in tip.lines for line in found}
    for memory in _memories(look, "m.sensitivity <> 'normal'"):
        line = placed(replace(memory, sensitivity=Sensitivity.NORMAL))
        if memory.id in noted or (line is not None and line.digest in lines):
            yield Finding(
                invariant=Invariant.WITHHELD,
                severity=Severity.DAMAGE,
                what="it is private or local-only here, and yet stands on the ref",
                where=f"#{memory.n}",
                way_out="`backstory forget` it here, and remove its line from the ref; what was pushed stays known",
            )


def _paths(tip: _Tip, under: str) -> list[str]:
    return [file.path for file in tip.files if file.path.startswith(under)]


def _change_files(tip: _Tip) -> Iterator[tuple[str, bytes]]:
    files = [file for file in tip.files if file.path.startswith(CHANGES)]
    contents = tip.reference.contents([file.new for file in files if file.new is not None])
    yield from zip((file.path for file in files), contents, strict=True)
