"""Digests of sessions in SQLite. Nothing of their domain is imported before it is used: a recall has no need of it."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable, Sequence
from datetime import datetime
from functools import partial
from typing import TYPE_CHECKING, Any

from backstory.adapters.stores.sqlite.connection import Connection

if TYPE_CHECKING:
    from backstory.domain.digest import DigestState, DigestUpdate, Piece, SessionDigest
    from backstory.domain.ids import SessionId

Row = Sequence[Any]  # Any: as each column holds it

STATE_COLUMNS = (
    "session", "strategy", "revision", "shown", "shown_for", "shown_task", "shown_response", "current_task",
    "suggested_response", "system_prompt", "due", "forced", "lease_token", "lease_until_us", "attempts",
    "not_before_us", "problem", "last_cycle_us", "last_cycle", "updated_us",
)  # fmt: skip
PIECE_COLUMNS = (
    "session", "position", "id", "strategy", "level", "text", "first_message", "last_message", "sources", "children",
    "parent", "active", "made_by", "prompt", "source_tokens", "created_us",
)  # fmt: skip
STATE, PIECE = ", ".join(STATE_COLUMNS), ", ".join(PIECE_COLUMNS)
_UNREADABLE = (ValueError, TypeError, OverflowError, RecursionError)

_ADD_STATE = f"INSERT OR IGNORE INTO digests ({STATE}) VALUES ({', '.join('?' * len(STATE_COLUMNS))})"
_REPLACE_STATE = (
    f"UPDATE digests SET ({STATE}) = ({', '.join('?' * len(STATE_COLUMNS))}) WHERE session = ? AND revision = ?"
)
_ADD_PIECE = f"INSERT INTO digest_pieces ({PIECE}) VALUES ({', '.join('?' * len(PIECE_COLUMNS))})"


class SqliteDigests:
    """The DigestStore over one connection."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    async def digest(self, session: SessionId) -> SessionDigest | None:
        return await self._connection.read(lambda raw: load_digest(raw, session))

    async def revision(self, session: SessionId) -> int:
        statement = "SELECT revision FROM digests WHERE session = ?"
        row = await self._connection.read(lambda raw: raw.execute(statement, (session,)).fetchone())
        return 0 if row is None else int(row[0])

    async def apply(self, update: DigestUpdate) -> bool:
        return await self._connection.write(lambda raw: _apply(raw, update))

    async def due(self, *, now: datetime, limit: int) -> Sequence[SessionId]:
        from backstory.adapters.stores.sqlite.rows import to_us

        statement = (
            "SELECT session FROM digests WHERE due + forced > 0 AND (lease_until_us IS NULL OR lease_until_us <= ?) "
            "AND (not_before_us IS NULL OR not_before_us <= ?) ORDER BY updated_us DESC, session LIMIT ?"
        )
        moment = to_us(now)
        rows = await self._connection.read(lambda raw: raw.execute(statement, (moment, moment, limit)).fetchall())
        return [session for (session,) in rows]

    async def forget(self, session: SessionId) -> bool:
        statement = "DELETE FROM digests WHERE session = ?"  # its pieces go with it
        return await self._connection.write(lambda raw: raw.execute(statement, (session,)).rowcount > 0)


def load_digest(raw: sqlite3.Connection, session: str) -> SessionDigest | None:
    """A session's digest. Raises StoreDamaged for values that no Backstory writes."""
    state = raw.execute(f"SELECT {STATE} FROM digests WHERE session = ?", (session,)).fetchone()
    if state is None:
        return None
    pieces = raw.execute(f"SELECT {PIECE} FROM digest_pieces WHERE session = ? ORDER BY position", (session,))
    return digest_from_rows(state, pieces)


async def mend_digests(connection: Connection) -> int:
    """Let no piece lead to one that is not there; in how many that was wrong. A digest that cannot be read stays."""
    statement = "SELECT session FROM digests"
    wrong = 0
    for (session,) in await connection.read(lambda raw: raw.execute(statement).fetchall()):
        wrong += await connection.write(partial(_mend, session=session))
    return wrong


def _mend(raw: sqlite3.Connection, session: str) -> int:
    from backstory.adapters.stores.digest_rules import mended
    from backstory.errors import StoreDamaged

    try:
        digest = load_digest(raw, session)
    except StoreDamaged:
        return 0
    right = [] if digest is None else mended(digest)
    if right:
        raw.executemany(
            "UPDATE digest_pieces SET parent = ?, active = ?, children = ? WHERE session = ? AND id = ?",
            [(piece.parent, int(piece.active), list_text(piece.children), session, piece.id) for piece in right],
        )
        raw.execute("UPDATE digests SET revision = revision + 1 WHERE session = ?", (session,))
    return len(right)


def _apply(raw: sqlite3.Connection, update: DigestUpdate) -> bool:
    from backstory.adapters.stores.digest_rules import check_added

    state = update.state
    row = state_row(state)
    if state.revision == 0:
        written = raw.execute(_ADD_STATE, row)
    else:
        written = raw.execute(_REPLACE_STATE, (*row, state.session, state.revision))
    if written.rowcount != 1:
        return False
    check_added(update, _known(raw, update))
    last = raw.execute("SELECT coalesce(max(position), -1) FROM digest_pieces WHERE session = ?", (state.session,))
    first = last.fetchone()[0] + 1
    raw.executemany(_ADD_PIECE, [piece_row(piece, position) for position, piece in enumerate(update.added, first)])
    raw.executemany(
        "UPDATE digest_pieces SET parent = ?, active = ? WHERE session = ? AND id = ?",
        [(piece.parent, int(piece.active), state.session, piece.id) for piece in own_changes(update)],
    )
    raw.executemany(
        "DELETE FROM digest_pieces WHERE session = ? AND id = ?",
        [(state.session, piece_id) for piece_id in update.dropped],
    )
    return True


def _known(raw: sqlite3.Connection, update: DigestUpdate) -> set[str]:
    statement = "SELECT 1 FROM digest_pieces WHERE session = ? AND id = ?"
    ids = {piece.id for piece in update.added}
    return {found for found in ids if raw.execute(statement, (update.state.session, found)).fetchone() is not None}


def own_changes(update: DigestUpdate) -> list[Piece]:
    """The changed pieces of the session itself, each once, as it was named last."""
    session = update.state.session
    return list({piece.id: piece for piece in update.changed if piece.session == session}.values())


def state_row(state: DigestState) -> Row:
    """The values of ``STATE_COLUMNS`` after a state was written: with a revision that is one further."""
    from backstory.adapters.stores.sqlite.rows import to_us, to_us_or_none

    return (
        state.session,
        state.strategy.value,
        state.revision + 1,
        list_text(state.shown),
        state.shown_for,
        state.shown_task,
        state.shown_response,
        state.current_task,
        state.suggested_response,
        state.system_prompt,
        int(state.due),
        int(state.forced),
        None if state.lease is None else state.lease.token,
        None if state.lease is None else to_us(state.lease.expires_at),
        state.attempts,
        to_us_or_none(state.not_before),
        state.problem,
        to_us_or_none(state.last_cycle_at),
        state.last_cycle,
        to_us(state.updated_at),
    )


def piece_row(piece: Piece, position: int) -> Row:
    """A piece as the values of ``PIECE_COLUMNS``."""
    from backstory.adapters.stores.sqlite.rows import to_us

    return (
        piece.session,
        position,
        piece.id,
        piece.strategy.value,
        piece.level,
        piece.text,
        piece.start,
        piece.end,
        list_text(piece.sources),
        list_text(piece.children),
        piece.parent,
        int(piece.active),
        piece.made_by,
        piece.prompt,
        piece.source_tokens,
        to_us(piece.created_at),
    )


def digest_from_rows(state: Row, pieces: Iterable[Row]) -> SessionDigest:
    """The digest that ``state_row`` and ``piece_row`` made rows of. Raises StoreDamaged for anything else."""
    from backstory.domain.digest import SessionDigest
    from backstory.errors import StoreDamaged

    try:
        return SessionDigest(state=_state(state), pieces=tuple(map(_piece, pieces)))
    except _UNREADABLE as error:
        raise StoreDamaged(f"the digest of session {state[0]} in the store cannot be read: {error}") from error


def _state(row: Row) -> DigestState:
    from backstory.adapters.stores.sqlite.rows import from_us, from_us_or_none
    from backstory.domain.digest import DigestState, Lease, Strategy

    (
        session, strategy, revision, shown, shown_for, shown_task, shown_response, current_task, suggested_response,
        system_prompt, due, forced, token, until_us, attempts, not_before_us, problem, last_cycle_us, last_cycle,
        updated_us,
    ) = row  # fmt: skip
    return DigestState(
        session=session,
        strategy=Strategy(strategy),
        revision=revision,
        shown=_texts(shown),
        shown_for=shown_for,
        shown_task=shown_task,
        shown_response=shown_response,
        current_task=current_task,
        suggested_response=suggested_response,
        system_prompt=system_prompt,
        due=bool(due),
        forced=bool(forced),
        lease=None if token is None else Lease(token=token, expires_at=from_us(until_us)),
        attempts=attempts,
        not_before=from_us_or_none(not_before_us),
        problem=problem,
        last_cycle_at=from_us_or_none(last_cycle_us),
        last_cycle=last_cycle,
        updated_at=from_us(updated_us),
    )


def _piece(row: Row) -> Piece:
    from backstory.adapters.stores.sqlite.rows import from_us
    from backstory.domain.digest import Piece, Strategy

    (
        session, _, piece_id, strategy, level, text, start, end, sources, children, parent, active, made_by, prompt,
        source_tokens, created_us,
    ) = row  # fmt: skip
    return Piece(
        session=session,
        id=piece_id,
        strategy=Strategy(strategy),
        level=level,
        text=text,
        start=start,
        end=end,
        sources=_texts(sources),
        children=_texts(children),
        parent=parent,
        active=bool(active),
        made_by=made_by,
        prompt=prompt,
        source_tokens=source_tokens,
        created_at=from_us(created_us),
    )


def list_text(texts: Sequence[str]) -> str:
    """A list of texts as a column holds it."""
    from backstory.adapters.stores.sqlite.rows import dump

    return dump(list(texts))


def _texts(text: str) -> tuple[Any, ...]:  # Any: ids of one kind or another
    if text == "[]":
        return ()
    found = json.loads(text)
    if not isinstance(found, list) or not all(isinstance(item, str) for item in found):
        raise ValueError(f"{text[:80]!r} is no list of texts")
    return tuple(found)
