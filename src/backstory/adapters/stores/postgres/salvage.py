"""Reading what can still be read of a tenant's rows on a server. Nothing is written, and nothing stops the rest."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import timedelta
from typing import Any

import psycopg

from backstory.adapters.stores.postgres.conversation import SESSION, session_from_row
from backstory.adapters.stores.postgres.driver_errors import in_our_words
from backstory.adapters.stores.postgres.looking import Raw, looking, rows_of
from backstory.adapters.stores.postgres.opening import Address
from backstory.adapters.stores.postgres.tenancy import TENANT
from backstory.adapters.stores.postgres.verification import check_present
from backstory.adapters.stores.postgres.verified_memories import stored_memories
from backstory.adapters.stores.sqlite.blobs import blob_from_row
from backstory.adapters.stores.sqlite.rows import from_us, from_us_or_none, memory_from_image
from backstory.adapters.stores.sqlite.verified_evidence import blob_trouble
from backstory.domain.blob import Blob
from backstory.domain.conversation import BlobHash, BlobRef, Message, Part, Role, Session
from backstory.domain.ids import MessageId, PartId, ProjectId, SessionId
from backstory.domain.memory import Memory
from backstory.domain.project import Project
from backstory.errors import StoreDamaged
from backstory.ports.upkeep import Salvage

# A page that cannot be read, a table that is gone: the rest may be whole.
_LOST = (psycopg.DataError, psycopg.InternalError, psycopg.ProgrammingError)

_REFS = (
    "ARRAY(SELECT jsonb_build_array(r.hash, r.size, r.media_type) FROM part_blobs r "
    "WHERE r.tenant = p.tenant AND r.part = p.id ORDER BY r.position)"
)


def salvage(address: Address, *, timeout: timedelta) -> Salvage:
    """What ``StoreUpkeep.salvage`` promises."""
    lost: list[str] = []
    with in_our_words(), looking(address, timeout=timeout) as raw:
        check_present(raw, address)
        memories = _all("memories", raw, lost, lambda: _memories(raw, lost))
        projects = _all("projects", raw, lost, lambda: _projects(raw))
        sessions = _all("sessions", raw, lost, lambda: _sessions(raw))
        messages = _all("messages", raw, lost, lambda: _messages(raw, lost))
        blobs = _all("blobs", raw, lost, lambda: _blobs(raw, lost))
    return Salvage(
        memories=memories,
        projects={project.id: project for project in projects},
        sessions=sessions,
        messages=messages,
        blobs=blobs,
        lost=lost,
    )


def _all(table: str, raw: Raw, lost: list[str], read: Any) -> list[Any]:  # Any: whatever ``read`` yields
    """As many as can be read before the server fails at one."""
    found: list[Any] = []
    try:
        with raw.transaction():
            for item in read():
                found.append(item)
    except _LOST as error:
        lost.append(f"rows of {table} after {len(found)}: {str(error).splitlines()[0]}")
    return found


def _memories(raw: Raw, lost: list[str]) -> Iterator[Memory]:
    for some in stored_memories(raw):
        for row in some:
            if isinstance(row.memory, Memory):
                yield row.memory
            else:
                yield from _from_history(raw, row.n, lost, str(row.memory))
    gone = (
        f"SELECT DISTINCT n FROM change_edits e WHERE tenant = {TENANT} AND NOT EXISTS "
        "(SELECT 1 FROM memories m WHERE m.tenant = e.tenant AND m.n = e.n) ORDER BY n"
    )
    for (n,) in raw.execute(gone).fetchall():
        yield from _from_history(raw, n, lost, f"memory #{n} is gone from its table")


def _from_history(raw: Raw, n: int, lost: list[str], why: str) -> Iterator[Memory]:
    """The last state of a memory that its history still tells."""
    states: list[Memory] = []
    statement = f"SELECT after::text FROM change_edits WHERE tenant = {TENANT} AND n = %s"
    for (after,) in raw.execute(statement, (n,)):
        try:
            states.append(memory_from_image(after))
        except StoreDamaged:
            continue
    if not states:
        lost.append(f"memory #{n}: {why}")
        return
    last = max(states, key=lambda memory: memory.revision)
    lost.append(f"memory #{n}: {why}; taken from its history, as it was at revision {last.revision}")
    yield last


def _projects(raw: Raw) -> Iterator[Project]:
    for name, title, root in raw.execute(f"SELECT id, name, root FROM projects WHERE tenant = {TENANT} ORDER BY id"):
        yield Project(id=ProjectId(name), name=title, root=root)


def _sessions(raw: Raw) -> Iterator[Session]:
    for row in raw.execute(f"SELECT {SESSION} FROM sessions WHERE tenant = {TENANT} ORDER BY created_us, id"):
        yield session_from_row(row)


def _messages(raw: Raw, lost: list[str]) -> Iterator[Message]:
    refs = _REFS if _has_blobs(raw) else "ARRAY[]::text[]"
    parts = (
        f"ARRAY(SELECT jsonb_build_array(p.id, p.kind, p.text, p.tool, p.synthetic, p.detail, {refs}) FROM parts p "
        "WHERE p.tenant = m.tenant AND p.message = m.id ORDER BY p.id)"
    )
    statement = (
        "SELECT m.id, m.session, m.role, m.agent, m.model, m.created_us, m.completed_us, m.removed_us, "
        f"{parts} FROM messages m WHERE m.tenant = {TENANT} ORDER BY m.created_us, m.id"
    )
    for some in rows_of(raw, statement):
        for row in some:
            try:
                yield _message(row)
            except (ValueError, OverflowError) as error:
                lost.append(f"message {row[0]}: {error}")


def _message(row: Sequence[Any]) -> Message:
    message, session, role, agent, model, created, completed, removed, parts = row
    return Message(
        id=MessageId(message),
        session=SessionId(session),
        role=Role(role),
        agent=agent,
        model=model,
        created_at=from_us(created),
        completed_at=from_us_or_none(completed),
        removed_at=from_us_or_none(removed),
        parts=tuple(_part(*part) for part in parts),
    )


def _part(name: str, kind: str, text: str, tool: Any, synthetic: int, detail: Any, refs: Sequence[Any]) -> Part:
    blobs = tuple(BlobRef(hash=BlobHash(key), size=size, media_type=media_type) for key, size, media_type in refs)
    return Part(id=PartId(name), kind=kind, text=text, tool=tool, synthetic=bool(synthetic), detail=detail, blobs=blobs)


def _has_blobs(raw: Raw) -> bool:
    """False for a store of an older version, which kept everything in parts."""
    return raw.execute("SELECT to_regclass('part_blobs') IS NOT NULL").fetchone() == (True,)


def _blobs(raw: Raw, lost: list[str]) -> Iterator[Blob]:
    if not _has_blobs(raw):
        return
    statement = f"SELECT hash, size, packing, packed FROM blobs WHERE tenant = {TENANT} ORDER BY hash"
    for some in rows_of(raw, statement, at_once=8):
        for row in some:
            if (trouble := blob_trouble(row)) is None:
                yield blob_from_row(row)
            else:
                lost.append(trouble)
