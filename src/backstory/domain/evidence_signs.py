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
from backstory.domain.evidence_talk import (
    TalkSigns,
    agreements,
    joined_meaning,
    nearness,
    rarities,
    tells_of_oneself,
)
from backstory.domain.ids import MessageId, SessionId
from backstory.domain.small_talk import SMALL_TALK
from backstory.domain.text import QueryTerm
from backstory.domain.word_match import BM25_B, BM25_K1

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

    @classmethod
    def of_loaded(cls, loaded: Sequence[LoadedPassage]) -> EvidenceStatistics:
        """Those of the passages that were loaded for a question, and of its tokens."""
        return cls(
            documents=len(loaded),
            mean_length=sum(item.length for item in loaded) / max(1, len(loaded)),
            frequency=Counter(token for item in loaded for token in item.held),
        )

    def idf(self, token: str) -> float:
        """Rarity of a token, above 0."""
        count = min(self.frequency.get(token, 0), self.documents)
        return math.log(1.0 + (self.documents - count + 0.5) / (count + 0.5))


@dataclass(frozen=True, slots=True, kw_only=True)
class ComparedWords:
    """Words of a question, and how near the nearest word of each passage comes to each of them (cosines)."""

    words: Sequence[str]
    nearest: Mapping[PassageNumber, Sequence[float]]


@dataclass(frozen=True, slots=True, kw_only=True)
class PassageSigns:
    """What was found out about one passage. ``words``, ``words_far`` and ``asked`` are BM25 (unbounded), the last that
    of the question it answers; ``coverage``, ``session_words``, ``together`` and ``brief`` lie in [0, 1], cosines are
    None where there is no vector; ``date`` lies in [0, 2]; ``length`` is the binary logarithm of how many passages of
    its message are candidates. ``matched`` are words of the question, here or beside it; ``telling`` says whether one
    of them is more than small talk. ``talk`` is None where words were not compared one by one."""

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
    talk: TalkSigns | None = None


def read_signs(
    terms: Sequence[QueryTerm],
    loaded: Sequence[LoadedPassage],
    *,
    statistics: EvidenceStatistics,
    cosines: Mapping[PassageNumber, float],
    speaker: SpeakerHint,
    date: DateHint | None,
    detail: DetailHint,
    compared: ComparedWords | None = None,
) -> list[PassageSigns]:
    """The signs of each passage, in order. ``loaded`` is in the order of the sessions, as the index gives it.

    A passage's neighbours are those loaded directly before and after it. The vector of the joined passage is taken to
    be the mean of theirs. ``compared`` is given for chats between people.
    """
    idf = {term.token: term.weight * statistics.idf(term.token) for term in terms}
    mass = sum(idf.values()) or 1.0
    pieces = Counter(item.passage.message for item in loaded)
    runs = _runs(loaded)
    words = [_bm25(item.held, item.length, statistics.mean_length, idf) for item in loaded]
    far = _words_far(loaded, runs, statistics.mean_length, idf)
    near = _joined(loaded, runs, reach=1)
    in_session = {session: _mass(held, idf) / mass for session, held in _held_in_sessions(loaded).items()}
    phrases = phrases_of([term.token for term in terms])
    talk = [None] * len(loaded) if compared is None else _talk(loaded, runs, compared, idf, cosines)
    signs = []
    for place, item in enumerate(loaded):
        passage, held = item.passage, near[place]
        known = [cosines[n] for n in _numbers(loaded, _window(runs[place], place, reach=1)) if n in cosines]
        follows, is_user = place > runs[place].start, passage.role is Role.USER
        signs.append(
            PassageSigns(
                passage=passage.number,
                message=passage.message,
                session=passage.session,
                follows=follows,
                words=words[place],
                words_far=far[place],
                coverage=_mass(held, idf) / mass,
                session_words=in_session[passage.session],
                together=_together(phrases, item, idf) / mass if len(item.held) > 1 else 0.0,
                cosine=cosines.get(passage.number),
                cosine_around=sum(known) / len(known) if known else None,
                speaker=float(speaker.fits(passage)),
                date=0.0 if date is None else date.fit(passage.at),
                user=float(is_user),
                asked=words[place - 1] if is_user and follows and _asks(loaded[place - 1]) else 0.0,
                dated=float(detail.time and tells_time(passage.text)),
                counted=float(detail.number and tells_number(passage.text)),
                length=math.log2(pieces[passage.message]),
                brief=max(0.0, 1.0 - item.length / _BRIEF_TOKENS),
                matched=tuple(term.token for term in terms if term.token in held) if held else (),
                telling=any(token not in SMALL_TALK for token in held),
                talk=talk[place],
            )
        )
    return signs


def _talk(
    loaded: Sequence[LoadedPassage],
    runs: Sequence[range],
    compared: ComparedWords,
    idf: Mapping[str, float],
    cosines: Mapping[PassageNumber, float],
) -> list[TalkSigns]:
    numbers = [item.passage.number for item in loaded]
    near, far = ([_window(run, place, reach=reach) for place, run in enumerate(runs)] for reach in (1, _FAR))
    agreed = agreements(
        [compared.nearest.get(number) for number in numbers],
        rarities(compared.words, idf),
        windows=near,
        sessions=[item.passage.session for item in loaded],
    )
    known, lengths = [cosines.get(number) for number in numbers], [item.length for item in loaded]
    meaning = zip(*(nearness(joined_meaning(known, lengths, windows)) for windows in (near, far)), strict=True)
    return [
        TalkSigns(
            alike=alike,
            alike_near=alike_near,
            alike_session=alike_session,
            meaning_near=meaning_near,
            meaning_far=meaning_far,
            opening=float(item.before is None),
            of_oneself=float(tells_of_oneself(item.passage.text)),
        )
        for item, (alike, alike_near, alike_session), (meaning_near, meaning_far) in zip(
            loaded, agreed, meaning, strict=True
        )
    ]


def _runs(loaded: Sequence[LoadedPassage]) -> list[range]:
    """For each passage the places of those that were loaded around it without a gap, itself among them."""
    breaks = [n for n in range(1, len(loaded)) if loaded[n].before != loaded[n - 1].passage.number]
    borders = [0, *breaks, len(loaded)]
    spans = [range(start, end) for start, end in pairwise(borders)]
    return [span for span in spans for _ in span]


def _window(run: range, place: int, *, reach: int) -> range:
    return range(max(run.start, place - reach), min(run.stop, place + reach + 1))


def _joined(loaded: Sequence[LoadedPassage], runs: Sequence[range], *, reach: int) -> list[dict[str, int]]:
    """What each passage holds together with up to ``reach`` before and after it in its run."""
    joined: list[dict[str, int]] = [{} for _ in loaded]
    for place, item in enumerate(loaded):
        for other in _window(runs[place], place, reach=reach) if item.held else ():  # many hold nothing
            held = joined[other]
            for token, count in item.held.items():
                held[token] = held.get(token, 0) + count
    return joined


def _words_far(
    loaded: Sequence[LoadedPassage], runs: Sequence[range], mean_length: float, idf: Mapping[str, float]
) -> list[float]:
    total = [0, *accumulate(item.length for item in loaded)]
    words = []
    for place, held in enumerate(_joined(loaded, runs, reach=_FAR)):
        window = _window(runs[place], place, reach=_FAR)
        words.append(_bm25(held, total[window.stop] - total[window.start], (2 * _FAR + 1) * mean_length, idf))
    return words


def _held_in_sessions(loaded: Sequence[LoadedPassage]) -> defaultdict[SessionId, set[str]]:
    held: defaultdict[SessionId, set[str]] = defaultdict(set)
    for item in loaded:
        held[item.passage.session].update(item.held)
    return held


def _numbers(loaded: Sequence[LoadedPassage], places: range) -> list[PassageNumber]:
    return [item.passage.number for item in loaded[places.start : places.stop]]


def _asks(item: LoadedPassage) -> bool:
    return "?" in item.passage.text


def _mass(held: Iterable[str], idf: Mapping[str, float]) -> float:
    return sum([idf[token] for token in held])


def _together(phrases: Sequence[Phrase], item: LoadedPassage, idf: Mapping[str, float]) -> float:
    found = said_together(phrases, item.passage.text, item.held)
    return sum(idf[first] + idf[second] for first, second in found) / 2.0


def _bm25(held: Mapping[str, int], length: int, mean_length: float, idf: Mapping[str, float]) -> float:
    if not held:
        return 0.0
    norm = BM25_K1 * (1.0 - BM25_B + BM25_B * (length / mean_length if mean_length else 1.0))
    return sum(idf[token] * count * (BM25_K1 + 1.0) / (count + norm) for token, count in held.items())
