"""The host's model behind the port: what is asked of the host, in which time, and what its failures become."""

from __future__ import annotations

import json
import time
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

import anyio
import pytest

from backstory.adapters.text_models.cool_down import CoolDown
from backstory.adapters.text_models.host import HostTextModel, NotTaken
from backstory.domain.answers import Finish
from backstory.domain.ids import SessionId
from backstory.errors import ModelError, ModelOutputInvalid, ModelTimeout, ModelUnavailable
from backstory.ports.text_models import TextAnswer, TextRequest

SCHEMA = {"type": "object"}
REQUEST = TextRequest(
    feature="rerank",
    system="Be brief.",
    prompt="Which?",
    max_output_tokens=64,
    deadline_s=5,
    session=SessionId("ses_1"),
)
STRUCTURED = TextRequest(feature="rerank", prompt="Which?", schema=SCHEMA, deadline_s=5)
SAID = {"text": "Green.", "model": "a/b", "finish": "stop", "tokens": {"input": 9, "output": 2}, "requests": 1}
Json = Any


class Host:
    """Answers from a list, the last one again and again; an exception is raised, a number or an event waited for."""

    def __init__(self, *answers: object) -> None:
        self.answers = list(answers)
        self.asked: list[Mapping[str, Json]] = []
        self.cancelled = 0
        self.most_at_once = self.at_once = 0

    async def ask(self, params: Mapping[str, object]) -> object:
        self.asked.append(params)
        answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        self.at_once += 1
        self.most_at_once = max(self.most_at_once, self.at_once)
        try:
            if isinstance(answer, anyio.Event):
                await answer.wait()
            else:
                await anyio.sleep(answer if isinstance(answer, int | float) else 0.01)
        except BaseException:
            self.cancelled += 1
            raise
        finally:
            self.at_once -= 1
        if isinstance(answer, Exception):
            raise answer
        return SAID if isinstance(answer, int | float | anyio.Event) else answer


def _model(host: Host, **options: Json) -> HostTextModel:
    return HostTextModel(host.ask, **{"directory": "/shop", "timeout_s": 30.0, **options})


def _run(work: Callable[[], Awaitable[Any]]) -> Any:
    return anyio.run(work)


def _ask(model: HostTextModel, request: TextRequest = REQUEST) -> TextAnswer:
    answer = _run(lambda: model.generate(request))
    assert isinstance(answer, TextAnswer)
    return answer


def _fail(model: HostTextModel, request: TextRequest = REQUEST) -> ModelError:
    with pytest.raises(ModelError) as caught:
        _run(lambda: model.generate(request))
    return caught.value


def test_the_host_is_told_what_to_ask_for_whom_and_how_long() -> None:
    host = Host(SAID)
    answer = _ask(_model(host, model="a/b"))
    (asked,) = host.asked
    assert 4000 < asked["timeout_ms"] < 5000, "less than the deadline, so that it can tell how far it came"
    assert {name: value for name, value in asked.items() if name != "timeout_ms"} == {
        "directory": "/shop",
        "feature": "rerank",
        "prompt": "Which?",
        "system": "Be brief.",
        "schema": None,
        "model": "a/b",
        "parent": "ses_1",
        "max_output_tokens": 64,
    }
    assert (answer.text, answer.model, answer.finish) == ("Green.", "a/b", Finish.STOP)
    assert (answer.input_tokens, answer.output_tokens, answer.sent, answer.unanswered) == (9, 2, 1, 0)


def test_it_is_named_after_the_model_or_as_the_default() -> None:
    assert _model(Host(SAID)).name == "host:default"
    assert _model(Host(SAID), model="a/b").name == "host:a/b"
    nameless = _ask(_model(Host({**SAID, "model": None})))
    assert nameless.model == "host:default"


def test_secrets_and_half_characters_do_not_leave() -> None:
    secret = "ghp_" + "a1B2c3D4e5F6g7H8i9J0" + "k1L2m3N4o5P6q7R8"
    host = Host(SAID)
    _ask(_model(host), TextRequest(feature="f", system=f"s {secret}", prompt=f"p {secret} \ud800\x00", deadline_s=5))
    sent = json.dumps(host.asked)
    assert secret not in sent
    assert "ud800" not in sent
    assert "u0000" not in sent


def test_control_characters_do_not_come_in() -> None:
    assert _ask(_model(Host({**SAID, "text": "Gr\x1b[31meen\x00."}))).text == "Green."


def test_an_object_comes_back_as_its_text() -> None:
    answer = _ask(_model(Host({**SAID, "text": "", "structured": {"order": [2], "why": "ö"}})), STRUCTURED)
    assert json.loads(answer.text) == {"order": [2], "why": "ö"}
    assert answer.finish is Finish.STOP


@pytest.mark.parametrize("error", [{"name": "APIError", "status": 400}, {"name": "StructuredOutputError"}])
def test_a_model_that_takes_no_schema_is_found_out_once(error: object) -> None:
    host = Host({**SAID, "text": "", "error": error}, SAID)
    model = _model(host)
    answer = _ask(model, STRUCTURED)
    assert (answer.text, answer.sent, answer.unanswered) == ("Green.", 2, 0)
    _ask(model, STRUCTURED)
    assert [asked["schema"] for asked in host.asked] == [SCHEMA, None, None]


def test_a_question_refused_without_a_schema_too_leaves_the_schema_in_use() -> None:
    host = Host({**SAID, "text": "", "error": {"name": "APIError", "status": 400}})
    model = _model(host)
    assert _fail(model, STRUCTURED).sent == 2
    _fail(model, STRUCTURED)
    assert [asked["schema"] for asked in host.asked] == [SCHEMA, None] * 2


TROUBLES = [
    (None, ModelUnavailable, 1, 1),
    ("words", ModelOutputInvalid, 1, 1),
    ({"error": {"name": "timeout"}, "requests": 1, "unanswered": True}, ModelTimeout, 1, 1),
    ({"error": {"name": "timeout"}, "requests": 0}, ModelTimeout, 0, 0),
    ({"error": {"name": "timeout"}, "requests": 3, "unanswered": False}, ModelUnavailable, 3, 0),
    ({"error": {"name": "MessageAbortedError"}, "requests": 2}, ModelUnavailable, 2, 1),
    ({"error": {"name": "StructuredOutputError"}, "requests": 2}, ModelOutputInvalid, 2, 0),
    ({"error": {"name": "APIError", "status": 503}, "requests": 6}, ModelUnavailable, 6, 0),
    ({"error": {"name": "ProviderModelNotFoundError"}, "requests": 0}, ModelUnavailable, 0, 0),
    (NotTaken("closed"), ModelUnavailable, 0, 0),
]


@pytest.mark.parametrize(("said", "kind", "sent", "unanswered"), TROUBLES)
def test_each_failure_tells_what_was_sent_and_what_stayed_unanswered(
    said: object, kind: type[ModelError], sent: int, unanswered: int
) -> None:
    error = _fail(_model(Host(said)))
    assert type(error) is kind
    assert (error.sent, error.unanswered) == (sent, unanswered)
    assert "Which?" not in str(error)


def test_a_host_that_does_not_answer_is_left_at_the_deadline_and_told() -> None:
    host = Host(30.0)
    started = time.monotonic()
    error = _fail(_model(host), TextRequest(feature="f", prompt="Which?", deadline_s=0.2))
    assert time.monotonic() - started < 15
    assert isinstance(error, ModelTimeout)
    assert (error.sent, error.unanswered, host.cancelled) == (1, 1, 1)
    assert isinstance(_fail(_model(host, timeout_s=0.1)), ModelTimeout), "whatever deadline a question brings"


def test_cancelling_a_question_cancels_it_at_the_host() -> None:
    host = Host(30.0)

    async def give_up() -> None:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(_model(host).generate, REQUEST)
            await anyio.wait_all_tasks_blocked()
            tasks.cancel_scope.cancel()

    _run(give_up)
    assert host.cancelled == 1


def test_questions_wait_for_each_other_within_their_deadlines() -> None:
    answered: list[str] = []

    async def one(model: HostTextModel, name: str, deadline_s: float) -> None:
        try:
            await model.generate(TextRequest(feature=name, prompt="Which?", deadline_s=deadline_s))
            answered.append(name)
        except ModelTimeout as error:
            answered.append(f"{name} sent {error.sent}")

    async def all_at_once() -> int:
        may_answer = anyio.Event()
        host = Host(may_answer)
        model = _model(host, concurrency=1)
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(one, model, "first", 60)
            await anyio.wait_all_tasks_blocked()
            tasks.start_soon(one, model, "second", 60)
            await one(model, "hasty", 0.03)
            may_answer.set()
        return host.most_at_once

    assert _run(all_at_once) == 1
    assert answered == ["hasty sent 0", "first", "second"]


def test_a_host_that_keeps_failing_is_left_alone_for_a_while() -> None:
    now = 0.0
    host = Host({"error": {"name": "APIError", "status": 500}, "requests": 1})
    model = _model(host, cool_down=CoolDown(failures=2, seconds=30, now=lambda: now))
    _fail(model)
    _fail(model)
    error = _fail(model)
    assert "2 times in a row" in str(error)
    assert (error.sent, len(host.asked)) == (0, 2)
    host.answers = [SAID]
    assert _ask(model, TextRequest(feature="observation", prompt="Which?", deadline_s=5)).text == "Green."
    now = 31.0
    assert _ask(model).text == "Green."


def test_a_question_that_is_refused_does_not_count_against_the_host() -> None:
    host = Host({"error": {"name": "ContextOverflowError"}, "requests": 1})
    model = _model(host, cool_down=CoolDown(failures=1))
    assert "ContextOverflowError" in str(_fail(model))
    host.answers = [SAID]
    assert _ask(model).text == "Green."


@pytest.mark.parametrize("name", ["gpt", "/gpt", "openai/"])
def test_a_model_without_its_provider_is_not_asked_for(name: str) -> None:
    host = Host(SAID)
    error = _fail(_model(host, model=name))
    assert "provider/model" in str(error)
    assert (error.sent, host.asked) == (0, [])
