"""What the local model made of texts, words included, kept in a file: reading 10,000 distractors takes minutes."""

from __future__ import annotations

import hashlib
import json
import sqlite3
import struct
from collections.abc import Sequence
from pathlib import Path

from backstory.domain.evidence_talk import telling_places
from backstory.ports.models import Embedder, EmbeddingModel, Passage, Vector, WordVectors

CACHE = Path(__file__).resolve().parents[1] / ".cache" / "bench"
_BATCH = 64
_PROBE = "Which words does the model make of this probe?"


class KeptPassages:
    """An embedder that asks another one only for texts it has not seen. Kept by model and digest of the text.

    What a model makes of a probe is part of its name here, so that a model changed under its name is read anew.
    """

    def __init__(self, embedder: Embedder, folder: Path = CACHE, *, for_evidence: bool = False) -> None:
        """``for_evidence`` keeps only the vectors of words that evidence compares, few of a long text."""
        folder.mkdir(parents=True, exist_ok=True)
        self._embedder = embedder
        self._for_evidence = for_evidence
        self._name: str | None = None
        self._raw = sqlite3.connect(folder / ("evidence.db" if for_evidence else "passages.db"), timeout=60)
        self._raw.execute("PRAGMA journal_mode = WAL")
        self._raw.execute(
            "CREATE TABLE IF NOT EXISTS passages (model TEXT, digest BLOB, vector BLOB, dimension INTEGER, words TEXT,"
            " matrix BLOB, PRIMARY KEY (model, digest)) WITHOUT ROWID"
        )

    async def model(self) -> EmbeddingModel:
        return await self._embedder.model()

    async def embed(self, texts: Sequence[str]) -> list[Vector | None]:
        return [None if passage is None else passage.vector for passage in await self.read(texts)]

    async def read(self, texts: Sequence[str]) -> list[Passage | None]:
        if len(texts) == 1:  # a query, which has a vector of its own to search with; quick to read anew
            return await self._embedder.read(texts)
        model = EmbeddingModel(name=await self._exact_name(), dimension=(await self._embedder.model()).dimension)
        digests = [hashlib.blake2b(text.encode("utf-8", "replace"), digest_size=16).digest() for text in texts]
        found = [self._kept(model, digest) for digest in digests]
        missing = [place for place, passage in enumerate(found) if passage is None]
        for start in range(0, len(missing), _BATCH):
            places = missing[start : start + _BATCH]
            fresh = await self._embedder.read([texts[place] for place in places])
            for place, passage in zip(places, fresh, strict=True):
                found[place] = passage
                if passage is not None:
                    self._keep(model, digests[place], passage)
            self._raw.commit()
        return found

    async def close(self) -> None:
        await self._embedder.close()
        self._raw.close()

    def _kept(self, model: EmbeddingModel, digest: bytes) -> Passage | None:
        statement = "SELECT vector, dimension, words, matrix FROM passages WHERE model = ? AND digest = ?"
        row = self._raw.execute(statement, (model.name, digest)).fetchone()
        if row is None:
            return None
        blob, dimension, words, matrix = row
        said = None if words is None else tuple(json.loads(words))
        return Passage(
            vector=struct.unpack(f"<{model.dimension}f", blob),
            words=None if said is None else WordVectors(words=said, dimension=dimension, matrix=matrix),
        )

    def _keep(self, model: EmbeddingModel, digest: bytes, passage: Passage) -> None:
        blob = struct.pack(f"<{model.dimension}f", *passage.vector)
        words = passage.words
        if words is not None and self._for_evidence:
            words = words.at(telling_places(words.words))
        said = (None, None, None) if words is None else (words.dimension, json.dumps(words.words), words.matrix)
        self._raw.execute(
            "INSERT OR REPLACE INTO passages VALUES (?, ?, ?, ?, ?, ?)", (model.name, digest, blob, *said)
        )

    async def _exact_name(self) -> str:
        if self._name is None:
            (passage,) = await self._embedder.read([_PROBE])
            words = b"" if passage is None or passage.words is None else passage.words.matrix
            self._name = f"{(await self._embedder.model()).name} {hashlib.blake2b(words, digest_size=8).hexdigest()}"
        return self._name
