"""Reading what servers answer, without a server: wire formats, vectors, addresses and keys."""

from __future__ import annotations

import math
import sys

import pytest

from backstory.adapters.embedders.endpoint import JsonEndpoint
from backstory.adapters.embedders.endpoint_embedder import unit_vector
from backstory.adapters.embedders.ollama import OllamaEmbedder, OllamaWire
from backstory.adapters.embedders.openai import OpenAiEmbedder, OpenAiWire
from backstory.errors import ConfigError, ModelUnavailable


@pytest.mark.parametrize("numbers", [[3, 4], [1e-60, 2e-60], [-1e150, 1e150, 0], [0.6, 0.8], [1]])
def test_a_vector_is_scaled_to_length_one(numbers: list[float]) -> None:
    vector = unit_vector(numbers)
    assert vector is not None
    assert math.hypot(*vector) == pytest.approx(1.0)


@pytest.mark.parametrize(
    "junk",
    [
        None,
        "base64==",
        {},
        [],
        [0, 0.0],
        ["1", 2],
        [True, 1.0],
        [None],
        [[1.0]],
        [math.nan, 1],
        [math.inf],
        [1e308] * 9,
        [10**400],
        [5e-324, 5e-324],
    ],
)
def test_what_is_no_vector_is_none(junk: object) -> None:
    assert unit_vector(junk) is None


def test_openai_items_are_ordered_by_their_index() -> None:
    data = [{"index": 1, "embedding": "b"}, {"index": 0, "embedding": "a"}]
    assert OpenAiWire().vectors({"data": data}) == ["a", "b"]


def test_openai_items_without_an_index_keep_their_order() -> None:
    assert OpenAiWire().vectors({"data": [{"embedding": "a"}, {"embedding": "b"}]}) == ["a", "b"]


@pytest.mark.parametrize(
    "answer",
    [
        None,
        [],
        {},
        {"data": None},
        {"data": ["x"]},
        {"data": [{"index": 0}, {"index": 0}]},
        {"data": [{"index": 7}]},
        {"data": [{"index": "0"}]},
        {"data": [{"index": False}]},
        {"error": {"message": "no"}},
    ],
)
def test_an_openai_answer_of_another_shape_is_none(answer: object) -> None:
    assert OpenAiWire().vectors(answer) is None


@pytest.mark.parametrize("answer", [None, [], {}, {"embeddings": {}}, {"embedding": [1.0]}])
def test_an_ollama_answer_of_another_shape_is_none(answer: object) -> None:
    assert OllamaWire().vectors(answer) is None


@pytest.mark.parametrize(
    "url",
    ["", "localhost:11434", "ftp://host", "http://", "http://host:99999", "http://[::1", "https://h/v1?key=s3cr3t"],
)
def test_a_base_url_that_cannot_work_is_a_config_error_that_does_not_repeat_it(url: str) -> None:
    with pytest.raises(ConfigError) as caught:
        OllamaEmbedder(url, model="m", timeout_seconds=1)
    assert caught.value.option == "base_url"
    assert not url or url not in str(caught.value)


def test_the_address_shown_holds_no_password_and_no_path() -> None:
    assert (
        JsonEndpoint("https://me:hush@Host.example:8443/secret/v1/", timeout_seconds=1).address == "host.example:8443"
    )


@pytest.mark.parametrize("key", ["sk-1\nx-evil: 1", "schlüssel", "a\x00b"])
def test_a_key_that_no_header_can_carry_is_refused_without_showing_it(key: str) -> None:
    with pytest.raises(ConfigError) as caught:
        OpenAiEmbedder("https://host/v1", model="m", api_key=key, timeout_seconds=1)
    assert caught.value.option == "api_key"
    assert key not in str(caught.value)


def test_without_httpx_an_endpoint_is_unavailable_and_says_what_installs_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "httpx", None)
    embedder = OllamaEmbedder("http://localhost:11434", model="m", timeout_seconds=1)
    with pytest.raises(ModelUnavailable, match=r"pip install 'backstory\[endpoint\]'"):
        embedder.embed(["text"]).send(None)
