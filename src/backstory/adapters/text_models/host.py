"""The language model of the host that started this process: asked through it, under the person's own login or key.

How the question gets to the host and back belongs to its entrypoint, which hands in ``HostAsk``. No message holds the
sent text or any words of the host, which may repeat it.
"""

from __future__ import annotations

import json
import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from backstory.adapters.text_models.cool_down import CoolDown
from backstory.adapters.text_models.endpoint import Requests
from backstory.adapters.text_models.host_answer import HostAnswer, Trouble, read_host_answer
from backstory.domain.admission import clean_text
from backstory.domain.redaction import redact_secrets
from backstory.errors import ModelError, ModelOutputInvalid, ModelTimeout, ModelUnavailable
from backstory.ports.text_models import TextAnswer, TextRequest, asked_name

if TYPE_CHECKING:
    import anyio

MARGIN_SHARE = 0.1
MOST_MARGIN_S = 0.25
"""The host ends its work so much before the deadline, and tells how far it came, which costs are booked by."""

HostAsk = Callable[[Mapping[str, object]], Awaitable[object]]
"""Puts one question to the host: directory, feature, prompt, system, schema, model, parent, max_output_tokens and
timeout_ms. Gives its answer, whatever it is; None when the host has gone without one. Cancelling ends the work at the
host too. Raises NotTaken."""


class NotTaken(Exception):
    """The host did not take a question, so no model was asked. The message says why, and may be shown."""


class HostTextModel:
    """The model of the host in the folder ``directory``.

    ``model`` is ``provider/model``; without it the host takes its small model, or that of the session it is asked for.
    ``timeout_s`` bounds each question whatever deadline it brings, ``concurrency`` is how many may be under way; more
    of them wait. Needs the event loop in which ``ask`` works.
    """

    def __init__(
        self, ask: HostAsk, *, directory: str, model: str | None = None, timeout_s: float, concurrency: int = 1,
        cool_down: CoolDown | None = None,
    ) -> None:  # fmt: skip
        self._ask = ask
        self._directory = directory
        self._model = model
        self._timeout_s = timeout_s
        self._concurrency = concurrency
        self._cool_down = cool_down or CoolDown()
        self._takes_schema = True  # until it turns out that it does not
        self._limiter: anyio.CapacityLimiter | None = None  # made within the event loop

    @property
    def name(self) -> str:
        """See ``TextModel``."""
        return f"host:{self._model or 'default'}"

    async def generate(self, request: TextRequest) -> TextAnswer:
        """See ``TextModel``. Waiting for a question that is under way counts towards the deadline."""
        requests = Requests()
        try:
            return await self._counted(request, requests)
        except ModelError as error:
            error.sent, error.unanswered = requests.sent, requests.unanswered
            raise

    async def close(self) -> None:
        """Nothing is held open."""

    async def _counted(self, request: TextRequest, requests: Requests) -> TextAnswer:
        if any(name is not None and not all(name.partition("/")) for name in (self._model, request.model)):
            raise ModelUnavailable("a model has to be named as provider/model where the host is asked")
        self._cool_down.check(request.feature)
        try:
            answer = await self._within_deadline(request, requests)
        except (ModelUnavailable, ModelOutputInvalid):
            self._cool_down.failed(request.feature)
            raise
        if isinstance(answer, _Refused):  # this question's fault, or ours; the host is well
            raise ModelUnavailable(answer.reason)
        self._cool_down.succeeded(request.feature)
        _log(request, answer)
        return answer

    async def _within_deadline(self, request: TextRequest, requests: Requests) -> TextAnswer | _Refused:
        import anyio

        seconds = max(min(request.deadline_s, self._timeout_s), 0.0)
        started = time.monotonic()
        self._limiter = self._limiter or anyio.CapacityLimiter(self._concurrency)
        with anyio.move_on_after(seconds):
            async with self._limiter:
                answer = await self._ask_until(started + seconds, request, requests)
            duration_s = time.monotonic() - started
            if isinstance(answer, _Refused):
                return answer
            return _text_answer(answer, requests, default=asked_name(self.name, request), duration_s=duration_s)
        raise ModelTimeout(f"the model of the host did not answer within {seconds:g} s")

    async def _ask_until(self, deadline: float, request: TextRequest, requests: Requests) -> HostAnswer | _Refused:
        """Ask, and once more without the schema where the model cannot be held to one."""
        with_schema = self._takes_schema and request.schema is not None
        answer = await self._ask_once(deadline, request, requests, with_schema=with_schema)
        if with_schema and answer.trouble in (Trouble.REFUSED, Trouble.UNSTRUCTURED) and not answer.text:
            answer = await self._ask_once(deadline, request, requests, with_schema=False)
            if answer.trouble is None:
                self._takes_schema = False
        return answer if answer.has_text else _refused(answer)

    async def _ask_once(
        self, deadline: float, request: TextRequest, requests: Requests, *, with_schema: bool
    ) -> HostAnswer:
        params = self._params(request, deadline - time.monotonic(), with_schema=with_schema)
        before = requests.sent
        requests.sending()
        try:
            said = await self._ask(params)
        except NotTaken as error:
            requests.not_sent()
            raise ModelUnavailable(str(error)) from error
        if said is None:
            raise ModelUnavailable("the host has gone before its model answered")
        answer = read_host_answer(said)
        if answer is None:
            raise ModelOutputInvalid("the host answered something that is no answer of a model")
        requests.answered()
        requests.sent = before + answer.requests
        requests.unanswered += answer.unanswered
        return answer

    def _params(self, request: TextRequest, left_s: float, *, with_schema: bool) -> dict[str, object]:
        timeout_s = left_s - min(MARGIN_SHARE * left_s, MOST_MARGIN_S)
        return {
            "directory": self._directory,
            "feature": request.feature,
            "prompt": _sendable(request.prompt),
            "system": _sendable(request.system),
            "schema": dict(request.schema) if with_schema and request.schema is not None else None,
            "model": request.model or self._model,
            "parent": request.session,
            "max_output_tokens": request.max_output_tokens,
            "timeout_ms": max(int(timeout_s * 1000), 1),
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class _Refused:
    """The model's server does not want the question as it is; ``reason`` may be shown."""

    reason: str


def _refused(answer: HostAnswer) -> _Refused:
    """Why there is no text. Raises ModelUnavailable and its like where that is not the question's fault."""
    match answer.trouble:
        case Trouble.TIMEOUT if answer.requests and not answer.unanswered:
            raise ModelUnavailable(f"the server of the host's model failed {answer.requests} times in a row")
        case Trouble.TIMEOUT:
            raise ModelTimeout("the model of the host did not answer in time")
        case Trouble.ABORTED:
            raise ModelUnavailable("the host ended the question before its model answered")
        case Trouble.UNSTRUCTURED:
            raise ModelOutputInvalid("the model of the host did not keep to the form it was asked for")
        case Trouble.REFUSED | Trouble.TOO_LONG:
            return _Refused(reason=f"the server of the host's model refused the request ({answer.told})")
        case _:
            raise ModelUnavailable(f"the host could not ask its model ({answer.told})")


def _text_answer(answer: HostAnswer, requests: Requests, *, default: str, duration_s: float) -> TextAnswer:
    text = answer.text if answer.structured is None else json.dumps(answer.structured, ensure_ascii=False)
    return TextAnswer(
        text=clean_text(text),
        model=answer.model or default,
        finish=answer.finish,
        input_tokens=answer.input_tokens,
        output_tokens=answer.output_tokens,
        duration_s=duration_s,
        sent=requests.sent,
        unanswered=requests.unanswered,
    )


def _sendable(text: str) -> str:
    return redact_secrets(clean_text(text)).text


def _log(request: TextRequest, answer: TextAnswer) -> None:
    import logging

    logging.getLogger(__name__).info(
        "event=model_answered feature=%s model=%s ms=%d in=%s out=%s finish=%s",
        request.feature, answer.model, answer.duration_s * 1000, answer.input_tokens, answer.output_tokens,
        answer.finish.value,
    )  # fmt: skip
