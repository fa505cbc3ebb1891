"""Asking a model for notes on a session, or for shorter ones, and what is done with an answer that cannot be used."""

from __future__ import annotations

import logging
from functools import partial

from backstory.domain.observation_answers import read_notes
from backstory.errors import ModelOutputInvalid
from backstory.ports.text_models import TextModel, TextRequest, asked_name
from backstory.prompts.prompt import Prompt
from backstory.services.conversation import Aside
from backstory.services.digest_strategy import SessionView
from backstory.services.observation_sizes import Sizes
from backstory.services.observation_source import Notes

OBSERVATION = "observation"
REFLECTION = "reflection"
"""Names under which calls are booked."""
TIMEOUT_S = 120.0
GIVE_UP_AFTER = 5
"""Failures in a row after which an unusable answer is made up for by an extract: a model that refuses a stretch will
refuse it for ever."""

_log = logging.getLogger(__name__)
_OUTPUT_TOKENS = (2_048, 16_384)


class NoteQuestions:
    """Asks for notes. ``reflector`` is the model of the same provider that condenses, if that is another; answers are
    read ``aside``."""

    def __init__(self, sizes: Sizes, *, timeout_s: float, reflector: str | None, aside: Aside) -> None:
        self._sizes = sizes
        self._timeout_s = timeout_s
        self._reflector = reflector
        self._aside = aside

    async def ask(
        self, view: SessionView, model: TextModel, feature: str, prompt: Prompt, *, source: str = "", room: int,
        below: int,
    ) -> Notes | None:  # fmt: skip
        """The model's notes, of fewer than ``below`` tokens; None where an extract is to take their place.

        ``source`` is what notes may not repeat; a log that is condensed may keep lines, and so may notes on it. Raises
        CapReached, and ModelOutputInvalid for an answer that cannot be used, unless there were too many of them.
        """
        request = self._request(view, feature, prompt, room)
        answer = await model.generate(request)
        read = partial(
            read_notes,
            answer.text,
            finish=answer.finish,
            told=f"{prompt.system}\n{source}",
            fits=lambda text: self._sizes.count(text) < below,
            may_be_empty=feature == OBSERVATION,
        )
        noted, made_by = await self._aside(read), asked_name(model.name, request)
        if isinstance(noted, str):
            _refuse(view, feature, f"{made_by} gave no notes that can be used: {noted}")
            return None
        return Notes(
            text=noted.observations,
            made_by=made_by,
            prompt=prompt.version,
            current_task=noted.current_task,
            suggested_response=noted.suggested_response,
        )

    def _request(self, view: SessionView, feature: str, prompt: Prompt, room: int) -> TextRequest:
        least, most = _OUTPUT_TOKENS
        return TextRequest(
            feature=feature,
            system=prompt.system,
            prompt=prompt.text,
            max_output_tokens=min(max(room, least), most),
            deadline_s=self._timeout_s,
            model=self._reflector if feature == REFLECTION else None,
            session=view.digest.state.session,
            project=view.project,
        )


def _refuse(view: SessionView, feature: str, problem: str) -> None:
    """Raise, unless it was asked for in vain too often."""
    if view.digest.state.attempts < GIVE_UP_AFTER:
        raise ModelOutputInvalid(problem)
    _log.warning("event=notes_by_extract feature=%s session=%s reason=%s", feature, view.digest.state.session, problem)
