"""What a batch of ocpg's rows does to our memories: the steps, the changes they make, and the links that stay."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any

import psycopg

from backstory.adapters.clock import UlidSource
from backstory.adapters.formats.ocpg.rows import label, status_of
from backstory.adapters.stores.postgres.commits import commit_change
from backstory.adapters.stores.postgres.ocpg import links as known
from backstory.adapters.stores.postgres.ocpg.layout import Layout
from backstory.adapters.stores.postgres.ocpg.links import BY, CONTENT, FIELDS, MADE, PLACE, TAGS, Link, Said
from backstory.adapters.stores.postgres.ocpg.projects import Folders
from backstory.adapters.stores.postgres.ocpg.reading import Row, applied, memory_id, memory_of, read_rows
from backstory.adapters.stores.postgres.ocpg.writing import recall_sessions, said_of
from backstory.adapters.stores.postgres.tenancy import TENANT
from backstory.adapters.stores.sqlite.rows import from_us, to_us
from backstory.domain.history import Action, Author, Change, Edit
from backstory.domain.ids import ChangeId, MemoryId, ProjectId
from backstory.domain.lifecycle import forget
from backstory.domain.memory import Deleted, Memory
from backstory.errors import InputError

_Raw = psycopg.Connection[Any]
_log = logging.getLogger(__name__)
_ids = UlidSource()


def rejected(row: Row, reason: str) -> Link:
    """The link of a row that is left out, which the log tells too."""
    _log.warning("event=ocpg_row_left_out row=%s reason=%r", row.id, reason)
    return Link(ocpg_id=row.id, memory=None, version=row.version, theirs=row.said, note=reason)


@dataclass(slots=True, kw_only=True)
class _Step:
    """What one row does to one memory; ``again`` is what stays of ours where both sides changed the same."""

    row: Row | None
    link: Link | None
    before: Memory | None
    after: Memory
    again: Memory | None = None
    kept: frozenset[str] = field(default_factory=frozenset)
    recalls: int = 0
    sessions: Sequence[str] = ()


class Batch:
    """The steps of a batch, and the changes and links that come of them. The tenant is locked."""

    def __init__(self, raw: _Raw, layout: Layout, ids: Sequence[int]) -> None:
        self._raw = raw
        self._layout = layout
        self._now = datetime.now(UTC)
        self._rows = {row.id: row for row in read_rows(raw, layout, ids)}
        successors = [row.by for row in self._rows.values() if row.by is not None]
        self._links = known.links_of_rows(raw, [*ids, *successors])
        numbers = {link.n for link in self._links.values() if link.n is not None}
        adopted = known.numbers_of(raw, [memory_id(row.id, row.created) for row in self._rows.values()])
        self._memories = known.memories_by_number(raw, numbers | adopted)
        self._known = {memory.id: memory for memory in self._memories.values()}
        self._waiting = {*known.pending(raw)}
        self._sessions = recall_sessions(raw, layout, [*self._rows])
        self._folders = Folders(raw, new_id=_ids.new_id, now=self._now)
        self._steps: list[_Step] = []
        self._as_they_are: list[Link] = []

    def take(self, ocpg_id: int) -> None:
        """Decide what a row does."""
        row, link = self._rows.get(ocpg_id), self._links.get(ocpg_id)
        if link is not None and link.memory is not None and (row is None or link.theirs.get(MADE) != row.created):
            self._gone(link, is_replaced=row is not None)
            link = None
        if row is None:
            if link is not None:
                known.drop(self._raw, ocpg_id)  # of a row that never was a memory
            return
        try:
            if link is None or (link.memory is not None and link.n is None):
                self._new(row)  # or its memory is gone, as when a backup was restored
            elif link.memory is None:
                self._new(row) if link.theirs != row.said else self._as_they_are.append(
                    replace(link, version=row.version)
                )
            else:
                self._changed(row, link, self._memories[link.n or 0])
        except InputError as error:
            self._unreadable(row, link, str(error))

    def _gone(self, link: Link, *, is_replaced: bool) -> None:
        """A row is gone; where another has its id now (``is_replaced``), that gets the link."""
        memory = self._memories.get(link.n or 0)
        if memory is None:
            known.drop(self._raw, link.ocpg_id)
        elif link.present and not isinstance(memory.status, Deleted):
            after = forget(memory, now=self._now, reason="forgotten in ocpg")
            self._steps.append(_Step(row=None, link=None if is_replaced else link, before=memory, after=after))
        elif not is_replaced:
            self._as_they_are.append(replace(link, present=False))

    def _new(self, row: Row) -> None:
        sessions = [name for name in map(label, self._sessions[row.id]) if name is not None]
        memory = memory_of(row, self._project(row), by=self._successor(row), sessions=len(sessions), now=self._now)
        existing = self._known.get(memory.id)
        if existing is None:
            self._steps.append(_Step(row=row, link=None, before=None, after=memory, sessions=sessions))
            return
        # it was adopted before, and the link was lost
        link = Link(
            ocpg_id=row.id, memory=existing.id, version=row.version, theirs=row.said,
            ours=said_of(existing, self._layout), access_count=row.access_count, recalled=existing.counters.recalled,
        )  # fmt: skip
        said = said_of(memory, self._layout)
        differing = {name for name in FIELDS if said[name] != (link.ours or {})[name]}
        self._change(row, link, existing, differing)

    def _changed(self, row: Row, link: Link, memory: Memory) -> None:
        differing = {name for name in FIELDS if link.theirs[name] != row.said[name]}
        if not link.present and link.removed_here and not differing:
            # an old copy of what we took away: our decision stands, and theirs to have it
            self._as_they_are.append(replace(link, version=row.version))
            return
        self._change(row, link, memory, differing)

    def _change(self, row: Row, link: Link, memory: Memory, differing: set[str]) -> None:
        mine = self._still_to_be_written(memory, link)
        if mine and memory.revision <= link.revision:
            # a backup from before it was last in step was restored: that decided about our store, not about ocpg's
            differing, mine = differing | mine, set()
        project = self._project(row) if PLACE in differing else memory.project
        by = self._successor(row)
        step = _Step(row=row, link=link, before=memory, after=memory)
        if differing:
            step.after = applied(memory, row, differing, project, by=by, now=self._now)
        if not link.present and isinstance(memory.status, Deleted):
            step.after = replace(step.after, status=status_of(row, by, now=self._now))
        clash = mine & differing
        if clash and memory.times.updated > from_us(row.updated or row.created or 0):
            step.again = _with_ours(step.after, memory, clash)
        step.kept = frozenset(mine if step.again is not None else mine - clash)
        step.recalls = max(row.access_count - link.access_count, 0)
        if step.recalls:
            step.sessions = [name for name in map(label, self._sessions[row.id]) if name is not None]
        self._steps.append(step)

    def _still_to_be_written(self, memory: Memory, link: Link) -> set[str]:
        if memory.n not in self._waiting or link.ours is None:
            return set()
        said = said_of(memory, self._layout)
        return {name for name in FIELDS if said[name] != link.ours[name]}

    def _unreadable(self, row: Row, link: Link | None, reason: str) -> None:
        left_out = rejected(row, reason)
        keeps_memory = link is not None and link.memory is not None
        self._as_they_are.append(
            replace(link, version=row.version, theirs=row.said, note=reason) if link and keeps_memory else left_out
        )

    def _project(self, row: Row) -> ProjectId | None:
        if row.path is None:
            return None
        return self._folders.project_of(row.path)

    def _successor(self, row: Row) -> MemoryId | None:
        if row.by is None:
            return None
        link = self._links.get(row.by)
        if link is not None and link.theirs.get(MADE) == row.by_created and (link.n is not None or link.memory is None):
            return link.memory
        return memory_id(row.by, row.by_created)

    def write(self) -> None:
        """Commit the steps, and keep the links."""
        added = [step for step in self._steps if step.before is None]
        updated = [step for step in self._steps if step.before is not None and step.row and step.after != step.before]
        gone = [step for step in self._steps if step.row is None]
        self._commit(Action.IMPORT, Author.SYSTEM, added, reason="found in the ocpg database")
        self._commit(Action.UPDATE, Author.AGENT, updated, reason="changed in ocpg")
        self._commit(Action.FORGET, Author.AGENT, gone, reason="forgotten in ocpg")
        back = [step for step in updated if step.again is not None]
        for step in back:
            assert step.again is not None
            again = replace(step.again, n=step.after.n, revision=step.after.revision)
            step.before, step.after = step.after, again
        self._commit(Action.UPDATE, Author.SYSTEM, back, reason="changed here later than in ocpg")
        self._count()
        links = [self._link(step) for step in self._steps]
        known.keep(self._raw, [*self._as_they_are, *(link for link in links if link is not None)])
        known.settle(self._raw, [step.after.n for step in self._steps if step.after.n not in self._waiting])

    def _commit(self, action: Action, author: Author, steps: Sequence[_Step], *, reason: str) -> None:
        """Commit steps as one change; each has its memory as stored afterwards."""
        if not steps:
            return
        change = Change(
            id=ChangeId(_ids.new_id()),
            at=self._now,
            author=author,
            action=action,
            edits=tuple(Edit(before=step.before, after=step.after) for step in steps),
            reason=reason,
        )
        stored = commit_change(self._raw, change, None)
        for step, edit in zip(steps, stored.edits, strict=True):
            step.after = edit.after

    def _count(self) -> None:
        for step in self._steps:
            row, n = step.row, step.after.n
            counted = 0
            for session in step.sessions:
                counted += self._raw.execute(
                    "INSERT INTO memory_sessions (n, session) VALUES (%s, %s) ON CONFLICT DO NOTHING", (n, session)
                ).rowcount
            if step.recalls and row is not None:
                self._raw.execute(
                    "UPDATE memories SET recalled = recalled + %s, sessions = sessions + %s,"
                    f" used_us = greatest(used_us, %s) WHERE tenant = {TENANT} AND n = %s",
                    (step.recalls, counted, row.accessed or to_us(self._now), n),
                )

    def _link(self, step: _Step) -> Link | None:
        row, link = step.row, step.link
        if row is None:
            return None if link is None else replace(link, present=False, removed_here=False)
        said: Said = said_of(step.after, self._layout)
        if link is not None and link.ours is not None:
            said = {**said, **{name: link.ours[name] for name in step.kept}}
        recalled = step.after.counters.recalled
        if link is not None:  # what was recalled here meanwhile is still to be counted there
            recalled = min(link.recalled, recalled) + step.recalls
        return Link(
            ocpg_id=row.id, memory=step.after.id, revision=step.after.revision, version=row.version,
            theirs=row.said, ours=said, access_count=row.access_count, recalled=recalled,
        )  # fmt: skip


def _with_ours(memory: Memory, ours: Memory, fields: set[str]) -> Memory:
    """A memory with what ours said in some fields."""
    if CONTENT in fields:
        memory = replace(memory, content=ours.content, origin=ours.origin)
    if TAGS in fields:
        memory = replace(memory, tags=ours.tags)
    if PLACE in fields:
        memory = replace(memory, kind=ours.kind, visibility=ours.visibility, project=ours.project)
    if BY in fields:
        memory = replace(memory, status=ours.status)
    return replace(memory, times=ours.times)
