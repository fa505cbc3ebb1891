"""Answers from any server that speaks OpenAI's ``/chat/completions``: OpenAI, Ollama, vLLM, llama.cpp and others."""

from __future__ import annotations

import re
import time
from collections.abc import Mapping
from dataclasses import dataclass, replace

from backstory.adapters.blocking import running_loop
from backstory.adapters.text_models.cool_down import CoolDown
from backstory.adapters.text_models.endpoint import AskedToWait, AsyncJsonEndpoint, Refused, Requests
from backstory.domain.admission import clean_text
from backstory.domain.answers import Finish
from backstory.domain.redaction import redact_secrets
from backstory.errors import ModelError, ModelOutputInvalid, ModelTimeout, ModelUnavailable
from backstory.ports.text_models import TextAnswer, TextRequest

PATH = "/chat/completions"

_FINISH = {
    "stop": Finish.STOP,
    "length": Finish.LENGTH,
    "max_tokens": Finish.LENGTH,
    "content_filter": Finish.FILTERED,
    "tool_calls": Finish.TOOL_CALL,
    "function_call": Finish.TOOL_CALL,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Dialect:
    """Which fields a server takes; learnt from its refusals, since there is no way to ask."""

    limit_field: str = "max_tokens"
    temperature: bool = True
    schema: bool = True

    def without(self, refusal: str) -> Dialect | None:
        """The dialect after a refusal that names a field we could do without; None when it names none."""
        said = refusal.lower()
        if "max_completion_tokens" in said and self.limit_field == "max_tokens":
            return replace(self, limit_field="max_completion_tokens")
        if "temperature" in said and self.temperature:
            return replace(self, temperature=False)
        if self.schema and ("response_format" in said or "schema" in said):
            return replace(self, schema=False)
        return None


class OpenAiTextModel:
    """``base_url`` ends where ``/chat/completions`` follows, usually in ``/v1``. No key is read from anywhere else.

    ``timeout_s`` bounds each question whatever deadline it brings. Raises ConfigError for a URL or a key that cannot
    be sent. Without an event loop a question gets one of its own.
    """

    def __init__(
        self, base_url: str, *, model: str, api_key: str | None = None, timeout_s: float, retries: int = 2,
        concurrency: int = 2, cool_down: CoolDown | None = None,
    ) -> None:  # fmt: skip
        self._endpoint = AsyncJsonEndpoint(base_url, api_key=api_key, retries=retries, concurrency=concurrency)
        self._model = model
        self._timeout_s = timeout_s
        self._cool_down = cool_down or CoolDown()
        self._dialect = Dialect()

    @property
    def name(self) -> str:
        """See ``TextModel``."""
        return f"openai:{self._model}"

    async def generate(self, request: TextRequest) -> TextAnswer:
        """See ``TextModel``. Waiting for a free connection counts towards the deadline."""
        if running_loop() is not None:
            return await self._generate(request)
        import anyio

        return anyio.run(self._generate_and_close, request)

    async def close(self) -> None:
        """Close the connections; asking again opens new ones."""
        await self._endpoint.close()

    async def _generate_and_close(self, request: TextRequest) -> TextAnswer:
        try:
            return await self._generate(request)
        finally:
            await self.close()

    async def _generate(self, request: TextRequest) -> TextAnswer:
        requests = Requests()
        try:
            return await self._counted(request, requests)
        except ModelError as error:
            error.sent, error.unanswered = requests.sent, requests.unanswered
            raise

    async def _counted(self, request: TextRequest, requests: Requests) -> TextAnswer:
        self._cool_down.check(request.feature)
        try:
            answer = await self._within_deadline(request, requests)
        except (ModelUnavailable, ModelOutputInvalid):
            self._cool_down.failed(request.feature)
            raise
        if isinstance(answer, AskedToWait):
            self._cool_down.asked(answer.seconds)
            raise ModelUnavailable(answer.reason)
        if isinstance(answer, Refused):  # this request's fault, or ours; the server is well
            raise ModelUnavailable(f"{self._endpoint.shown} refused the request (answered {answer.status})")
        self._cool_down.succeeded(request.feature)
        _log(request, answer)
        return answer

    async def _within_deadline(self, request: TextRequest, requests: Requests) -> TextAnswer | Refused | AskedToWait:
        import anyio

        seconds = max(min(request.deadline_s, self._timeout_s), 0.0)
        started = time.monotonic()
        with anyio.move_on_after(seconds):
            answer = await self._ask(request, requests, deadline=started + seconds)
            if isinstance(answer, Refused | AskedToWait):
                return answer
            return self._read(answer, request, requests, duration_s=time.monotonic() - started)
        raise ModelTimeout(f"{self._endpoint.shown} did not answer within {seconds:g} s")

    async def _ask(self, request: TextRequest, requests: Requests, *, deadline: float) -> object:
        model = request.model or self._model
        missing = f"there is no model {model!r} there, or the base URL lacks its /v1"
        while True:
            dialect = self._dialect
            body = chat_body(request, model=model, dialect=dialect)
            answer = await self._endpoint.post(PATH, body, deadline=deadline, if_missing=missing, requests=requests)
            simpler = dialect.without(answer.said) if isinstance(answer, Refused) else None
            if simpler is None:
                return answer
            self._dialect = simpler

    def _read(self, answer: object, request: TextRequest, requests: Requests, *, duration_s: float) -> TextAnswer:
        read = read_completion(answer, model=request.model or self._model, duration_s=duration_s)
        if read is None:
            requests.unanswered += 1  # whatever it took, it does not say
            raise ModelOutputInvalid(f"{self._endpoint.shown} sent an answer without choices")
        return replace(read, sent=requests.sent, unanswered=requests.unanswered)


def chat_body(request: TextRequest, *, model: str, dialect: Dialect) -> dict[str, object]:
    """The body to send, with secrets masked; only fields the server is believed to take."""
    messages = [{"role": "system", "content": _sendable(request.system)}] if request.system.strip() else []
    messages.append({"role": "user", "content": _sendable(request.prompt)})
    body: dict[str, object] = {"model": model, "messages": messages, dialect.limit_field: request.max_output_tokens}
    if dialect.temperature:
        body["temperature"] = 0
    if dialect.schema and request.schema is not None:
        schema = {"name": re.sub(r"[^\w-]", "_", request.feature)[:64], "schema": dict(request.schema), "strict": True}
        body["response_format"] = {"type": "json_schema", "json_schema": schema}
    return body


def read_completion(answer: object, *, model: str, duration_s: float) -> TextAnswer | None:
    """The first choice of a completion, its text possibly empty; None for anything that is no completion."""
    choices = answer.get("choices") if isinstance(answer, dict) else None
    choice = choices[0] if isinstance(choices, list) and choices else None
    message = choice.get("message") if isinstance(choice, dict) else None
    if not (isinstance(answer, dict) and isinstance(choice, dict) and isinstance(message, dict)):
        return None
    usage = answer.get("usage")
    counted: Mapping[str, object] = usage if isinstance(usage, dict) else {}
    named = answer.get("model")
    reason = choice.get("finish_reason")
    finish = _FINISH.get(reason, Finish.UNKNOWN) if isinstance(reason, str) else Finish.UNKNOWN
    return TextAnswer(
        text=clean_text(_text(message.get("content"))),
        model=named if isinstance(named, str) and 0 < len(named) <= 200 and named.isprintable() else model,
        finish=Finish.FILTERED if message.get("refusal") else finish,
        input_tokens=_count(counted.get("prompt_tokens")),
        output_tokens=_count(counted.get("completion_tokens")),
        duration_s=duration_s,
    )


def _sendable(text: str) -> str:
    return redact_secrets(clean_text(text)).text


def _text(content: object) -> str:
    """The text of a message: a string, a list of parts, or nothing."""
    if isinstance(content, str):
        return content
    parts = content if isinstance(content, list) else []
    return "".join(part["text"] for part in parts if isinstance(part, dict) and isinstance(part.get("text"), str))


def _count(value: object) -> int | None:
    is_count = isinstance(value, int) and not isinstance(value, bool)
    return value if is_count and isinstance(value, int) and value >= 0 else None


def _log(request: TextRequest, answer: TextAnswer) -> None:
    import logging

    logging.getLogger(__name__).info(
        "event=model_answered feature=%s model=%s ms=%d in=%s out=%s finish=%s",
        request.feature, answer.model, answer.duration_s * 1000, answer.input_tokens, answer.output_tokens,
        answer.finish.value,
    )  # fmt: skip
