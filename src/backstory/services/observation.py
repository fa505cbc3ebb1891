"""The strategy that replaces a session's old messages by notes on them: what to observe and condense, and doing it."""

from __future__ import annotations

import logging
from collections import OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import UTC

from backstory.domain.conversation import Message
from backstory.domain.digest import Piece, Strategy, under_parent
from backstory.domain.extract import EXTRACT, extract_digest, extract_merge
from backstory.domain.ids import SessionId
from backstory.domain.observation import (
    ObservationPolicy,
    Reflection,
    due_reflection,
    is_observation_due,
    next_id,
    next_window,
    to_show,
    with_compression,
)
from backstory.domain.observation_answers import read_notes
from backstory.domain.observation_cursor import Waiting, waiting
from backstory.domain.observation_log import added_by, extract_notes, render_log, tail
from backstory.domain.transcript import TranscriptLimits, message_text, transcript
from backstory.errors import CapReached, ModelOutputInvalid
from backstory.ports.system import TokenCounter
from backstory.ports.text_models import TextModel, TextRequest
from backstory.prompts.observe import observe_prompt
from backstory.prompts.prompt import Prompt
from backstory.prompts.reflect import reflect_prompt
from backstory.services.digest_strategy import Made, SessionView

OBSERVATION = "observation"
REFLECTION = "reflection"
"""Names under which calls are booked."""
OBSERVE = "observe"
REFLECT = "reflect"
"""Names of what was done (``Made.cycle``)."""
TIMEOUT_S = 120.0
GIVE_UP_AFTER = 5
"""Failures in a row after which an unusable answer is made up for by an extract: a model that refuses a stretch will
refuse it for ever."""

_log = logging.getLogger(__name__)
_WHOLE = TranscriptLimits(part_chars=10**9, total_chars=10**9)
_PART_CHARS = 20_000
_CHARS_PER_TOKEN = 4  # of most text; less of some, never much more
_OUTPUT_TOKENS = (2_048, 16_384)
_EXTRACT_CHARS = 1_200  # of a window of the usual size
_TOKENS_PER_EXTRACT_CHAR = 5  # of a larger one
_FEWEST_TOKENS = 200  # notes on next to nothing may be as long as that
_REMEMBERED = 10_000  # messages and texts whose size is known


@dataclass(frozen=True, slots=True, kw_only=True)
class _Notes:
    """Notes, and who made them of what."""

    text: str
    made_by: str
    prompt: str
    current_task: str | None = None
    suggested_response: str | None = None


class Observing:
    """Observes sessions with ``model``, or by extracts without one. A DigestStrategy.

    ``observer_instruction`` and ``reflector_instruction`` are the owner's own words. ``tokens`` decides what reaches a
    threshold: requests that may not wait for an exact counter ask an Observing of their own, with an estimate; what is
    really due is found out by the one that works.
    """

    def __init__(
        self,
        model: TextModel | None,
        *,
        policy: ObservationPolicy,
        tokens: TokenCounter,
        timeout_s: float = TIMEOUT_S,
        observer_instruction: str | None = None,
        reflector_instruction: str | None = None,
    ) -> None:
        self._model = model
        self._policy = policy
        self._tokens = tokens
        self._timeout_s = timeout_s
        self._observer_instruction = observer_instruction or ""
        self._reflector_instruction = reflector_instruction or ""
        self._sizes: OrderedDict[tuple[str, str, int], int] = OrderedDict()

    @property
    def policy(self) -> ObservationPolicy:
        """What it goes by."""
        return self._policy

    @property
    def model_name(self) -> str | None:
        """The model that notes; None where extracts are made."""
        return None if self._model is None else self._model.name

    @property
    def strategy(self) -> Strategy:
        """See ``DigestStrategy``."""
        return Strategy.OBSERVATIONS

    def due(self, view: SessionView) -> bool:
        """See ``DigestStrategy``. Counts no further than to the threshold, and each message once in a process."""
        found = waiting(view.messages, view.digest)
        if is_observation_due(found, self._policy, self.weigh, forced=view.forced):
            return True
        return due_reflection(view.digest, self._policy, self.size) is not None

    def shows(self, view: SessionView) -> tuple[str, ...]:
        """See ``DigestStrategy``."""
        return to_show(view.messages, view.digest, self._policy, weigh=self.weigh, count=self.size)

    async def work(self, view: SessionView) -> Made:
        """See ``DigestStrategy``. Observes one window of what waits; when nothing does, condenses what has grown long.

        An answer that cannot be used raises ModelOutputInvalid; after some failures in a row an extract takes its
        place.
        """
        found = waiting(view.messages, view.digest)
        if found is not None and is_observation_due(found, self._policy, self.weigh, forced=view.forced):
            return await self._observe(view, found)
        plan = due_reflection(view.digest, self._policy, self.size)
        return Made() if plan is None else await self._reflect(view, plan)

    def weigh(self, message: Message) -> int:
        """The tokens of a message as it would stand in a transcript that cuts nothing."""
        chars = sum(len(part.text) + len(part.detail or "") for part in message.parts)
        return self._counted((message.session, message.id, chars), lambda: message_text(message, limits=_WHOLE))

    def size(self, piece: Piece) -> int:
        """The tokens of a piece's text."""
        return self._counted((piece.session, piece.id, len(piece.text)), lambda: piece.text)

    async def _observe(self, view: SessionView, found: Waiting) -> Made:
        # Without a model more messages at once make no better extract, and take longer than anybody should be held up.
        most = self._policy.window_tokens if self._model else 2 * self._policy.buffer_tokens
        window = next_window(found, min(most, self._policy.window_tokens), self.weigh)
        log = render_log(view.digest.active())
        text = self._transcript(window)
        notes = await self._asked_to_observe(view, text, log) if text else None
        if notes is None:
            notes = self._extract(window)
        stood_for = (*found.skipped, *window)
        start = _number(view, found)
        piece = Piece(
            session=_session(view),
            id=next_id(view.digest, level=0),
            strategy=Strategy.OBSERVATIONS,
            level=0,
            text=added_by(log, notes.text),
            start=start,
            end=start + len(stood_for) - 1,
            sources=tuple(message.id for message in stood_for),
            made_by=notes.made_by,
            prompt=notes.prompt,
            source_tokens=sum(map(self.weigh, stood_for)),
            created_at=view.now,
        )
        return Made(
            added=(piece,),
            current_task=notes.current_task,
            suggested_response=notes.suggested_response,
            cycle=OBSERVE,
        )

    async def _asked_to_observe(self, view: SessionView, text: str, log: str) -> _Notes | None:
        previous = tail(log, max_tokens=self._policy.previous_tokens, count=self._tokens.count)
        prompt = observe_prompt(text, previous=previous, instruction=self._observer_instruction)
        size = self._tokens.count(text)
        return await self._ask(view, OBSERVATION, prompt, source=text, room=size // 2, below=max(size, _FEWEST_TOKENS))

    async def _reflect(self, view: SessionView, plan: Reflection) -> Made:
        log = render_log(plan.pieces)
        below = sum(map(self.size, plan.pieces))
        prompt = reflect_prompt(log, compression=plan.compression, instruction=self._reflector_instruction)
        prompt = replace(prompt, version=with_compression(prompt.version, plan.compression))
        notes = await self._ask(view, REFLECTION, prompt, room=below, below=below)
        if notes is None:
            notes = self._merged(plan.pieces, below)
        level = 1 + max(piece.level for piece in plan.pieces)
        piece = Piece(
            session=_session(view),
            id=next_id(view.digest, level=level),
            strategy=Strategy.OBSERVATIONS,
            level=level,
            text=notes.text,
            start=plan.pieces[0].start,
            end=max(piece.end for piece in plan.pieces),
            children=tuple(piece.id for piece in plan.pieces),
            made_by=notes.made_by,
            prompt=notes.prompt,
            source_tokens=sum(piece.source_tokens for piece in plan.pieces),
            created_at=view.now,
        )
        return Made(
            added=(piece,),
            changed=under_parent(piece, plan.pieces),
            current_task=notes.current_task,
            suggested_response=notes.suggested_response,
            cycle=REFLECT,
        )

    async def _ask(
        self, view: SessionView, feature: str, prompt: Prompt, *, source: str = "", room: int, below: int
    ) -> _Notes | None:
        """The model's notes, of fewer than ``below`` tokens; None where an extract is to take their place.

        ``source`` is what notes may not repeat; a log that is condensed may keep lines, and so may notes on it.
        """
        if self._model is None:
            return None
        try:
            answer = await self._model.generate(self._request(view, feature, prompt, room))
        except CapReached as error:
            _log.info("event=notes_by_extract feature=%s session=%s reason=%s", feature, _session(view), error)
            return None
        noted = read_notes(
            answer.text,
            finish=answer.finish,
            told=f"{prompt.system}\n{source}",
            fits=lambda text: self._tokens.count(text) < below,
            may_be_empty=feature == OBSERVATION,
        )
        if isinstance(noted, str):
            _refuse(view, feature, f"{self._model.name} gave no notes that can be used: {noted}")
            return None
        return _Notes(
            text=noted.observations,
            made_by=self._model.name,
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
            session=_session(view),
            project=view.project,
        )

    def _transcript(self, window: Sequence[Message]) -> str:
        """What the observer reads of some messages: no more than a window's tokens, whatever their script."""
        most = self._policy.window_tokens
        text = transcript(window, limits=_limits(_CHARS_PER_TOKEN * most))
        size = self._tokens.count(text)
        return text if size <= most else transcript(window, limits=_limits(len(text) * most // size))

    def _extract(self, window: Sequence[Message]) -> _Notes:
        weight = sum(map(self.weigh, window))
        extract = extract_digest(window, max_chars=max(_EXTRACT_CHARS, weight // _TOKENS_PER_EXTRACT_CHAR))
        first = next((message for message in window if message.parts), window[0])
        return _Notes(text=extract_notes(extract, first.created_at.astimezone(UTC)), made_by=EXTRACT, prompt="")

    def _merged(self, pieces: Sequence[Piece], below: int) -> _Notes:
        """An extract of notes: of half the tokens that start a reflection, or of fewer until it is well below them."""
        threshold = self._policy.observation_tokens
        below = min(below, threshold * 3 // 4 + 1)
        texts = [piece.text for piece in pieces if piece.text]
        chars = [_CHARS_PER_TOKEN * threshold >> halves for halves in range(1, 12)]
        merged = (extract_merge(texts, max_chars=size) for size in chars if size)
        text = next((text for text in merged if self._tokens.count(text) < below), "")
        return _Notes(text=text, made_by=EXTRACT, prompt="")

    def _counted(self, key: tuple[str, str, int], text: Callable[[], str]) -> int:
        size = self._sizes.get(key)
        if size is None:
            size = self._sizes[key] = self._tokens.count(text())
        self._sizes.move_to_end(key)
        if len(self._sizes) > _REMEMBERED:
            self._sizes.popitem(last=False)
        return size


def _limits(total_chars: int) -> TranscriptLimits:
    return TranscriptLimits(part_chars=_PART_CHARS, total_chars=total_chars)


def _number(view: SessionView, found: Waiting) -> int:
    """The number in the session of the first message of a window: behind all that was observed, unless in a hole.

    A host that drops a part of what a piece stands for leaves nobody who could count.
    """
    counted = view.first_number + found.place
    if found.closed:
        return counted
    return max(counted, *(piece.end + 1 for piece in view.digest.pieces), 0)


def _session(view: SessionView) -> SessionId:
    return view.digest.state.session


def _refuse(view: SessionView, feature: str, problem: str) -> None:
    """Raise, unless it was asked for in vain too often."""
    if view.digest.state.attempts < GIVE_UP_AFTER:
        raise ModelOutputInvalid(problem)
    _log.warning("event=notes_by_extract feature=%s session=%s reason=%s", feature, _session(view), problem)
