"""Language models over real HTTP: servers on this machine that answer, fail, stall and talk nonsense."""

from __future__ import annotations

import logging
import socket
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import anyio
import anyio.to_thread
import pytest

from backstory.adapters.text_models.cool_down import CoolDown
from backstory.adapters.text_models.endpoint import MAX_ANSWER_BYTES
from backstory.adapters.text_models.openai import OpenAiTextModel
from backstory.domain.answers import Finish
from backstory.entrypoints.drive import drive
from backstory.errors import ModelError, ModelOutputInvalid, ModelUnavailable
from backstory.ports.text_models import TextAnswer, TextRequest
from backstory.testing.opencode import wait_for
from tests.integration.scripted_server import Answer, Request, ScriptedServer

KEY = "sk-test-do-not-show"
SAID = "Tea is at four."
Make = Callable[..., OpenAiTextModel]


def completion(text: str = SAID) -> Answer:
    choice = {"index": 0, "message": {"role": "assistant", "content": text}, "finish_reason": "stop"}
    usage = {"prompt_tokens": 9, "completion_tokens": 4}
    return Answer(body={"model": "tiny-2026", "choices": [choice], "usage": usage})


@pytest.fixture
def server() -> Iterator[ScriptedServer]:
    with ScriptedServer(lambda _: completion()).running() as running:
        yield running


@pytest.fixture
def make(server: ScriptedServer) -> Make:
    def make(url: str = server.url + "/v1", **options: Any) -> OpenAiTextModel:  # Any: the constructor's own options
        defaults: dict[str, Any] = {"model": "tiny", "api_key": KEY, "timeout_s": 10.0}
        return OpenAiTextModel(url, **(defaults | options))

    return make


def request(**fields: Any) -> TextRequest:  # Any: the fields of TextRequest
    defaults: dict[str, Any] = {"feature": "rerank", "prompt": "the launch code is plover", "deadline_s": 10.0}
    return TextRequest(**(defaults | fields))


def ask(model: OpenAiTextModel, /, **fields: Any) -> TextAnswer:
    return anyio.run(lambda: model.generate(request(**fields)))


def failure(model: OpenAiTextModel, expected: type[ModelError] = ModelUnavailable, **fields: Any) -> str:
    """What a failing question says; never the key, the prompt or anything the server said."""
    with pytest.raises(expected) as caught:
        ask(model, **fields)
    error: BaseException | None = caught.value
    while error is not None:
        assert not [word for word in (KEY, "plover", "gossip") if word in str(error)]
        error = error.__cause__
    return str(caught.value)


def test_a_question_is_answered(server: ScriptedServer, make: Make) -> None:
    answer = ask(make(), system="Be brief.", max_output_tokens=50)
    assert (answer.text, answer.model, answer.finish) == (SAID, "tiny-2026", Finish.STOP)
    assert (answer.input_tokens, answer.output_tokens) == (9, 4)
    assert 0 < answer.duration_s < 10
    (sent,) = server.requests
    assert (sent.path, sent.headers["authorization"]) == ("/v1/chat/completions", f"Bearer {KEY}")
    assert [message["role"] for message in sent.body["messages"]] == ["system", "user"]
    assert sent.body["max_tokens"] == 50


def test_without_an_event_loop_a_question_gets_one_of_its_own(server: ScriptedServer, make: Make) -> None:
    model = make()
    for _ in range(2):
        assert drive(model.generate(request())).text == SAID
    drive(model.close())
    assert len(server.requests) == 2


def test_a_request_may_name_another_model(make: Make, server: ScriptedServer) -> None:
    ask(make(), model="tiny-xl")
    ask(make())
    assert [seen.body["model"] for seen in server.requests] == ["tiny-xl", "tiny"]


def test_a_model_serves_one_event_loop_after_another(make: Make) -> None:
    model = make()

    async def twice() -> None:
        for _ in range(2):
            assert (await model.generate(request())).text == SAID
            await model.close()

    anyio.run(twice)
    anyio.run(twice)


def test_no_key_is_taken_from_the_environment(
    server: ScriptedServer, make: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "from-the-environment")
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:9")
    ask(make(api_key=None))
    assert "authorization" not in server.requests[0].headers


@pytest.mark.parametrize(
    "passing",
    [
        Answer(status=500),
        Answer(status=503),
        Answer(status=429),
        Answer(status=408),
        Answer(hang_up=True),
        Answer(body={"error": {"message": "gossip"}}),
    ],
)
def test_a_passing_fault_is_tried_again(server: ScriptedServer, make: Make, passing: Answer) -> None:
    server.script.append(passing)
    assert ask(make()).text == SAID
    assert len(server.requests) == 2


@pytest.mark.parametrize(("retries", "attempts"), [(0, 1), (2, 3)])
def test_a_lasting_fault_ends_after_the_retries(
    server: ScriptedServer, make: Make, retries: int, attempts: int
) -> None:
    server.respond = lambda _: Answer(status=502, body={"error": "gossip"})
    assert f"answered 502; tried {attempts} of {attempts} times" in failure(make(retries=retries))
    assert len(server.requests) == attempts


def test_a_wish_to_wait_is_granted_when_it_fits(server: ScriptedServer, make: Make) -> None:
    server.script.append(Answer(status=429, headers={"retry-after": "1"}))
    started = time.monotonic()
    assert ask(make()).text == SAID
    assert time.monotonic() - started > 0.9


def test_a_wish_beyond_the_deadline_ends_it_at_once_and_is_kept_by_later_questions(
    server: ScriptedServer, make: Make
) -> None:
    server.script.append(Answer(status=429, headers={"retry-after": "3600"}))
    model = make()
    assert "answered 429" in failure(model)
    assert "asked to be left alone" in failure(model)
    assert "asked to be left alone" in failure(model, feature="observation")
    assert len(server.requests) == 1


def test_after_repeated_failures_the_server_is_left_alone_for_a_while(server: ScriptedServer, make: Make) -> None:
    server.respond = lambda _: Answer(status=500)
    now = [0.0]
    model = make(retries=0, cool_down=CoolDown(failures=2, seconds=30.0, now=lambda: now[0]))
    for _ in range(2):
        assert "answered 500" in failure(model)
    assert "failed 2 times in a row; it is tried again in 30 s" in failure(model)
    assert len(server.requests) == 2
    server.respond = lambda _: completion()
    assert ask(model, feature="observation").text == SAID
    now[0] = 31.0
    assert ask(model).text == SAID


def test_a_refused_request_says_nothing_about_the_server(server: ScriptedServer, make: Make) -> None:
    server.respond = lambda _: Answer(status=400, body={"error": f"too long: gossip {KEY}"})
    model = make(cool_down=CoolDown(failures=1))
    for _ in range(2):
        assert "refused the request (answered 400)" in failure(model)
    assert len(server.requests) == 2


def test_a_slow_server_is_given_up_at_the_deadline(server: ScriptedServer, make: Make) -> None:
    server.respond = lambda _: Answer(delay_seconds=30)
    started = time.monotonic()
    assert "did not answer within 0.3 s" in failure(make(), deadline_s=0.3)
    assert "did not answer within 0.2 s" in failure(make(timeout_s=0.2))
    assert time.monotonic() - started < 15


def test_a_server_that_fails_for_ever_is_given_up_at_the_deadline(server: ScriptedServer, make: Make) -> None:
    server.respond = lambda _: Answer(status=503)
    started = time.monotonic()
    failure(make(retries=1000), deadline_s=0.6)
    assert time.monotonic() - started < 15


def test_a_cancelled_question_returns_at_once_and_leaves_the_model_usable(server: ScriptedServer, make: Make) -> None:
    server.script.append(Answer(delay_seconds=30))
    model = make(cool_down=CoolDown(failures=1))

    async def main() -> tuple[float, str]:
        started = time.monotonic()
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(model.generate, request())
            assert await anyio.to_thread.run_sync(wait_for, lambda: server.requests)
            tasks.cancel_scope.cancel()
        return time.monotonic() - started, (await model.generate(request())).text

    taken, text = anyio.run(main)
    assert taken < 15
    assert text == SAID


def test_a_cancelled_question_ends_the_connection() -> None:
    asked, gone = threading.Event(), threading.Event()

    def listen(held: socket.socket) -> None:
        connection, _ = held.accept()
        asked.set()
        with connection:
            while connection.recv(4096):
                pass
        gone.set()

    with socket.create_server(("127.0.0.1", 0)) as held:
        threading.Thread(target=listen, args=(held,), daemon=True).start()
        model = OpenAiTextModel(f"http://127.0.0.1:{held.getsockname()[1]}", model="tiny", timeout_s=60.0)

        async def main() -> None:
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(model.generate, request())
                assert await anyio.to_thread.run_sync(asked.wait, 60)
                tasks.cancel_scope.cancel()

        anyio.run(main)
        assert gone.wait(30)


def test_no_more_questions_are_under_way_than_allowed(server: ScriptedServer, make: Make) -> None:
    lock, now, most = threading.Lock(), [0], [0]

    def respond(_: Request) -> Answer:
        with lock:
            now[0] += 1
            most[0] = max(most[0], now[0])
        time.sleep(0.05)
        with lock:
            now[0] -= 1
        return completion()

    server.respond = respond
    model = make(concurrency=2)

    async def main() -> None:
        async with anyio.create_task_group() as tasks:
            for _ in range(6):
                tasks.start_soon(model.generate, request())

    anyio.run(main)
    assert (most[0], len(server.requests)) == (2, 6)


@pytest.mark.parametrize(
    ("status", "key", "said"),
    [
        (401, KEY, "does not accept the API key"),
        (403, None, "wants an API key"),
        (404, KEY, "no model 'tiny'"),
        (307, KEY, "redirects elsewhere"),
        (301, KEY, "redirects elsewhere"),
        (418, KEY, "answered 418"),
    ],
)
def test_a_lasting_refusal_says_what_is_wrong_and_is_not_tried_again(
    server: ScriptedServer, make: Make, status: int, key: str | None, said: str
) -> None:
    with ScriptedServer(lambda _: completion("gossip")).running() as elsewhere:
        headers = {"location": elsewhere.url + "/v1/chat/completions"}
        server.respond = lambda _: Answer(status=status, body={"error": f"gossip {KEY}"}, headers=headers)
        assert said in failure(make(api_key=key))
        assert (len(server.requests), elsewhere.requests) == (1, [])


def test_a_server_that_is_not_there_is_unavailable(make: Make) -> None:
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))  # bound and not listening: every connection is refused
        assert "cannot be reached" in failure(make(f"http://127.0.0.1:{held.getsockname()[1]}", retries=0))


@pytest.mark.parametrize(
    "answer",
    [
        Answer(content=b""),
        Answer(content=b"<html>gossip</html>"),
        Answer(content=b'{"choices": [{"mess'),
        Answer(content=b"[" * 100_000),
        Answer(content=b"\xff\xfe\xfa"),
        Answer(content=b"not gzip", headers={"content-encoding": "gzip"}),
        Answer(content=b'"' + b"x" * MAX_ANSWER_BYTES + b'"'),
        Answer(body={"choices": []}),
        Answer(body={"choices": "gossip"}),
        Answer(body=[1]),
        Answer(body=None),
    ],
    ids=range(11),
)
def test_an_answer_outside_the_protocol_is_invalid(server: ScriptedServer, make: Make, answer: Answer) -> None:
    server.respond = lambda _: answer
    failure(make(), ModelOutputInvalid)
    assert len(server.requests) == 1


def test_fields_a_server_does_not_know_are_left_out_once_it_says_so(server: ScriptedServer, make: Make) -> None:
    def respond(sent: Request) -> Answer:
        for known_by_few in ("response_format", "temperature", "max_tokens"):
            if known_by_few in sent.body:
                hint = "use max_completion_tokens" if known_by_few == "max_tokens" else known_by_few
                return Answer(status=400, body={"error": {"message": f"unsupported: {hint}"}})
        return completion()

    server.respond = respond
    model = make()
    schema = {"type": "object"}
    for _ in range(2):
        assert ask(model, schema=schema).text == SAID
    assert len(server.requests) == 5
    assert set(server.requests[-1].body) == {"model", "messages", "max_completion_tokens"}


def test_nothing_that_is_logged_holds_the_key_or_the_texts(
    server: ScriptedServer, make: Make, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    server.script += [Answer(status=500, body={"error": "gossip"}), completion("gossip")]
    model = make(retries=1)
    ask(model)
    server.respond = lambda _: Answer(status=401, body={"error": f"gossip {KEY}"})
    failure(model)
    assert "event=model_answered feature=rerank model=tiny-2026" in caplog.text
    assert not [word for word in (KEY, "plover", "gossip") if word in caplog.text]
