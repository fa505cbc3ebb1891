"""What tells an answer in a talk between people, whose messages begin with a name and a colon.

Above all, the words of the question are compared with those of each passage, one by one. There it finds answers that
are put in other words; in sessions with an assistant the long answers agree with everything (docs/adr/0020). The
vectors of the words are the model's, which saw them in their sentence (late interaction, as in ColBERT: Khattab and
Zaharia, 2020).
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from backstory.domain.evidence_passages import EvidencePassage
from backstory.domain.stopwords import STOP_WORDS
from backstory.domain.text import analyse_query

MAX_WORDS = 32
"""Words of one passage that are kept. A turn of a chat has 12 in the middle; a vector of a word takes 128 bytes."""
DEVIATIONS = 4.0
"""Above the usual value of the candidates that count as 1: among some hundred the best lies at 3 to 4."""

_SPEAKER = re.compile(r"([^\W\d_][\w.'-]{0,30}(?: [^\W\d_][\w.'-]{0,30})?): ")
_TOLD_AT_LEAST = 2
"""Messages that begin with a name and a colon before it counts as a speaker's."""
_ROLES = frozenset({"user", "human", "assistant", "ai", "bot", "model", "system"})
"""Who speaks in transcripts of sessions with an assistant. People are not called so."""
_ALIKE = 1e-9
"""A deviation below which values differ by rounding alone."""
_OF_ONESELF = re.compile(r"\b(?:I|me|my|we|us|our)\b", re.IGNORECASE)


@dataclass(frozen=True, slots=True, kw_only=True)
class TalkSigns:
    """What else speaks for a passage of a chat between people. ``alike`` is how well its words agree with the
    question's, ``alike_near`` with its neighbours' words to help, ``alike_session`` with those of all that was loaded
    of its session; ``meaning_near`` and ``meaning_far`` are the mean cosine of the passage and one or up to four on
    either side, the longer ones counting more. Each lies in [-1, 1], 0 as usual among the candidates. ``opening``: a
    session begins with it, where people tell their news. ``of_oneself``: its speaker tells of himself."""

    alike: float
    alike_near: float
    alike_session: float
    meaning_near: float
    meaning_far: float
    opening: float
    of_oneself: float


def speaker_of(text: str, *, kind: str = "text") -> str | None:
    """The name that a passage begins with, before a colon, as in "Ada: I am back"; None where there is none.

    What a tool was asked and gave begins with the tool's name ("Bash: ls"), which is nobody's.
    """
    match = _SPEAKER.match(text) if kind == "text" and text[:1].isupper() else None
    return None if match is None else match[1]


def known_speakers(names: Iterable[str]) -> list[str]:
    """Of the names that messages begin with, those that are a speaker's: no "Note:" that stands there once."""
    return [name for name, count in Counter(names).items() if count >= _TOLD_AT_LEAST]


def speakers_between_themselves(passages: Sequence[EvidencePassage]) -> list[str]:
    """Who speaks where most passages begin with the name of one of two people or more; nobody where they do not, as in
    a transcript of "User: " and "Assistant: "."""
    names = Counter(name for item in passages if (name := speaker_of(item.text, kind=item.kind)) is not None)
    people = [name for name, count in names.items() if count >= _TOLD_AT_LEAST and name.lower() not in _ROLES]
    told = sum(names[name] for name in people)
    return people if len(people) > 1 and 2 * told > len(passages) else []


def tells_of_oneself(text: str) -> bool:
    """Whether it says "I", "we" or the like."""
    return _OF_ONESELF.search(text) is not None


def telling_places(words: Sequence[str], *, at_most: int = MAX_WORDS, names: Iterable[str] = ()) -> list[int]:
    """The places of the words that say something: no stop words, no signs and no part of ``names``; the first ones
    where there are too many.

    Where no word does, all of them, for something must be compared.
    """
    named = {part.lower() for name in names for part in name.split()}
    places = [place for place, word in enumerate(words) if _tells(word) and word.lower() not in named]
    return (places or list(range(len(words))))[:at_most]


def rarities(words: Sequence[str], idf: Mapping[str, float]) -> list[float]:
    """What each word of a question counts: the greatest of its tokens' ``idf``. All the same where none is known."""
    found = [max((idf.get(term.token, 0.0) for term in analyse_query(word)), default=0.0) for word in words]
    return found if any(found) else [1.0] * len(words)


def agreements(
    nearest: Sequence[Sequence[float] | None],
    weights: Sequence[float],
    *,
    windows: Sequence[range],
    sessions: Sequence[Hashable],
) -> list[tuple[float, float, float]]:
    """``alike``, ``alike_near`` and ``alike_session`` of each passage.

    ``nearest`` has, for each passage, the cosine of its nearest word to each word of the question, which counts by
    ``weights``; None where its words have no vectors. ``windows`` are the places of a passage and its neighbours.
    Cost: about 3 ms for 600 passages and 6 words.
    """
    own, near, session = ([0.0] * len(nearest) for _ in range(3))
    for column, weight in enumerate(weights):
        values = _standardised([None if row is None else row[column] for row in nearest])
        best: dict[Hashable, float] = {}
        for name, value in zip(sessions, values, strict=True):
            best[name] = max(value, best.get(name, value))
        for place, value in enumerate(values):
            own[place] += weight * value
            near[place] += weight * max(values[windows[place].start : windows[place].stop])
            session[place] += weight * best[sessions[place]]
    return list(zip(*(nearness(sums) for sums in (own, near, session)), strict=True))


def joined_meaning(
    cosines: Sequence[float | None], lengths: Sequence[int], windows: Sequence[range]
) -> list[float | None]:
    """The mean cosine of each window, each passage counting by its length; None where none is known.

    It stands for the cosine of the window read as one text, whose vector is nearly the mean of its words'.
    """
    joined: list[float | None] = []
    for window in windows:
        known = [(cosines[place], lengths[place]) for place in window]
        told = [(cosine, length) for cosine, length in known if cosine is not None and length]
        total = sum(length for _, length in told)
        joined.append(sum(cosine * length for cosine, length in told) / total if total else None)
    return joined


def nearness(values: Sequence[float | None]) -> list[float]:
    """How far each value lies above the mean, in [-1, 1]; ``DEVIATIONS`` standard deviations are 1, 0 is for what is
    not known."""
    return [min(1.0, max(-1.0, value)) for value in _standardised(values)]


def _standardised(values: Sequence[float | None]) -> list[float]:
    known = [value for value in values if value is not None]
    if not known:
        return [0.0] * len(values)
    usual = sum(known) / len(known)
    deviation = math.sqrt(sum((value - usual) ** 2 for value in known) / len(known))
    spread = DEVIATIONS * deviation if deviation > _ALIKE else 1.0
    return [0.0 if value is None else (value - usual) / spread for value in values]


def _tells(word: str) -> bool:
    return any(sign.isalnum() for sign in word) and word.lower() not in STOP_WORDS
