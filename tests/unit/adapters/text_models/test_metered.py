"""A model whose every call is booked, and which is not asked once a cap is reached."""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, timedelta

import anyio
import pytest

from backstory.adapters.stores.memory import open_memory_store
from backstory.adapters.text_models.metered import MOST_TOKENS, MeteredTextModel, Terms
from backstory.adapters.tokens import EstimatedTokens
from backstory.domain.ids import SessionId
from backstory.domain.ledger import Caps, Entry, Outcome, Prices
from backstory.errors import CapReached, ModelError, ModelOutputInvalid, ModelTimeout, ModelUnavailable
from backstory.ports.text_models import TextAnswer, TextRequest
from backstory.testing.fakes import ORCHARD, START, FakeClock, SequentialIds, failing_backend

S1 = SessionId("ses-1")
REQUEST = TextRequest(
    feature="rerank", prompt="Which of the notes is about soup?", max_output_tokens=50, deadline_s=5.0, session=S1,
    project=ORCHARD,
)  # fmt: skip
ASKED = EstimatedTokens().count(REQUEST.prompt)
PRICES = Prices(input=1_000_000, output=2_000_000)

Respond = Callable[[TextRequest], TextAnswer]


class Model:
    """Answers as it is told, and keeps what it was asked."""

    name = "scripted:1"

    def __init__(self, respond: Respond) -> None:
        self.respond = respond
        self.requests: list[TextRequest] = []
        self.closed = False

    async def generate(self, request: TextRequest) -> TextAnswer:
        await anyio.lowlevel.checkpoint()
        self.requests.append(request)
        return self.respond(request)

    async def close(self) -> None:
        self.closed = True


def answer(input_tokens: int | None = 30, output_tokens: int | None = 4, **fields: object) -> TextAnswer:
    plain = TextAnswer(text="The third.", model="m", duration_s=0.25)
    told = replace(plain, input_tokens=input_tokens, output_tokens=output_tokens)
    return replace(told, **fields)  # type: ignore[arg-type]  # fields of TextAnswer


def failing(error: ModelError, *, sent: int | None = None, unanswered: int | None = None) -> Respond:
    def respond(_: TextRequest) -> TextAnswer:
        error.sent, error.unanswered = sent, unanswered
        raise error

    return respond


class Meter:
    """A metered model over a ledger in memory."""

    def __init__(self, respond: Respond = lambda _: answer(), *, caps: Caps | None = None, broken: str = "") -> None:
        self.model = Model(respond)
        self.clock = FakeClock()
        sound = open_memory_store()
        self.ledger = sound.ledger
        backend = failing_backend(only=broken, over=sound) if broken else sound
        self.metered = MeteredTextModel(
            self.model,
            backend.ledger,
            terms=Terms(caps=caps or Caps(), prices=PRICES, zone=UTC),
            clock=self.clock,
            ids=SequentialIds(),
            tokens=EstimatedTokens(),
        )

    def ask(self, request: TextRequest = REQUEST) -> TextAnswer:
        return anyio.run(self.metered.generate, request)

    def entries(self) -> list[Entry]:
        return list(anyio.run(lambda: self.ledger.entries(since=START - timedelta(days=9))))

    def only(self) -> Entry:
        [entry] = self.entries()
        return entry


def test_a_call_is_booked_with_what_the_server_counted() -> None:
    meter = Meter()
    assert meter.ask() == answer()
    entry = meter.only()
    assert (entry.feature, entry.model, entry.session, entry.project) == ("rerank", "scripted:1", S1, ORCHARD)
    assert (entry.input_tokens, entry.output_tokens, entry.cost) == (30, 4, 38)
    assert (entry.outcome, entry.estimated, entry.requests) == (Outcome.OK, False, 1)
    assert (entry.at, entry.duration) == (START, timedelta(seconds=0.25))


@pytest.mark.parametrize("told", [None, MOST_TOKENS + 1, 10**30])
def test_what_the_server_does_not_tell_credibly_is_estimated_and_marked(told: int | None) -> None:
    meter = Meter(lambda _: answer(told, told))
    meter.ask()
    entry = meter.only()
    assert (entry.input_tokens, entry.output_tokens) == (ASKED, EstimatedTokens().count("The third."))
    assert entry.estimated


def test_attempts_without_an_answer_are_booked_with_the_most_they_can_have_taken() -> None:
    meter = Meter(lambda _: answer(sent=4, unanswered=2))
    meter.ask()
    entry = meter.only()
    assert (entry.input_tokens, entry.output_tokens) == (30 + 2 * ASKED, 4 + 2 * 50)
    assert (entry.requests, entry.estimated, entry.outcome) == (4, True, Outcome.OK)


@pytest.mark.parametrize(
    ("error", "sent", "unanswered", "outcome", "billed"),
    [
        (ModelUnavailable("refused"), 1, 0, Outcome.REFUSED, 0),
        (ModelUnavailable("answered 500"), 3, 0, Outcome.REFUSED, 0),
        (ModelUnavailable("broke off"), 3, 2, Outcome.FAILED, 2),
        (ModelOutputInvalid("not JSON"), 1, 1, Outcome.FAILED, 1),
        (ModelTimeout("too slow"), 1, 1, Outcome.TIMEOUT, 1),
        (ModelUnavailable("nobody counted"), None, None, Outcome.FAILED, 1),
    ],
)
def test_a_failure_is_booked_and_still_raised(
    error: ModelError, sent: int | None, unanswered: int | None, outcome: Outcome, billed: int
) -> None:
    meter = Meter(failing(error, sent=sent, unanswered=unanswered))
    with pytest.raises(type(error), match=str(error)):
        meter.ask()
    entry = meter.only()
    assert (entry.input_tokens, entry.output_tokens) == (billed * ASKED, billed * 50)
    assert (entry.outcome, entry.estimated, entry.requests) == (outcome, billed > 0, sent or 1)


def test_a_question_that_never_went_out_is_not_booked() -> None:
    meter = Meter(failing(ModelUnavailable("resting"), sent=0, unanswered=0))
    with pytest.raises(ModelUnavailable, match="resting"):
        meter.ask()
    assert meter.entries() == []


def test_at_a_cap_the_model_is_not_asked_and_the_reason_is_told() -> None:
    meter = Meter(caps=Caps(features={"rerank": 60}))
    meter.ask()
    meter.ask()
    with pytest.raises(CapReached, match=r"60 tokens a day for rerank is reached \(68 spent\)"):
        meter.ask()
    assert len(meter.model.requests) == len(meter.entries()) == 2


def test_a_cap_of_a_day_is_lifted_at_midnight_and_one_of_a_session_is_not() -> None:
    meter = Meter(caps=Caps(day_tokens=30, session_tokens=60))
    meter.ask()
    with pytest.raises(CapReached, match="a day is reached"):
        meter.ask()
    meter.clock.moment = START.replace(hour=0) + timedelta(days=1)
    meter.ask()
    meter.clock.advance(timedelta(days=1))
    with pytest.raises(CapReached, match="for the rest of this session"):
        meter.ask()
    meter.ask(replace(REQUEST, session=SessionId("ses-2")))


def test_questions_at_one_moment_go_beyond_a_cap_by_one_call_at_most() -> None:
    meter = Meter(caps=Caps(day_tokens=2 * (ASKED + 50) + 1))
    refused: list[CapReached] = []

    async def ask() -> None:
        try:
            await meter.metered.generate(REQUEST)
        except CapReached as error:
            refused.append(error)

    async def main() -> None:
        async with anyio.create_task_group() as tasks:
            for _ in range(8):
                tasks.start_soon(ask)

    anyio.run(main)
    assert (len(meter.model.requests), len(refused)) == (3, 5)


def test_a_cancelled_question_stays_booked_with_the_most_it_can_take() -> None:
    meter = Meter()

    async def main() -> None:
        with anyio.CancelScope() as scope:
            scope.cancel()
            await meter.metered.generate(REQUEST)

    anyio.run(main)
    entry = meter.only()
    assert (entry.outcome, entry.estimated) == (Outcome.UNFINISHED, True)
    assert (entry.input_tokens, entry.output_tokens, entry.cost) == (ASKED, 50, ASKED + 100)


def test_a_question_is_counted_with_all_that_is_sent() -> None:
    meter = Meter(failing(ModelTimeout("slow"), sent=1, unanswered=1))
    for request in (REQUEST, replace(REQUEST, system="Be brief."), replace(REQUEST, schema={"type": "object"})):
        with pytest.raises(ModelTimeout):
            meter.ask(request)
    plain, with_system, with_schema = (entry.input_tokens for entry in meter.entries())
    assert plain < with_system
    assert plain < with_schema


def test_a_question_without_time_left_is_not_asked_nor_booked() -> None:
    meter = Meter()
    with pytest.raises(ModelTimeout):
        meter.ask(replace(REQUEST, deadline_s=0.0))
    assert (meter.model.requests, meter.entries()) == ([], [])


@pytest.mark.parametrize("broken", ["admit", "book"])
def test_a_ledger_that_fails_does_not_fail_the_call(broken: str, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.WARNING)
    meter = Meter(broken=broken)
    assert meter.ask() == answer()
    assert "event=call_not_booked" in caplog.text
    assert meter.only().outcome is (Outcome.OK if broken == "admit" else Outcome.UNFINISHED)


def test_a_cap_that_cannot_be_kept_lets_nothing_through() -> None:
    meter = Meter(broken="admit", caps=Caps(day_tokens=10**9))
    with pytest.raises(ModelUnavailable, match="what was spent cannot be told: the disk is on fire"):
        meter.ask()
    assert meter.model.requests == []


def test_half_a_character_in_a_hosts_id_fails_no_call() -> None:
    meter = Meter()
    meter.ask(replace(REQUEST, session=SessionId("ses-\ud800🚀")))
    assert meter.only().session == "ses-\ufffd🚀"


def test_name_and_end_are_the_models_own() -> None:
    meter = Meter()
    assert meter.metered.name == "scripted:1"
    anyio.run(meter.metered.close)
    assert meter.model.closed
