"""Whether a ref and the file beside it are whole, and say the same. Nothing is written.

The invariants of the file are those of any SQLite store; those that the ref adds are here.
"""

from __future__ import annotations

import contextlib
import re
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

from backstory.adapters.stores.gitbranch import index
from backstory.adapters.stores.gitbranch.git import Git, environment
from backstory.adapters.stores.gitbranch.reader import Reader
from backstory.adapters.stores.gitbranch.reference import Reference
from backstory.adapters.stores.gitbranch.tree import is_day_file, text_of
from backstory.adapters.stores.gitbranch.verified_ref import (
    Tip,
    differing_changes,
    differing_lines,
    shared_though_private,
    unreadable,
)
from backstory.adapters.stores.sqlite.looking import MOST_FINDINGS, Look, Rule
from backstory.adapters.stores.sqlite.verification import RULES, verify_file
from backstory.codecs.logfmt import parse_lines
from backstory.domain.evidence_passages import PassageLimits
from backstory.errors import StoreUnavailable
from backstory.ports.upkeep import Finding, Invariant, Severity

FETCH = (
    "fetch the ref from a clone that has it: `git fetch REMOTE REF`; or `backstory restore` a backup, which writes all "
    "memories to the ref anew"
)
_TAKEN_OVER = "nothing needs to be done"
_TELLING = re.compile(r"(?:error|fatal): (.*)")
_LONGEST_S = 600.0


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
    """What git complains about, each thing once, also when it is asked again: a collection of garbage hides objects for
    a moment."""
    return _said(git, *arguments) and _said(git, *arguments)


def _said(git: Git, *arguments: str) -> list[str]:
    """What git complains about; it does not always fail when it does."""
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
        self._tip: Tip | None = None

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
        self, invariant: Invariant, severity: Severity, check: Callable[[Tip, Look], Iterator[str | Finding]]
    ) -> Rule:
        """A rule about the file and that commit, which finds nothing where git cannot read it."""

        def looked(look: Look) -> Iterator[str | Finding]:
            if self._tip is None and self._is_whole:
                self._tip = self._read(look)
            return check(self._tip, look) if self._tip is not None else iter(())

        return Rule(invariant=invariant, severity=severity, check=looked)

    def _read(self, look: Look) -> Tip | None:
        known = index.known_tip(look.raw, self._reference.name)
        if known is None or self._reference.reader.read(f"{known}^{{tree}}") is None:
            return None
        files = self._reference.files_between(None, known)
        days = [file for file in files if is_day_file(file.path)]
        contents = self._reference.contents([file.new for file in days if file.new is not None])
        texts = [(file.path, text_of(data)) for file, data in zip(days, contents, strict=True)]
        return Tip(
            reference=self._reference, files=files, lines=[(path, text, parse_lines(text)) for path, text in texts]
        )


def _rules_of(beside: _Beside) -> tuple[Rule, ...]:
    return (
        Rule(invariant=Invariant.FORMAT, severity=Severity.NOTE, check=beside.moved),
        beside.rule(Invariant.READABLE, Severity.NOTE, unreadable),
        beside.rule(Invariant.LOOKUPS, Severity.OUT_OF_STEP, differing_changes),
        beside.rule(Invariant.LOOKUPS, Severity.OUT_OF_STEP, differing_lines),
        beside.rule(Invariant.WITHHELD, Severity.DAMAGE, shared_though_private),
    )
