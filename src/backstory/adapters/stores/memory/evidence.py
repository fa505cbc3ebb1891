"""Passages of the in-memory archive, by looking at every one."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from operator import mul

from backstory.adapters.stores.memory.conversation import InMemoryConversations
from backstory.adapters.word_agreement import nearest_words
from backstory.domain.evidence_passages import (
    EvidencePassage,
    LoadedPassage,
    PassageLimits,
    PassageNumber,
    indexed_text,
    passages_of,
)
from backstory.domain.ids import PartId, SessionId
from backstory.domain.scope import may_read
from backstory.domain.text import analyse
from backstory.ports.evidence import EmbeddedPassage, PassageSearch, Sight, UnembeddedPassage
from backstory.ports.index import affordable, check_length
from backstory.ports.models import EmbeddingModel, Vector, WordVectors


@dataclass(frozen=True, slots=True, kw_only=True)
class _Row:
    """A passage with its words, in its place."""

    passage: EvidencePassage
    words: Counter[str]


class InMemoryEvidenceIndex:
    """The EvidenceIndex; passages are cut at each call, and keep their numbers as long as their text."""

    def __init__(self, conversations: InMemoryConversations, limits: PassageLimits | None = None) -> None:
        self._conversations = conversations
        self._limits = limits or PassageLimits()
        self._numbers: dict[tuple[PartId, int, str], PassageNumber] = {}
        self._words: dict[PassageNumber, Counter[str]] = {}
        self._vectors: dict[tuple[PassageNumber, EmbeddingModel], EmbeddedPassage] = {}

    async def search_text(self, tokens: Sequence[str], sight: Sight, *, limit: int) -> PassageSearch:
        rows = self._rows()
        frequency = {token: sum(token in row.words for row in rows) for token in tokens}
        wanted, _ = affordable(frequency, documents=len(rows))
        rarity = {token: 1.0 / frequency[token] for token in wanted}
        hits = [row for row in self._in_sight(rows, sight) if not rarity.keys().isdisjoint(row.words)]
        hits.sort(key=lambda row: (-sum(rarity.get(word, 0.0) for word in row.words), -row.passage.number))
        return PassageSearch(
            numbers=[row.passage.number for row in hits[:limit]],
            frequency=frequency,
            documents=len(rows),
            mean_length=sum(row.words.total() for row in rows) / len(rows) if rows else 0.0,
        )

    async def search_vectors(
        self, vector: Vector, sight: Sight, *, model: EmbeddingModel, limit: int
    ) -> Mapping[PassageNumber, float]:
        numbers = [row.passage.number for row in self._in_sight(self._rows(), sight)]
        cosines = await self.similarities(vector, numbers, model=model)
        nearest = sorted(cosines, key=lambda n: (-cosines[n], -n))[:limit]
        return {n: cosines[n] for n in nearest}

    async def neighbours(
        self, numbers: Sequence[PassageNumber], *, tokens: Sequence[str], reach: int = 1
    ) -> list[LoadedPassage]:
        wanted = set(numbers)
        loaded: list[LoadedPassage] = []
        rows = sorted(self._rows(), key=lambda row: row.passage.session)  # stable: in each session by time
        for place, row in enumerate(rows):
            near = rows[max(0, place - reach) : place + reach + 1]
            session = row.passage.session
            if any(other.passage.number in wanted and other.passage.session == session for other in near):
                loaded.append(_loaded(row, rows[place - 1] if place else None, tokens))
        return loaded

    async def similarities(
        self, vector: Vector, numbers: Sequence[PassageNumber], *, model: EmbeddingModel
    ) -> Mapping[PassageNumber, float]:
        check_length(vector, model)
        known = {n: self._vectors[n, model] for n in numbers if (n, model) in self._vectors}
        return {n: sum(map(mul, vector, other.vector)) for n, other in known.items()}

    async def compare_words(
        self, words: WordVectors, numbers: Sequence[PassageNumber], *, model: EmbeddingModel
    ) -> Mapping[PassageNumber, Sequence[float]]:
        living = {row.passage.number for row in self._rows()}
        held = {n: self._vectors.get((n, model)) for n in numbers if n in living}
        return nearest_words(words, {n: item.words.matrix for n, item in held.items() if item and item.words})

    async def unembedded(self, *, model: EmbeddingModel, limit: int) -> list[UnembeddedPassage]:
        missing = [row.passage for row in self._rows() if (row.passage.number, model) not in self._vectors]
        missing.sort(key=lambda passage: -passage.number)
        return [UnembeddedPassage(number=item.number, kind=item.kind, text=item.text) for item in missing[:limit]]

    async def put_vectors(self, vectors: Sequence[EmbeddedPassage], *, model: EmbeddingModel) -> int:
        for item in vectors:
            check_length(item.vector, model)
        living = {row.passage.number for row in self._rows()}
        kept = {(item.number, model): item for item in vectors if item.number in living}
        self._vectors |= kept
        return len(kept)

    async def vector_counts(self) -> Mapping[str, int]:
        living = {row.passage.number for row in self._rows()}
        return Counter(model.name for number, model in self._vectors if number in living)

    async def drop_vectors(self, *, model_name: str) -> int:
        gone = [key for key in self._vectors if key[1].name == model_name]
        for key in gone:
            del self._vectors[key]
        return len(gone)

    async def is_outdated(self) -> bool:
        return False

    async def reindex(self) -> int:
        return len(self._rows())

    def _rows(self) -> list[_Row]:
        """Every passage, by time, message and place."""
        rows = []
        for message in self._conversations.told():
            session = self._conversations.known(message.session)
            for part in message.parts:
                for position, text in enumerate(passages_of(part, self._limits)):
                    number = self._numbers.setdefault((part.id, position, text), PassageNumber(len(self._numbers) + 1))
                    passage = EvidencePassage(
                        number=number,
                        message=message.id,
                        session=message.session,
                        role=message.role,
                        at=message.created_at,
                        kind=part.kind,
                        text=text,
                        by_sub_agent=session is not None and session.parent is not None,
                    )
                    rows.append(_Row(passage=passage, words=self._words_of(passage)))
        return rows

    def _words_of(self, passage: EvidencePassage) -> Counter[str]:
        if passage.number not in self._words:
            text = indexed_text(passage.text, role=passage.role, at=passage.at)
            self._words[passage.number] = Counter(analyse(text))
        return self._words[passage.number]

    def _in_sight(self, rows: Sequence[_Row], sight: Sight) -> list[_Row]:
        def seen(session_id: SessionId) -> bool:
            session = self._conversations.known(session_id)
            meant = sight.session is None or sight.session == session_id
            return meant and session is not None and may_read(session, sight.viewer)

        said = sight.said
        return [row for row in rows if seen(row.passage.session) and (said is None or said.contains(row.passage.at))]


def _loaded(row: _Row, previous: _Row | None, tokens: Sequence[str]) -> LoadedPassage:
    same = previous is not None and previous.passage.session == row.passage.session
    return LoadedPassage(
        passage=row.passage,
        held={token: row.words[token] for token in tokens if token in row.words},
        length=row.words.total(),
        before=previous.passage.number if previous is not None and same else None,
    )
