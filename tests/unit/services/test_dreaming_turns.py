"""Whose turn a session is: due, leased, overtaken, stopped or cut short by the death of a process."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import anyio
import pytest

from backstory.adapters.stores.sqlite.store import open_sqlite
from backstory.domain.history import Action, Author, Change
from backstory.domain.ids import ChangeId, MessageId
from backstory.domain.memory import Conflicted, Source
from backstory.domain.provenance import Origin
from backstory.ports.text_models import TextAnswer, TextRequest
from backstory.services.dreaming import LEASE, Dreaming
from backstory.services.dreaming_outcome import Outcome
from backstory.testing.fakes import ORCHARD, SequentialIds, sample_memory
from backstory.testing.text_model import ScriptedTextModel
from tests.dreams import SESSION, Night, answer, fact
from tests.unit.services.dreaming_talks import KETTLE, NOW, TALK, TRAY

pytestmark = pytest.mark.anyio


async def test_a_session_waits_until_it_is_due_unless_somebody_asks() -> None:
    night = Night([answer(fact(KETTLE, 1))])
    await night.tell(*TALK)
    due = await night.dreaming.note_idle(SESSION, delay=timedelta(seconds=90))
    resting = await night.dreaming.work(SESSION)
    assert (resting.outcome, resting.again_at) == (Outcome.RESTING, due)
    night.clock.advance(timedelta(seconds=91))
    assert (await night.dreaming.work(SESSION)).outcome is Outcome.DONE

    other = Night([answer(fact(KETTLE, 1))])
    await other.tell(*TALK)
    await other.dreaming.note_idle(SESSION, delay=timedelta(seconds=90))
    assert (await other.dreaming.work(SESSION, at_once=True)).outcome is Outcome.DONE


async def test_a_new_turn_moves_the_moment() -> None:
    night = Night()
    await night.tell(*TALK)
    await night.dreaming.note_idle(SESSION, delay=timedelta(seconds=90))
    night.clock.advance(timedelta(seconds=60))
    assert await night.dreaming.note_idle(SESSION, delay=timedelta(seconds=90)) == night.clock.now() + timedelta(
        seconds=90
    )


class SlowModel(ScriptedTextModel):
    """Calls ``during`` while it thinks."""

    during: Callable[[], Any] | None = None  # Any: a coroutine

    async def generate(self, request: TextRequest) -> TextAnswer:
        if self.during is not None:
            action, self.during = self.during, None
            await action()
        return await super().generate(request)


async def test_of_two_processes_one_does_the_work() -> None:
    night = Night()
    model = SlowModel([answer(fact(KETTLE, 1))])
    night.model = model
    await night.tell(*TALK)
    seen: list[Outcome] = []

    async def another() -> None:
        seen.append((await night.dreaming.work(SESSION)).outcome)

    model.during = another
    done = await night.dreaming.work(SESSION)
    assert (done.outcome, seen) == (Outcome.DONE, [Outcome.BUSY])
    assert await night.texts() == [KETTLE]


async def test_work_that_lost_its_lease_writes_nothing_and_the_other_writes_once() -> None:
    night = Night()
    model = SlowModel([answer(fact(KETTLE, 1))])
    night.model = model
    await night.tell(*TALK)

    async def another() -> None:
        night.clock.advance(LEASE + timedelta(seconds=1))
        assert (await night.dreaming.work(SESSION)).outcome is Outcome.DONE

    model.during = another
    done = await night.dreaming.work(SESSION)
    assert done.changes == ()
    assert await night.texts() == [KETTLE]


async def test_a_turn_that_ends_meanwhile_keeps_the_session_due() -> None:
    night = Night()
    model = SlowModel([answer(fact(KETTLE, 1)), answer()])
    night.model = model
    await night.tell(*TALK)

    async def idle() -> None:
        await night.dreaming.note_idle(SESSION, delay=timedelta(seconds=90))

    model.during = idle
    done = await night.dreaming.work(SESSION)
    assert (await night.state()).due
    assert done.again_at == night.clock.now() + timedelta(seconds=90)


async def test_what_is_taken_back_while_the_model_thinks_is_not_kept() -> None:
    night = Night()
    model = SlowModel([answer(fact(KETTLE, 1)), answer()])
    night.model = model
    await night.tell(*TALK)

    async def undo() -> None:
        await night.backend.conversations.mark_removed(MessageId("msg_001"), at=night.clock.now())

    model.during = undo
    done = await night.dreaming.work(SESSION)
    assert (done.outcome, done.changes) == (Outcome.UNFINISHED, ())
    assert (await night.dreaming.work(SESSION)).outcome is Outcome.DONE
    assert await night.texts() == []


async def test_a_memory_that_changes_while_the_model_thinks_is_decided_about_anew() -> None:
    night = Night()
    (old,) = await night.keep(
        sample_memory("The iron kettle is for green tea.", source=Source.DREAMED, origin=Origin.AGENT)
    )
    model = SlowModel([answer(update=[{"id": "m1", "text": KETTLE, "sources": [1]}])])
    night.model = model
    await night.tell(*TALK)

    async def pin() -> None:
        change = Change(
            id=ChangeId("pin"), at=night.clock.now(), author=Author.USER, action=Action.PIN,
            edits=(replace_edit(old),),
        )  # fmt: skip
        await night.backend.memories.commit(change)

    def replace_edit(memory: Any) -> Any:
        from backstory.domain.history import Edit

        return Edit(before=memory, after=replace(memory, pinned=True))

    model.during = pin
    await night.dreaming.work(SESSION)
    kept = await night.kept()
    assert kept[0].pinned
    assert isinstance(kept[0].status, Conflicted), "a person keeps it, so the claim only stands against it"


class Killed(BaseException):
    """The process dies here."""


@dataclass
class Mortal:
    """A store behind which the process dies before or after the ``at``-th write."""

    inner: Any
    methods: tuple[str, ...]
    at: int
    after: bool
    writes: int = 0

    def __getattr__(self, name: str) -> Any:
        method = getattr(self.inner, name)
        if name not in self.methods:
            return method

        async def write(*args: Any, **kwargs: Any) -> Any:
            self.writes += 1
            dies = self.writes == self.at
            if self.writes > self.at or (dies and not self.after):
                raise Killed
            result = await method(*args, **kwargs)
            if dies:
                raise Killed
            return result

        return write


@pytest.mark.parametrize("after", [False, True])
@pytest.mark.parametrize("write", [1, 2, 3, 4, 5])
@pytest.mark.parametrize("kind", ["dreams", "memories"])
async def test_a_process_that_dies_between_any_two_steps_leaves_neither_a_double_nor_a_loss(
    kind: str, write: int, after: bool
) -> None:
    night = Night([answer(fact(KETTLE, 1), update=[{"id": "m1", "text": TRAY, "sources": [2]}])])
    await night.keep(sample_memory("The pine tray is beside the stove.", source=Source.DREAMED, origin=Origin.AGENT))
    await night.tell(*TALK)
    whole = night.backend
    method = {"dreams": "apply", "memories": "commit"}[kind]
    mortal = Mortal(getattr(whole, kind), (method,), at=write, after=after)
    night.backend = replace(whole, **{kind: mortal})
    try:
        await night.dreaming.work(SESSION)
    except Killed:
        night.clock.advance(LEASE + timedelta(minutes=1))
    night.backend = whole
    night.ids = SequentialIds(series=7)
    left = await night.dreaming.left_undone(ORCHARD, limit=8, within=NOW)
    for session, _ in left:
        assert (await night.dreaming.work(session)).outcome in (Outcome.DONE, Outcome.NOTHING)
    assert sorted(await night.texts()) == sorted([KETTLE, TRAY])
    assert len(await night.backend.memories.history(limit=50)) == 2, "the memory before, and one dream"
    state = await night.state()
    assert (state.through, state.due, state.lease) == ("msg_002", False, None)


async def test_work_that_is_stopped_gives_its_lease_back() -> None:
    night = Night()
    model = SlowModel([answer()])
    night.model = model
    await night.tell(*TALK)
    with anyio.CancelScope() as scope:

        async def stop() -> None:
            scope.cancel()
            await anyio.lowlevel.checkpoint()

        model.during = stop
        await night.dreaming.work(SESSION)
    state = await night.state()
    assert (state.lease, state.due) == (None, True)
    assert (await night.dreaming.work(SESSION)).outcome is Outcome.DONE


def test_the_lease_is_longer_than_a_stretch_may_take() -> None:
    from backstory.bootstrap import open_app
    from backstory.config import load

    settings = load(env={"BACKSTORY_STORE": "memory", "BACKSTORY_MODELS_TIMEOUT_MS": "600000"}, project_root=None)
    dreaming: Dreaming = open_app(settings.settings, one_shot=True).truth.dreaming
    assert dreaming._lease > timedelta(minutes=20)


async def test_two_processes_over_one_file_distil_a_session_once(tmp_path: Path) -> None:
    def night(series: int) -> Night:
        opened = Night([answer(fact(KETTLE, 1), fact(TRAY, 2)), '{"duplicates": []}'])
        opened.backend = open_sqlite(tmp_path / "memory.db")
        opened.ids = SequentialIds(series=series)
        return opened

    one, two = night(1), night(2)
    await one.tell(*TALK)
    outcomes: list[Outcome] = []

    async def work(night: Night) -> None:
        outcomes.append((await night.dreaming.work(SESSION)).outcome)

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(work, one)
        tasks.start_soon(work, two)
    assert Outcome.DONE in outcomes
    assert sorted(await one.texts()) == sorted([KETTLE, TRAY])
    assert len(await one.backend.memories.history(limit=9)) == 1
    for each in (one, two):
        await each.backend.memories.close()
