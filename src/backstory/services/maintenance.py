"""Work that keeps the store in shape: embedding what has no vector yet, and dropping vectors of old models."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from backstory.domain.evidence_talk import speaker_of, telling_places
from backstory.errors import ModelError
from backstory.ports.backend import Backend
from backstory.ports.evidence import EmbeddedPassage, UnembeddedPassage
from backstory.ports.index import Embedded
from backstory.ports.models import Embedder, EmbeddingModel, Passage, SecondEmbedder

BATCH = 32
PASSAGE_BATCH = 8  # passages are long: about a third of a second, in which a prompt may be waiting for its vector

Progress = Callable[[int], None]
GiveWay = Callable[[], Awaitable[None]]


@dataclass(frozen=True, slots=True, kw_only=True)
class EmbeddingReport:
    """What an embedding run did; ``stopped_because`` is set when the embedder failed and something is left over.

    ``embedded`` counts memories, ``second`` those that the second model embedded, ``passages`` those of evidence,
    ``dropped`` vectors of other models.
    """

    model: str | None
    embedded: int
    second: int = 0
    passages: int = 0
    dropped: int = 0
    stopped_because: str | None = None


class Maintenance:
    """Background work over the whole store."""

    def __init__(
        self,
        backend: Backend,
        embedder: Embedder | None,
        *,
        no_embedder: str,
        embed_evidence: bool = True,
        second: SecondEmbedder | None = None,
    ) -> None:
        """``embed_evidence`` False keeps messages from the embedder, which may be somebody else's. ``second`` embeds
        memories only, beside the embedder."""
        self._backend = backend
        self._embedder = embedder
        self._second = second
        self._no_embedder = no_embedder
        self._evidence_too = embed_evidence

    async def refresh_evidence(self) -> int:
        """Make the passages of evidence anew if another version made them, or none were; returns how many there are,
        and 0 if there was nothing to do."""
        return await self._backend.evidence.reindex() if await self._backend.evidence.is_outdated() else 0

    async def embed_missing(
        self, *, at_most: int | None = None, progress: Progress | None = None, give_way: GiveWay | None = None
    ) -> EmbeddingReport:
        """Give every memory a vector of the current model, newest first, then of the second one, then every passage of
        evidence; and drop vectors of other models.

        ``at_most`` bounds the number of memories, and then the rest is left alone. ``give_way`` is awaited before each
        batch of passages, and of memories for the second model. Safe to stop at any moment and to run in several
        processes. A text the embedder cannot use is left without a vector and does not stop the rest. An embedder that
        fails ends the run with a reason; a second one that does only ends its own part, and gives the reason.
        """
        if self._embedder is None:
            return EmbeddingReport(model=None, embedded=0, stopped_because=self._no_embedder)
        done = _Done(progress)
        dropped = 0
        failed: str | None = None
        name: str | None = None
        try:
            model = await self._embedder.model()
            complete = await self._embed_memories(model, at_most, done)
            failed = None if at_most is not None else await self._embed_by_second(done, give_way)
            if complete and failed is None:
                dropped = await self._drop_others(model)
            if at_most is None and self._evidence_too and await self._embed_evidence(model, done, give_way):
                dropped += await self._drop_other_evidence(model.name)
            name = model.name
        except ModelError as error:
            failed = str(error)
        return EmbeddingReport(
            model=name,
            embedded=done.memories,
            second=done.second,
            passages=done.passages,
            dropped=dropped,
            stopped_because=failed,
        )

    async def _embed_memories(self, model: EmbeddingModel, at_most: int | None, done: _Done) -> bool:
        """Whether none is left."""
        assert self._embedder is not None
        while at_most is None or done.memories < at_most:
            missing = await self._backend.vectors.unembedded(
                model=model, limit=BATCH if at_most is None else min(BATCH, at_most - done.memories)
            )
            if not missing:
                return True
            passages = await self._embedder.read([item.text for item in missing])
            ready = [
                Embedded(id=item.id, revision=item.revision, vector=passage.vector, words=passage.words)
                for item, passage in zip(missing, passages, strict=True)
                if passage is not None
            ]
            stored = await self._backend.vectors.put_vectors(ready, model=model)
            done.count(memories=stored)
            if not stored:
                break  # all of them changed meanwhile, or none can be embedded; the next run looks again
        return False

    async def _embed_by_second(self, done: _Done, give_way: GiveWay | None) -> str | None:
        """Why it ended early, if it did."""
        if self._second is None:
            return None
        try:
            model = await self._second.model()
            while missing := await self._backend.vectors.unembedded(model=model, limit=PASSAGE_BATCH):
                if give_way is not None:
                    await give_way()
                vectors = await self._second.passages([item.text for item in missing])
                ready = [
                    Embedded(id=item.id, revision=item.revision, vector=vector)
                    for item, vector in zip(missing, vectors, strict=True)
                    if vector is not None
                ]
                stored = await self._backend.vectors.put_vectors(ready, model=model)
                done.count(second=stored)
                if not stored:
                    break
        except ModelError as error:
            return str(error)
        return None

    async def _embed_evidence(self, model: EmbeddingModel, done: _Done, give_way: GiveWay | None) -> bool:
        """Whether none is left."""
        assert self._embedder is not None
        await self.refresh_evidence()
        while missing := await self._backend.evidence.unembedded(model=model, limit=PASSAGE_BATCH):
            if give_way is not None:
                await give_way()
            read = await self._embedder.read([item.text for item in missing])
            ready = [
                _embedded(item, passage) for item, passage in zip(missing, read, strict=True) if passage is not None
            ]
            stored = await self._backend.evidence.put_vectors(ready, model=model)
            done.count(passages=stored)
            if not stored:
                return False
        return True

    async def _drop_others(self, model: EmbeddingModel) -> int:
        """Vectors of former models are of no use once the current ones have embedded everything."""
        keep = {model.name}
        if self._second is not None:
            try:
                keep.add((await self._second.model()).name)
            except ModelError:
                return 0  # nobody knows now which vectors are the second model's
        counts = await self._backend.vectors.vector_counts()
        others = [name for name in counts if name not in keep]
        return sum([await self._backend.vectors.drop_vectors(model_name=name) for name in others])

    async def _drop_other_evidence(self, keep: str) -> int:
        others = [name for name in await self._backend.evidence.vector_counts() if name != keep]
        return sum([await self._backend.evidence.drop_vectors(model_name=name) for name in others])


def _embedded(item: UnembeddedPassage, passage: Passage) -> EmbeddedPassage:
    """With the vectors of the telling words where somebody speaks by name."""
    words = passage.words if speaker_of(item.text, kind=item.kind) is not None else None
    kept = None if words is None else words.at(telling_places(words.words))
    return EmbeddedPassage(number=item.number, vector=passage.vector, words=kept)


class _Done:
    """What a run has embedded so far."""

    def __init__(self, progress: Progress | None) -> None:
        self.memories = 0
        self.second = 0
        self.passages = 0
        self._progress = progress

    def count(self, *, memories: int = 0, second: int = 0, passages: int = 0) -> None:
        self.memories += memories
        self.second += second
        self.passages += passages
        if self._progress is not None:
            self._progress(memories + second + passages)
