"""Searching what was said in sessions: a pool of its own, never ranked in one list with memories.

Passages are derived from the archived messages. The ConversationStore of the same backend keeps them in step in its own
commits, so that there is no moment when a message is unfindable; ``reindex`` makes them anew.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from backstory.domain.evidence_passages import LoadedPassage, PassageNumber
from backstory.domain.ids import SessionId
from backstory.domain.scope import Viewer
from backstory.domain.time_range import TimeRange
from backstory.ports.models import EmbeddingModel, Vector, WordVectors


@dataclass(frozen=True, slots=True, kw_only=True)
class Sight:
    """Which evidence is meant: what the viewer may read (``scope.may_read``), of one session or of all, and said at any
    time or in a stretch of it, both ends included."""

    viewer: Viewer
    session: SessionId | None = None
    said: TimeRange | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class PassageSearch:
    """Passages that hold any of the words, best first by the index's own estimate, and the statistics to score them.

    As in ``TextSearch``, ``frequency``, ``documents`` and ``mean_length`` count the whole store.
    """

    numbers: Sequence[PassageNumber] = ()
    frequency: Mapping[str, int] = field(default_factory=dict)
    documents: int = 0
    mean_length: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class UnembeddedPassage:
    """A passage that has no vector of a model yet. Its text never changes: another text is another passage. ``kind`` is
    its part's; empty where the part is gone."""

    number: PassageNumber
    kind: str
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class EmbeddedPassage:
    """The vector of a passage, and those of the words in it that are to be compared, if any."""

    number: PassageNumber
    vector: Vector
    words: WordVectors | None = None


class EvidenceIndex(Protocol):
    """Words and vectors to passages. Indexes find candidates; scoring them is the domain's."""

    async def search_text(self, tokens: Sequence[str], sight: Sight, *, limit: int) -> PassageSearch:
        """At most ``limit`` passages in sight that hold any of the tokens (as the analyser made them).

        Which common tokens are left out of the search is ``affordable``. No tokens, or none indexed: no passages.
        """
        ...

    async def search_vectors(
        self, vector: Vector, sight: Sight, *, model: EmbeddingModel, limit: int
    ) -> Mapping[PassageNumber, float]:
        """The nearest passages in sight with their cosines, nearest first, exactly. Raises InputError when the vector's
        length is not the model's dimension. Cost: reads the vectors in sight, about 20 ms for 10,000."""
        ...

    async def neighbours(
        self, numbers: Sequence[PassageNumber], *, tokens: Sequence[str], reach: int = 1
    ) -> list[LoadedPassage]:
        """These passages and ``reach`` before and after each in its session, each once, in the order of their sessions
        and in them by time, message and place; numbers that are gone are left out. They are not limited to a sight,
        which is one for whole sessions."""
        ...

    async def similarities(
        self, vector: Vector, numbers: Sequence[PassageNumber], *, model: EmbeddingModel
    ) -> Mapping[PassageNumber, float]:
        """The cosines of these passages; those without a vector of this model are left out."""
        ...

    async def compare_words(
        self, words: WordVectors, numbers: Sequence[PassageNumber], *, model: EmbeddingModel
    ) -> Mapping[PassageNumber, Sequence[float]]:
        """For each of these passages, the cosine of its nearest word to each word of ``words``, in their order.

        Passages without vectors of words of this model, its dimension and the width of ``words`` are left out, as are
        those that are gone; no words, no passages. Cost: some 10 ms for 1,000 passages.
        """
        ...

    async def unembedded(self, *, model: EmbeddingModel, limit: int) -> list[UnembeddedPassage]:
        """Passages that have no vector of this model and dimension, the newest first."""
        ...

    async def put_vectors(self, vectors: Sequence[EmbeddedPassage], *, model: EmbeddingModel) -> int:
        """Store vectors, in place of those the passages had of this model; one whose passage is gone is skipped.
        Returns how many were stored. Raises InputError, and stores none, when a vector's length is not the model's
        dimension."""
        ...

    async def vector_counts(self) -> Mapping[str, int]:
        """How many vectors there are of each model name."""
        ...

    async def drop_vectors(self, *, model_name: str) -> int:
        """Remove all vectors of a model; returns how many."""
        ...

    async def is_outdated(self) -> bool:
        """Whether passages are missing, or their words were made by another version: ``reindex`` is due."""
        ...

    async def reindex(self) -> int:
        """Make all passages anew from the messages that are kept; returns how many there are. Vectors of unchanged
        passages stay."""
        ...
