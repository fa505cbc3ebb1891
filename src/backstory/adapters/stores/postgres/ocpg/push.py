"""What was written here becomes ocpg's, in the same transaction: added, changed, replaced, forgotten, recalled."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, cast

import psycopg
from psycopg import errors

from backstory.adapters.formats.ocpg.rows import SYSTEM
from backstory.adapters.stores.postgres.ocpg import links as known
from backstory.adapters.stores.postgres.ocpg.layout import Layout
from backstory.adapters.stores.postgres.ocpg.links import BY, FIELDS, PLACE, UNSEEN, Link
from backstory.adapters.stores.postgres.ocpg.pull import PASSING
from backstory.adapters.stores.postgres.ocpg.reading import read_rows
from backstory.adapters.stores.postgres.ocpg.writing import (
    Place,
    add_recalls,
    columns_of,
    count_recalls,
    delete_rows,
    insert_row,
    place_in,
    said_of,
    update_row,
    why_not,
)
from backstory.domain.memory import Deleted, Memory, Superseded

# ocpg's tables are not what they were when they were recognised, or not open to us any more.
CHANGED = (errors.UndefinedTable, errors.UndefinedColumn, errors.InvalidSchemaName, errors.InsufficientPrivilege)

UNDONE = "undone"  # the reason that ``undo_edits`` gives

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
    """One push. What points to a memory in it is in it too: its row stands and falls with that memory's."""

    def __init__(self, raw: _Raw, layout: Layout, numbers: list[int]) -> None:
        self._raw = raw
        self._layout = layout
        self._numbers = [*dict.fromkeys([*numbers, *known.followers(raw, numbers)])]
        self._links = known.links_of_memories(raw, self._numbers)
        unseen = {n for n, link in self._links.items() if link.present and link.version == UNSEEN}
        self._numbers = [n for n in self._numbers if n not in unseen]  # the next look comes first
        self._memories = known.memories_by_number(raw, self._numbers)
        named = [memory.status.by for memory in self._memories.values() if isinstance(memory.status, Superseded)]
        self._rows = known.rows_of_memories(raw, [*named, *(memory.id for memory in self._memories.values())])
        self._written: dict[int, Link] = {}
        self._left_out: dict[int, str] = {}

    def run(self) -> None:
        """Rows first, the newer before the older that they replaced; then what goes."""
        memories = [memory for memory in self._memories.values() if not _was_not_taken(memory)]
        for memory in sorted(memories, key=lambda memory: (isinstance(memory.status, Superseded), -memory.n)):
            self._try([memory], partial(self._show, memory))
        going = [memory for memory in memories if memory.n in self._left_out]
        self._try(going, partial(self._hide, going))
        self._keep()

    def _try(self, memories: Sequence[Memory], step: Callable[[], None]) -> None:
        try:
            with self._raw.transaction():
                step()
        except (*PASSING, *CHANGED):
            raise
        except psycopg.Error as error:
            if self._raw.closed:
                raise
            for memory in memories:
                self._written.pop(memory.n, None)
                self._left_out[memory.n] = f"its table refused it (SQLSTATE {error.sqlstate})"
                _log.warning("event=ocpg_refused n=%s sqlstate=%s", memory.n, error.sqlstate)

    def _show(self, memory: Memory) -> None:
        link = self._links.get(memory.n)
        by = memory.status.by if isinstance(memory.status, Superseded) else None
        successor = None if by is None else self._rows.get(by)
        reason = why_not(memory, self._layout, is_there=link is not None, successor=successor)
        place = None if reason else self._place(memory, link)
        if place is None:
            self._left_out[memory.n] = reason or "its project has no folder, or ocpg no word for it"
            self._rows.pop(memory.id, None)
        elif link is None or not link.present:
            self._add(memory, place, link, successor)
        else:
            self._change(memory, place, link, successor)

    def _place(self, memory: Memory, link: Link | None) -> Place | None:
        """Where a memory belongs there: where it was, unless that was decided anew here."""
        if link is not None and link.ours is not None and link.ours[PLACE] == said_of(memory, self._layout)[PLACE]:
            type_, project = cast("list[str | None]", link.theirs[PLACE])  # of a row's ``said``
            return Place(type=type_, project=project)
        return place_in(self._raw, self._layout, memory)

    def _add(self, memory: Memory, place: Place, link: Link | None, successor: int | None) -> None:
        values = columns_of(memory, {*FIELDS}, place, self._layout, successor=successor)
        at = None if link is None else link.ocpg_id
        ocpg_id, version = insert_row(self._raw, self._layout, values, memory, at=at)
        add_recalls(self._raw, self._layout, ocpg_id, self._reached(memory, link))
        self._rows[memory.id] = ocpg_id
        self._written[memory.n] = Link(
            ocpg_id=ocpg_id, memory=memory.id, revision=memory.revision, version=version,
            theirs={}, ours=said_of(memory, self._layout),
            recalled=memory.counters.recalled,
        )  # fmt: skip

    def _change(self, memory: Memory, place: Place, link: Link, successor: int | None) -> None:
        said, before = said_of(memory, self._layout), link.ours or {}
        fields = {name for name in FIELDS if said[name] != before.get(name)}
        values = columns_of(memory, fields, place, self._layout, successor=successor)
        at = memory.times.updated if fields - {BY} else None
        changed = replace(
            link, ours=said, revision=memory.revision, version=update_row(self._raw, self._layout, link, values, at=at)
        )
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

    def _hide(self, memories: Sequence[Memory]) -> None:
        links = [link for memory in memories if (link := self._links.get(memory.n)) and link.present]
        delete_rows(self._raw, self._layout, links)
        known.keep(
            self._raw,
            [
                replace(
                    link, present=False, removed_here=True, revision=memory.revision, ours=said_of(memory, self._layout)
                )
                for link in links
                if (memory := self._memories.get(link.n or 0)) is not None
            ],
        )

    def _keep(self) -> None:
        """Keep what the written rows say now, as the server has it."""
        links = {link.ocpg_id: link for link in self._written.values()}
        rows = read_rows(self._raw, self._layout, [*links]) if links else []
        written = [
            replace(links[row.id], version=row.version, theirs=row.said, access_count=row.access_count) for row in rows
        ]
        known.keep(self._raw, written)
        noted = [n for n in self._left_out if not isinstance(self._memories[n].status, Deleted)]
        for n in noted:
            _log.info("event=ocpg_left_out n=%s reason=%r", n, self._left_out[n])
            known.leave_out(self._raw, n, self._left_out[n])
        known.settle(self._raw, [n for n in self._numbers if n not in noted])


def _was_not_taken(memory: Memory) -> bool:
    """Whether taking a row in was undone here: that says nothing about the row, which ocpg keeps."""
    status = memory.status
    return memory.provenance.origin_system == SYSTEM and isinstance(status, Deleted) and status.reason == UNDONE
