"""What the user said here stays said here, whatever another clone makes of the memory that holds it.

The ref is everybody's: who may push to it may reword a memory, forget it, replace it, or change how it is offered, and
all of that comes in with a ``sync``. Nobody can tell the user's other machine from a stranger, so without a person who
vouches for the remote both stand afterwards: the memory as the others have it, with a peer's trust, and what the user
said as a memory of its own. No clone takes the other's words back, so two of them never fight about one memory.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime, timedelta

from backstory.adapters.stores.gitbranch import index
from backstory.adapters.stores.gitbranch.publishing import UNSHARED
from backstory.adapters.stores.gitbranch.tree import derived_id, is_shared
from backstory.adapters.stores.sqlite.commits import commit_change
from backstory.domain.history import Action, Author, Change, Edit
from backstory.domain.ids import ChangeId, MemoryId
from backstory.domain.memory import Active, Deleted, Memory, Sensitivity
from backstory.domain.provenance import Origin
from backstory.ports.synchronisation import KeptWords

_REASON = "another clone changed what was said here; both stand until somebody decides"
_EPOCH = datetime.fromtimestamp(0, UTC)


def statements(raw: sqlite3.Connection, ref: str) -> dict[MemoryId, Memory]:
    """The user's own statements on a ref that hold now."""
    rows = raw.execute(
        "SELECT m.id FROM memories m JOIN git_memories g ON g.memory = m.id "
        "WHERE g.ref = ? AND m.origin = ? AND m.state = 'active'",
        (ref, Origin.USER.value),
    ).fetchall()
    found = (index.memory(raw, MemoryId(row[0])) for row in rows)
    return {memory.id: memory for memory in found if memory is not None}


def keep(raw: sqlite3.Connection, before: Mapping[MemoryId, Memory]) -> list[KeptWords]:
    """Say again, as memories of their own, those statements that others have displaced; commits one change for each
    in the transaction that runs. What was withdrawn from the ref, made private or local-only, does not stand there
    again: it is kept here, as a private memory."""
    kept = []
    for memory_id, said in before.items():
        now = index.memory(raw, memory_id)
        if now is None or not is_displaced(said, now) or _stands_already(raw, said):
            continue
        at = _EPOCH + timedelta(microseconds=index.last_decision(raw, memory_id)[0] + 1)
        again = replace(
            said,
            id=MemoryId(derived_id(said.times.learned, "kept", said.id, said.content)),
            n=0,
            revision=0,
            sensitivity=Sensitivity.PRIVATE if _is_withdrawn(now) else said.sensitivity,
            provenance=replace(said.provenance, raw={}),  # that is where the line of the other one stands
        )
        if index.memory(raw, again.id) is not None:
            continue
        done = commit_change(
            raw,
            Change(
                id=ChangeId(derived_id(at, "kept", said.id, said.content)),
                at=at,
                author=Author.SYSTEM,
                action=Action.ADD,
                edits=(Edit(before=None, after=again),),
                reason=f"{_REASON} (#{now.n})",
            ),
            None,
        )
        after = done.edits[0].after
        kept.append(KeptWords(memory=after.id, n=after.n, said=after.content, changed=now.n, now=_words(now)))
    return kept


def is_displaced(said: Memory, now: Memory) -> bool:
    """Whether a statement does not hold any more as it was said: in other words, forgotten, replaced, disputed, or
    offered less."""
    return (
        now.content != said.content
        or now.origin is not said.origin
        or not isinstance(now.status, Active)
        or (now.visibility, now.project, now.session) != (said.visibility, said.project, said.session)
        or (now.tier, now.expires_at) != (said.tier, said.expires_at)
        or (said.pinned and not now.pinned)
        or now.sensitivity is not said.sensitivity
    )


def _is_withdrawn(now: Memory) -> bool:
    return not is_shared(now) or (isinstance(now.status, Deleted) and now.status.reason == UNSHARED)


def _stands_already(raw: sqlite3.Connection, said: Memory) -> bool:
    row = raw.execute(
        "SELECT 1 FROM memories WHERE content = ? AND origin = ? AND state = 'active' AND visibility = ? "
        "AND project IS ? LIMIT 1",
        (said.content, said.origin.value, said.visibility.value, said.project),
    ).fetchone()
    return row is not None


def _words(now: Memory) -> str | None:
    return None if isinstance(now.status, Deleted) else now.content
