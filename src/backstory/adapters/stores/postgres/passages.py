"""Passages kept in step with the messages they are cut from, inside the transactions that write those.

Whoever writes them holds ``lock_evidence``.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import psycopg

from backstory.adapters.stores.postgres.tenancy import TENANT
from backstory.adapters.stores.sqlite.rows import from_us
from backstory.domain.conversation import Part, Role
from backstory.domain.evidence_passages import PassageLimits, indexed_text, passages_of
from backstory.domain.ids import PartId
from backstory.domain.text import ANALYSER_VERSION, analyse

_Raw = psycopg.Connection[Any]  # Any: rows hold whatever a statement selects

_TOLD = (
    "SELECT p.id, p.message, m.session, m.role, m.created_us, p.kind, p.text, p.tool, p.synthetic, p.detail "
    "FROM parts p JOIN messages m ON m.tenant = p.tenant AND m.id = p.message "
    f"WHERE p.tenant = {TENANT} AND m.removed_us IS NULL AND "
)
_WAITING = "p.message = ANY(%s) AND NOT EXISTS (SELECT 1 FROM passages x WHERE x.tenant = p.tenant AND x.part = p.id)"


@dataclass(frozen=True, slots=True, kw_only=True)
class _Told:
    """A part and who said it when."""

    part: Part
    message: str
    session: str
    role: Role
    created_us: int


@dataclass(frozen=True, slots=True, kw_only=True)
class _Words:
    """The tokens of a passage."""

    n: int
    tokens: Sequence[str]


def lock_evidence(raw: _Raw) -> None:
    """Let nobody else write evidence of this tenant until the transaction ends.

    Two writers that told a part and its message at the same moment would not see each other's, and the part would have
    no passages.
    """
    statement = "INSERT INTO passage_statistics (analyser) VALUES (%s) ON CONFLICT (tenant) DO NOTHING"
    raw.execute(statement, (ANALYSER_VERSION,))
    raw.execute(f"SELECT 1 FROM passage_statistics WHERE tenant = {TENANT} FOR NO KEY UPDATE")


def index_told(raw: _Raw, *, parts: Sequence[str], messages: Sequence[str], limits: PassageLimits) -> None:
    """Bring the passages of these parts up to date, and of those parts of the messages that came before them.

    Passages whose text is the same stay, with their vectors. A part of a message that is removed, or not told yet, has
    none.
    """
    told = {item.part.id: item for item in _told(raw, "p.id = ANY(%s)", parts)}
    told |= {item.part.id: item for item in _told(raw, _WAITING, messages)}
    _index(raw, list(told.values()), {*parts, *told}, limits)


def index_session(raw: _Raw, session: str, limits: PassageLimits) -> None:
    """Make the words of a session's passages anew, and its passages where they differ."""
    lock_evidence(raw)
    kept = raw.execute(f"SELECT DISTINCT part FROM passages WHERE tenant = {TENANT} AND session = %s", (session,))
    told = _told(raw, "m.session = ANY(%s)", [session])
    _index(raw, told, {part for (part,) in kept} | {item.part.id for item in told}, limits)
    statement = (
        "SELECT x.n, x.text, m.role, x.created_us, x.tokens FROM passages x "
        "JOIN messages m ON m.tenant = x.tenant AND m.id = x.message "
        f"WHERE x.tenant = {TENANT} AND x.session = %s"
    )
    former, present = list[_Words](), list[_Words]()
    for n, text, role, created_us, tokens in raw.execute(statement, (session,)):
        wanted = _analysed(text, Role(role), created_us)
        if wanted != tokens.split():
            former.append(_Words(n=n, tokens=tokens.split()))
            present.append(_Words(n=n, tokens=wanted))
    _remove_words(raw, former)
    _add_words(raw, present)
    raw.cursor().executemany(
        f"UPDATE passages SET tokens = %s, length = %s WHERE tenant = {TENANT} AND n = %s",
        [(" ".join(item.tokens), len(item.tokens), item.n) for item in present],
    )


def unindex(raw: _Raw, column: str, values: Sequence[str]) -> None:
    """Remove the passages of each ``part`` or ``message``, and what hangs on them."""
    statement = f"SELECT n FROM passages WHERE tenant = {TENANT} AND {column} = ANY(%s)"
    if values:
        _remove(raw, [n for (n,) in raw.execute(statement, (list(values),))])


def mark_current(raw: _Raw) -> None:
    """Note that every passage was made by this version's analyser."""
    lock_evidence(raw)
    raw.execute(f"UPDATE passage_statistics SET analyser = %s WHERE tenant = {TENANT}", (ANALYSER_VERSION,))


def is_outdated(raw: _Raw) -> bool:
    """Whether passages were made by another version's analyser."""
    row = raw.execute(f"SELECT analyser FROM passage_statistics WHERE tenant = {TENANT}").fetchone()
    return row is not None and row[0] != ANALYSER_VERSION


def _told(raw: _Raw, condition: str, values: Sequence[str]) -> list[_Told]:
    return [_read(row) for row in raw.execute(_TOLD + condition, (list(values),))] if values else []


def _read(row: Sequence[Any]) -> _Told:
    part, message, session, role, created_us, kind, text, tool, synthetic, detail = row
    return _Told(
        part=Part(id=PartId(part), kind=kind, text=text, tool=tool, synthetic=bool(synthetic), detail=detail),
        message=message,
        session=session,
        role=Role(role),
        created_us=created_us,
    )


def _index(raw: _Raw, told: Sequence[_Told], parts: Iterable[str], limits: PassageLimits) -> None:
    """Bring ``parts`` up to date, of which ``told`` are those that may have passages."""
    wanted = {
        (item.part.id, position): (text, item)
        for item in told
        for position, text in enumerate(passages_of(item.part, limits))
    }
    statement = f"SELECT n, part, position, message, text FROM passages WHERE tenant = {TENANT} AND part = ANY(%s)"
    gone = []
    for n, part, position, message, text in raw.execute(statement, (list(parts),)):
        place = (PartId(part), position)
        if place in wanted and (text, message) == (wanted[place][0], wanted[place][1].message):
            del wanted[place]
        else:
            gone.append(n)
    _remove(raw, gone)
    _add(raw, [(position, text, item) for (_, position), (text, item) in wanted.items()])


def _add(raw: _Raw, passages: Sequence[tuple[int, str, _Told]]) -> None:
    if not passages:
        return
    rows = []
    words: dict[tuple[str, int], list[str]] = {}
    for position, text, item in passages:
        tokens = words[item.part.id, position] = _analysed(text, item.role, item.created_us)
        place = (item.part.id, position, item.message, item.session, item.created_us)
        rows.append((*place, text, " ".join(tokens), len(tokens)))
    added = raw.execute(
        "INSERT INTO passages (part, position, message, session, created_us, text, tokens, length) "
        "SELECT * FROM unnest(%s::text[], %s::int[], %s::text[], %s::text[], %s::bigint[], %s::text[], %s::text[], "
        "%s::int[]) RETURNING n, part, position",
        _columns(rows),
    )
    _add_words(raw, [_Words(n=n, tokens=words[part, position]) for n, part, position in added])


def _remove(raw: _Raw, numbers: Sequence[int]) -> None:
    if not numbers:
        return
    statement = f"DELETE FROM passages WHERE tenant = {TENANT} AND n = ANY(%s) RETURNING n, tokens"
    gone = raw.execute(statement, (list(numbers),)).fetchall()
    _remove_words(raw, [_Words(n=n, tokens=tokens.split()) for n, tokens in gone])


def _analysed(text: str, role: Role, created_us: int) -> list[str]:
    return analyse(indexed_text(text, role=role, at=from_us(created_us)))


def _add_words(raw: _Raw, passages: Sequence[_Words]) -> None:
    rows = [(term, item.n, count) for item in passages for term, count in Counter(item.tokens).items()]
    if rows:
        raw.execute(
            "INSERT INTO passage_terms (term, n, count) SELECT * FROM unnest(%s::text[], %s::bigint[], %s::int[])",
            _columns(rows),
        )
    _count(raw, documents=len(passages), tokens=sum(len(item.tokens) for item in passages))


def _remove_words(raw: _Raw, passages: Sequence[_Words]) -> None:
    rows = [(term, item.n) for item in passages for term in set(item.tokens)]
    if rows:
        raw.execute(
            "DELETE FROM passage_terms t USING unnest(%s::text[], %s::bigint[]) AS gone (term, n) "
            f"WHERE t.tenant = {TENANT} AND t.term = gone.term AND t.n = gone.n",
            _columns(rows),
        )
    _count(raw, documents=-len(passages), tokens=-sum(len(item.tokens) for item in passages))


def _count(raw: _Raw, *, documents: int, tokens: int) -> None:
    if documents or tokens:
        raw.execute(
            f"UPDATE passage_statistics SET documents = documents + %s, tokens = tokens + %s WHERE tenant = {TENANT}",
            (documents, tokens),
        )


def _columns(rows: Sequence[Sequence[object]]) -> list[list[object]]:
    return [list(column) for column in zip(*rows, strict=True)]
