"""The model that answers by rule, as the product asks it: over HTTP, booked, in the forms that are asked for."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from backstory.adapters.stores.memory import open_memory_store
from backstory.adapters.tokens import EstimatedTokens
from backstory.bootstrap import App
from backstory.config import load
from backstory.domain.answers import Finish
from backstory.domain.conversation import Message, Part, Role, Session
from backstory.domain.digest_answers import ObservedText, read_observations
from backstory.domain.ids import MessageId, PartId, ProjectId, SessionId
from backstory.prompts.reflect import reflect_prompt
from bench.evidence_sets import Conversation
from bench.session_model import RuleModel, answered, booked
from bench.session_replay import Replay, ReplayClock, counted_once

pytestmark = pytest.mark.anyio

START = datetime(2026, 5, 4, 8, tzinfo=UTC)
SESSION, PROJECT = SessionId("ses_told"), ProjectId("prj_told")


def talk(turns: int) -> Conversation:
    filler = "It was measured twice, with the gauge of the second shift, and written into the log. " * 4
    messages = [
        Message(
            id=MessageId(f"m{place:03}"),
            session=SESSION,
            role=Role.ASSISTANT if place % 2 else Role.USER,
            created_at=START + timedelta(minutes=place),
            completed_at=START + timedelta(minutes=place),
            parts=(Part(id=PartId(f"p{place:03}"), kind="text", text=f"Pump {place} holds {place + 3} bar. {filler}"),),
        )
        for place in range(2 * turns)
    ]
    session = Session(id=SESSION, project=PROJECT, host="bench", directory="/pumps", created_at=START, updated_at=START)
    return Conversation(project=PROJECT, sessions=[session], messages=messages, questions=[])


@pytest.mark.parametrize(
    "environ",
    [
        {"BACKSTORY_SESSION_STRATEGY": "tree"},
        {
            "BACKSTORY_SESSION_STRATEGY": "observations",
            "BACKSTORY_OBSERVATION_MESSAGE_TOKENS": "2000",
            "BACKSTORY_REFLECTION_OBSERVATION_TOKENS": "1000",
        },
    ],
    ids=["tree", "observations"],
)
async def test_it_answers_what_a_strategy_asks_and_every_call_is_booked(environ: dict[str, str]) -> None:
    with RuleModel(latency_s=0) as model:
        asked = {"PROVIDER": "openai", "BASE_URL": model.url, "MODEL": "scripted"}
        asked = {f"BACKSTORY_MODELS_{name}": value for name, value in asked.items()}
        settings = load(env={"BACKSTORY_STORE": "memory", **environ, **asked}, project_root=None).settings
        clock = ReplayClock(START)
        app = App(settings, open_memory_store(), None, no_embedder="none is needed here", clock=clock)
        done = await Replay(app, talk(60), clock=clock, count=counted_once(EstimatedTokens())).run()
        digest = await app.backend.digests.digest(SESSION)
        ledger, failed = await booked(app)
        await app.close()
    assert done.problems == 0
    assert [fault for step in done.steps for fault in step.faults] == []
    assert digest is not None
    assert {piece.made_by for piece in digest.pieces} == {"openai:scripted"}
    assert max(piece.level for piece in digest.pieces) > 0
    assert "Pump 0 holds 3 bar" in "\n".join(piece.text for piece in digest.pieces)
    assert model.counted.calls >= len(digest.pieces)
    assert (ledger, failed) == (model.counted, 0)


def test_notes_are_condensed_to_half_of_them_at_most() -> None:
    notes = "\n".join(["Date: May 4, 2026", *(f"* 🟡 (08:{n:02}) pump {n} is well" for n in range(40))])
    answer = read_observations(answered(reflect_prompt(notes).text), finish=Finish.STOP)
    assert isinstance(answer, ObservedText)
    assert len(answer.observations) <= len(notes) / 2
    assert "pump 39" in answer.observations
