"""Passages kept in step with the messages they are cut from, inside the transactions that write those."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from dataclasses import dataclass

from backstory.adapters.stores.sqlite.rows import from_us
from backstory.domain.conversation import Part, Role
from backstory.domain.evidence_passages import PassageLimits, indexed_text, passages_of
from backstory.domain.ids import PartId
from backstory.domain.text import ANALYSER_VERSION, analyse

_TOLD = (
    "SELECT p.id, p.message, m.session, m.role, m.created_us, p.kind, p.text, p.tool, p.synthetic, p.detail "
    "FROM parts p JOIN messages m ON m.id = p.message WHERE m.removed_us IS NULL AND "
)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Told:
    """A part and who said it when."""

    part: Part
    message: str
    session: str
    role: Role
    created_us: int


def index_part(raw: sqlite3.Connection, part: str, limits: PassageLimits) -> None:
    """Bring the passages of a part up to date. Those whose text is the same stay, with their vectors.

    A part of a message that is removed, or not told yet, has none.
    """
    told = _told(raw, "p.id = ?", part)
    if not told:
        unindex(raw, "part", part)
    for item in told:
        _index(raw, item, limits)


def index_message(raw: sqlite3.Connection, message: str, limits: PassageLimits) -> None:
    """The same for the parts that came before their message."""
    waiting = "p.message = ? AND NOT EXISTS (SELECT 1 FROM passages x WHERE x.part = p.id)"
    for item in _told(raw, waiting, message):
        _index(raw, item, limits)


def index_session(raw: sqlite3.Connection, session: str, limits: PassageLimits) -> None:
    """Make the words of a session's passages anew, and its passages where they differ."""
    numbers = raw.execute("SELECT n FROM passages WHERE session = ?", (session,)).fetchall()
    gone = "SELECT x.n FROM passages x WHERE x.session = ? AND NOT EXISTS (SELECT 1 FROM parts p WHERE p.id = x.part)"
    orphans = {n for (n,) in raw.execute(gone, (session,))}
    for (n,) in numbers:
        _remove_words(raw, n)
        if n in orphans:
            raw.execute("DELETE FROM passages WHERE n = ?", (n,))
    for item in _told(raw, "m.session = ?", session):
        _index(raw, item, limits)
    statement = (
        "SELECT x.n, x.text, m.role, x.created_us FROM passages x JOIN messages m ON m.id = x.message "
        "WHERE x.session = ? AND x.n NOT IN (SELECT w.rowid FROM passage_words w)"
    )
    for n, text, role, created_us in raw.execute(statement, (session,)).fetchall():
        _add_words(raw, n, text, Role(role), created_us)


def unindex(raw: sqlite3.Connection, column: str, value: str) -> None:
    """Remove the passages of a ``part`` or a ``message``, and what hangs on them."""
    for (n,) in raw.execute(f"SELECT n FROM passages WHERE {column} = ?", (value,)).fetchall():
        _remove(raw, n)


def mark_current(raw: sqlite3.Connection) -> None:
    """Note that every passage was made by this version's analyser."""
    raw.execute("UPDATE passage_statistics SET analyser = ?", (ANALYSER_VERSION,))


def is_outdated(raw: sqlite3.Connection) -> bool:
    """Whether passages are missing or were made by another version's analyser."""
    row = raw.execute("SELECT analyser FROM passage_statistics").fetchone()
    return row is None or row[0] != ANALYSER_VERSION


def _told(raw: sqlite3.Connection, condition: str, value: str) -> list[_Told]:
    return [_read(row) for row in raw.execute(_TOLD + condition, (value,)).fetchall()]


def _read(row: Sequence[object]) -> _Told:
    part, message, session, role, created_us, kind, text, tool, synthetic, detail = row
    return _Told(
        part=Part(
            id=PartId(str(part)),
            kind=str(kind),
            text=str(text),
            tool=None if tool is None else str(tool),
            synthetic=bool(synthetic),
            detail=None if detail is None else str(detail),
        ),
        message=str(message),
        session=str(session),
        role=Role(str(role)),
        created_us=int(str(created_us)),
    )


def _index(raw: sqlite3.Connection, told: _Told, limits: PassageLimits) -> None:
    wanted = dict(enumerate(passages_of(told.part, limits)))
    statement = "SELECT n, position, text FROM passages WHERE part = ?"
    for n, position, text in raw.execute(statement, (told.part.id,)).fetchall():
        if wanted.get(position) == text:
            del wanted[position]
        else:
            _remove(raw, n)
    for position, text in wanted.items():
        n = raw.execute(
            "INSERT INTO passages (part, position, message, session, created_us, text) VALUES (?, ?, ?, ?, ?, ?)",
            (told.part.id, position, told.message, told.session, told.created_us, text),
        ).lastrowid
        assert n is not None
        _add_words(raw, n, text, told.role, told.created_us)


def _add_words(raw: sqlite3.Connection, n: int, text: str, role: Role, created_us: int) -> None:
    tokens = analyse(indexed_text(text, role=role, at=from_us(created_us)))
    raw.execute("INSERT INTO passage_words (rowid, tokens) VALUES (?, ?)", (n, " ".join(tokens)))
    _count(raw, documents=1, tokens=len(tokens))


def _remove(raw: sqlite3.Connection, n: int) -> None:
    _remove_words(raw, n)
    raw.execute("DELETE FROM passages WHERE n = ?", (n,))


def _remove_words(raw: sqlite3.Connection, n: int) -> None:
    row = raw.execute("SELECT tokens FROM passage_words WHERE rowid = ?", (n,)).fetchone()
    if row is not None:
        raw.execute("DELETE FROM passage_words WHERE rowid = ?", (n,))
        _count(raw, documents=-1, tokens=-len(row[0].split()))


def _count(raw: sqlite3.Connection, *, documents: int, tokens: int) -> None:
    raw.execute("UPDATE passage_statistics SET documents = documents + ?, tokens = tokens + ?", (documents, tokens))
