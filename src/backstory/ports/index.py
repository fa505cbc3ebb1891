"""Searching memories by words and by vectors. Indexes find candidates; ranking them is the domain's."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from backstory.domain.ids import MemoryId
from backstory.domain.selection import Selection
from backstory.errors import InputError
from backstory.ports.models import EmbeddingModel, Vector, WordVectors


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
    words: WordVectors | None = None


# A word in more than a fifth of the rows says little and makes FTS5 slow (measured: 276 ms at a million rows); below
# a thousand rows every word is cheap.
COMMON_SHARE = 0.2
COMMON_FROM_DOCUMENTS = 1000
# FTS5 takes 7 us to rank a row that matches (measured at 20,000 memories: 140 ms for a word in all of them).
RANKED_ROWS = 10_000


def is_common(count: int, *, documents: int) -> bool:
    """Whether a token that ``count`` of ``documents`` memories hold is too common to rank by."""
    return documents >= COMMON_FROM_DOCUMENTS and count > min(COMMON_SHARE * documents, RANKED_ROWS)


def affordable(frequency: Mapping[str, int], *, documents: int) -> tuple[list[str], frozenset[str]]:
    """The tokens to search for, and those left out because they are nearly everywhere, so that latency stays flat.

    From ``COMMON_FROM_DOCUMENTS`` memories on, common tokens (``is_common``) are left out, and of the others the most
    frequent ones where all together are held more than ``RANKED_ROWS`` times. The rarest of the known ones always
    stays; when even that is common, it stays alone. Unknown tokens are in neither.
    """
    known = {token: count for token, count in frequency.items() if count}
    if documents < COMMON_FROM_DOCUMENTS:
        return list(known), frozenset()
    rarest_first = sorted(known, key=lambda token: known[token])
    kept = rarest_first[:1]
    rows = sum(known[token] for token in kept)
    for token in rarest_first[1:]:
        rows += known[token]
        if rows > RANKED_ROWS or is_common(known[token], documents=documents):
            break
        kept.append(token)
    return kept, frozenset(known) - frozenset(kept)


def check_length(vector: Vector, model: EmbeddingModel) -> None:
    """Raise InputError if a vector cannot be this model's."""
    if len(vector) != model.dimension:
        raise InputError(f"the vector has {len(vector)} numbers; {model.name} makes {model.dimension}", field="vector")


@dataclass(frozen=True, slots=True, kw_only=True)
class WordAgreement:
    """How the words of a memory agree with those of a query, in their contexts; cosines in [-1, 1].

    ``nearest`` has, for each word of the query in order, the cosine of the memory's nearest word. ``answered`` is the
    mean, over the memory's words, of the cosine of the query's nearest word. ``words`` is how many the memory has.
    """

    nearest: tuple[float, ...]
    answered: float
    words: int


class TextIndex(Protocol):
    """Words to memories. Kept up to date by the store's own commits: there is no moment when a memory is unfindable."""

    async def search_text(self, tokens: Sequence[str], selection: Selection, *, limit: int) -> TextSearch:
        """Memories of the selection that hold any of the tokens (as the analyser made them), at most ``limit``.

        No token has special meaning. No tokens, or none that is indexed: no hits. Which common ones are left out is
        ``affordable``. When only a common one is left, the hits are its newest memories, highest number first: to rank
        all that hold it would cost more than it tells. ``matched`` of a hit tells of every token given, dropped ones
        too.
        """
        ...


class VectorIndex(Protocol):
    """Vectors to memories. Each vector carries its model; those of another model take no part in a search.

    A commit that changes a memory's text removes its vectors.
    """

    async def search_vectors(
        self, vector: Vector, selection: Selection, *, model: EmbeddingModel, limit: int
    ) -> list[VectorHit]:
        """The nearest memories of the selection, each once, nearest first, exactly: a small project is never starved
        by a large one. Similarities may be rounded to three digits. Raises InputError when the vector's length is not
        the model's dimension."""
        ...

    async def unembedded(self, *, model: EmbeddingModel, limit: int) -> list[Unembedded]:
        """Memories that have no vector of this model and dimension, highest number first; neither forgotten nor
        local-only ones, since those reach no model, not even one that embeds."""
        ...

    async def put_vectors(self, vectors: Sequence[Embedded], *, model: EmbeddingModel) -> int:
        """Store vectors, in place of those the memories had of this model; one whose memory changed since (another
        revision) or is unknown is skipped. Returns how many were stored. Raises InputError, and stores none, when a
        vector's length is not the model's dimension."""
        ...

    async def vectors_of(self, ids: Sequence[MemoryId], *, model: EmbeddingModel) -> Mapping[MemoryId, Vector]:
        """The stored vectors of these memories; those without one of this model and dimension are left out.

        They stand for the text that ``unembedded`` told, and may be rounded to half precision, which moves a cosine by
        about 2e-5.
        """
        ...

    async def compare_words(
        self, words: WordVectors, ids: Sequence[MemoryId], *, model: EmbeddingModel
    ) -> Mapping[MemoryId, WordAgreement]:
        """How the words of these memories agree with a query's (late interaction, as in ColBERT: Khattab and Zaharia,
        SIGIR 2020). Memories without vectors of words of this model and dimension are left out.
        """
        ...

    async def vector_counts(self) -> Mapping[str, int]:
        """How many vectors there are of each model name."""
        ...

    async def drop_vectors(self, *, model_name: str) -> int:
        """Remove all vectors of a model; returns how many."""
        ...
