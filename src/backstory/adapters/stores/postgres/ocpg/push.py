"""What was written here becomes ocpg's, in the same transaction: added, changed, replaced, forgotten, recalled."""

from __future__ import annotations

import logging
from dataclasses import replace
from typing import Any

import psycopg
from psycopg import errors

from backstory.adapters.stores.postgres.ocpg import links as known
from backstory.adapters.stores.postgres.ocpg.layout import Layout
from backstory.adapters.stores.postgres.ocpg.links import BY, FIELDS, Link
from backstory.adapters.stores.postgres.ocpg.pull import PASSING
from backstory.adapters.stores.postgres.ocpg.reading import read_rows
from backstory.adapters.stores.postgres.ocpg.writing import (
    Place,
    add_recalls,
    columns_of,
    count_recalls,
    delete_row,
    insert_row,
    place_in,
    said_of,
    update_row,
    why_not,
)
from backstory.domain.memory import Deleted, Memory, Superseded

# ocpg's tables are not what they were when they were recognised, or not open to us any more.
CHANGED = (errors.UndefinedTable, errors.UndefinedColumn, errors.InvalidSchemaName, errors.InsufficientPrivilege)

_Raw = psycopg.Connection[Any]
_log = logging.getLogger(__name__)


def push(raw: _Raw, layout: Layout) -> bool:
    """Write what the transaction that runs, or one without a link before it, has changed. What ocpg's tables refuse is
    left out, said in the log, and noted. False where those tables are not what they were: all stays to be written.

    Costs one statement where nothing was written. Raises OutOfStep when a row was changed there since the last look.
    """
    numbers = known.pending(raw) if layout.can_write else []
    if not numbers:
        return True
    try:
        with raw.transaction():
            _Push(raw, layout, numbers).run()
    except CHANGED as error:
        _log.warning("event=ocpg_not_written sqlstate=%s", error.sqlstate)
        return False
    return True


class _Push:
    def __init__(self, raw: _Raw, layout: Layout, numbers: list[int]) -> None:
        self._raw = raw
        self._layout = layout
        self._numbers = numbers
        self._links = known.links_of_memories(raw, numbers)
        self._memories = known.memories_by_number(raw, numbers)
        named = [memory.status.by for memory in self._memories.values() if isinstance(memory.status, Superseded)]
        self._rows = known.rows_of_memories(raw, [*named, *(memory.id for memory in self._memories.values())])
        self._written: dict[int, Link] = {}
        self._left_out: dict[int, str] = {}

    def run(self) -> None:
        """Rows first, then those that point to them, then what goes: ocpg's foreign key would empty pointers to it."""
        memories = [self._memories[n] for n in self._numbers if n in self._memories]
        current = [memory for memory in memories if not isinstance(memory.status, Superseded)]
        replaced = [memory for memory in memories if isinstance(memory.status, Superseded)]
        for memory in (*current, *replaced):
            self._try(memory, self._show)
        for memory in memories:
            if memory.n in self._left_out:
                self._try(memory, self._hide)
        for n in self._numbers:
            if n not in self._memories:
                self._erase(n)
        self._keep()

    def _try(self, memory: Memory, step: Any) -> None:  # Any: one of the methods below
        try:
            with self._raw.transaction():
                step(memory)
        except (*PASSING, *CHANGED):
            raise
        except psycopg.Error as error:
            if self._raw.closed:
                raise
            self._written.pop(memory.n, None)
            self._left_out[memory.n] = f"its table refused it (SQLSTATE {error.sqlstate})"
            _log.warning("event=ocpg_refused n=%s sqlstate=%s", memory.n, error.sqlstate)

    def _show(self, memory: Memory) -> None:
        link = self._links.get(memory.n)
        by = memory.status.by if isinstance(memory.status, Superseded) else None
        successor = None if by is None else self._rows.get(by)
        reason = why_not(memory, self._layout, is_there=link is not None, successor=successor)
        place = None if reason else place_in(self._raw, self._layout, memory)
        if place is None:
            self._left_out[memory.n] = reason or "its project has no folder, or ocpg no word for it"
        elif link is None or not link.present:
            self._add(memory, place, link, successor)
        else:
            self._change(memory, place, link, successor)

    def _add(self, memory: Memory, place: Place, link: Link | None, successor: int | None) -> None:
        values = columns_of(memory, {*FIELDS}, place, self._layout, successor=successor)
        at = None if link is None else link.ocpg_id
        ocpg_id, version = insert_row(self._raw, self._layout, values, memory, at=at)
        add_recalls(self._raw, self._layout, ocpg_id, self._reached(memory, link))
        self._rows[memory.id] = ocpg_id
        self._written[memory.n] = Link(
            ocpg_id=ocpg_id, n=memory.n, version=version, theirs={}, ours=said_of(memory, self._layout),
            recalled=memory.counters.recalled,
        )  # fmt: skip

    def _change(self, memory: Memory, place: Place, link: Link, successor: int | None) -> None:
        said, before = said_of(memory, self._layout), link.ours or {}
        fields = {name for name in FIELDS if said[name] != before.get(name)}
        values = columns_of(memory, fields, place, self._layout, successor=successor)
        at = memory.times.updated if fields - {BY} else None
        changed = replace(link, ours=said, version=update_row(self._raw, self._layout, link, values, at=at))
        times = memory.counters.recalled - link.recalled
        if times > 0:
            add_recalls(self._raw, self._layout, link.ocpg_id, self._reached(memory, link))
            if "access_count" in self._layout.columns:
                version = count_recalls(self._raw, self._layout, changed, times, last=memory.times.used)
                changed = replace(changed, version=version)
        if changed.version != link.version or times > 0:
            self._written[memory.n] = replace(changed, recalled=memory.counters.recalled)

    def _reached(self, memory: Memory, link: Link | None) -> list[str]:
        recalled = memory.counters.recalled > (0 if link is None else link.recalled)
        return known.reached(self._raw, memory.n) if recalled else []

    def _hide(self, memory: Memory) -> None:
        link = self._links.get(memory.n)
        if link is not None and link.present:
            delete_row(self._raw, self._layout, link)
            said = said_of(memory, self._layout)
            known.keep(self._raw, [replace(link, present=False, removed_here=True, ours=said)])

    def _erase(self, n: int) -> None:
        """A memory that is erased here leaves no row and no link."""
        link = self._links.get(n)
        if link is not None:
            if link.present:
                delete_row(self._raw, self._layout, link)
            known.drop(self._raw, link.ocpg_id)

    def _keep(self) -> None:
        """Keep what the written rows say now, as the server has it."""
        links = {link.ocpg_id: link for link in self._written.values()}
        if links:
            rows = read_rows(self._raw, self._layout, [*links])
            known.keep(
                self._raw,
                [
                    replace(links[row.id], version=row.version, theirs=row.said, access_count=row.access_count)
                    for row in rows
                ],
            )
        for n, reason in self._left_out.items():
            if not isinstance(self._memories[n].status, Deleted):
                _log.info("event=ocpg_left_out n=%s reason=%r", n, reason)
                known.leave_out(self._raw, n, reason)
        noted = {n for n in self._left_out if not isinstance(self._memories[n].status, Deleted)}
        known.settle(self._raw, [n for n in self._numbers if n not in noted])
