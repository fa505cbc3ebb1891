"""How a check looks at a store on a server: one unchanging view, which rows, and what becomes of what it says."""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import psycopg
from psycopg import errors

from backstory.adapters.stores.postgres.opening import Address, connect, installed_pgvector, settings
from backstory.adapters.stores.postgres.tenancy import TENANT
from backstory.adapters.stores.sqlite.looking import MOST_FINDINGS, REINDEX, RESTORE
from backstory.domain.evidence_passages import PassageLimits
from backstory.ports.upkeep import Finding, Invariant, Severity

Raw = psycopg.Connection[Any]  # Any: rows hold whatever a statement selects

LONG = (
    "SET LOCAL statement_timeout TO '30min'; SET LOCAL idle_in_transaction_session_timeout TO '30min';"
    " SET LOCAL jit TO off"
)
"""For a transaction that goes through all rows, and does things of its own between two statements."""
_SAMPLED = 1000  # newest rows that are looked at without ``full``, and as many of all ages
_AT_ONCE = 500  # rows that a cursor fetches
_NAMES = itertools.count(1)

# What a statement may say about the rows that it meets. Anything else is about the connection or the rights.
_TELLING = (psycopg.DataError, psycopg.InternalError, psycopg.ProgrammingError, psycopg.NotSupportedError)


@dataclass(frozen=True, slots=True, kw_only=True)
class Look:
    """One unchanging view of a tenant's rows. Without ``full``, only some rows of large tables are looked at."""

    raw: Raw
    full: bool
    limits: PassageLimits
    has_vector: bool

    def sampled(self, table: str) -> str:
        """A condition on the column n of a table: all rows, or the newest and some of all ages."""
        if self.full:
            return "true"
        statement = f"SELECT count(*), coalesce(max(n), 0) FROM {table} WHERE tenant = {TENANT}"
        count, newest = self.raw.execute(statement).fetchone() or (0, 0)
        if count <= 2 * _SAMPLED:
            return "true"
        return f"(n > {newest - _SAMPLED} OR mod(n, {count // _SAMPLED}) = 0)"


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """One check of one invariant. A table that cannot be read at all is as bad as ``severity`` says."""

    invariant: Invariant
    severity: Severity
    check: Callable[[Look], Iterator[str | Finding]]
    """Yields what is wrong, as text with the place before a colon, or as a finding of its own."""


@contextlib.contextmanager
def looking(address: Address, *, timeout: timedelta) -> Iterator[Raw]:
    """A view that is the same from first to last, and cannot write; an older format stays as it is."""
    with contextlib.closing(connect(address)) as raw:
        head = settings(address, vector_schema=installed_pgvector(raw)[0], timeout=timeout)
        raw.execute(f"BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY; {head}; {LONG}")
        yield raw


def has_vector(raw: Raw) -> bool:
    """Whether the store keeps its vectors in pgvector's type too."""
    row = raw.execute("SELECT to_regclass('embeddings') IS NOT NULL AND to_regtype('vector') IS NOT NULL").fetchone()
    return row is not None and bool(row[0])


def rows_of(raw: Raw, statement: str, *parameters: object, at_once: int = _AT_ONCE) -> Iterator[list[Any]]:
    """The rows of a statement, some at a time, so that a large table never is in this process as a whole."""
    with raw.cursor(name=f"rows_{next(_NAMES)}") as cursor:
        cursor.execute(statement, parameters or None)
        while some := cursor.fetchmany(at_once):
            yield some


def apply(rule: Rule, look: Look) -> list[Finding]:
    """What a rule finds, at most ``MOST_FINDINGS`` and a count of the rest."""
    found: list[Finding] = []
    try:
        with look.raw.transaction():  # a savepoint: what a statement fails at, the next rule does not notice
            results = rule.check(look)
            found += [_finding(rule, item) for item in itertools.islice(results, MOST_FINDINGS)]
            if rest := sum(1 for _ in results):
                found.append(_finding(rule, f"{rule.invariant.value}: {rest} more like these"))
    except errors.InsufficientPrivilege:
        raise
    except (*_TELLING, ValueError, TypeError, OverflowError) as error:  # a value that nobody writes
        found.append(_finding(rule, f"{rule.invariant.value}: cannot be read: {str(error).splitlines()[0]}"))
    return found


def _finding(rule: Rule, item: str | Finding) -> Finding:
    if isinstance(item, Finding):
        return item
    where, _, what = item.partition(": ")
    way_out = RESTORE if rule.severity is Severity.DAMAGE else REINDEX
    return Finding(invariant=rule.invariant, severity=rule.severity, what=what, where=where, way_out=way_out)
