"""Searching memories by words and by vectors. Indexes find candidates; ranking them is the domain's."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from backstory.domain.ids import MemoryId
from backstory.domain.selection import Selection
from backstory.ports.models import EmbeddingModel, Vector


@dataclass(frozen=True, slots=True, kw_only=True)
class TextHit:
    """A memory that holds at least one of the words: how often each matched, and how many tokens it has."""

    id: MemoryId
    matched: Mapping[str, int]
    length: int


@dataclass(frozen=True, slots=True, kw_only=True)
class TextSearch:
    """Candidates, best first by the index's own estimate, with the statistics to score them alike everywhere.

    ``frequency`` is the number of memories that hold each token (0 for unknown ones), ``documents`` the number of
    memories indexed, ``mean_length`` their mean number of tokens. All count the whole store, not the selection.
    ``dropped`` are tokens left out of the search because very many memories hold them.
    """

    hits: Sequence[TextHit] = ()
    frequency: Mapping[str, int] = field(default_factory=dict)
    documents: int = 0
    mean_length: float = 0.0
    dropped: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True, kw_only=True)
class VectorHit:
    """A memory and its cosine similarity to the query, in [-1, 1]."""

    id: MemoryId
    similarity: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Unembedded:
    """A memory that has no vector of a model yet; ``revision`` tells whether its text changed in the meantime."""

    id: MemoryId
    revision: int
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Embedded:
    """A vector for the text that a memory had at ``revision``."""

    id: MemoryId
    revision: int
    vector: Vector


class TextIndex(Protocol):
    """Words to memories. Kept up to date by the store's own commits: there is no moment when a memory is unfindable."""

    async def search_text(self, tokens: Sequence[str], selection: Selection, *, limit: int) -> TextSearch:
        """Memories of the selection that hold any of the tokens (as the analyser made them), at most ``limit``.

        No token has special meaning. No tokens, or none that is indexed: no hits. A token that more than a fifth of a
        large store holds is dropped while rarer ones remain, so that latency stays flat.
        """
        ...


class VectorIndex(Protocol):
    """Vectors to memories. Each vector carries its model; those of another model take no part in a search.

    A commit that changes a memory's text removes its vectors.
    """

    async def search_vectors(
        self, vector: Vector, selection: Selection, *, model: EmbeddingModel, limit: int
    ) -> list[VectorHit]:
        """The nearest memories of the selection, nearest first, exactly: a small project is never starved by a large
        one. Raises InputError when the vector's length is not the model's dimension."""
        ...

    async def unembedded(self, *, model: EmbeddingModel, limit: int) -> list[Unembedded]:
        """Memories that are not forgotten and have no vector of this model, newest first."""
        ...

    async def put_vectors(self, vectors: Sequence[Embedded], *, model: EmbeddingModel) -> int:
        """Store vectors; one whose memory changed since (another revision) is skipped. Returns how many were stored."""
        ...

    async def vector_counts(self) -> Mapping[str, int]:
        """How many vectors there are of each model name."""
        ...

    async def drop_vectors(self, *, model_name: str) -> int:
        """Remove all vectors of a model; returns how many."""
        ...
