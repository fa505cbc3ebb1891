"""What is asked of the memories, and what an answer is."""

from __future__ import annotations

from dataclasses import dataclass

from backstory.domain.doubt import Doubt
from backstory.domain.memory import Kind, Memory
from backstory.domain.ranking import Score
from backstory.domain.relevance import REQUESTED, Threshold
from backstory.domain.scope import Viewer
from backstory.domain.time_range import TimeRange

MAX_QUERY_CHARS = 2000  # more than this of a long prompt adds noise and time, not meaning
MAX_LIMIT = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class Query:
    """What is looked for. An empty ``text`` browses, newest first.

    ``offerable`` leaves out what is never offered unasked. ``threshold`` says how good a match must be.
    ``embed_within_s`` bounds the wait for the query's vector, and with it for the language model; None waits.
    """

    text: str
    viewer: Viewer
    limit: int = 10
    tags: tuple[str, ...] = ()
    kinds: frozenset[Kind] = frozenset()
    area: str | None = None
    learned: TimeRange | None = None
    with_superseded: bool = False
    offerable: bool | None = None
    threshold: Threshold = REQUESTED
    lexical_only: bool = False
    embed_within_s: float | None = None

    @property
    def is_narrowed(self) -> bool:
        """Whether more is asked for than a text: a kind, an area, tags or a time."""
        return bool(self.tags or self.kinds or self.area or self.learned)


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """One memory that answers, how well (0 to 1), and why; and why it should be checked first, if it should."""

    memory: Memory
    score: Score
    reasons: tuple[str, ...]
    doubt: Doubt | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Skipped:
    """A part of the search that could not be done, so that the answer may be poorer than usual."""

    part: str
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Recalled:
    """The answer: results, best first; or none and why. ``considered`` counts the candidates that were scored."""

    results: tuple[Result, ...] = ()
    silent_because: str | None = None
    skipped: tuple[Skipped, ...] = ()
    considered: int = 0
