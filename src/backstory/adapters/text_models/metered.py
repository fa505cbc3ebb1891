"""A language model whose every call is booked, and which is not asked once a cap is reached.

A call is booked before it is made, with the most it can take, and again when it ends, with what it took. So a process
that dies in between leaves an entry that counts in full, and processes that ask at one moment see each other.
"""

from __future__ import annotations

import json
import logging
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import timedelta, tzinfo

from backstory.adapters.deadline import waiting, waiting_until
from backstory.domain.ids import SessionId
from backstory.domain.ledger import Caps, Entry, Outcome, Prices, day_of
from backstory.errors import CapReached, ModelError, ModelTimeout, ModelUnavailable, StoreError
from backstory.ports.ledger import Ledger
from backstory.ports.system import Clock, IdSource, TokenCounter
from backstory.ports.text_models import TextAnswer, TextModel, TextRequest, asked_name

LONGEST_WAIT_S = 1.0
"""For the ledger, each of the two times; a question with less than four times that to its deadline waits a quarter."""
MOST_TOKENS = 1_000_000_000
"""No call takes more; a server that tells more is not believed."""

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class Terms:
    """What may be spent and what it costs; ``zone`` is where days begin and end."""

    caps: Caps
    prices: Prices
    zone: tzinfo


class MeteredTextModel:
    """Asks ``model`` and books it in ``ledger``.

    A call fails on account of the ledger in one case: a cap is set, and what was spent cannot be told. One that was
    cancelled stays booked as unfinished.
    """

    def __init__(
        self, model: TextModel, ledger: Ledger, *, terms: Terms, clock: Clock, ids: IdSource, tokens: TokenCounter
    ) -> None:
        self._model = model
        self._ledger = ledger
        self._terms = terms
        self._clock = clock
        self._ids = ids
        self._tokens = tokens

    @property
    def name(self) -> str:
        """See ``TextModel``."""
        return self._model.name

    async def generate(self, request: TextRequest) -> TextAnswer:
        """See ``TextModel``. The ledger's time counts towards the deadline. Raises CapReached too."""
        started = time.monotonic()
        begun = self._begun(request)
        await self._admit(begun, request)
        left = request.deadline_s - (time.monotonic() - started)
        asked = time.monotonic()
        try:
            if left <= 0:
                raise _too_late()
            answer = await self._model.generate(replace(request, deadline_s=left))
        except ModelError as error:
            await self._book_failure(begun, error, request, timedelta(seconds=time.monotonic() - asked))
            raise
        await self._end(self._answered(begun, answer), request)
        return answer

    async def close(self) -> None:
        """Close the model."""
        await self._model.close()

    def _begun(self, request: TextRequest) -> Entry:
        schema = "" if request.schema is None else json.dumps(request.schema)
        sent = sum(self._tokens.count(text) for text in (request.system, request.prompt, schema))
        entry = Entry(
            id=self._ids.new_id(),
            at=self._clock.now(),
            feature=request.feature,
            model=asked_name(self.name, request),
            session=None if request.session is None else SessionId(_whole(request.session)),
            project=request.project,
            input_tokens=sent,
            output_tokens=request.max_output_tokens,
            outcome=Outcome.UNFINISHED,
            estimated=True,
        )
        return self._priced(entry)

    def _priced(self, entry: Entry) -> Entry:
        cost = self._terms.prices.cost(input_tokens=entry.input_tokens, output_tokens=entry.output_tokens)
        return replace(entry, cost=cost)

    async def _admit(self, begun: Entry, request: TextRequest) -> None:
        day = day_of(begun.at, self._terms.zone)
        try:
            with _waiting(request):
                reached = await self._ledger.admit(begun, caps=self._terms.caps, since=day.start)
        except StoreError as error:
            if self._terms.caps.is_set:
                raise ModelUnavailable(f"there is a cap, and what was spent cannot be told: {error}") from error
            _not_booked(begun, error)
            return
        if reached is not None:
            raise CapReached(reached.reason)

    def _answered(self, begun: Entry, answer: TextAnswer) -> Entry:
        told_input, told_output = _believed(answer.input_tokens), _believed(answer.output_tokens)
        read = begun.input_tokens if told_input is None else told_input
        written = self._tokens.count(answer.text) if told_output is None else told_output
        entry = replace(
            begun,
            input_tokens=read + answer.unanswered * begun.input_tokens,
            output_tokens=written + answer.unanswered * begun.output_tokens,
            duration=timedelta(seconds=answer.duration_s),
            requests=answer.sent,
            outcome=Outcome.OK,
            estimated=None in (told_input, told_output) or answer.unanswered > 0,
        )
        return self._priced(entry)

    async def _book_failure(self, begun: Entry, error: ModelError, request: TextRequest, took: timedelta) -> None:
        """Book a call without an answer; one that sent nothing costs nothing and is taken back."""
        sent = 1 if error.sent is None else error.sent
        unanswered = sent if error.unanswered is None else error.unanswered
        if not sent:
            await self._take_back(begun, request)
            return
        ended = Outcome.REFUSED if not unanswered else Outcome.FAILED
        entry = replace(
            begun,
            input_tokens=unanswered * begun.input_tokens,
            output_tokens=unanswered * begun.output_tokens,
            duration=took,
            requests=sent,
            outcome=Outcome.TIMEOUT if isinstance(error, ModelTimeout) else ended,
            estimated=unanswered > 0,
        )
        await self._end(self._priced(entry), request)

    async def _end(self, entry: Entry, request: TextRequest) -> None:
        try:
            with _waiting(request):
                await self._ledger.book(entry)
        except StoreError as error:
            _not_booked(entry, error)

    async def _take_back(self, begun: Entry, request: TextRequest) -> None:
        try:
            with _waiting(request):
                await self._ledger.withdraw(begun.id)
        except StoreError as error:
            _not_booked(begun, error)


@contextmanager
def _waiting(request: TextRequest) -> Iterator[None]:
    """Bound the wait for the ledger, within what a caller further out allows."""
    longest = min(LONGEST_WAIT_S, max(request.deadline_s, 0.0) / 4)
    until = waiting_until()
    allowed = longest if until is None else min(longest, max(until - time.monotonic(), 0.0))
    with waiting(timedelta(seconds=allowed)):
        yield


def _believed(told: int | None) -> int | None:
    return told if told is not None and told <= MOST_TOKENS else None


def _whole(text: str) -> str:
    """Text with U+FFFD for half characters, which no store holds: a host's odd id is no reason to fail a call."""
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


def _too_late() -> ModelTimeout:
    error = ModelTimeout("no time was left to ask the model once its call was booked")
    error.sent = error.unanswered = 0
    return error


def _not_booked(entry: Entry, error: StoreError) -> None:
    _log.warning("event=call_not_booked id=%s feature=%s reason=%s", entry.id, entry.feature, error)
