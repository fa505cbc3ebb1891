"""The signs of one question's candidates as arrays, so that thousands of questions can be weighed in a second.

It does what ``score_messages`` does, with numpy; ``evidence_fit.py`` holds one against the other.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from backstory.domain.evidence import EvidenceWeights
from backstory.domain.evidence_signs import PassageSigns

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

SIGNS = (
    "words", "words_far", "coverage", "session_words", "together", "meaning", "meaning_around", "speaker", "date",
    "user", "asked", "dated", "counted", "length", "brief", "alike", "alike_near", "alike_session",
    "meaning_near", "meaning_far", "opening", "of_oneself",
)  # fmt: skip
"""The columns of ``SignTable.columns``, by the names of their weights."""
TAKEN_OFF = ("length", "brief")
"""Signs against a passage; their columns are negative."""
OF_TALK = ("alike", "alike_near", "alike_session", "meaning_near", "meaning_far", "opening", "of_oneself")
"""Signs of chats between people."""
_PLAIN = ("coverage", "session_words", "together", "speaker", "date", "user", "dated", "counted")


@dataclass(frozen=True, slots=True, kw_only=True)
class SignTable:
    """A row a passage. ``owner`` is the place of its message in ``messages``; ``session_of`` that of a message's
    session; ``beside`` are pairs of messages that stand next to each other."""

    messages: Sequence[str]
    columns: NDArray[np.float64]
    owner: NDArray[np.intp]
    session_of: NDArray[np.intp]
    beside: NDArray[np.intp]

    def scores(self, weights: EvidenceWeights) -> NDArray[np.float64]:
        """The score of each message, up to the factor that brings it below 1."""
        return self.message_signs(weights)[1]

    def message_signs(self, weights: EvidenceWeights) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """The signs of each message's best passage, then what stands beside it and in its session; and the scores."""
        own = self.columns @ np.array([getattr(weights, name) for name in SIGNS])
        best = np.full(len(self.messages), -np.inf)
        np.maximum.at(best, self.owner, own)
        passages = np.full(len(self.messages), len(own), dtype=np.intp)
        leading = np.flatnonzero(own >= best[self.owner])
        np.minimum.at(passages, self.owner[leading], leading)
        neighbour = np.zeros(len(self.messages))
        if len(self.beside):
            np.maximum.at(neighbour, self.beside[:, 1], best[self.beside[:, 0]])
            np.maximum.at(neighbour, self.beside[:, 0], best[self.beside[:, 1]])
        smoothed = best + weights.neighbour * neighbour
        lift = self._best_three(smoothed)[self.session_of]
        signs = np.column_stack([self.columns[passages], neighbour, lift])
        return signs, smoothed + weights.session * lift

    def ranking(self, weights: EvidenceWeights) -> list[str]:
        """The messages, best first."""
        return [self.messages[place] for place in np.argsort(-self.scores(weights), kind="stable")]

    def _best_three(self, scores: NDArray[np.float64]) -> NDArray[np.float64]:
        """For each session the sum of its best three, divided by three."""
        order = np.lexsort((-scores, self.session_of))
        sessions = self.session_of[order]
        starts = np.searchsorted(sessions, sessions)  # where the run of each one's session begins
        first = np.arange(len(order)) - starts < 3
        total = np.zeros(int(self.session_of.max(initial=-1)) + 1)
        np.add.at(total, sessions[first], scores[order][first])
        return total / 3


def as_table(signs: Sequence[PassageSigns]) -> SignTable:
    """The arrays of one question."""
    messages = list(dict.fromkeys(sign.message for sign in signs))
    places = {message: place for place, message in enumerate(messages)}
    sessions = {session: place for place, session in enumerate(dict.fromkeys(sign.session for sign in signs))}
    session_of = {sign.message: sessions[sign.session] for sign in signs}
    best = max((sign.words for sign in signs), default=0.0) or 1.0
    words = [sign.words / best for sign in signs]
    columns = {
        "words": words,
        "words_far": _shares(sign.words_far for sign in signs),
        "asked": [sign.asked / best for sign in signs],
        "meaning": _nearness([sign.cosine for sign in signs], words),
        "meaning_around": _cosines([sign.cosine_around for sign in signs], words),
        **{name: [getattr(sign, name) for sign in signs] for name in _PLAIN},
        **{name: [-getattr(sign, name) for sign in signs] for name in TAKEN_OFF},
        **{name: [0.0 if sign.talk is None else getattr(sign.talk, name) for sign in signs] for name in OF_TALK},
    }
    beside = [
        (places[previous.message], places[sign.message])
        for previous, sign in itertools.pairwise(signs)
        if sign.follows and sign.message != previous.message
    ]
    return SignTable(
        messages=messages,
        columns=np.array([columns[name] for name in SIGNS], dtype=np.float64).T.reshape(len(signs), len(SIGNS)),
        owner=np.array([places[sign.message] for sign in signs], dtype=np.intp),
        session_of=np.array([session_of[message] for message in messages], dtype=np.intp),
        beside=np.array(beside, dtype=np.intp).reshape(len(beside), 2),
    )


def _shares(values: Iterable[float]) -> list[float]:
    kept = list(values)
    best = max(kept, default=0.0) or 1.0
    return [value / best for value in kept]


def _cosines(cosines: Sequence[float | None], words: Sequence[float]) -> list[float]:
    best = max((cosine for cosine in cosines if cosine is not None), default=0.0)
    if best <= 0.0:
        return [0.0] * len(cosines)
    return [word if cosine is None else max(cosine, 0.0) / best for cosine, word in zip(cosines, words, strict=True)]


def _nearness(cosines: Sequence[float | None], words: Sequence[float]) -> list[float]:
    known = np.array([cosine for cosine in cosines if cosine is not None])
    if not len(known):
        return [0.0] * len(cosines)
    spread = 4.0 * float(known.std()) or 1.0
    shares = [word if c is None else (c - float(known.mean())) / spread for c, word in zip(cosines, words, strict=True)]
    return [min(1.0, max(-1.0, share)) for share in shares]
