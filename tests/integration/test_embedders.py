"""Embedders against real things: servers on this machine that speak the wire formats, and the local model."""

from __future__ import annotations

import math
import socket
import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from typing import Any

import anyio
import pytest

from backstory.adapters.embedders.endpoint_embedder import EndpointEmbedder
from backstory.adapters.embedders.ollama import OllamaEmbedder
from backstory.adapters.embedders.openai import OpenAiEmbedder
from backstory.errors import ModelError, ModelOutputInvalid, ModelUnavailable
from backstory.ports.models import Embedder, EmbeddingModel, Vector
from tests.integration.scripted_server import Answer, Request, ScriptedServer
from tests.no_loop import drive

KEY = "sk-test-do-not-show"
TEXT = "the launch code is plover"


def numbers(text: str) -> list[float]:
    """A made-up embedding, different for different lengths, of length other than 1."""
    return [3.0, 4.0, float(len(text))]


def speak(request: Request) -> Answer:
    """Answer either wire format correctly; OpenAI's items come back to front, as its format allows."""
    texts = request.body["input"]
    if request.path == "/api/embed":
        return Answer(body={"model": request.body["model"], "embeddings": [numbers(text) for text in texts]})
    data = [{"object": "embedding", "index": place, "embedding": numbers(text)} for place, text in enumerate(texts)]
    return Answer(body={"object": "list", "data": data[::-1], "model": request.body["model"]})


@pytest.fixture
def server() -> Iterator[ScriptedServer]:
    with ScriptedServer(speak).running() as running:
        yield running


def make(kind: str, server_url: str, *, timeout_seconds: float = 5.0) -> EndpointEmbedder:
    if kind == "ollama":
        return OllamaEmbedder(server_url, model="small", timeout_seconds=timeout_seconds)
    return OpenAiEmbedder(server_url + "/v1/", model="small", api_key=KEY, timeout_seconds=timeout_seconds)


@pytest.fixture(params=["openai", "ollama"])
def embedder(request: pytest.FixtureRequest, server: ScriptedServer) -> Iterator[EndpointEmbedder]:
    made = make(request.param, server.url)
    yield made
    drive(made.close())


def failure(embedder: Embedder, expected: type[ModelError]) -> str:
    """What a failing embedding says; never the key, the text or anything the server said."""
    with pytest.raises(expected) as caught:
        drive(embedder.embed([TEXT]))
    message = str(caught.value)
    assert KEY not in message
    assert "plover" not in message
    assert "gossip" not in message
    return message


def test_vectors_come_back_in_order_at_unit_length(embedder: Embedder) -> None:
    texts = ["a", "four", "twelve chars"]
    vectors = drive(embedder.embed(texts))
    for text, vector in zip(texts, vectors, strict=True):
        assert vector is not None
        assert math.hypot(*vector) == pytest.approx(1.0)
        assert vector[2] / vector[0] == pytest.approx(len(text) / 3.0)


def test_under_an_event_loop_the_loop_is_not_held_up(server: ScriptedServer, embedder: Embedder) -> None:
    server.script.append(Answer(status=503, delay_seconds=0.2))
    ticks: list[float] = []

    async def main() -> list[Vector | None]:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(tick)
            vectors = await embedder.embed(["a"])
            tasks.cancel_scope.cancel()
        return vectors

    async def tick() -> None:
        while True:
            ticks.append(time.monotonic())
            await anyio.sleep(0.01)

    assert anyio.run(main)[0] is not None
    assert len(ticks) > 5


def test_a_deadline_ends_the_wait_although_the_server_is_silent(server: ScriptedServer, embedder: Embedder) -> None:
    server.script.append(Answer(status=500, delay_seconds=30))

    async def main() -> bool:
        with anyio.move_on_after(0.1) as scope:
            await embedder.embed(["a"])
        return scope.cancelled_caught

    started = time.monotonic()
    assert anyio.run(main)
    assert time.monotonic() - started < 15


def test_the_dimension_is_learnt_from_one_probe(server: ScriptedServer, embedder: Embedder) -> None:
    for _ in range(2):
        model = drive(embedder.model())
    assert model == EmbeddingModel(name=model.name, dimension=3)
    assert model.name in ("openai:small", "ollama:small")
    assert len(server.requests) == 1


def test_the_dimension_is_known_after_any_embedding(server: ScriptedServer, embedder: Embedder) -> None:
    drive(embedder.embed(["a"]))
    assert drive(embedder.model()).dimension == 3
    assert len(server.requests) == 1


def test_empty_texts_give_none_and_are_not_sent(server: ScriptedServer, embedder: Embedder) -> None:
    assert drive(embedder.embed([])) == []
    assert drive(embedder.embed(["", " ", "\x00"])) == [None, None, None]
    assert server.requests == []
    first, kept = drive(embedder.embed(["\ud800", "k\x00ept \udfff"]))
    assert first is None
    assert kept is not None
    assert server.requests[0].body["input"] == ["kept"]


def test_many_texts_go_in_batches_of_32(server: ScriptedServer, embedder: Embedder) -> None:
    vectors = drive(embedder.embed(["x" * (1 + place) for place in range(70)]))
    assert [len(request.body["input"]) for request in server.requests] == [32, 32, 6]
    assert [round(3 * vector[2] / vector[0]) for vector in vectors if vector] == list(range(1, 71))


def test_openai_gets_the_key_and_ollama_gets_none(server: ScriptedServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "from-the-environment")
    drive(make("openai", server.url).embed(["a"]))
    drive(make("ollama", server.url).embed(["a"]))
    drive(OpenAiEmbedder(server.url, model="m", api_key=None, timeout_seconds=5).embed(["a"]))
    first, second, third = server.requests
    assert (first.path, first.headers["authorization"]) == ("/v1/embeddings", f"Bearer {KEY}")
    assert second.path == "/api/embed"
    assert "authorization" not in second.headers
    assert "authorization" not in third.headers


def test_this_machine_is_reached_past_a_proxy_of_the_environment(
    server: ScriptedServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:9")
    monkeypatch.setenv("ALL_PROXY", "http://127.0.0.1:9")
    assert drive(make("ollama", server.url).embed(["a"]))[0] is not None


def refuse_longer_than(limit: int, status: int = 400) -> Any:
    def respond(request: Request) -> Answer:
        if any(len(text) > limit for text in request.body["input"]):
            return Answer(status=status, body={"error": "input too long, gossip"})
        return speak(request)

    return respond


@pytest.mark.parametrize("status", [400, 413, 422])
def test_a_text_beyond_the_window_is_cut_and_its_neighbours_stay_whole(
    server: ScriptedServer, embedder: Embedder, status: int
) -> None:
    server.respond = refuse_longer_than(1500, status)
    lengths = [10, 1400, 50_000, 20, 1501]
    vectors = drive(embedder.embed(["x" * length for length in lengths]))
    assert [round(3 * vector[2] / vector[0]) for vector in vectors if vector] == [10, 1400, 1000, 20, 1000]


def test_a_server_that_refuses_everything_is_unavailable_after_few_requests(
    server: ScriptedServer, embedder: Embedder
) -> None:
    server.respond = refuse_longer_than(0)
    with pytest.raises(ModelUnavailable, match="answered 400"):
        drive(embedder.embed(["short"] * 32))
    assert len(server.requests) <= 6


@pytest.mark.parametrize("passing", [Answer(status=500), Answer(status=503), Answer(status=429), Answer(hang_up=True)])
def test_a_passing_fault_is_tried_again(server: ScriptedServer, embedder: Embedder, passing: Answer) -> None:
    server.script.append(passing)
    assert drive(embedder.embed(["a"]))[0] is not None
    assert len(server.requests) == 2


def test_a_lasting_fault_ends_after_three_attempts(server: ScriptedServer, embedder: Embedder) -> None:
    server.respond = lambda _: Answer(status=502, body={"error": "gossip"})
    assert "answered 502" in failure(embedder, ModelUnavailable)
    assert len(server.requests) == 3


@pytest.mark.parametrize("as_date", [False, True])
def test_retry_after_is_waited_for_when_it_fits(server: ScriptedServer, embedder: Embedder, as_date: bool) -> None:
    asked = format_datetime(datetime.now(UTC) + timedelta(seconds=3), usegmt=True) if as_date else "1"
    server.script.append(Answer(status=429, headers={"retry-after": asked}))
    started = time.monotonic()
    assert drive(embedder.embed(["a"]))[0] is not None
    assert time.monotonic() - started > 0.9


@pytest.mark.parametrize("kind", ["ollama", "openai"])
def test_retry_after_beyond_the_timeout_fails_at_once(server: ScriptedServer, kind: str) -> None:
    server.script.append(Answer(status=429, headers={"retry-after": "3600"}))
    started = time.monotonic()
    assert "answered 429" in failure(make(kind, server.url, timeout_seconds=90), ModelUnavailable)
    assert time.monotonic() - started < 30
    assert len(server.requests) == 1


@pytest.mark.parametrize("nonsense", ["soon", "-5", "1e9", "Thu, 99 Foo 2020", ""])
def test_a_retry_after_that_cannot_be_read_does_not_matter(server: ScriptedServer, nonsense: str) -> None:
    server.script.append(Answer(status=429, headers={"retry-after": nonsense}))
    assert drive(make("ollama", server.url).embed(["a"]))[0] is not None


@pytest.mark.parametrize(
    ("kind", "status", "said"),
    [
        ("openai", 401, "does not accept the API key"),
        ("openai", 403, "does not accept the API key"),
        ("ollama", 401, "wants an API key"),
        ("openai", 404, "no embedding model 'small'"),
        ("ollama", 404, "ollama pull small"),
        ("openai", 307, "redirects"),
        ("openai", 418, "answered 418"),
    ],
)
def test_a_lasting_refusal_says_what_is_wrong_and_is_not_tried_again(
    server: ScriptedServer, kind: str, status: int, said: str
) -> None:
    answer = Answer(status=status, body={"error": f"gossip {KEY} {TEXT}"}, headers={"location": server.url + "/other"})
    server.respond = lambda _: answer
    assert said in failure(make(kind, server.url), ModelUnavailable)
    assert len(server.requests) == 1


def test_a_slow_server_is_unavailable_within_the_timeout(server: ScriptedServer) -> None:
    server.respond = lambda _: Answer(delay_seconds=30)
    started = time.monotonic()
    assert "within 0.3 s" in failure(make("openai", server.url, timeout_seconds=0.3), ModelUnavailable)
    assert time.monotonic() - started < 15


def test_a_server_that_is_not_there_is_unavailable() -> None:
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))  # bound and not listening: every connection is refused
        url = f"http://127.0.0.1:{held.getsockname()[1]}"
        assert "cannot be reached" in failure(make("ollama", url), ModelUnavailable)


@pytest.mark.parametrize(
    "body",
    [
        {"embeddings": []},
        {"embeddings": [[1.0], [2.0]]},
        {"embeddings": [[0.0, 0.0]]},
        {"embeddings": [["gossip"]]},
        {"embeddings": [[]]},
        {"embeddings": "gossip"},
        {"error": "gossip"},
        [],
        None,
    ],
)
def test_an_answer_that_holds_no_usable_vectors_is_invalid(server: ScriptedServer, body: object) -> None:
    server.respond = lambda _: Answer(body=body)
    failure(make("ollama", server.url), ModelOutputInvalid)
    assert len(server.requests) == 1


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"<html>gossip</html>",
        b'{"embeddings": [[1.0, 2',
        b'{"embeddings": [[NaN, 1.0]]}',
        b'{"embeddings": [[Infinity]]}',
        b'{"embeddings": [[1e999]]}',
        b'{"embeddings": [[' + b"9" * 5000 + b"]]}",
        b"[" * 100_000,
        b"\xff\xfe\xfa",
    ],
    ids=lambda content: repr(content[:20]),
)
def test_an_answer_that_is_not_json_or_not_finite_is_invalid(server: ScriptedServer, content: bytes) -> None:
    server.respond = lambda _: Answer(content=content)
    failure(make("ollama", server.url), ModelOutputInvalid)


def test_an_answer_that_cannot_be_unpacked_is_invalid(server: ScriptedServer) -> None:
    server.respond = lambda _: Answer(content=b"not gzip", headers={"content-encoding": "gzip"})
    failure(make("ollama", server.url), ModelOutputInvalid)


def test_a_dimension_that_changes_is_invalid(server: ScriptedServer) -> None:
    embedder = make("ollama", server.url)
    drive(embedder.embed(["a"]))
    server.respond = lambda _: Answer(body={"embeddings": [[1.0, 2.0]]})
    assert "2 numbers, before of 3" in failure(embedder, ModelOutputInvalid)


def test_an_embedder_can_be_closed_twice_and_used_again(server: ScriptedServer, embedder: Embedder) -> None:
    drive(embedder.close())
    drive(embedder.embed(["a"]))
    drive(embedder.close())
    drive(embedder.close())
    assert drive(embedder.embed(["a"]))[0] is not None
