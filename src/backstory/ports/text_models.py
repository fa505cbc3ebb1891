"""What services ask of language models. Adapters live in ``adapters/text_models``.

Apart from the embedders in ``models.py``, since a search by words and vectors does without all this at its start.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

from backstory.domain.answers import Finish
from backstory.domain.ids import ProjectId, SessionId


@dataclass(frozen=True, slots=True, kw_only=True)
class TextRequest:
    """One question to a language model, without history and without tools.

    ``feature`` says for what it is asked (``rerank``, ``observation``): costs are booked and failures are counted by
    it. ``schema`` is a JSON schema of the answer; a model that cannot be held to one gets the prompt alone, so the
    prompt must describe the form too. ``deadline_s`` bounds everything from now to the answer, waiting included.
    ``model`` is another model of the same provider than the one it was set up with. ``session`` and ``project`` are on
    whose behalf it is asked, for the books alone: neither is sent.
    """

    feature: str
    prompt: str
    system: str = ""
    max_output_tokens: int = 1024
    schema: Mapping[str, object] | None = None
    deadline_s: float
    model: str | None = None
    session: SessionId | None = None
    project: ProjectId | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class TextAnswer:
    """What a model said. Outside data: ``domain/answers.py`` and its neighbours read it with distrust.

    ``model`` is the one that really answered, as its server names it. Token counts are the server's own, None where it
    gives none. ``duration_s`` is the whole time, retries included. ``sent`` counts all requests; no answer came to
    ``unanswered`` of them, which the token counts know nothing of.
    """

    text: str
    model: str
    finish: Finish = Finish.UNKNOWN
    input_tokens: int | None = None
    output_tokens: int | None = None
    duration_s: float
    sent: int = 1
    unanswered: int = 0


def other_model(name: str, model: str) -> str:
    """The name of another model of the provider in ``name``."""
    return f"{name.partition(':')[0]}:{model}"


def asked_name(name: str, request: TextRequest) -> str:
    """Which model a request is for, with its provider, where ``name`` is the one that answers otherwise."""
    return name if request.model is None else other_model(name, request.model)


class TextModel(Protocol):
    """Answers questions in words. Cheap to construct; safe to share between tasks."""

    @property
    def name(self) -> str:
        """Which model is asked, with its provider (``openai:small-1``): part of the lineage of what it wrote."""
        ...

    async def generate(self, request: TextRequest) -> TextAnswer:
        """Ask once. Secrets are masked in what leaves the machine. Cancelling ends the request at the server too.

        An empty or refusing answer is an answer; ``finish`` may tell why. Never takes longer than ``deadline_s``.
        Raises ModelUnavailable (not reachable, refused, or resting after repeated failures; ModelTimeout: not in
        time) and ModelOutputInvalid (what came back is not in the protocol), each with its ``sent`` and
        ``unanswered``. No message holds a key, the prompt, or anything the server said.
        """
        ...

    async def close(self) -> None:
        """Let go of the connections. Calling twice is fine; asking again opens new ones."""
        ...
