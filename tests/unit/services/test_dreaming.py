"""Distilling a session: each stretch once, as one change, whatever dies on the way."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import anyio
import pytest

from backstory.adapters.stores.sqlite.store import open_sqlite
from backstory.domain.admission import TextLimits
from backstory.domain.conversation import FrozenBlock, ShownMemory
from backstory.domain.digest import Lease
from backstory.domain.dream_state import DreamState
from backstory.domain.history import Action, Author, Change
from backstory.domain.ids import ChangeId, MessageId, SessionId
from backstory.domain.interchange import HISTORY_HOST
from backstory.domain.memory import Conflicted, Source, Superseded
from backstory.domain.provenance import Origin
from backstory.domain.scope import Audience, Viewer
from backstory.domain.selection import Selection
from backstory.errors import CapReached, ModelError, ModelTimeout, ModelUnavailable
from backstory.ports.text_models import TextAnswer, TextRequest
from backstory.services.dreaming import (
    GIVE_UP_AFTER,
    LEASE,
    LOOKS_BACK,
    MAX_STRETCHES,
    MISSED_AFTER,
    Dreaming,
    Outcome,
)
from backstory.services.dreaming_journal import PAUSES
from backstory.services.dreaming_questions import PATIENCE, RULES
from backstory.services.reference import Reference
from backstory.services.remember import Remember
from backstory.testing.fakes import ORCHARD, START, SequentialIds, sample_memory
from backstory.testing.text_model import ScriptedTextModel
from tests.dreams import SESSION, Night, answer, fact, said, tool

pytestmark = pytest.mark.anyio

KETTLE = "The copper kettle is used for the green tea."
TRAY = "The oak tray warps near the stove."
TALK = [
    said(1, "For the green tea we use the copper kettle."),
    said(2, "The oak tray warps near the stove.", user=False),
]
DECISION = "We decided to use the copper kettle for the green tea, because the iron one rusts."
NOW = timedelta(0)


async def test_what_was_said_becomes_one_change_that_names_the_system_and_can_be_undone() -> None:
    night = Night([answer(fact(KETTLE, 1), fact(TRAY, 2))])
    await night.tell(*TALK)
    done = await night.dreaming.work(SESSION)
    (change,) = done.changes
    assert (done.outcome, change.action, change.author, change.session) == (
        Outcome.DONE, Action.DREAM, Author.SYSTEM, SESSION,
    )  # fmt: skip
    assert change.key == f"dream:{SESSION}:msg_002"
    assert await night.texts() == [KETTLE, TRAY]
    reference = Reference(night.backend.memories, night.backend.projects, clock=night.clock)
    remember = Remember(night.backend.memories, reference, clock=night.clock, ids=night.ids, limits=TextLimits())
    person = Viewer(project=ORCHARD, audience=Audience.PERSON)
    await remember.undo(change.id, viewer=person, author=Author.USER)
    assert await night.texts() == []


async def test_what_the_agent_made_of_a_memory_it_was_shown_is_questioned_when_that_is_forgotten() -> None:
    night = Night([answer(fact("The oak tray T-42 warps near the stove, so it needs oil.", 2))])
    (shown, *_) = await night.keep(sample_memory("the oak tray is T-42", project=ORCHARD))
    await night.tell(
        said(1, "Why does the tray bend?"),
        said(2, "The oak tray T-42 warps near the stove, so it needs oil.", user=False),
    )
    block = FrozenBlock(
        message=MessageId("msg_001"), session=SESSION, text="T-42", silent_because=None, created_at=START,
        shown=(ShownMemory(memory=shown.id, n=shown.n, score=0.9, reason="words"),),
    )  # fmt: skip
    await night.backend.conversations.freeze_block(block)
    await night.dreaming.work(SESSION)
    (made,) = [memory for memory in await night.kept() if memory.id != shown.id]
    assert made.provenance.derived_from == (shown.id,)
    reference = Reference(night.backend.memories, night.backend.projects, clock=night.clock)
    remember = Remember(night.backend.memories, reference, clock=night.clock, ids=night.ids, limits=TextLimits())
    person = Viewer(project=ORCHARD, audience=Audience.PERSON)
    await remember.forget([shown.id], viewer=person, author=Author.USER)
    (now,) = (await night.backend.memories.get([made.id])).values()
    assert isinstance(now.status, Conflicted)
    assert f"made from #{shown.n}" in now.status.evidence


async def test_nothing_is_distilled_twice() -> None:
    night = Night([answer(fact(KETTLE, 1))])
    await night.tell(*TALK)
    await night.dreaming.work(SESSION)
    again = await night.dreaming.work(SESSION)
    assert again.outcome is Outcome.NOTHING
    assert len(night.asked.requests) == 1
    assert not (await night.state()).due


async def test_only_what_was_said_since_is_shown_the_next_time() -> None:
    night = Night([answer(fact(KETTLE, 1)), answer()])
    await night.tell(*TALK)
    await night.dreaming.work(SESSION)
    await night.tell(said(3, "The silver spoons are in the drawer."), said(4, "Noted.", user=False))
    await night.dreaming.work(SESSION)
    asked = night.asked.requests[1]
    assert "silver spoons" in asked.prompt
    assert "oak tray" not in asked.prompt
    assert f"m1 (fact, this project, distilled): {KETTLE}" in asked.prompt
    assert (asked.feature, asked.session, asked.project) == ("dream", SESSION, ORCHARD)


async def test_a_long_session_is_distilled_in_stretches_each_a_change() -> None:
    night = Night([answer(fact(KETTLE, 1)), answer(), answer(fact(TRAY, 2)), '{"duplicates": []}'])
    night.policy = replace(night.policy, transcript_chars=1_000)
    filler = "Nothing of note happened today. " * 25
    await night.tell(*TALK, said(3, filler), said(4, "I see.", user=False), said(5, filler), said(6, TRAY, user=False))
    done = await night.dreaming.work(SESSION)
    assert [made.subject.stretch.target for made in done.distilled] == ["msg_002", "msg_004", "msg_006"]
    assert (await night.state()).through == "msg_006"


async def test_a_very_long_session_gives_others_their_turn() -> None:
    night = Night([answer()])
    night.policy = replace(night.policy, transcript_chars=100)
    await night.tell(*[said(number, f"Day {number} was quiet. " * 5) for number in range(1, 3 * MAX_STRETCHES)])
    first = await night.dreaming.work(SESSION)
    assert (first.outcome, len(first.distilled)) == (Outcome.UNFINISHED, MAX_STRETCHES)
    assert first.again_at is not None
    assert (await night.state()).due
    while (await night.dreaming.work(SESSION)).outcome is Outcome.UNFINISHED:
        pass
    assert not (await night.state()).due


async def test_a_stretch_without_words_asks_nobody() -> None:
    night = Night([answer()])
    await night.tell(said(1, "", parts=[tool(1, "oil the hinges")]))
    assert (await night.dreaming.work(SESSION)).outcome is Outcome.DONE
    assert night.asked.requests == []


async def test_what_was_taken_back_is_not_distilled() -> None:
    night = Night([answer(fact(KETTLE, 1))])
    await night.tell(*TALK)
    await night.backend.conversations.mark_removed(MessageId("msg_001"), at=night.clock.now())
    await night.dreaming.work(SESSION)
    assert "copper" not in night.asked.requests[0].prompt
    assert await night.texts() == []


async def test_a_long_turn_that_was_taken_back_hides_nothing_that_was_said_after_it() -> None:
    night = Night([answer(fact(KETTLE, 1))])
    taken_back = [said(number, f"Step {number} is done.", user=False) for number in range(1, 250)]
    await night.tell(*taken_back)
    for message in taken_back:
        await night.backend.conversations.mark_removed(message.id, at=night.clock.now())
    await night.tell(said(301, TALK[0].parts[0].text), said(302, "Noted.", user=False))
    assert await night.dreaming.left_undone(ORCHARD, limit=5, within=NOW, by_person=True)
    assert (await night.dreaming.work(SESSION)).outcome is Outcome.DONE
    assert await night.texts() == [KETTLE]


async def test_where_the_last_message_distilled_is_not_kept_any_more_what_was_said_since_is_found() -> None:
    night = Night([answer(fact(KETTLE, 1))])
    await night.tell(*[said(number, f"Step {number} is done.", user=False) for number in range(1, 250)])
    through = said(250, "")
    await night.backend.dreams.apply(
        DreamState(
            session=SESSION,
            project=ORCHARD,
            through=MessageId("msg_erased"),
            through_at=through.created_at,
            updated_at=night.clock.now(),
        )
    )
    await night.tell(said(301, TALK[0].parts[0].text), said(302, "Noted.", user=False))
    assert (await night.dreaming.work(SESSION)).outcome is Outcome.DONE
    assert await night.texts() == [KETTLE]


@pytest.mark.parametrize(
    ("fields", "because"),
    [
        ({"parent": SessionId("ses_other")}, "sub-agent"),
        ({"deleted_at": START}, "deleted"),
        ({"project": None}, "no project"),
        ({"host": "import:opencode"}, "came from a file"),
    ],
)
async def test_sessions_of_others_and_deleted_ones_are_left_out(fields: dict[str, Any], because: str) -> None:
    night = Night([answer(fact(KETTLE, 1))])
    await night.tell(*TALK, **fields)
    assert await night.dreaming.note_idle(SESSION, delay=NOW) is None
    done = await night.dreaming.work(SESSION, at_once=True)
    assert done.outcome is Outcome.LEFT_OUT
    assert because in (done.because or "")
    assert (await night.dreaming.preview(SESSION)).outcome is Outcome.LEFT_OUT
    assert night.asked.requests == []


async def test_a_sub_agents_session_is_the_agents_word_where_it_is_distilled() -> None:
    night = Night([answer(fact(KETTLE, 1, scope="global"))])
    night.policy = replace(night.policy, subagents=True)
    await night.tell(*TALK, parent=SessionId("ses_other"))
    await night.dreaming.work(SESSION)
    (memory,) = await night.kept()
    assert memory.visibility.value == "project", "no user said it"


async def test_nothing_is_distilled_while_it_is_switched_off() -> None:
    night = Night([answer(fact(KETTLE, 1))])
    night.policy = replace(night.policy, enabled=False)
    await night.tell(*TALK)
    assert await night.dreaming.note_idle(SESSION, delay=NOW) is None
    assert (await night.dreaming.work(SESSION, at_once=True)).outcome is Outcome.LEFT_OUT
    assert await night.dreaming.left_undone(ORCHARD, limit=8, within=NOW) == []


async def test_nothing_local_private_or_foreign_is_shown_to_the_model() -> None:
    from backstory.domain.ids import ProjectId
    from backstory.domain.memory import Sensitivity, Visibility

    night = Night([answer()])
    await night.keep(
        sample_memory("copper kettle alpha", sensitivity=Sensitivity.LOCAL_ONLY),
        sample_memory("copper kettle beta", sensitivity=Sensitivity.PRIVATE),
        sample_memory("copper kettle gamma", project=ProjectId("elsewhere")),
        sample_memory("copper kettle delta", origin=Origin.FILE),
        sample_memory("copper kettle epsilon", visibility=Visibility.SESSION, session=SessionId("ses_other")),
        sample_memory("copper kettle zeta"),
    )
    await night.tell(*TALK)
    await night.dreaming.work(SESSION)
    prompt = night.asked.requests[0].prompt
    assert [name for name in ("alpha", "beta", "gamma", "delta", "epsilon", "zeta") if name in prompt] == ["zeta"]


# --- debounce and leases ----------------------------------------------------------------------------------------------


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


# --- crashes ----------------------------------------------------------------------------------------------------------


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


# --- models that fail, and none ---------------------------------------------------------------------------------------


async def test_a_failing_model_is_asked_again_after_pauses_and_nothing_is_lost() -> None:
    night = Night([ModelTimeout("too slow"), ModelUnavailable("away"), answer(fact(KETTLE, 1))])
    await night.tell(*TALK)
    for attempt, pause in enumerate(PAUSES[:2], 1):
        failed = await night.dreaming.work(SESSION)
        assert (failed.outcome, failed.again_at) == (Outcome.FAILED, night.clock.now() + pause)
        state = await night.state()
        assert (state.attempts, state.due, state.lease) == (attempt, True, None)
        assert (await night.dreaming.work(SESSION)).outcome is Outcome.RESTING
        night.clock.advance(pause)
    assert (await night.dreaming.work(SESSION)).outcome is Outcome.DONE
    state = await night.state()
    assert (state.attempts, state.problem) == (0, None)
    assert await night.texts() == [KETTLE]


async def test_a_model_that_fails_for_ever_is_left_alone_until_the_next_turn() -> None:
    night = Night([ModelUnavailable("away")])
    await night.tell(*TALK)
    for _ in range(GIVE_UP_AFTER):
        last = await night.dreaming.work(SESSION, at_once=True)
    assert last.again_at is None
    night.clock.advance(PAUSES[-1])
    assert await night.dreaming.left_undone(ORCHARD, limit=8, within=NOW) == []
    assert [
        session for session, _ in await night.dreaming.left_undone(ORCHARD, limit=8, within=NOW, by_person=True)
    ] == [SESSION]
    assert await night.dreaming.note_idle(SESSION, delay=NOW) is not None
    assert (await night.dreaming.work(SESSION)).outcome is Outcome.FAILED


async def test_without_a_model_rules_keep_what_was_plainly_stated() -> None:
    night = Night(None)
    await night.tell(
        said(1, DECISION),
        said(2, "Good, the copper kettle it is.", user=False),
    )
    done = await night.dreaming.work(SESSION)
    assert done.distilled[0].made_by == RULES
    (memory,) = await night.kept()
    assert "copper kettle" in memory.content
    assert (memory.source, memory.origin, memory.provenance.agent) == (Source.DREAMED, Origin.AGENT, RULES)


@pytest.mark.parametrize("answers", [[CapReached("enough for today")], ["no JSON at all"]])
async def test_at_a_cap_and_after_useless_answers_the_rules_take_over(answers: list[str | ModelError]) -> None:
    night = Night(answers)
    await night.tell(said(1, DECISION), said(2, "Good.", user=False))
    for _ in range(PATIENCE + 1):
        done = await night.dreaming.work(SESSION, at_once=True)
        if done.outcome is Outcome.DONE:
            break
    assert done.distilled[0].made_by == RULES
    assert "copper kettle" in (await night.texts())[0]


async def test_a_useless_answer_is_asked_for_again_first() -> None:
    night = Night(["no JSON at all", answer(fact(KETTLE, 1))])
    await night.tell(*TALK)
    assert (await night.dreaming.work(SESSION)).outcome is Outcome.FAILED
    assert (await night.dreaming.work(SESSION, at_once=True)).distilled[0].made_by == "scripted:1"
    assert await night.texts() == [KETTLE]


# --- duplicates in other words ----------------------------------------------------------------------------------------


async def test_a_second_look_drops_what_is_known_in_other_words() -> None:
    night = Night([answer(fact(KETTLE, 1), fact(TRAY, 2)), '{"duplicates": [1]}'])
    await night.keep(sample_memory("Grüner Tee kommt aus dem Kupferkessel."))
    await night.tell(*TALK)
    done = await night.dreaming.work(SESSION)
    assert await night.texts() == ["Grüner Tee kommt aus dem Kupferkessel.", TRAY]
    assert {reason.value: count for reason, count in done.plans[0].refused.items()} == {"known already": 1}
    assert KETTLE in night.asked.requests[1].prompt


@pytest.mark.parametrize("second", [ModelUnavailable("away"), "what?", '{"duplicates": [7]}'])
async def test_a_second_look_that_fails_drops_nothing(second: str | ModelError) -> None:
    night = Night([answer(fact(KETTLE, 1)), second])
    await night.keep(sample_memory("The gate is green."))
    await night.tell(*TALK)
    await night.dreaming.work(SESSION)
    assert KETTLE in await night.texts()


# --- preview, and what was left undone --------------------------------------------------------------------------------


async def test_a_preview_decides_the_same_and_writes_nothing() -> None:
    night = Night([answer(fact(KETTLE, 1))])
    await night.tell(*TALK)
    shown = await night.dreaming.preview(SESSION)
    assert [edit.after.content for edit in shown.plans[0].edits] == [KETTLE]
    assert await night.kept() == []
    assert await night.backend.dreams.state(SESSION) is None
    await night.dreaming.work(SESSION)
    assert await night.texts() == [KETTLE]


async def test_a_start_finds_what_was_left_and_what_nobody_noted_but_nothing_old() -> None:
    night = Night([answer()])
    await night.tell(*TALK)
    within = timedelta(seconds=90)
    ((session, due),) = await night.dreaming.left_undone(ORCHARD, limit=8, within=within)
    assert session == SESSION
    assert night.clock.now() <= due <= night.clock.now() + within
    night.clock.advance(LOOKS_BACK)
    assert await night.dreaming.left_undone(ORCHARD, limit=8, within=within) == []
    assert len(await night.dreaming.left_undone(ORCHARD, limit=8, within=within, by_person=True)) == 1
    await night.dreaming.note_idle(SESSION, delay=timedelta(seconds=60))
    ((_, due),) = await night.dreaming.left_undone(ORCHARD, limit=8, within=within)
    assert due == night.clock.now() + timedelta(seconds=60)


async def test_a_session_of_the_persons_history_is_distilled_only_when_a_person_asks() -> None:
    night = Night([answer(fact(KETTLE, 1))])
    await night.tell(*TALK, host=f"{HISTORY_HOST}opencode")
    within = timedelta(seconds=90)
    assert await night.dreaming.left_undone(ORCHARD, limit=8, within=within) == []
    assert len(await night.dreaming.left_undone(ORCHARD, limit=8, within=within, by_person=True)) == 1
    assert (await night.dreaming.work(SESSION, at_once=True)).outcome is Outcome.DONE
    assert await night.texts() == [KETTLE]


async def test_a_session_that_nobody_noted_is_left_alone_while_it_may_be_in_the_middle_of_a_turn() -> None:
    night = Night([answer()])
    await night.tell(*TALK, updated_at=night.clock.now())
    ((_, due),) = await night.dreaming.left_undone(ORCHARD, limit=8, within=NOW)
    assert due == night.clock.now() + MISSED_AFTER


async def test_a_start_soon_after_a_crash_waits_for_the_lease_of_the_process_that_died() -> None:
    night = Night([answer(fact(KETTLE, 1))])
    await night.tell(*TALK)
    held = Lease(token="dead", expires_at=night.clock.now() + LEASE)
    died = DreamState(session=SESSION, project=ORCHARD, due=True, lease=held, updated_at=night.clock.now())
    assert await night.backend.dreams.apply(died)
    left = await night.dreaming.left_undone(ORCHARD, limit=8, within=timedelta(seconds=1))
    assert left == [(SESSION, held.expires_at)]
    night.clock.advance(LEASE)
    assert (await night.dreaming.work(SESSION)).outcome is Outcome.DONE


async def test_sessions_that_failed_too_often_keep_no_other_from_its_turn() -> None:
    night = Night([answer()])
    await night.tell(*TALK)
    await night.dreaming.note_idle(SESSION, delay=NOW)
    night.clock.advance(timedelta(minutes=1))
    for number in range(3):
        stuck = DreamState(
            session=SessionId(f"ses_stuck_{number}"),
            project=ORCHARD,
            due=True,
            attempts=GIVE_UP_AFTER,
            updated_at=night.clock.now(),
        )
        assert await night.backend.dreams.apply(stuck)
    assert [session for session, _ in await night.dreaming.left_undone(ORCHARD, limit=2, within=NOW)] == [SESSION]


async def test_a_start_takes_no_more_sessions_than_it_may() -> None:
    night = Night([answer()])
    await night.tell(*TALK)
    assert await night.dreaming.left_undone(ORCHARD, limit=0, within=NOW) == []


async def test_what_a_new_fact_contradicts_is_disputed_though_the_model_did_not_notice() -> None:
    night = Night([answer(fact("The brewery listens on port 9090.", 1)), '{"duplicates": []}'])
    (old,) = await night.keep(sample_memory("The brewery listens on port 8080."))
    await night.tell(said(1, "The brewery listens on port 9090."), said(2, "I see.", user=False))
    await night.dreaming.work(SESSION)
    stated, new = await night.kept()
    assert (stated.id, stated.content) == (old.id, old.content)
    assert isinstance(stated.status, Conflicted)
    assert isinstance(new.status, Conflicted)
    assert (stated.status.against, new.status.against) == (new.id, old.id)


async def test_after_a_dream_no_more_distilled_facts_are_kept_than_may_be() -> None:
    night = Night([answer(fact(KETTLE, 1)), '{"duplicates": []}'])
    night.at_most = 2
    earlier = [
        sample_memory(f"Jar {n} is full.", source=Source.DREAMED, origin=Origin.AGENT, weight=0.2) for n in range(4)
    ]
    await night.keep(*earlier, sample_memory("The gate is green."))
    await night.tell(*TALK)
    done = await night.dreaming.work(SESSION)
    kept = await night.texts()
    assert {KETTLE, "The gate is green."} < set(kept)
    assert len(kept) == 3
    assert [change.action for change in done.changes] == [Action.DREAM], "what faded goes as a change of its own"


async def test_a_replaced_memory_is_kept_and_hidden() -> None:
    night = Night([answer(update=[{"id": "m1", "text": KETTLE, "sources": [1]}])])
    await night.keep(sample_memory("The iron kettle is for green tea.", source=Source.DREAMED, origin=Origin.AGENT))
    await night.tell(*TALK)
    await night.dreaming.work(SESSION)
    old, new = await night.kept()
    assert old.status == Superseded(by=new.id, since=night.clock.now())
    viewer = Viewer(project=ORCHARD, session=SESSION)
    found = await night.backend.memories.select(Selection(viewer=viewer, now=night.clock.now()), limit=9)
    assert [memory.content for memory in found] == [KETTLE]


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


async def test_what_a_file_told_is_never_found_left_undone() -> None:
    night = Night([answer(fact(KETTLE, 1))])
    await night.tell(*TALK, host="import:opencode")
    for by_person in (False, True):
        within = timedelta(days=1)
        assert await night.dreaming.left_undone(ORCHARD, limit=9, within=within, by_person=by_person) == []
