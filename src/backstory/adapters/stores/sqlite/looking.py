"""How a check looks at a store: one view of the file, which rows, and what becomes of what it says."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

from backstory.domain.evidence_passages import PassageLimits
from backstory.ports.upkeep import Finding, Invariant, Severity

RESTORE = "`backstory restore` a backup; `backstory check --salvage FILE` writes what can still be read"
REINDEX = "`backstory reindex` makes it anew; nothing is lost"
MOST_FINDINGS = 20
"""Of one check; the rest is counted."""
_SAMPLED = 1000  # newest rows that are looked at without ``full``, and as many of all ages

_PASSING = ("locked", "busy", "locking protocol")


@dataclass(frozen=True, slots=True, kw_only=True)
class Look:
    """One unchanging view of a file. Without ``full``, only some rows of large tables are looked at."""

    raw: sqlite3.Connection
    path: Path
    full: bool
    limits: PassageLimits

    def sampled(self, table: str) -> str:
        """A condition on the column n of a table: all rows, or the newest and some of all ages."""
        if self.full:
            return "1"
        count, newest = self.raw.execute(f"SELECT count(*), coalesce(max(n), 0) FROM {table}").fetchone()
        if count <= 2 * _SAMPLED:
            return "1"
        return f"(n > {newest - _SAMPLED} OR n % {count // _SAMPLED} = 0)"


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """One check of one invariant. A table that the driver cannot read at all is as bad as ``severity`` says."""

    invariant: Invariant
    severity: Severity
    check: Callable[[Look], Iterator[str | Finding]]
    """Yields what is wrong, as text with the place before a colon, or as a finding of its own."""


def apply(rule: Rule, look: Look) -> list[Finding]:
    """What a rule finds, at most ``MOST_FINDINGS`` and a count of the rest."""
    found: list[Finding] = []
    try:
        results = rule.check(look)
        found += [_finding(rule, item) for item in islice(results, MOST_FINDINGS)]
        if rest := sum(1 for _ in results):
            found.append(_finding(rule, f"{rule.invariant.value}: {rest} more like these"))
    except (sqlite3.DatabaseError, ValueError, TypeError, OverflowError) as error:  # a value that nobody writes
        if isinstance(error, sqlite3.DatabaseError) and passes(error):
            raise
        found.append(_finding(rule, f"{rule.invariant.value}: cannot be read: {error}"))
    return found


def _finding(rule: Rule, item: str | Finding) -> Finding:
    if isinstance(item, Finding):
        return item
    where, _, what = item.partition(": ")
    way_out = RESTORE if rule.severity is Severity.DAMAGE else REINDEX
    return Finding(invariant=rule.invariant, severity=rule.severity, what=what, where=where, way_out=way_out)


def passes(error: sqlite3.DatabaseError) -> bool:
    """Whether another process is in the way, which says nothing about the file."""
    return any(sign in str(error).lower() for sign in _PASSING)
