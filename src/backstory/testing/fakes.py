"""Stand-ins for the world: a clock, ids, an embedder, a backend that fails; and sample memories."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from types import MappingProxyType
from typing import Any, NoReturn, cast

from backstory.domain.history import Action, Author, Change, Edit
from backstory.domain.ids import ChangeId, MemoryId, MessageId, ProjectId, SessionId, make_ulid
from backstory.domain.memory import Counters, Kind, Memory, Sensitivity, Source, Tier, Times, Visibility
from backstory.domain.provenance import Origin, Provenance
from backstory.domain.text import analyse
from backstory.errors import ModelUnavailable, StoreUnavailable
from backstory.ports.backend import Backend
from backstory.ports.models import EmbeddingModel, Passage, Vector, WordVectors
from backstory.ports.store import Capabilities, MemoryStore

START = datetime(2026, 3, 2, 12, 0, tzinfo=UTC)
ORCHARD = ProjectId("01BX5ZZKBKACTAV9WEVGEMMVRZ")
"""The project that sample memories belong to."""


class FakeClock:
    """A clock that moves only when told to."""

    def __init__(self, start: datetime = START) -> None:
        self.moment = start

    def now(self) -> datetime:
        return self.moment

    def advance(self, by: timedelta) -> None:
        """Let time pass; a negative ``by`` sets the clock back."""
        self.moment += by


class SequentialIds:
    """ULIDs that count up from 1; another ``series`` never gives the same ones."""

    def __init__(self, series: int = 0) -> None:
        self._series = series
        self._last = 0

    def new_id(self) -> str:
        self._last += 1
        return ulid(self._last, series=self._series)


def ulid(number: int, *, series: int = 0) -> str:
    """The ULID that stands for a number in tests; in order of the numbers."""
    return make_ulid(time_ms=series, randomness=number.to_bytes(10, "big"))


class HashEmbedder:
    """Unit vectors made from the tokens of a text, so that texts with words in common are near each other.

    Deterministic in every process. An empty text gives None; ``failing`` makes every call raise ModelUnavailable.
    """

    def __init__(self, *, name: str = "hash-embedder", dimension: int = 64) -> None:
        self._model = EmbeddingModel(name=name, dimension=dimension)
        self.failing = False
        self.closed = False

    async def model(self) -> EmbeddingModel:
        self._check()
        return self._model

    async def embed(self, texts: Sequence[str]) -> list[Vector | None]:
        self._check()
        return [hash_vector(text, dimension=self._model.dimension) if text.strip() else None for text in texts]

    async def read(self, texts: Sequence[str]) -> list[Passage | None]:
        vectors = await self.embed(texts)
        return [
            None if vector is None else Passage(vector=vector, words=hash_words(text))
            for text, vector in zip(texts, vectors, strict=True)
        ]

    async def close(self) -> None:
        self.closed = True

    def _check(self) -> None:
        if self.failing:
            raise ModelUnavailable("the embedder was told to fail")


def hash_vector(text: str, *, dimension: int = 64) -> Vector:
    """The unit vector of a text: each distinct token adds 1 in a place given by its digest."""
    vector = [0.0] * dimension
    for token in set(analyse(text)) or {text}:
        vector[hashlib.blake2b(token.encode("utf-8", "replace")).digest()[0] % dimension] += 1.0
    norm = math.sqrt(sum(number * number for number in vector))
    return [number / norm for number in vector]


def hash_words(text: str, *, dimension: int = 16) -> WordVectors:
    """Vectors of a text's words: the same word has the same one everywhere, different words most often differ."""
    words = tuple(text.lower().split())
    rows = [hashlib.blake2b(word.encode("utf-8", "replace"), digest_size=dimension).digest() for word in words]
    return WordVectors(words=words, dimension=dimension, matrix=b"".join(rows))


def sample_memory(content: str = "Deploys go through the staging cluster first.", **fields: Any) -> Memory:
    """A memory with every field at its default or as given; ``at`` sets all its times. Any: the fields of Memory.

    Its id is made from the text unless given, so that samples of different texts differ.
    """
    at = fields.pop("at", START)
    defaults: dict[str, Any] = {
        "id": MemoryId(make_ulid(time_ms=0, randomness=hashlib.blake2b(content.encode(), digest_size=10).digest())),
        "project": ORCHARD,
        "times": Times(learned=at, updated=at, confirmed=at),
    }
    return Memory(content=content, **(defaults | fields))


FULL_MEMORY = sample_memory(
    "Ünïcödé 🚀 and \"quotes\" and 'more', \\ and a\nsecond line",
    kind=Kind.DECISION,
    visibility=Visibility.SESSION,
    session=SessionId("ses-1"),
    area="deploy/staging",
    tags=("zebra", "apple", "日本"),
    issue="OPS-4",
    tier=Tier.TEMPORARY,
    pinned=True,
    expires_at=datetime(2030, 1, 1, 0, 0, 0, 123456, tzinfo=UTC),
    sensitivity=Sensitivity.PRIVATE,
    origin=Origin.AGENT,
    source=Source.CAPTURED,
    confidence=0.1,
    weight=0.3,
    namespace="team",
    provenance=Provenance(
        session=SessionId("ses-0"),
        messages=(MessageId("m2"), MessageId("m1")),
        derived_from=(MemoryId(ulid(3, series=7)), MemoryId(ulid(2, series=7))),
        tool="memory_remember",
        agent="build",
        extracted_at=START,
        origin_system="other",
        origin_id="17",
        raw=MappingProxyType({"mood": "good", "": "empty name"}),
    ),
    times=Times(
        learned=datetime(1, 1, 2, tzinfo=UTC),
        updated=datetime(2026, 3, 2, 12, 0, 0, 1, tzinfo=UTC),
        confirmed=datetime(9999, 12, 30, tzinfo=UTC),
        surfaced=START,
        used=START + timedelta(hours=1),
    ),
    counters=Counters(helpful=1, irrelevant=2, surfaced=3, recalled=4, sessions=5),
)
"""A memory with no field at its default."""


def sample_change(number: int, *edits: Edit, **fields: Any) -> Change:
    """A change whose id stands for ``number``. Any: the fields of Change."""
    defaults: dict[str, Any] = {"at": START, "author": Author.USER, "action": Action.ADD}
    return Change(id=ChangeId(ulid(number, series=1)), edits=edits, **(defaults | fields))


async def add_memories(store: MemoryStore, *memories: Memory, first_change: int = 1) -> list[Memory]:
    """Commit each memory as a change of its own, in order; returns them as stored."""
    stored = []
    for number, memory in enumerate(memories, start=first_change):
        change = await store.commit(sample_change(number, Edit(before=None, after=memory), at=memory.times.learned))
        stored.append(change.edits[0].after)
    return stored


def failing_backend(
    *, error: Callable[[], Exception] = lambda: StoreUnavailable("the disk is on fire"), only: str = "", over: Backend
) -> Backend:
    """A backend whose methods raise ``error``: all, or those with ``only`` in their name; the others reach ``over``."""
    ports = ["memories", "text", "vectors", "conversations", "evidence", "projects", "ledger", "digests", "dreams"]
    parts = {name: _Failing(getattr(over, name), error, only) for name in (*ports, "doubts")}
    return replace(over, **cast("dict[str, Any]", parts))  # the wrappers answer to any port


class _Failing:
    def __init__(self, port: object, error: Callable[[], Exception], only: str) -> None:
        self._port = port
        self._error = error
        self._only = only

    @property
    def capabilities(self) -> Capabilities:
        return cast("MemoryStore", self._port).capabilities  # asked of the memory store alone

    def __getattr__(self, name: str) -> Any:  # Any: whatever the port has under that name
        if self._only not in name:
            return getattr(self._port, name)

        async def fail(*args: object, **keywords: object) -> NoReturn:
            raise self._error()

        return fail
