"""The EvidenceIndex in SQLite: passages by words and by vectors. How they come about is in ``passages.py``."""

from __future__ import annotations

import sqlite3
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from typing import Any

from backstory.adapters.stores.sqlite.connection import Connection
from backstory.adapters.stores.sqlite.passages import index_session, is_outdated, mark_current
from backstory.adapters.stores.sqlite.rows import from_us, to_us
from backstory.adapters.stores.vector_matrix import cosines, nearest, pack
from backstory.adapters.word_agreement import nearest_words
from backstory.domain.conversation import Role
from backstory.domain.evidence_passages import EvidencePassage, LoadedPassage, PassageLimits, PassageNumber
from backstory.domain.ids import MessageId, SessionId
from backstory.ports.evidence import EmbeddedPassage, PassageSearch, Sight, UnembeddedPassage
from backstory.ports.index import affordable, check_length
from backstory.ports.models import EmbeddingModel, Vector, WordVectors

_PLACE = "created_us, message, part, position"
_BATCH = 500  # stays below SQLite's limit of bound parameters in every build since 3.7 (999)


class SqliteEvidenceIndex:
    """The EvidenceIndex over one connection. numpy is imported at the first search by vector.

    Vectors are read anew for each search: evidence is asked for now and then, and the vectors of a long history would
    take more memory than all else.
    """

    def __init__(self, connection: Connection, limits: PassageLimits) -> None:
        self._connection = connection
        self._limits = limits

    async def search_text(self, tokens: Sequence[str], sight: Sight, *, limit: int) -> PassageSearch:
        distinct = tuple(dict.fromkeys(tokens))
        return await self._connection.read(lambda raw: _search_text(raw, distinct, sight, limit))

    async def search_vectors(
        self, vector: Vector, sight: Sight, *, model: EmbeddingModel, limit: int
    ) -> Mapping[PassageNumber, float]:
        check_length(vector, model)
        condition, parameters = _seen(sight)
        statement = (
            "SELECT v.n, v.vector FROM passages p JOIN sessions s ON s.id = p.session "
            f"JOIN passage_vectors v ON v.n = p.n WHERE v.model = ? AND v.dimension = ? AND {condition}"
        )
        wanted = (model.name, model.dimension, *parameters)
        rows = await self._connection.read(lambda raw: raw.execute(statement, wanted).fetchall())
        return {PassageNumber(n): cosine for n, cosine in nearest(rows, vector, limit=limit)}

    async def neighbours(
        self, numbers: Sequence[PassageNumber], *, tokens: Sequence[str], reach: int = 1
    ) -> list[LoadedPassage]:
        distinct = tuple(dict.fromkeys(tokens))
        return await self._connection.read(lambda raw: _neighbours(raw, numbers, distinct, reach))

    async def similarities(
        self, vector: Vector, numbers: Sequence[PassageNumber], *, model: EmbeddingModel
    ) -> Mapping[PassageNumber, float]:
        check_length(vector, model)
        statement = "SELECT n, vector FROM passage_vectors WHERE model = ? AND dimension = ? AND n IN ({marks})"

        def work(raw: sqlite3.Connection) -> list[tuple[Any, ...]]:
            return list(_in_batches(raw, statement, numbers, model.name, model.dimension))

        rows = await self._connection.read(work)
        found = zip(rows, cosines([blob for _, blob in rows], vector), strict=True)
        return {PassageNumber(n): cosine for (n, _), cosine in found}

    async def compare_words(
        self, words: WordVectors, numbers: Sequence[PassageNumber], *, model: EmbeddingModel
    ) -> Mapping[PassageNumber, Sequence[float]]:
        # CROSS JOIN fixes the order: passages without words cost no look at their vectors
        statement = (
            "SELECT w.n, w.words FROM passage_word_vectors w CROSS JOIN passage_vectors v ON v.n = w.n "
            "AND v.model = w.model WHERE w.model = ? AND v.dimension = ? AND w.n IN ({marks})"
        )

        def work(raw: sqlite3.Connection) -> list[tuple[Any, ...]]:
            return list(_in_batches(raw, statement, numbers, model.name, model.dimension))

        rows = await self._connection.read(work)
        return nearest_words(words, {PassageNumber(n): matrix for n, matrix in rows})

    async def unembedded(self, *, model: EmbeddingModel, limit: int) -> list[UnembeddedPassage]:
        statement = (
            "SELECT p.n, coalesce((SELECT k.kind FROM parts k WHERE k.id = p.part), ''), p.text FROM passages p "
            "WHERE NOT EXISTS "
            "(SELECT 1 FROM passage_vectors v WHERE v.n = p.n AND v.model = ? AND v.dimension = ?) "
            "ORDER BY p.n DESC LIMIT ?"
        )
        parameters = (model.name, model.dimension, limit)
        rows = await self._connection.read(lambda raw: raw.execute(statement, parameters).fetchall())
        return [UnembeddedPassage(number=PassageNumber(n), kind=kind, text=text) for n, kind, text in rows]

    async def put_vectors(self, vectors: Sequence[EmbeddedPassage], *, model: EmbeddingModel) -> int:
        for item in vectors:
            check_length(item.vector, model)
        packed = [(item, pack(item.vector)) for item in vectors]
        return await self._connection.write(lambda raw: sum(_put_vector(raw, *row, model) for row in packed))

    async def vector_counts(self) -> Mapping[str, int]:
        statement = "SELECT model, count(*) FROM passage_vectors GROUP BY model"
        return await self._connection.read(lambda raw: {str(name): int(n) for name, n in raw.execute(statement)})

    async def drop_vectors(self, *, model_name: str) -> int:
        statement = "DELETE FROM passage_vectors WHERE model = ?"
        return await self._connection.write(lambda raw: raw.execute(statement, (model_name,)).rowcount)

    async def is_outdated(self) -> bool:
        return await self._connection.read(is_outdated)

    async def reindex(self) -> int:
        # a session at a time, so that others may write in between
        statement = "SELECT session FROM messages UNION SELECT session FROM passages"
        for (session,) in await self._connection.read(lambda raw: raw.execute(statement).fetchall()):
            await self._connection.write(partial(index_session, session=session, limits=self._limits))

        def finish(raw: sqlite3.Connection) -> int:
            mark_current(raw)
            return int(raw.execute("SELECT count(*) FROM passages").fetchone()[0])

        return await self._connection.write(finish)


def _seen(sight: Sight) -> tuple[str, list[object]]:
    """``scope.may_read`` and the rest of a sight, as a condition over ``passages AS p`` and ``sessions AS s``."""
    conditions, parameters = ["s.deleted_us IS NULL"], list[object]()
    if not sight.viewer.all_projects:
        conditions.append("s.project = ?")
        parameters.append(sight.viewer.project)
    if sight.session is not None:
        conditions.append("s.id = ?")
        parameters.append(sight.session)
    if sight.said is not None and sight.said.since is not None:
        conditions.append("p.created_us >= ?")
        parameters.append(to_us(sight.said.since))
    if sight.said is not None and sight.said.until is not None:
        conditions.append("p.created_us <= ?")
        parameters.append(to_us(sight.said.until))
    return " AND ".join(conditions), parameters


def _search_text(raw: sqlite3.Connection, tokens: Sequence[str], sight: Sight, limit: int) -> PassageSearch:
    documents, total = raw.execute("SELECT documents, tokens FROM passage_statistics").fetchone()
    frequency = {token: _frequency(raw, token) for token in tokens}
    wanted, _ = affordable(frequency, documents=documents)
    condition, parameters = _seen(sight)
    statement = (
        "SELECT w.rowid FROM passage_words w JOIN passages p ON p.n = w.rowid JOIN sessions s ON s.id = p.session "
        f"WHERE w.passage_words MATCH ? AND {condition} ORDER BY w.rank, w.rowid DESC LIMIT ?"
    )
    phrase = " OR ".join('"' + token.replace('"', '""') + '"' for token in wanted)
    rows = raw.execute(statement, (phrase, *parameters, limit)).fetchall() if wanted else []
    return PassageSearch(
        numbers=[PassageNumber(n) for (n,) in rows],
        frequency=frequency,
        documents=documents,
        mean_length=total / documents if documents else 0.0,
    )


def _frequency(raw: sqlite3.Connection, token: str) -> int:
    row = raw.execute("SELECT doc FROM passage_vocabulary WHERE term = ?", (token,)).fetchone()
    return 0 if row is None else int(row[0])


def _neighbours(
    raw: sqlite3.Connection, numbers: Sequence[int], tokens: Sequence[str], reach: int
) -> list[LoadedPassage]:
    before: dict[int, int | None] = {}
    edge = set(numbers)
    for step in range(reach + 1):
        around: set[int] = set()
        for n in edge - before.keys():
            place = raw.execute(f"SELECT session, {_PLACE} FROM passages WHERE n = ?", (n,)).fetchone()
            if place is None:
                continue
            before[n] = _next_to(raw, place, "<", "DESC")
            around |= {other for other in (before[n], _next_to(raw, place, ">", "ASC")) if other is not None}
        if step == reach:
            break
        edge = around
    return _load(raw, before, tokens)


def _next_to(raw: sqlite3.Connection, place: Sequence[object], sign: str, direction: str) -> int | None:
    order = ", ".join(f"{column} {direction}" for column in _PLACE.split(", "))
    row = raw.execute(
        f"SELECT n FROM passages WHERE session = ? AND ({_PLACE}) {sign} (?, ?, ?, ?) ORDER BY {order} LIMIT 1", place
    ).fetchone()
    return None if row is None else int(row[0])


def _load(raw: sqlite3.Connection, before: Mapping[int, int | None], tokens: Sequence[str]) -> list[LoadedPassage]:
    statement = (
        "SELECT p.n, p.message, p.session, m.role, p.created_us, k.kind, p.text, s.parent IS NOT NULL, w.tokens, "
        "p.part, p.position FROM passages p JOIN messages m ON m.id = p.message JOIN parts k ON k.id = p.part "
        "JOIN passage_words w ON w.rowid = p.n LEFT JOIN sessions s ON s.id = p.session WHERE p.n IN ({marks})"
    )
    rows = list(_in_batches(raw, statement, list(before)))
    rows.sort(key=lambda row: (row[2], row[4], row[1], row[9], row[10]))
    return [_loaded(row, before[row[0]], tokens) for row in rows]


def _loaded(row: Sequence[object], before: int | None, tokens: Sequence[str]) -> LoadedPassage:
    n, message, session, role, created_us, kind, text, by_sub_agent, words, *_ = row
    counts = Counter(str(words).split())
    passage = EvidencePassage(
        number=PassageNumber(int(str(n))),
        message=MessageId(str(message)),
        session=SessionId(str(session)),
        role=Role(str(role)),
        at=from_us(int(str(created_us))),
        kind=str(kind),
        text=str(text),
        by_sub_agent=bool(by_sub_agent),
    )
    return LoadedPassage(
        passage=passage,
        held={token: counts[token] for token in tokens if token in counts},
        length=counts.total(),
        before=None if before is None else PassageNumber(before),
    )


def _put_vector(raw: sqlite3.Connection, item: EmbeddedPassage, vector: bytes, model: EmbeddingModel) -> int:
    """How many vectors were stored: none where the passage is gone. The row before goes, and its words with it."""
    statement = (
        "INSERT OR REPLACE INTO passage_vectors (n, model, dimension, vector) "
        "SELECT n, ?, ?, ? FROM passages WHERE n = ?"
    )
    stored = raw.execute(statement, (model.name, model.dimension, vector, item.number)).rowcount
    if stored and item.words is not None:
        words = (item.number, model.name, item.words.matrix)
        # REPLACE: whoever deletes vectors by hand leaves the words, for the sqlite3 shell keeps to no foreign keys
        raw.execute("INSERT OR REPLACE INTO passage_word_vectors (n, model, words) VALUES (?, ?, ?)", words)
    return stored


def _in_batches(
    raw: sqlite3.Connection, statement: str, numbers: Sequence[int], *first: object
) -> Iterable[tuple[Any, ...]]:  # Any: whatever the statement selects
    for start in range(0, len(numbers), _BATCH):
        batch = numbers[start : start + _BATCH]
        yield from raw.execute(statement.format(marks=", ".join("?" * len(batch))), (*first, *batch))
