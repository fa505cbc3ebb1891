"""The wire format of chat completions: what is sent, and how answers are read."""

from __future__ import annotations

import json
from typing import Any

import pytest

from backstory.adapters.text_models.openai import Dialect, OpenAiTextModel, chat_body, read_completion
from backstory.domain.answers import Finish
from backstory.errors import ConfigError
from backstory.ports.text_models import TextRequest

REQUEST = TextRequest(
    feature="re rank/1",
    system="Be brief.",
    prompt="Which?",
    max_output_tokens=64,
    schema={"type": "object"},
    deadline_s=1,
)
BODY: dict[str, Any] = {
    "model": "tiny",
    "messages": [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Which?"}],
    "max_tokens": 64,
    "temperature": 0,
    "response_format": {
        "type": "json_schema",
        "json_schema": {"name": "re_rank_1", "schema": {"type": "object"}, "strict": True},
    },
}


def test_a_request_is_written_with_all_a_server_may_know() -> None:
    assert chat_body(REQUEST, model="tiny", dialect=Dialect()) == BODY


def test_a_request_is_written_with_what_a_plain_server_knows() -> None:
    dialect = Dialect(limit_field="max_completion_tokens", temperature=False, schema=False)
    body = chat_body(TextRequest(feature="f", prompt="Which?", deadline_s=1), model="tiny", dialect=dialect)
    assert body == {"model": "tiny", "messages": BODY["messages"][1:], "max_completion_tokens": 1024}


def test_secrets_and_half_characters_do_not_leave() -> None:
    secret = "ghp_" + "a1B2c3D4e5F6g7H8i9J0" + "k1L2m3N4o5P6q7R8"
    request = TextRequest(feature="f", system=f"s {secret}", prompt=f"p {secret} \ud800\x00", deadline_s=1)
    sent = json.dumps(chat_body(request, model="tiny", dialect=Dialect()))
    assert secret not in sent
    assert "ud800" not in sent
    assert "u0000" not in sent


@pytest.mark.parametrize(
    ("refusal", "learnt"),
    [
        ("Unsupported: 'max_tokens'. Use 'max_completion_tokens'.", Dialect(limit_field="max_completion_tokens")),
        ("Temperature must be 1", Dialect(temperature=False)),
        ("response_format is not supported", Dialect(schema=False)),
        ("Invalid JSON Schema", Dialect(schema=False)),
        ("context length exceeded", None),
    ],
)
def test_a_refusal_teaches_what_to_leave_out(refusal: str, learnt: Dialect | None) -> None:
    assert Dialect().without(refusal) == learnt


def test_what_was_left_out_is_not_learnt_again() -> None:
    plain = Dialect(limit_field="max_completion_tokens", temperature=False, schema=False)
    assert plain.without("max_completion_tokens, temperature and schema") is None


def completion(content: object = "Four.", finish: object = "stop", **fields: object) -> dict[str, object]:
    return {"choices": [{"message": {"role": "assistant", "content": content}, "finish_reason": finish}], **fields}


@pytest.mark.parametrize(
    ("finish", "expected"),
    [
        ("stop", Finish.STOP),
        ("length", Finish.LENGTH),
        ("content_filter", Finish.FILTERED),
        ("tool_calls", Finish.TOOL_CALL),
        ("new thing", Finish.UNKNOWN),
        (None, Finish.UNKNOWN),
        ([], Finish.UNKNOWN),
    ],
)
def test_the_reason_to_stop_is_read(finish: object, expected: Finish) -> None:
    read = read_completion(completion(finish=finish), model="tiny", duration_s=0)
    assert read is not None
    assert read.finish is expected


@pytest.mark.parametrize(
    ("content", "text"),
    [
        ("Four.", "Four."),
        ([{"type": "text", "text": "Fo"}, {"type": "image"}, {"text": "ur."}, 7], "Four."),
        (None, ""),
        (7, ""),
        ("a\x00b\ud800", "ab\ufffd"),
    ],
)
def test_the_text_is_read_in_every_shape(content: object, text: str) -> None:
    read = read_completion(completion(content), model="tiny", duration_s=0)
    assert read is not None
    assert read.text == text


def test_figures_of_the_server_are_kept_when_they_are_figures() -> None:
    usage = {"prompt_tokens": 12, "completion_tokens": 3}
    read = read_completion(completion(usage=usage, model="tiny-2026"), model="tiny", duration_s=1.5)
    assert read is not None
    assert (read.model, read.input_tokens, read.output_tokens, read.duration_s) == ("tiny-2026", 12, 3, 1.5)
    odd = read_completion(
        completion(usage={"prompt_tokens": -1, "completion_tokens": True}, model="x\n" * 9), model="tiny", duration_s=0
    )
    assert odd is not None
    assert (odd.model, odd.input_tokens, odd.output_tokens) == ("tiny", None, None)


def test_a_refusal_beside_the_text_is_noticed() -> None:
    message = {"content": None, "refusal": "no"}
    read = read_completion({"choices": [{"message": message, "finish_reason": "stop"}]}, model="tiny", duration_s=0)
    assert read is not None
    assert (read.text, read.finish) == ("", Finish.FILTERED)


@pytest.mark.parametrize(
    "answer",
    [None, [], "x", {}, {"choices": []}, {"choices": {}}, {"choices": [None]}, {"choices": [{}]},
     {"choices": [{"message": "x"}]}],
)  # fmt: skip
def test_what_is_no_completion_is_none(answer: object) -> None:
    assert read_completion(answer, model="tiny", duration_s=0) is None


def test_a_model_is_named_with_its_provider_and_shows_no_key() -> None:
    model = OpenAiTextModel("https://llm.example.net/v1", model="tiny", api_key="k-secret", timeout_s=1)
    assert model.name == "openai:tiny"
    assert "k-secret" not in repr(model)


@pytest.mark.parametrize("url", ["https://llm.example.net/v1?key=hunter2", "https://me:hunter2@llm.example.net/v1"])
def test_an_address_with_a_secret_in_it_is_refused(url: str) -> None:
    with pytest.raises(ConfigError) as caught:
        OpenAiTextModel(url, model="tiny", timeout_s=1)
    assert "hunter2" not in str(caught.value)
