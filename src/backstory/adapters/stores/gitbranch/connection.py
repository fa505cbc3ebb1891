"""The local store's connection, kept in step with the refs: whoever reads sees what stands there, and whoever commits
has committed there too. Which statement does what is in the SQLite adapter; nothing there knows of git."""

from __future__ import annotations

import logging
import sqlite3
from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import TypeVar

from backstory.adapters.blocking import run_blocking
from backstory.adapters.stores.gitbranch import index, local, own_words
from backstory.adapters.stores.gitbranch.git import Git, in_our_words
from backstory.adapters.stores.gitbranch.publishing import publish
from backstory.adapters.stores.gitbranch.reader import Reader
from backstory.adapters.stores.gitbranch.reference import Moved, Reference, stands
from backstory.adapters.stores.gitbranch.replay import replay
from backstory.adapters.stores.gitbranch.sync import ATTEMPTS, Joined, Remote, find_remote, gave_up, join, pause
from backstory.adapters.stores.gitbranch.tree import PROJECTS, derived_id
from backstory.adapters.stores.sqlite.connection import Connection
from backstory.domain.ids import ProjectId, is_ulid
from backstory.errors import StoreBusy, StoreDamaged
from backstory.ports.synchronisation import Synchronised

T = TypeVar("T")
log = logging.getLogger(__name__)

# A write holds the local store for as long as git takes, some 30 ms, and whoever waits is not served in turn.
BUSY_TIMEOUT = timedelta(seconds=30)
_ATTEMPTS = 50


class _Behind(Exception):
    """The store stands for older commits than the refs."""


class GitConnection(Connection):
    """A Connection whose transactions are transactions of the ref too.

    A write holds the local store's lock, brings it to the ref, does its work, puts what it committed on the ref, and
    commits last. So a process that dies in between leaves a ref that is ahead, and the next one catches up.
    """

    def __init__(
        self,
        repository: Path,
        *,
        ref: str,
        also: Sequence[str],
        path: Path,
        on_open: Callable[[sqlite3.Connection, bool], None],
        create: bool,
        busy_timeout: timedelta,
        trusted: bool,
    ) -> None:
        def prepare(raw: sqlite3.Connection, writable: bool) -> None:
            on_open(raw, writable)
            index.prepare(raw, writable=writable)

        super().__init__(path, on_open=prepare, create=create, busy_timeout=busy_timeout)
        self.git = Git(repository)
        self.reader = Reader(self.git)
        self.reference = Reference(self.git, self.reader, ref)
        others = [Reference(self.git, self.reader, name) for name in also if name != ref]
        self.references = (self.reference, *others)
        self._trusted = trusted

    async def read(self, fn: Callable[[sqlite3.Connection], T]) -> T:
        def work(raw: sqlite3.Connection) -> T:
            if self._stale(raw) or not self.reference.is_settled(index.known_tip(raw, self.reference.name)):
                raise _Behind
            return fn(raw)

        for _ in range(_ATTEMPTS):
            try:
                with in_our_words():
                    return await super().read(work)
            except _Behind:
                with in_our_words():
                    await super().write(self.catch_up)
        raise StoreBusy(f"{self.reference.name} is written to faster than it can be read; try again")

    async def write(self, fn: Callable[[sqlite3.Connection], T]) -> T:
        def work(raw: sqlite3.Connection) -> T:
            self.catch_up(raw)
            result = fn(raw)
            if queue := index.take_queue(raw):
                publish(raw, self.reference, queue, project=index.own_project(raw, self.alias))
            return result

        for _ in range(_ATTEMPTS):
            try:
                with in_our_words():
                    return await super().write(work)
            except Moved:
                continue  # somebody without our lock wrote in between: everything is decided anew
        self._check_there(self.reference)
        raise StoreBusy(f"{self.reference.name} is written to faster than we can; try again")

    async def look_then_write(self, fn: Callable[[sqlite3.Connection], T]) -> T:
        """As ``write``: what goes to the ref is decided while nobody else of us may write to it."""
        return await self.write(fn)

    async def synchronise(self, remote: str | None, *, dry_run: bool, trusted: bool) -> Synchronised:
        """See ``Travelling.synchronise``. The local store is not locked while the remote is waited for."""
        with in_our_words():
            return await self._synchronise(remote, dry_run=dry_run, trusted=trusted)

    async def _synchronise(self, remote: str | None, *, dry_run: bool, trusted: bool) -> Synchronised:
        await super().write(self.catch_up)
        there = await run_blocking(lambda: find_remote(self.git, remote, self.reference.name))
        erased = await super().read(self._erased)
        total: Synchronised | None = None
        for attempt in range(ATTEMPTS):
            theirs = await run_blocking(partial(there.fetch, erased=erased or frozenset()))
            if theirs is not None and erased is not None:
                await self._check_not_erased(there, theirs)
            joined = await self._join(there, theirs, dry_run=dry_run, trusted=trusted)
            total = joined.report if total is None else _both(total, joined.report)
            if dry_run or joined.tip is None or joined.tip == theirs:
                return total
            if await run_blocking(partial(there.push, joined.tip)):
                return replace(total, pushed=True)
            await run_blocking(partial(pause, attempt))
        raise gave_up(there)

    def _erased(self, raw: sqlite3.Connection) -> frozenset[str] | None:
        """The commits whose contents were erased; None where nothing ever was."""
        from backstory.adapters.stores.gitbranch.erased_commits import has_erased, old_commits

        return frozenset(old_commits(raw, self.reference.name)) if has_erased(raw) else None

    async def _check_not_erased(self, there: Remote, theirs: str) -> None:
        """Raise Conflict where a remote has what was erased here; nothing of it stays."""
        from backstory.adapters.stores.gitbranch.erased_commits import brings_back, still_there

        if await super().read(lambda raw: brings_back(raw, self.reference, theirs)):
            self.reader.close()  # it may have the packs open that came
            await run_blocking(partial(there.leave, theirs))
            raise still_there(there.ref, there.name, theirs)

    async def _join(self, there: Remote, theirs: str | None, *, dry_run: bool, trusted: bool) -> Joined:
        def work(raw: sqlite3.Connection) -> Joined:
            self.catch_up(raw)
            said = {} if trusted or self._trusted else own_words.statements(raw, self.reference.name)
            joined = join(raw, self.reference, there, theirs, dry_run=dry_run)
            if dry_run:
                return joined
            problems = self.catch_up(raw, trusted=trusted)
            if trusted:
                index.vouch(raw, self.reference.name)
                self.catch_up(raw)
            joined = replace(joined, report=replace(joined.report, problems=tuple(problems)))
            kept = own_words.keep(raw, said)
            if not kept:
                return joined
            tip = publish(raw, self.reference, index.take_queue(raw), project=index.own_project(raw, self.alias))
            report = replace(joined.report, kept=tuple(kept), sent=joined.report.sent + len(kept))
            return replace(joined, tip=tip or joined.tip, report=report)

        for _ in range(_ATTEMPTS):
            try:
                return await super().write(work)
            except Moved:
                continue
        raise StoreBusy(f"{self.reference.name} is written to faster than it can be merged; try again")

    async def close(self) -> None:
        await super().close()
        self.reader.close()

    def catch_up(self, raw: sqlite3.Connection, *, trusted: bool = False) -> list[str]:
        """Bring the store to where the refs are; first mend a ref of ours whose newest objects were removed. Tells what
        could not be read."""
        problems: list[str] = []
        self._leave_erased(raw)
        tip = index.known_tip(raw, self.reference.name)
        if tip is not None and not self.reference.is_whole(tip) and self.reference.names(tip):
            self.reference.write_again(index.streams(raw, self.reference.name))
        for reference, tip in self._stale(raw):
            if tip is None:
                self._check_there(reference)
                self._let_go(raw, reference)
            else:
                project = self.own_project(raw)
                problems += replay(raw, reference, tip, project=project, trusted=trusted or self._trusted)
                index.clear_queue(raw)
        return problems

    def _leave_erased(self, raw: sqlite3.Connection) -> None:
        """Move the ref on where it stands on a commit whose contents were erased, after a crash or because somebody set
        it back; refuse a history that would bring them back. Cheap where nothing was ever erased."""
        tip, known = self.reference.tip(), index.known_tip(raw, self.reference.name)
        if tip is None or tip == known:
            return
        from backstory.adapters.stores.gitbranch.erased_commits import brings_back, has_erased, set_back

        if not has_erased(raw):
            return
        from backstory.adapters.stores.gitbranch.erased_history import move_on

        if not move_on(raw, self.reference) and brings_back(raw, self.reference, tip):
            raise set_back(self.reference.name, known)

    def own_project(self, raw: sqlite3.Connection) -> ProjectId | None:
        """This repository's project: as the registry knows it, else as the ref does."""
        return index.own_project(raw, self.alias) or self.suggested_project()

    @property
    def alias(self) -> str:
        """By what the registry knows this repository."""
        return f"git:{self.git.common_dir}"

    def suggested_project(self) -> ProjectId | None:
        """The project's id for a clone that has none: the first that another clone has written down, or one that every
        clone makes of what the ref began with. None where there is no ref yet."""
        tip = self.reference.tip()
        if tip is None:
            return None
        listed = self.git.look("ls-tree", "--name-only", "--full-tree", tip, PROJECTS).decode("ascii", "replace")
        ids = sorted(name.removeprefix(PROJECTS).removesuffix(".json") for name in listed.splitlines())
        if known := next((name for name in ids if is_ulid(name)), None):
            return ProjectId(known)
        root = self.git.look("rev-list", "--max-parents=0", tip).decode("ascii").split()[-1]
        return ProjectId(derived_id(datetime.fromtimestamp(0, UTC), "project", root))

    def _let_go(self, raw: sqlite3.Connection, reference: Reference) -> None:
        """The ref is gone, or this is another repository than before: nothing of the old one is shown here any more.

        What the local store knew may be the only copy, so the store is copied first.
        """
        tip = index.known_tip(raw, reference.name) or ""
        aside = self.path.with_name(f"{self.path.name}.{tip[:12]}")
        with closing(sqlite3.connect(self.path)) as source, closing(sqlite3.connect(aside)) as copy:
            source.backup(copy)
        aside.chmod(0o600)
        log.warning("event=ref_gone ref=%s was=%s copy=%s", reference.name, tip, aside)
        local.drop_history(raw, reference.name)
        for gone in index.memories_on(raw, reference.name):
            local.drop_memory(raw, gone)
        index.set_tip(raw, reference.name, None)

    def _check_there(self, reference: Reference) -> None:
        """Raise StoreDamaged where a ref is there and its commit is not: what is known of it is still true."""
        if reference.tip() is None and stands(self.git, reference.name):
            raise StoreDamaged(f"{reference.name} names a commit that is missing; `git fsck` says more")

    def _stale(self, raw: sqlite3.Connection) -> list[tuple[Reference, str | None]]:
        behind = []
        for reference in self.references:
            tip, known = reference.tip(), index.known_tip(raw, reference.name)
            if tip is None and known is not None and stands(self.git, reference.name):
                self.reader.close()  # the ref is there, so git only missed its commit
                tip = reference.tip()
            if tip != known:
                behind.append((reference, tip))
        return behind


def _both(before: Synchronised, now: Synchronised) -> Synchronised:
    """What several attempts did together; what is sent counts once."""
    return replace(
        now,
        received=before.received + now.received,
        disagreements=(*before.disagreements, *now.disagreements),
        renumbered=(*before.renumbered, *now.renumbered),
        kept=(*before.kept, *now.kept),
        problems=(*before.problems, *now.problems),
    )
