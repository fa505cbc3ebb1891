"""The scripted model over its real wire protocol."""

from __future__ import annotations

import json
import urllib.error
import urllib.request
from collections.abc import Iterator
from typing import Any

import pytest

from backstory.testing.scripted_model import ScriptedModel, kind_of, text_of


@pytest.fixture
def model() -> Iterator[ScriptedModel]:
    with ScriptedModel() as model:
        yield model


def ask(model: ScriptedModel, *messages: tuple[str, str], **body: Any) -> str:
    """Send a request and return the raw answer."""
    sent = {"model": "m", "messages": [{"role": role, "content": text} for role, text in messages], **body}
    request = urllib.request.Request(
        f"{model.url}/chat/completions",
        data=json.dumps(sent).encode(),
        headers={"x-session-id": "ses_1"},
    )
    with urllib.request.urlopen(request, timeout=5) as response:
        return str(response.read().decode())


def message(answer: str) -> Any:
    return json.loads(answer)["choices"][0]["message"]


def test_the_first_rule_that_fits_answers_as_often_as_it_may(model: ScriptedModel) -> None:
    model.when(said="tea", times=1).say("first")
    model.when(said="tea").say("second")
    answers = [message(ask(model, ("user", text)))["content"] for text in ("tea?", "tea!", "coffee")]
    assert answers == ["first", "second", "ok"]


def test_conditions_look_at_the_newest_user_message_the_last_role_and_the_tools(model: ScriptedModel) -> None:
    model.when(said="look", last_role="user", offers="find").call("find", query="x")
    model.when(last_role="tool", contains="found").say("done")
    tools = [{"type": "function", "function": {"name": "find"}}]
    call = message(ask(model, ("user", "look"), tools=tools))["tool_calls"][0]
    assert (call["function"]["name"], json.loads(call["function"]["arguments"])) == ("find", {"query": "x"})
    assert message(ask(model, ("user", "look")))["content"] == "ok", "the tool is not on offer"
    assert message(ask(model, ("user", "look"), ("tool", "found it"), tools=tools))["content"] == "done"
    assert message(ask(model, ("user", "look"), ("user", "no"), tools=tools))["content"] == "ok"


def test_a_stream_says_the_same_in_pieces(model: ScriptedModel) -> None:
    text = "a text that is longer than one piece, so that it comes in several"
    model.when(said="hi").say(text, prompt_tokens=77)
    lines = [line.removeprefix("data: ") for line in ask(model, ("user", "hi"), stream=True).split("\n\n") if line]
    chunks = [json.loads(line) for line in lines[:-1]]
    assert lines[-1] == "[DONE]"
    assert "".join(chunk["choices"][0]["delta"].get("content", "") for chunk in chunks) == text
    assert chunks[-1]["choices"][0]["finish_reason"] == "stop"
    assert chunks[-1]["usage"]["prompt_tokens"] == 77


def test_a_failure_is_an_http_error(model: ScriptedModel) -> None:
    model.when(said="break").fail(503, "busy")
    with pytest.raises(urllib.error.HTTPError, match="503"):
        ask(model, ("user", "break"))


def test_requests_are_recorded_with_session_and_kind(model: ScriptedModel) -> None:
    ask(model, ("system", "You are a title generator. Be brief."), ("user", "hello"))
    ask(model, ("system", "You are a helper."), ("user", "hello"))
    assert [request.kind for request in model.requests()] == ["title", "chat"]
    assert [request.number for request in model.requests("chat", session="ses_1")] == [2]
    assert model.requests(session="another") == []


def test_a_request_extends_another_when_all_of_it_comes_first(model: ScriptedModel) -> None:
    ask(model, ("user", "one"))
    ask(model, ("user", "one"), ("assistant", "ok"), ("user", "two"))
    ask(model, ("user", "changed"), ("assistant", "ok"), ("user", "two"))
    first, longer, changed = model.requests()
    assert longer.extends(first)
    assert not changed.extends(first)
    assert not first.extends(longer)


def test_kinds_and_texts_are_read_from_strings_and_lists() -> None:
    parts = [{"type": "text", "text": "You are a context summarization agent."}, {"type": "image_url"}]
    assert text_of(parts) == "You are a context summarization agent."
    assert text_of(None) == ""
    assert kind_of([{"role": "system", "content": parts}, {"role": "user", "content": "x"}]) == "compaction"
    assert kind_of([]) == "chat"
