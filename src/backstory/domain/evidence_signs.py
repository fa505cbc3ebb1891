"""What speaks for a passage as an answer to a question, found out and not yet weighed (that is ``evidence.py``)."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise

from backstory.domain.conversation import Role
from backstory.domain.evidence_hints import DateHint, DetailHint, SpeakerHint, tells_number, tells_time
from backstory.domain.evidence_passages import LoadedPassage, PassageNumber
from backstory.domain.evidence_phrases import Phrase, phrases_of, said_together
from backstory.domain.ids import MessageId, SessionId
from backstory.domain.ranking import BM25_B, BM25_K1
from backstory.domain.small_talk import SMALL_TALK
from backstory.domain.text import QueryTerm

_FAR = 4
"""Passages before and after that are read along, where they were loaded without a gap."""
_BRIEF_TOKENS = 16
"""A passage with fewer tokens says little, whatever words it shares with the question: "thanks, Ada!"."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EvidenceStatistics:
    """What is known of the words of all passages: how many there are, how long, and how many hold each token."""

    documents: int
    mean_length: float
    frequency: Mapping[str, int]

    def idf(self, token: str) -> float:
        """Rarity of a token, above 0."""
        count = min(self.frequency.get(token, 0), self.documents)
        return math.log(1.0 + (self.documents - count + 0.5) / (count + 0.5))


@dataclass(frozen=True, slots=True, kw_only=True)
class PassageSigns:
    """What was found out about one passage. ``words``, ``words_far`` and ``asked`` are BM25 (unbounded), the last that
    of the question it answers; ``coverage``, ``session_words``, ``together`` and ``brief`` lie in [0, 1], cosines are
    None where there is no vector; ``date`` lies in [0, 2]; ``length`` is the binary logarithm of how many passages of
    its message are candidates. ``matched`` are words of the question, here or beside it; ``telling`` says whether one
    of them is more than small talk."""

    passage: PassageNumber
    message: MessageId
    session: SessionId
    follows: bool
    words: float
    words_far: float
    coverage: float
    session_words: float
    together: float
    cosine: float | None
    cosine_around: float | None
    speaker: float
    date: float
    user: float
    asked: float
    dated: float
    counted: float
    length: float
    brief: float
    matched: tuple[str, ...]
    telling: bool


def read_signs(
    terms: Sequence[QueryTerm],
    loaded: Sequence[LoadedPassage],
    *,
    statistics: EvidenceStatistics,
    cosines: Mapping[PassageNumber, float],
    speaker: SpeakerHint,
    date: DateHint | None,
    detail: DetailHint,
) -> list[PassageSigns]:
    """The signs of each passage, in order. ``loaded`` is in the order of the sessions, as the index gives it.

    A passage's neighbours are those loaded directly before and after it. The vector of the joined passage is taken to
    be the mean of theirs.
    """
    idf = {term.token: term.weight * statistics.idf(term.token) for term in terms}
    mass = sum(idf.values()) or 1.0
    mean_length = statistics.mean_length
    pieces = Counter(item.passage.message for item in loaded)
    runs = _runs(loaded)
    words = [_bm25(item.held, item.length, mean_length, idf) for item in loaded]
    near, far = _joined(loaded, runs, reach=1), _joined(loaded, runs, reach=_FAR)
    in_session = _held_in_sessions(loaded)
    phrases = phrases_of([term.token for term in terms])
    signs = []
    for place, item in enumerate(loaded):
        passage, follows = item.passage, place > runs[place].start
        held, known = near[place].held, _known(loaded, _window(runs[place], place, reach=1), cosines)
        is_user = passage.role is Role.USER
        answered = follows and is_user and "?" in loaded[place - 1].passage.text
        signs.append(
            PassageSigns(
                passage=passage.number,
                message=passage.message,
                session=passage.session,
                follows=follows,
                words=words[place],
                words_far=_bm25(far[place].held, far[place].length, (2 * _FAR + 1) * mean_length, idf),
                coverage=sum(idf[token] for token in held) / mass,
                session_words=sum(idf[token] for token in in_session[passage.session]) / mass,
                together=_together(phrases, item, idf) / mass,
                cosine=cosines.get(passage.number),
                cosine_around=sum(known) / len(known) if known else None,
                speaker=float(speaker.fits(passage)),
                date=0.0 if date is None else date.fit(passage.at),
                user=float(is_user),
                asked=words[place - 1] if answered else 0.0,
                dated=float(detail.time and tells_time(passage.text)),
                counted=float(detail.number and tells_number(passage.text)),
                length=math.log2(pieces[passage.message]),
                brief=max(0.0, 1.0 - item.length / _BRIEF_TOKENS),
                matched=tuple(term.token for term in terms if term.token in held),
                telling=any(token not in SMALL_TALK for token in held),
            )
        )
    return signs


@dataclass(frozen=True, slots=True)
class _Joined:
    """What a passage and those around it hold together."""

    held: dict[str, int]
    length: int


def _runs(loaded: Sequence[LoadedPassage]) -> list[range]:
    """For each passage the places of those that were loaded around it without a gap, itself among them."""
    breaks = [n for n in range(1, len(loaded)) if loaded[n].before != loaded[n - 1].passage.number]
    borders = [0, *breaks, len(loaded)]
    spans = [range(start, end) for start, end in pairwise(borders)]
    return [span for span in spans for _ in span]


def _window(run: range, place: int, *, reach: int) -> range:
    return range(max(run.start, place - reach), min(run.stop, place + reach + 1))


def _joined(loaded: Sequence[LoadedPassage], runs: Sequence[range], *, reach: int) -> list[_Joined]:
    """Each passage with up to ``reach`` before and after it in its run."""
    total = [0, *accumulate(item.length for item in loaded)]
    windows = [_window(run, place, reach=reach) for place, run in enumerate(runs)]
    joined = [_Joined({}, total[window.stop] - total[window.start]) for window in windows]
    for place, item in enumerate(loaded):
        for other in windows[place] if item.held else ():  # most hold nothing
            held = joined[other].held
            for token, count in item.held.items():
                held[token] = held.get(token, 0) + count
    return joined


def _held_in_sessions(loaded: Sequence[LoadedPassage]) -> defaultdict[SessionId, set[str]]:
    held: defaultdict[SessionId, set[str]] = defaultdict(set)
    for item in loaded:
        held[item.passage.session].update(item.held)
    return held


def _known(
    loaded: Sequence[LoadedPassage], window: Iterable[int], cosines: Mapping[PassageNumber, float]
) -> list[float]:
    numbers = [loaded[place].passage.number for place in window]
    return [cosines[number] for number in numbers if number in cosines]


def _together(phrases: Sequence[Phrase], item: LoadedPassage, idf: Mapping[str, float]) -> float:
    found = said_together(phrases, item.passage.text, item.held)
    return sum(idf[phrase.first] + idf[phrase.second] for phrase in found) / 2.0


def _bm25(held: Mapping[str, int], length: int, mean_length: float, idf: Mapping[str, float]) -> float:
    norm = BM25_K1 * (1.0 - BM25_B + BM25_B * (length / mean_length if mean_length else 1.0))
    return sum(idf[token] * count * (BM25_K1 + 1.0) / (count + norm) for token, count in held.items())
