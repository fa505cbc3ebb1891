"""When OpenCode's sessions are distilled: after a pause that a new message restarts, and at a start."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import cast

import anyio
import anyio.lowlevel
import pytest

from backstory.bootstrap import App
from backstory.config import Settings
from backstory.config.dreaming import DreamSettings
from backstory.domain.ids import ProjectId, SessionId
from backstory.entrypoints.opencode.dreams import DreamHooks
from backstory.entrypoints.places import Place
from backstory.errors import StoreBusy
from backstory.services.dreaming_outcome import Dreamt, Outcome
from backstory.testing.fakes import FakeClock

pytestmark = pytest.mark.anyio

ONE, TWO = SessionId("ses_1"), SessionId("ses_2")
BARN = ProjectId("prj_barn")


@dataclass
class Nights:
    """Stands in for the service: notes what it is asked to do. ``again`` is told of each session once."""

    clock: FakeClock = field(default_factory=FakeClock)
    worked: list[SessionId] = field(default_factory=list)
    noted: list[tuple[SessionId, timedelta]] = field(default_factory=list)
    left: list[tuple[SessionId, datetime]] = field(default_factory=list)
    again: dict[SessionId, datetime] = field(default_factory=dict)
    failing: list[SessionId] = field(default_factory=list)
    limits: list[int] = field(default_factory=list)

    async def note_idle(self, session: SessionId, *, delay: timedelta) -> datetime | None:
        self.noted.append((session, delay))
        return self.clock.now() + delay

    async def work(self, session: SessionId) -> Dreamt:
        if session in self.failing:
            raise StoreBusy("busy")
        self.worked.append(session)
        return Dreamt(session=session, outcome=Outcome.DONE, again_at=self.again.pop(session, None))

    async def left_undone(
        self, project: ProjectId, *, limit: int, within: timedelta
    ) -> Sequence[tuple[SessionId, datetime]]:
        assert project == BARN
        self.limits.append(limit)
        return self.left


@dataclass(frozen=True)
class Folder:
    """What the hooks need of a folder's application."""

    settings: Settings
    clock: FakeClock
    nights: Nights

    @property
    def truth(self) -> Folder:
        return self

    @property
    def dreaming(self) -> Nights:
        return self.nights


@dataclass
class Host:
    """A host with one folder open, whose worker does nothing until ``work``."""

    delay_ms: int = 0
    enabled: bool = True
    nights: Nights = field(default_factory=Nights)

    def __post_init__(self) -> None:
        dream = DreamSettings(enabled=self.enabled, delay_ms=self.delay_ms, sweep_batch=3)
        folder = Folder(settings=Settings(dream=dream), clock=self.nights.clock, nights=self.nights)
        self.place = Place(app=cast(App, folder), directory="/barn", project=BARN)
        self.hooks = DreamHooks(changed=lambda: None, give_way=anyio.lowlevel.checkpoint)

    async def idle(self, session: SessionId) -> None:
        await self.hooks.idle(self.place, session)

    async def work(self) -> list[SessionId]:
        """Let the worker do all that is due, and say what it was."""
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(self.hooks.keep_working)
            await anyio.wait_all_tasks_blocked()
            tasks.cancel_scope.cancel()
        return self.nights.worked


async def test_an_idle_session_is_noted_at_once_and_distilled_when_it_is_due() -> None:
    host = Host()
    await host.idle(ONE)
    assert host.nights.noted == [(ONE, timedelta(0))]
    assert host.nights.worked == []
    assert await host.work() == [ONE]


async def test_a_session_is_not_distilled_before_its_time() -> None:
    host = Host(delay_ms=90_000)
    await host.idle(ONE)
    assert await host.work() == []


async def test_a_new_message_of_the_user_restarts_the_pause_and_an_old_one_told_again_does_not() -> None:
    host = Host()
    now = host.nights.clock.now()
    await host.idle(ONE)
    await host.idle(TWO)
    host.hooks.spoken(ONE, at=now + timedelta(seconds=1))
    host.hooks.spoken(TWO, at=now - timedelta(seconds=1))
    assert await host.work() == [TWO]
    await host.idle(ONE)
    assert await host.work() == [TWO, ONE]


async def test_what_is_not_finished_gets_another_turn() -> None:
    host = Host()
    host.nights.again = {ONE: host.nights.clock.now()}
    await host.idle(ONE)
    await host.idle(TWO)
    assert sorted(await host.work()) == [ONE, ONE, TWO]


async def test_a_store_that_fails_stops_nothing_else() -> None:
    host = Host()
    host.nights.failing = [ONE]
    await host.idle(ONE)
    await host.idle(TWO)
    assert await host.work() == [TWO]


async def test_a_start_distils_what_was_left_in_this_project() -> None:
    host = Host()
    now = host.nights.clock.now()
    host.nights.left = [(ONE, now), (TWO, now + timedelta(hours=1))]
    host.hooks.sweep(host.place)
    assert await host.work() == [ONE]
    assert host.nights.limits == [3]


async def test_nothing_is_noted_or_looked_for_while_it_is_switched_off() -> None:
    host = Host(enabled=False)
    host.nights.left = [(ONE, host.nights.clock.now())]
    await host.idle(TWO)
    host.hooks.sweep(host.place)
    assert await host.work() == []
    assert (host.nights.noted, host.nights.limits) == ([], [])
