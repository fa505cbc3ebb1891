"""How the session bench lives through a session, and that it notices what must not happen in one."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from backstory.adapters.stores.memory import open_memory_store
from backstory.adapters.tokens import EstimatedTokens
from backstory.bootstrap import App
from backstory.config import load
from backstory.domain.conversation import Message, Part, Role, Session
from backstory.domain.digest_plan import Listed
from backstory.domain.ids import MessageId, PartId, ProjectId, SessionId
from backstory.services.session_digest import Replaced
from bench.evidence_sets import Conversation
from bench.session_replay import (
    LOST,
    NOT_A_USER,
    TOUCHED,
    Replay,
    ReplayClock,
    Replayed,
    counted_once,
    faults_of,
    kept,
    same_beginning,
    sent_text,
)

pytestmark = pytest.mark.anyio

START = datetime(2026, 4, 6, 9, tzinfo=UTC)
SESSION, PROJECT = SessionId("ses_long"), ProjectId("prj_long")
TREE = {"BACKSTORY_SESSION_STRATEGY": "tree", "BACKSTORY_TREE_MAX_RAW": "4", "BACKSTORY_TREE_MIN_BATCH": "2"}


def said(place: int, role: Role, text: str, *, kind: str = "text", agent: str | None = None) -> Message:
    moment = START + timedelta(minutes=place)
    return Message(
        id=MessageId(f"m{place:03}"),
        session=SESSION,
        role=role,
        agent=agent,
        created_at=moment,
        completed_at=moment,
        parts=(Part(id=PartId(f"p{place:03}"), kind=kind, text=text),),
    )


def talk(turns: int) -> list[Message]:
    """Each turn is a question of the user and two answers, as after a call of a tool; long enough to be shortened."""
    padding = "The valve on the north side was checked and no leak was found there at all. " * 3
    return [
        said(3 * turn + n, Role.USER if n == 0 else Role.ASSISTANT, f"Part {turn}-{n} of the report. {padding}")
        for turn in range(turns)
        for n in range(3)
    ]


@asynccontextmanager
async def opened(environ: dict[str, str], clock: ReplayClock) -> AsyncIterator[App]:
    settings = load(env={"BACKSTORY_STORE": "memory", **environ}, project_root=None).settings
    app = App(settings, open_memory_store(), None, no_embedder="none is needed here", clock=clock)
    yield app
    await app.close()


async def replayed(messages: Sequence[Message], environ: dict[str, str]) -> Replayed:
    session = Session(id=SESSION, project=PROJECT, host="bench", directory="/yard", created_at=START, updated_at=START)
    chat = Conversation(project=PROJECT, sessions=[session], messages=messages, questions=[])
    clock = ReplayClock(START)
    async with opened(environ, clock) as app:
        return await Replay(app, chat, clock=clock, count=counted_once(EstimatedTokens())).run()


async def test_every_answer_was_a_request_and_none_has_a_fault() -> None:
    done = await replayed(talk(8), TREE)
    assert len(done.steps) == 16
    assert [step.turn for step in done.steps] == sorted([*range(8), *range(8)])
    assert [fault for step in done.steps for fault in step.faults] == []
    assert done.pieces > 2
    assert done.problems == 0


async def test_a_digest_makes_requests_smaller_and_breaks_the_prefix_only_where_it_changes() -> None:
    done = await replayed(talk(8), TREE)
    assert done.steps[-1].sent < done.steps[-1].whole
    for step in done.steps[1:]:
        assert step.kept is not None
        assert (step.kept < 1) == step.activated
        assert step.whole_fresh <= step.whole
    assert any(step.activated for step in done.steps)


async def test_a_short_session_is_sent_as_it_is() -> None:
    done = await replayed(talk(1), {"BACKSTORY_SESSION_STRATEGY": "tree"})
    assert [(step.whole, step.activated) for step in done.steps] == [(step.sent, False) for step in done.steps]
    assert done.shown.replaced == ()
    assert done.shown.digest == ""


async def test_what_is_shown_at_the_end_covers_every_message_once() -> None:
    messages = talk(8)
    shown = (await replayed(messages, TREE)).shown
    assert [*shown.replaced, *shown.raw] == messages
    assert "Part 0-0 of the report" in shown.digest


async def test_a_host_that_summarises_lists_only_what_follows() -> None:
    before, after = talk(4), talk(7)[15:]
    marker = said(12, Role.USER, "", kind="compaction", agent="compaction")
    summary = said(13, Role.ASSISTANT, "A summary of the yard's report.", agent="compaction")
    done = await replayed([*before, marker, summary, *after], TREE)
    assert [step.whole for step in done.steps[7:9]] != sorted(step.whole for step in done.steps[7:9])
    assert [fault for step in done.steps for fault in step.faults] == []


def test_faults_are_noticed() -> None:
    listed = [
        Listed(id=MessageId(name), role="user" if name.startswith("u") else "assistant")
        for name in ("u1", "a1", "u2", "a2")
    ]
    ids = frozenset(item.id for item in listed)
    assert faults_of(listed, None, frozenset()) == []
    assert faults_of(listed[1:], None, frozenset()) == [NOT_A_USER]
    assert faults_of(listed, Replaced(count=2, text="notes"), ids) == []
    assert faults_of(listed, Replaced(count=3, text="notes"), ids) == [TOUCHED]
    assert faults_of(listed, Replaced(count=2, text="notes"), frozenset({MessageId("u1")})) == [LOST]
    assert faults_of(listed, Replaced(count=2, text=" "), ids) == [LOST]


def test_where_no_typed_message_is_listed_the_newest_of_a_user_begins_the_turn() -> None:
    listed = [
        Listed(id=MessageId("c"), role="user", synthetic=True),
        Listed(id=MessageId("s"), role="assistant"),
        Listed(id=MessageId("go on"), role="user", synthetic=True),
        Listed(id=MessageId("a"), role="assistant"),
    ]
    ids = frozenset(item.id for item in listed)
    assert faults_of(listed, Replaced(count=2, text="notes"), ids) == []
    assert faults_of(listed, Replaced(count=3, text="notes"), ids) == [TOUCHED]


def test_the_kept_prefix_counts_whole_messages() -> None:
    assert same_beginning(["a", "b", "c"], ["a", "b", "d"]) == 2
    assert kept(["aa", "bb"], ["aa", "bb", "c"]) == 1
    assert kept(["aa", "bb"], ["aa", "bx"]) == 0.5
    assert kept([], ["a"]) == 0


def test_a_message_is_counted_with_the_input_and_the_outcome_of_its_tools() -> None:
    detail = '{"state": {"status": "completed", "input": {"command": "ls"}}}'
    part = Part(id=PartId("t"), kind="tool", tool="bash", text="yard.md", detail=detail)
    message = replace(said(1, Role.ASSISTANT, "I look."), parts=(part,))
    assert sent_text(message) == 'assistant\nbash {"command": "ls"}\nyard.md'
