"""An embedder that keeps what it made in a file, so that a bench over the same texts need not embed them again."""

from __future__ import annotations

import hashlib
import sqlite3
import struct
from collections.abc import Sequence
from pathlib import Path

from backstory.ports.models import Embedder, EmbeddingModel, Passage, Vector

CACHE = Path(__file__).resolve().parents[1] / ".cache" / "bench"
_BATCH = 64


class CachedEmbedder:
    """The vectors of another embedder, kept by model and digest of the text: all that evidence goes by.

    Left out is what only memories are ranked with: vectors of words, and those that queries are asked with.
    """

    def __init__(self, embedder: Embedder, folder: Path = CACHE) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self._embedder = embedder
        self._raw = sqlite3.connect(folder / "vectors.db", timeout=60)
        self._raw.execute("PRAGMA journal_mode = WAL")
        self._raw.execute(
            "CREATE TABLE IF NOT EXISTS vectors (model TEXT, digest BLOB, vector BLOB, PRIMARY KEY (model, digest))"
        )

    async def model(self) -> EmbeddingModel:
        return await self._embedder.model()

    async def embed(self, texts: Sequence[str]) -> list[Vector | None]:
        model = await self._embedder.model()
        digests = [hashlib.blake2b(text.encode(), digest_size=16).digest() for text in texts]
        known = {digest: self._known(model, digest) for digest in digests}
        missing = [place for place, digest in enumerate(digests) if known[digest] is None]
        for start in range(0, len(missing), _BATCH):
            batch = missing[start : start + _BATCH]
            for place, vector in zip(batch, await self._embedder.embed([texts[n] for n in batch]), strict=True):
                known[digests[place]] = vector
                if vector is not None:
                    self._keep(model, digests[place], vector)
            self._raw.commit()
        return [known[digest] for digest in digests]

    async def read(self, texts: Sequence[str]) -> list[Passage | None]:
        return [None if vector is None else Passage(vector=vector) for vector in await self.embed(texts)]

    async def close(self) -> None:
        await self._embedder.close()
        self._raw.close()

    def _known(self, model: EmbeddingModel, digest: bytes) -> Vector | None:
        statement = "SELECT vector FROM vectors WHERE model = ? AND digest = ?"
        row = self._raw.execute(statement, (model.name, digest)).fetchone()
        return None if row is None else struct.unpack(f"<{model.dimension}f", row[0])

    def _keep(self, model: EmbeddingModel, digest: bytes, vector: Vector) -> None:
        blob = struct.pack(f"<{model.dimension}f", *vector)
        self._raw.execute("INSERT OR REPLACE INTO vectors VALUES (?, ?, ?)", (model.name, digest, blob))
