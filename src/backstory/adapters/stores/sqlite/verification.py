"""Whether a file keeps the invariants of a store: the file itself here, rows in ``verified_memories.py``,
``verified_evidence.py``, ``verified_digests.py`` and ``verified_dreams.py``. Nothing is written."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path

from backstory.adapters.stores.sqlite import migrations
from backstory.adapters.stores.sqlite.driver_errors import in_our_words
from backstory.adapters.stores.sqlite.looking import MOST_FINDINGS, RESTORE, Look, Rule, apply, passes
from backstory.adapters.stores.sqlite.opening import check_identity, open_to_look
from backstory.adapters.stores.sqlite.verified_digests import DIGEST_RULES
from backstory.adapters.stores.sqlite.verified_dreams import DREAM_RULES
from backstory.adapters.stores.sqlite.verified_evidence import EVIDENCE_RULES
from backstory.adapters.stores.sqlite.verified_memories import MEMORY_RULES
from backstory.domain.evidence_passages import PassageLimits
from backstory.errors import SchemaTooNew, StoreDamaged
from backstory.ports.upkeep import Finding, Invariant, Severity

RULES = (*MEMORY_RULES, *EVIDENCE_RULES, *DIGEST_RULES, *DREAM_RULES)


def verify_file(path: Path, *, full: bool, limits: PassageLimits, rules: Sequence[Rule] = RULES) -> list[Finding]:
    """Every invariant of the store at ``path``, as of one moment. Raises StoreUnavailable where there is none."""
    with in_our_words(path):
        findings, readable = _verify_whole(path, full=full)
        if readable:
            with closing(open_to_look(path)) as raw:
                raw.execute("BEGIN")
                look = Look(raw=raw, path=path, full=full, limits=limits)
                findings += [finding for rule in rules for finding in apply(rule, look)]
    return sorted(findings, key=lambda finding: finding.invariant.number)


def is_damaged(findings: Sequence[Finding]) -> bool:
    """Whether something that cannot be made anew is lost."""
    return any(finding.severity is Severity.DAMAGE for finding in findings)


def _verify_whole(path: Path, *, full: bool) -> tuple[list[Finding], bool]:
    """What is wrong with the file as such, and whether its rows can be looked at."""
    try:
        with closing(open_to_look(path)) as raw:
            if trouble := _trouble_with_format(raw, path):
                return [trouble], False
            check = "integrity_check" if full else "quick_check"
            said = [str(row[0]) for row in raw.execute(f"PRAGMA {check}({MOST_FINDINGS})")]
            findings = [_damage(Invariant.WHOLE, text, path) for text in said if text != "ok"]
            older = int(raw.execute("PRAGMA user_version").fetchone()[0]) < migrations.latest_version()
    except StoreDamaged as error:
        return [_damage(Invariant.WHOLE, str(error), path)], False
    except sqlite3.DatabaseError as error:
        if passes(error) or "unable to open" in str(error):
            raise
        return [_damage(Invariant.WHOLE, str(error), path)], False
    except UnicodeDecodeError:  # of SQLite's own words: it names what stands in a damaged page
        return [_damage(Invariant.WHOLE, "the names of its tables are not text any more", path)], False
    if older:
        what = "the format is an older one; the first command that writes brings it up to date, then check again"
        findings.append(_note(what, path))
    return findings, not older


def _trouble_with_format(raw: sqlite3.Connection, path: Path) -> Finding | None:
    try:
        version = check_identity(raw, path)
    except StoreDamaged as error:
        way_out = "name another file with store.url, or move this one away"
        return _damage(Invariant.FORMAT, str(error), path, way_out=way_out)
    except SchemaTooNew as error:
        return _damage(Invariant.FORMAT, str(error), path, way_out="upgrade Backstory")
    if version == 0:
        return _note("the file is empty; the first memory makes it a store", path)
    return None


def _damage(invariant: Invariant, what: str, path: Path, *, way_out: str = RESTORE) -> Finding:
    return Finding(invariant=invariant, severity=Severity.DAMAGE, what=what, where=str(path), way_out=way_out)


def _note(what: str, path: Path) -> Finding:
    return Finding(
        invariant=Invariant.FORMAT,
        severity=Severity.NOTE,
        what=what,
        where=str(path),
        way_out="nothing needs to be done",
    )
