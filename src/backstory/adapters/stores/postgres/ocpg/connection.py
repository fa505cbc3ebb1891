"""When the two sides are brought together: connections that look at ocpg's rows, and write what is written here."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from functools import partial
from typing import Any, TypeVar

import psycopg
from psycopg import errors

from backstory.adapters.stores.postgres import migrations
from backstory.adapters.stores.postgres.connection import Connection
from backstory.adapters.stores.postgres.ocpg.layout import Layout, find_layouts
from backstory.adapters.stores.postgres.ocpg.links import notes
from backstory.adapters.stores.postgres.ocpg.pull import pull
from backstory.adapters.stores.postgres.ocpg.push import push
from backstory.adapters.stores.postgres.ocpg.writing import OutOfStep
from backstory.adapters.stores.postgres.tenancy import TENANT
from backstory.errors import StoreBusy, StoreError

OPTION = "ocpg"
LOOK_EVERY_S = 2.0
"""How old the last look at ocpg's rows may be, in seconds. A look at 10,000 rows takes some 7 ms."""
_SHARE = 20  # of the time between two looks, one takes at most the twentieth part
_ATTEMPTS = 5

T = TypeVar("T")
_Raw = psycopg.Connection[Any]
_log = logging.getLogger(__name__)


class LinkedConnection(Connection):
    """A store's connections, linked with the ocpg database beside it, if there is one.

    Reads see what ocpg has written until some seconds ago; the first one takes in all it has. Writes become ocpg's in
    their own transaction, or, where ocpg has just changed the same, are made again. Where this role may not write
    ocpg's tables, they are read only. Without such a database all is as without the link, but for one query at the
    opening.
    """

    def __init__(self, dsn: str, *, on_open: Callable[[_Raw], object], **options: Any) -> None:  # Any: as Connection's
        def opened(raw: _Raw) -> None:
            on_open(raw)
            self._look_for_ocpg(raw)

        super().__init__(dsn, on_open=opened, **options)
        self._layout: Layout | None = None
        self._opened_times = 0
        self._next_look = 0.0
        self._is_lost = False

    async def read(self, fn: Callable[[_Raw], T]) -> T:
        await self._keep_in_step()
        before = self._opened_times
        result = await super().read(fn)
        if self._opened_times != before and self._layout is not None:
            await self._keep_in_step()  # it was opened by this call, so it was read before anything was taken in
            result = await super().read(fn)
        return result

    async def write(self, fn: Callable[[_Raw], T], *, again: Callable[[_Raw], T] | None = None) -> T:
        await self._keep_in_step()
        linked_again = None if again is None else self._linked(again)
        for _ in range(_ATTEMPTS):
            try:
                return await super().write(self._linked(fn), again=linked_again)
            except OutOfStep:
                await self._look()
        raise StoreBusy("ocpg was changing the same memories for too long; nothing was written")

    async def ocpg_notes(self) -> list[str]:
        """What of the two sides stands on one of them only, and why; empty without an ocpg database."""
        return await self.read(lambda raw: [] if self._layout is None else notes(raw))

    def _linked(self, fn: Callable[[_Raw], T]) -> Callable[[_Raw], T]:
        def work(raw: _Raw) -> T:
            result = fn(raw)
            if self._layout is not None and not push(raw, self._layout):
                self._is_lost = True
            return result

        return work

    async def _keep_in_step(self) -> None:
        """Look, if the last look is old. What goes wrong there never keeps anybody from our own tables."""
        if (self._layout is None and not self._is_lost) or time.monotonic() < self._next_look:
            return
        try:
            if self._is_lost:
                await super().write(self._look_for_ocpg)
            await self._look()
        except StoreError as error:
            self._is_lost = True
            self._next_look = time.monotonic() + LOOK_EVERY_S
            _log.warning("event=ocpg_not_read reason=%r", str(error))

    async def _look(self) -> None:
        began = time.monotonic()
        taken: list[int] = []
        while (layout := self._layout) is not None:
            began, before = time.monotonic(), taken
            taken = await super().write(partial(pull, layout=layout))
            if not taken or taken == before:  # the same again: rows that change faster than they can be read
                break
        now = time.monotonic()
        self._next_look = now + max(LOOK_EVERY_S, _SHARE * (now - began))

    def _look_for_ocpg(self, raw: _Raw) -> None:
        was_there = self._layout is not None or self._is_lost
        self._layout = _find(raw)
        self._is_lost = was_there and self._layout is None  # as while a dump is restored: it may come back
        self._opened_times += 1
        self._next_look = 0.0


def _find(raw: _Raw) -> Layout | None:
    """The ocpg database to be linked with; None where there is none, where it is another tenant's, and where this role
    may not keep what a link needs."""
    layouts = find_layouts(raw)
    if not layouts or not _is_prepared(raw):
        return None
    raw.execute(
        f"INSERT INTO ocpg_source (owner, place) VALUES ({TENANT}, %s) ON CONFLICT DO NOTHING", (layouts[0].schema,)
    )
    row = raw.execute(f"SELECT place, owner = {TENANT} FROM ocpg_source").fetchone()
    place, is_ours = row or ("", False)
    found = next((layout for layout in layouts if layout.schema == place), None)
    if not is_ours or found is None:
        _log.info("event=ocpg_not_linked reason=%r", "another tenant's" if not is_ours else "another schema's")
        return None
    return found


def _is_prepared(raw: _Raw) -> bool:
    """Whether the tables of a link are there for this role to write; made here where they are not yet."""
    try:
        with raw.transaction():
            if not raw.execute("SELECT 1 FROM schema_options WHERE name = %s", (OPTION,)).fetchone():
                raw.execute("LOCK TABLE schema_options IN SHARE ROW EXCLUSIVE MODE")
                migrations.apply_option(raw, OPTION)
    except errors.InsufficientPrivilege:
        _log.warning("event=ocpg_not_linked reason=%r", "use the store once as its owner, who can make the tables")
        return False
    row = raw.execute(
        "SELECT bool_and(has_table_privilege(name, 'INSERT')) FROM unnest(ARRAY['memories', 'ocpg_links']) AS name"
    ).fetchone()
    return row == (True,)
