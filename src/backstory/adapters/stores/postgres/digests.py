"""Digests of sessions in Postgres."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime
from functools import partial
from typing import Any

import psycopg

from backstory.adapters.stores.digest_rules import check_added, mended
from backstory.adapters.stores.postgres.connection import Connection
from backstory.adapters.stores.postgres.storable import storable
from backstory.adapters.stores.postgres.tenancy import TENANT
from backstory.adapters.stores.sqlite.digests import (
    PIECE,
    PIECE_COLUMNS,
    STATE,
    STATE_COLUMNS,
    digest_from_rows,
    list_text,
    own_changes,
    piece_row,
    state_row,
)
from backstory.adapters.stores.sqlite.rows import to_us
from backstory.domain.digest import DigestState, DigestUpdate, Piece, SessionDigest
from backstory.domain.ids import MessageId, SessionId
from backstory.errors import StoreDamaged

_Raw = psycopg.Connection[Any]  # Any: rows hold whatever a statement selects

_STATE_MARKS = ", ".join(["%s"] * len(STATE_COLUMNS))
_ADD_STATE = f"INSERT INTO digests ({STATE}) VALUES ({_STATE_MARKS}) ON CONFLICT (tenant, session) DO NOTHING"
_OF_SESSION = f"WHERE tenant = {TENANT} AND session = %s"
_REPLACE_STATE = f"UPDATE digests SET ({STATE}) = ROW ({_STATE_MARKS}) {_OF_SESSION} AND revision = %s"
_ADD_PIECE = f"INSERT INTO digest_pieces ({PIECE}) VALUES ({', '.join(['%s'] * len(PIECE_COLUMNS))})"
_CHANGE_PIECES = (
    "UPDATE digest_pieces p SET parent = given.parent, active = given.active "
    "FROM unnest(%s::text[], %s::text[], %s::smallint[]) AS given (id, parent, active) "
    f"WHERE p.tenant = {TENANT} AND p.session = %s AND p.id = given.id"
)


class PostgresDigests:
    """The DigestStore over one store. Whoever writes a session's row first keeps others waiting until it has ended."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    async def digest(self, session: SessionId) -> SessionDigest | None:
        [asked] = storable(session)
        return await self._connection.read(lambda raw: load_digest(raw, asked))

    async def revision(self, session: SessionId) -> int:
        statement = f"SELECT revision FROM digests {_OF_SESSION}"
        row = await self._connection.read(lambda raw: raw.execute(statement, storable(session)).fetchone())
        return 0 if row is None else int(row[0])

    async def apply(self, update: DigestUpdate) -> bool:
        kept = _as_kept(update)

        def again(raw: _Raw) -> bool:
            return _apply(raw, kept) or _is_written(raw, kept)

        return await self._connection.write(lambda raw: _apply(raw, kept), again=again)

    async def due(self, *, now: datetime, limit: int) -> Sequence[SessionId]:
        statement = (
            f"SELECT session FROM digests WHERE tenant = {TENANT} AND due + forced > 0 "
            "AND (lease_until_us IS NULL OR lease_until_us <= %s) AND (not_before_us IS NULL OR not_before_us <= %s) "
            "ORDER BY updated_us DESC, session LIMIT %s"
        )
        moment = to_us(now)
        rows = await self._connection.read(lambda raw: raw.execute(statement, (moment, moment, limit)).fetchall())
        return [session for (session,) in rows]

    async def forget(self, session: SessionId) -> bool:
        removed = False

        def work(raw: _Raw) -> bool:
            nonlocal removed  # by a commit of which nobody knows whether it went through
            removed = raw.execute(f"DELETE FROM digests {_OF_SESSION}", storable(session)).rowcount > 0 or removed
            return removed

        return await self._connection.write(work, again=work)


def load_digest(raw: _Raw, session: str) -> SessionDigest | None:
    """A session's digest. Raises StoreDamaged for values that no Backstory writes."""
    state = raw.execute(f"SELECT {STATE} FROM digests {_OF_SESSION}", (session,)).fetchone()
    if state is None:
        return None
    pieces = raw.execute(f"SELECT {PIECE} FROM digest_pieces {_OF_SESSION} ORDER BY position", (session,))
    return digest_from_rows(state, pieces.fetchall())


async def mend_digests(connection: Connection) -> int:
    """Let no piece lead to one that is not there; in how many that was wrong. A digest that cannot be read stays."""
    statement = f"SELECT session FROM digests WHERE tenant = {TENANT}"
    wrong = 0
    for (session,) in await connection.read(lambda raw: raw.execute(statement).fetchall()):
        work = partial(_mend, session=session)
        wrong += await connection.write(work, again=work)
    return wrong


def _mend(raw: _Raw, session: str) -> int:
    raw.execute(f"SELECT 1 FROM digests {_OF_SESSION} FOR UPDATE", (session,))
    try:
        digest = load_digest(raw, session)
    except StoreDamaged:
        return 0
    right = [] if digest is None else mended(digest)
    if right:
        with raw.cursor() as cursor:
            cursor.executemany(
                f"UPDATE digest_pieces SET parent = %s, active = %s, children = %s {_OF_SESSION} AND id = %s",
                [(piece.parent, int(piece.active), list_text(piece.children), session, piece.id) for piece in right],
            )
        raw.execute(f"UPDATE digests SET revision = revision + 1 {_OF_SESSION}", (session,))
    return len(right)


def _apply(raw: _Raw, update: DigestUpdate) -> bool:
    state = update.state
    row = state_row(state)
    if state.revision == 0:
        written = raw.execute(_ADD_STATE, row)
    else:
        written = raw.execute(_REPLACE_STATE, (*row, state.session, state.revision))
    if written.rowcount != 1:
        return False
    if update.added:
        _add(raw, update)
    if changed := own_changes(update):
        columns = ([piece.id for piece in changed], [piece.parent for piece in changed])
        raw.execute(_CHANGE_PIECES, (*columns, [int(piece.active) for piece in changed], state.session))
    if update.dropped:
        raw.execute(f"DELETE FROM digest_pieces {_OF_SESSION} AND id = ANY(%s)", (state.session, [*update.dropped]))
    return True


def _add(raw: _Raw, update: DigestUpdate) -> None:
    session = update.state.session
    known = f"SELECT id FROM digest_pieces {_OF_SESSION} AND id = ANY(%s)"
    ids = [piece.id for piece in update.added]
    check_added(update, {found for (found,) in raw.execute(known, (session, ids)).fetchall()})
    last = raw.execute(f"SELECT coalesce(max(position), -1) FROM digest_pieces {_OF_SESSION}", (session,)).fetchone()
    assert last is not None  # an aggregate always gives one
    with raw.cursor() as cursor:
        cursor.executemany(_ADD_PIECE, [piece_row(piece, n) for n, piece in enumerate(update.added, last[0] + 1)])


def _is_written(raw: _Raw, update: DigestUpdate) -> bool:
    """Whether a commit of which nobody knew went through, and nobody has written since."""
    row = raw.execute(f"SELECT {STATE} FROM digests {_OF_SESSION}", (update.state.session,)).fetchone()
    return row == state_row(update.state)


# --- what a text in Postgres can be -----------------------------------------------------------------------------------


def _as_kept(update: DigestUpdate) -> DigestUpdate:
    """A change with U+FFFD for what no text in Postgres can hold, so that what names a piece still finds it."""
    return DigestUpdate(
        state=_kept_state(update.state),
        added=tuple(map(_kept_piece, update.added)),
        changed=tuple(map(_kept_piece, update.changed)),
        dropped=storable(*update.dropped),
    )


def _kept_state(state: DigestState) -> DigestState:
    session, shown_for, shown_task, shown_response, task, response, prompt, problem, cycle = storable(
        state.session, state.shown_for, state.shown_task, state.shown_response, state.current_task,
        state.suggested_response, state.system_prompt, state.problem, state.last_cycle,
    )  # fmt: skip
    return replace(
        state,
        session=session,
        shown=storable(*state.shown),
        shown_for=shown_for,
        shown_task=shown_task,
        shown_response=shown_response,
        current_task=task,
        suggested_response=response,
        system_prompt=prompt,
        lease=None if state.lease is None else replace(state.lease, token=storable(state.lease.token)[0]),
        problem=problem,
        last_cycle=cycle,
    )


def _kept_piece(piece: Piece) -> Piece:
    session, piece_id, text, parent, made_by, prompt = storable(
        piece.session, piece.id, piece.text, piece.parent, piece.made_by, piece.prompt
    )
    sources: tuple[MessageId, ...] = storable(*piece.sources)
    return replace(
        piece,
        session=session,
        id=piece_id,
        text=text,
        sources=sources,
        children=storable(*piece.children),
        parent=parent,
        made_by=made_by,
        prompt=prompt,
    )
