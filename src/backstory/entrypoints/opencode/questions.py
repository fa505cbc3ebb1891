"""What this process asks of the plugin, and the answers that are on their way."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import anyio

from backstory.adapters.text_models.host import NotTaken
from backstory.entrypoints.opencode import protocol

HOST_ANSWER_WITHIN_S = 10.0
CANCEL = "host.cancel"
GENERATE = "host.generate"


@dataclass(slots=True)
class _Question:
    answered: anyio.Event = field(default_factory=anyio.Event)
    answer: protocol.Incoming | None = None  # None once ``answered``: nobody will answer any more


class Questions:
    """``write`` sends a line to the plugin."""

    def __init__(self, write: Callable[[bytes], None]) -> None:
        self._write = write
        self._waiting: dict[str, _Question] = {}
        self._numbers = itertools.count(1)
        self._nobody_answers = False

    async def ask(self, method: str, params: Mapping[str, Any]) -> Any:
        """The answer; None when the plugin fails, does not answer in time, or has said goodbye."""
        with anyio.move_on_after(HOST_ANSWER_WITHIN_S):
            incoming = await self._put(method, params)
            return incoming.result if incoming is not None and incoming.error is None else None
        return None

    async def generate(self, params: Mapping[str, object]) -> object:
        """See ``HostAsk``: what the host's language model answers, however long it takes."""
        incoming = await self._put(GENERATE, params)
        if incoming is None:
            return None
        if incoming.error is not None:
            raise NotTaken(_why(incoming.error))
        return incoming.result

    async def _put(self, method: str, params: Mapping[str, Any]) -> protocol.Incoming | None:
        """The plugin's answer, be it an error; None when none will come. Tells the plugin when it is cancelled."""
        if self._nobody_answers:
            return None
        request_id = f"b{next(self._numbers)}"
        question = self._waiting[request_id] = _Question()
        self._write(protocol.request_line(request_id, method, params))
        try:
            await question.answered.wait()
        finally:
            del self._waiting[request_id]
            if not question.answered.is_set():
                self._write(protocol.notification_line(CANCEL, {"id": request_id}))
        return question.answer

    def answered(self, incoming: protocol.Incoming) -> None:
        """An answer has come; one that nobody waits for is passed over."""
        question = self._waiting.get(str(incoming.id))
        if question is not None:
            question.answer = incoming
            question.answered.set()

    def release(self) -> None:
        """The plugin is gone: no question is answered any more."""
        self._nobody_answers = True
        for question in self._waiting.values():
            question.answered.set()


def _why(error: Mapping[str, Any]) -> str:
    """Why the plugin did not take a question; its own words may repeat what was asked."""
    if error.get("code") == protocol.UNKNOWN_METHOD:
        return (
            "the installed plugin or this OpenCode cannot ask a model; `backstory install opencode` renews the plugin"
        )
    if error.get("code") == protocol.INVALID_PARAMS:
        return "OpenCode has closed this folder"
    return "OpenCode did not take the question"
