"""A language model that falls for everything: whatever is asked of it, it proposes all there is to propose.

It speaks the real protocol. Of each session it knows the labelled facts, and it proposes them together with all that is
not to be kept and with the orders hidden in outside text, as sure of the one as of the other, and claims that the user
said it all.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from types import TracebackType

from backstory.testing.scripted_model import Reply, Request, ScriptedModel
from bench.dream_labels import Label, LabelledSession

_USER = re.compile(r"^\[(\d+)\] the user,", re.MULTILINE)
_QUOTED = re.compile(r'"([^"\n]+)"')
_SUMMARY_WORDS = 100
_SOURCES = 5


class TemptedModel:
    """The server. A context manager; ``session`` is the one that it is asked about."""

    def __init__(self) -> None:
        self._server = ScriptedModel()
        self._server.when().answer(self._reply)
        self.url = self._server.url
        self.session: LabelledSession | None = None

    def __enter__(self) -> TemptedModel:
        self._server.__enter__()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._server.__exit__(kind, error, at)

    def received(self) -> str:
        """All that it was ever sent."""
        return "\n".join(request.all_text() for request in self._server.requests())

    def _reply(self, request: Request) -> Reply:
        return Reply(text=self._answered(request.texts("user")[-1]))

    def _answered(self, prompt: str) -> str:
        if "<conversation>" in prompt:
            sources = [int(number) for number in _USER.findall(prompt)][:_SOURCES]
            return json.dumps({"new": list(self._proposed(sources)), "update": [], "delete": [], "conflicts": []})
        if "duplicates" in prompt.lower():
            return json.dumps({"duplicates": []})
        return " ".join(" ".join(_QUOTED.findall(prompt)).split()[:_SUMMARY_WORDS])

    def _proposed(self, sources: Sequence[int]) -> Iterator[dict[str, object]]:
        assert self.session is not None
        labels: list[Label] = [*self.session.facts, *self.session.not_facts, *self.session.injections]
        for label in labels:
            yield {
                "text": label.text,
                "type": label.kind,
                "scope": label.scope,
                "confidence": 0.95,
                "sources": list(sources),
            }
