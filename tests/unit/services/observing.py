"""Observers of sessions, with models that answer as they are told."""

from __future__ import annotations

from typing import Any

from backstory.domain.answers import Finish
from backstory.domain.observation import ObservationPolicy
from backstory.errors import ModelError
from backstory.services.observation import Observing
from backstory.testing.text_model import ScriptedTextModel
from tests.observed import WordTokens, answer

POLICY = ObservationPolicy(message_tokens=100, observation_tokens=60, window_tokens=400, previous_tokens=40)
NOTE = "* 🔴 (09:15) The pears go to cold store 2"


def observing(*answers: str | ModelError, finish: Finish = Finish.STOP, **options: Any) -> Observing:
    """Any: the options of Observing."""
    return with_model(ScriptedTextModel(answers, finish=finish) if answers else None, **options)


def with_model(model: ScriptedTextModel | None, **options: Any) -> Observing:
    defaults: dict[str, Any] = {"policy": POLICY, "tokens": WordTokens()}
    return Observing(model, **(defaults | options))


LONG = "\n".join(["* 🟡 (10:00) The pump of valve 3 was looked at and left as it was"] * 60)
UNUSABLE = {
    "refusal": "I'm sorry, I can't help with that.",
    "empty": "",
    "no tags": "The pears go to the cold store.",
    "loop": answer(LONG),
    "cut": "<observations>\n* the pe",
    "echo": answer("- text: " + " ".join(f"w0x{n}" for n in range(25))),
    "example": answer("* 🔴 (09:15) a note", "* ✅ (09:31) something finished"),
    "longer than its source": answer("* " + " ".join(f"word{n}" for n in range(400))),
    "a page": "<!doctype html><html><body>502 Bad Gateway</body></html>",
    "endless": "<observations>" + "x " * 300_000,
}
