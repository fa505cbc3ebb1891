"""The strategy that replaces a session's old messages by notes on them: what to observe and condense, and doing it."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial

from backstory.domain.conversation import Message
from backstory.domain.digest import Piece, Strategy, under_parent
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
from backstory.domain.observation_cursor import Waiting, waiting
from backstory.domain.observation_log import added_by, render_log, tail
from backstory.errors import CapReached
from backstory.ports.system import TokenCounter
from backstory.ports.text_models import TextModel, other_model
from backstory.prompts.observe import observe_prompt
from backstory.prompts.prompt import Prompt
from backstory.prompts.reflect import reflect_prompt
from backstory.services.conversation import Aside, at_once
from backstory.services.digest_strategy import Made, SessionView
from backstory.services.observation_questions import OBSERVATION, REFLECTION, TIMEOUT_S, NoteQuestions
from backstory.services.observation_sizes import Sizes
from backstory.services.observation_source import Notes, condensed_by_extract, noted_by_extract, read_by_observer

OBSERVE = "observe"
REFLECT = "reflect"
"""Names of what was done (``Made.cycle``)."""

_log = logging.getLogger(__name__)
_FEWEST_TOKENS = 200  # notes on next to nothing may be as long as that


class Observing:
    """Observes sessions with ``model``, or by extracts without one. A DigestStrategy.

    ``observer_instruction`` and ``reflector_instruction`` are the owner's own words. ``reflector`` is the model of the
    same provider that condenses, if that is another. ``tokens`` decides what reaches a threshold; what it
    says before it is ``settled`` is asked again. ``aside`` runs all
    that reads whole windows or answers, which takes up to a second for the largest.
    """

    def __init__(
        self,
        model: TextModel | None,
        *,
        policy: ObservationPolicy,
        tokens: TokenCounter,
        settled: Callable[[], bool] = lambda: True,
        timeout_s: float = TIMEOUT_S,
        observer_instruction: str | None = None,
        reflector_instruction: str | None = None,
        reflector: str | None = None,
        aside: Aside = at_once,
    ) -> None:
        self._model = model
        self._policy = policy
        self._sizes = Sizes(tokens, settled=settled)
        self._questions = NoteQuestions(self._sizes, timeout_s=timeout_s, reflector=reflector, aside=aside)
        self._observer_instruction = observer_instruction or ""
        self._reflector_instruction = reflector_instruction or ""
        self._reflector = reflector
        self._aside = aside

    @property
    def policy(self) -> ObservationPolicy:
        """What it goes by."""
        return self._policy

    @property
    def model_name(self) -> str | None:
        """The model that notes; None where extracts are made."""
        return None if self._model is None else self._model.name

    @property
    def reflector_name(self) -> str | None:
        """The model that condenses; None where extracts are made."""
        name = self.model_name
        return name if name is None or self._reflector is None else other_model(name, self._reflector)

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
        step = await self._aside(partial(self._next, view))
        if isinstance(step, Waiting):
            return await self._observe(view, step)
        return Made() if step is None else await self._reflect(view, step)

    def weigh(self, message: Message) -> int:
        """The tokens of a message as it would stand in a transcript that cuts nothing."""
        return self._sizes.weigh(message)

    def size(self, piece: Piece) -> int:
        """The tokens of a piece's text."""
        return self._sizes.size(piece)

    def _next(self, view: SessionView) -> Waiting | Reflection | None:
        found = waiting(view.messages, view.digest)
        if found is not None and is_observation_due(found, self._policy, self.weigh, forced=view.forced):
            return found
        return due_reflection(view.digest, self._policy, self.size)

    async def _observe(self, view: SessionView, found: Waiting) -> Made:
        log = render_log(view.digest.active())
        window, notes = await self._noted(view, found, log)
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
            source_tokens=await self._aside(lambda: sum(map(self.weigh, stood_for))),
            created_at=view.now,
        )
        return _made(notes, piece, cycle=OBSERVE)

    async def _noted(self, view: SessionView, found: Waiting, log: str) -> tuple[Sequence[Message], Notes]:
        """The oldest of what waits, and the notes on it: fewer messages where no model may be asked."""
        if self._model is not None:
            try:
                window = await self._window(found, self._policy.window_tokens)
                notes = await self._asked_to_observe(view, self._model, window, log)
                return window, notes or await self._extracted(window)
            except CapReached as error:
                _say_capped(view, OBSERVATION, error)
        # more messages at once make no better extract
        window = await self._window(found, min(2 * self._policy.buffer_tokens, self._policy.window_tokens))
        return window, await self._extracted(window)

    async def _extracted(self, window: Sequence[Message]) -> Notes:
        return await self._aside(partial(noted_by_extract, window, self._sizes))

    async def _window(self, found: Waiting, most: int) -> Sequence[Message]:
        return await self._aside(partial(next_window, found, most, self.weigh))

    async def _asked_to_observe(
        self, view: SessionView, model: TextModel, window: Sequence[Message], log: str
    ) -> Notes | None:
        def read() -> tuple[str, int, Prompt]:
            text = read_by_observer(window, self._policy, self._sizes)
            previous = tail(log, max_tokens=self._policy.previous_tokens, count=self._sizes.count)
            prompt = observe_prompt(text, previous=previous, instruction=self._observer_instruction)
            return text, self._sizes.count(text), prompt

        text, size, prompt = await self._aside(read)
        if not text:
            return None
        return await self._questions.ask(
            view, model, OBSERVATION, prompt, source=text, room=size // 2, below=max(size, _FEWEST_TOKENS)
        )

    async def _reflect(self, view: SessionView, plan: Reflection) -> Made:
        notes = await self._condensed(view, plan)
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
        return _made(notes, piece, changed=under_parent(piece, plan.pieces), cycle=REFLECT)

    async def _condensed(self, view: SessionView, plan: Reflection) -> Notes:
        below = sum(map(self.size, plan.pieces))  # they were counted when the plan was made
        notes = None
        if self._model is not None:
            log = render_log(plan.pieces)
            prompt = reflect_prompt(log, compression=plan.compression, instruction=self._reflector_instruction)
            prompt = replace(prompt, version=with_compression(prompt.version, plan.compression))
            try:
                notes = await self._questions.ask(view, self._model, REFLECTION, prompt, room=below, below=below)
            except CapReached as error:
                _say_capped(view, REFLECTION, error)
        if notes is None:
            by_rule = partial(condensed_by_extract, plan.pieces, below, self._policy, self._sizes)
            notes = await self._aside(by_rule)
        return notes


def _made(notes: Notes, piece: Piece, *, changed: tuple[Piece, ...] = (), cycle: str) -> Made:
    return Made(
        added=(piece,),
        changed=changed,
        current_task=notes.current_task,
        suggested_response=notes.suggested_response,
        cycle=cycle,
    )


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


def _say_capped(view: SessionView, feature: str, error: CapReached) -> None:
    _log.info("event=notes_by_extract feature=%s session=%s reason=%s", feature, _session(view), error)
