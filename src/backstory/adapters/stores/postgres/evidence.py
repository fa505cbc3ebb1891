"""The EvidenceIndex in Postgres: passages by words and by vectors. How they come about is in ``passages.py``."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import psycopg

from backstory.adapters.stores.postgres.connection import Connection
from backstory.adapters.stores.postgres.filters import Where
from backstory.adapters.stores.postgres.passages import index_session, is_outdated, lock_evidence, mark_current
from backstory.adapters.stores.postgres.pgvector import as_text
from backstory.adapters.stores.postgres.storable import storable
from backstory.adapters.stores.postgres.tenancy import TENANT
from backstory.adapters.stores.sqlite.rows import from_us, to_us
from backstory.adapters.stores.vector_matrix import cosines, pack
from backstory.adapters.word_agreement import nearest_words
from backstory.domain.conversation import Role
from backstory.domain.evidence_passages import EvidencePassage, LoadedPassage, PassageLimits, PassageNumber
from backstory.domain.ids import MessageId, SessionId
from backstory.domain.word_match import BM25_B, BM25_K1
from backstory.ports.evidence import EmbeddedPassage, PassageSearch, Sight, UnembeddedPassage
from backstory.ports.index import affordable, check_length
from backstory.ports.models import EmbeddingModel, Vector, WordVectors

_Raw = psycopg.Connection[Any]  # Any: rows hold whatever a statement selects

_PLACE = ("created_us", "message", "part", "position")
_SESSION = "LEFT JOIN sessions s ON s.tenant = p.tenant AND s.id = p.session"
_RANKED = f"""
    SELECT p.n FROM unnest(%s::text[], %s::float8[]) AS w (term, idf)
    JOIN passage_terms t ON t.tenant = {TENANT} AND t.term = w.term
    JOIN passages p ON p.tenant = t.tenant AND p.n = t.n {_SESSION}
    WHERE {{condition}} GROUP BY p.n
    ORDER BY sum(w.idf * t.count / (t.count + {BM25_K1} * ({1 - BM25_B} + {BM25_B} * p.length / %s))) DESC, p.n DESC
    LIMIT %s
"""


class PostgresEvidenceIndex:
    """The EvidenceIndex over one store.

    With pgvector the server compares the vectors, without it this process; always exactly, since evidence is asked for
    now and then only.
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
        return await self._connection.read(lambda raw: self._cosines(raw, vector, _seen(sight), model, limit))

    async def neighbours(
        self, numbers: Sequence[PassageNumber], *, tokens: Sequence[str], reach: int = 1
    ) -> list[LoadedPassage]:
        distinct = tuple(dict.fromkeys(tokens))
        return await self._connection.read(lambda raw: _neighbours(raw, numbers, distinct, reach))

    async def similarities(
        self, vector: Vector, numbers: Sequence[PassageNumber], *, model: EmbeddingModel
    ) -> Mapping[PassageNumber, float]:
        check_length(vector, model)
        clause = Where([f"p.tenant = {TENANT}"])
        # said of the vectors: before the planner has seen them, it would look each up among all passages asked for
        clause.add("v.n = ANY(%s)", list(numbers))
        return await self._connection.read(lambda raw: self._cosines(raw, vector, clause, model, len(numbers)))

    async def compare_words(
        self, words: WordVectors, numbers: Sequence[PassageNumber], *, model: EmbeddingModel
    ) -> Mapping[PassageNumber, Sequence[float]]:
        statement = (
            f"SELECT n, words FROM passage_vectors WHERE tenant = {TENANT} AND n = ANY(%s) AND model = %s "
            "AND dimension = %s AND words IS NOT NULL"
        )
        parameters = (list(numbers), model.name, model.dimension)
        rows = await self._connection.read(lambda raw: raw.execute(statement, parameters, binary=True).fetchall())
        return nearest_words(words, {PassageNumber(n): matrix for n, matrix in rows})

    async def unembedded(self, *, model: EmbeddingModel, limit: int) -> list[UnembeddedPassage]:
        statement = (
            "SELECT p.n, coalesce((SELECT k.kind FROM parts k WHERE k.tenant = p.tenant AND k.id = p.part), ''), "
            f"p.text FROM passages p WHERE p.tenant = {TENANT} AND NOT EXISTS (SELECT 1 "
            "FROM passage_vectors v WHERE v.tenant = p.tenant AND v.n = p.n AND v.model = %s AND v.dimension = %s) "
            "ORDER BY p.n DESC LIMIT %s"
        )
        parameters = (model.name, model.dimension, limit)
        rows = await self._connection.read(lambda raw: raw.execute(statement, parameters).fetchall())
        return [UnembeddedPassage(number=PassageNumber(n), kind=kind, text=text) for n, kind, text in rows]

    async def put_vectors(self, vectors: Sequence[EmbeddedPassage], *, model: EmbeddingModel) -> int:
        for item in vectors:
            check_length(item.vector, model)
        packed = {item.number: pack(item.vector) for item in vectors}
        words = {item.number: item.words and item.words.matrix for item in vectors}

        def work(raw: _Raw) -> int:
            lock_evidence(raw)
            # deleted rather than updated, so that what hangs on a vector is made anew with it
            raw.execute(
                f"DELETE FROM passage_vectors WHERE tenant = {TENANT} AND model = %s AND n = ANY(%s)",
                (model.name, list(packed)),
            )
            return raw.execute(
                "INSERT INTO passage_vectors (n, model, dimension, vector, words) "
                "SELECT p.n, %s, %s, given.vector, given.words "
                "FROM unnest(%s::bigint[], %s::bytea[], %s::bytea[]) AS given (n, vector, words) "
                f"JOIN passages p ON p.tenant = {TENANT} AND p.n = given.n",
                (model.name, model.dimension, list(packed), list(packed.values()), list(words.values())),
            ).rowcount

        return await self._connection.write(work, again=work)

    async def vector_counts(self) -> Mapping[str, int]:
        statement = f"SELECT model, count(*) FROM passage_vectors WHERE tenant = {TENANT} GROUP BY model"
        return await self._connection.read(lambda raw: dict(raw.execute(statement).fetchall()))

    async def drop_vectors(self, *, model_name: str) -> int:
        statement = f"DELETE FROM passage_vectors WHERE tenant = {TENANT} AND model = %s"
        return await self._connection.write(lambda raw: raw.execute(statement, (model_name,)).rowcount)

    async def is_outdated(self) -> bool:
        return await self._connection.read(is_outdated)

    async def reindex(self) -> int:
        # a session at a time, so that others may write in between
        statement = (
            f"SELECT session FROM messages WHERE tenant = {TENANT} "
            f"UNION SELECT session FROM passages WHERE tenant = {TENANT}"
        )
        for (session,) in await self._connection.read(lambda raw: raw.execute(statement).fetchall()):
            work = partial(index_session, session=session, limits=self._limits)
            await self._connection.write(work, again=work)

        def finish(raw: _Raw) -> int:
            mark_current(raw)
            row = raw.execute(f"SELECT count(*) FROM passages WHERE tenant = {TENANT}").fetchone()
            return 0 if row is None else int(row[0])

        return await self._connection.write(finish, again=finish)

    def _cosines(
        self, raw: _Raw, vector: Vector, clause: Where, model: EmbeddingModel, limit: int
    ) -> dict[PassageNumber, float]:
        """The nearest of the passages that ``clause`` selects, nearest first, then the newest."""
        table = "passage_embeddings" if self._connection.has_vector else "passage_vectors"
        source = (
            f"FROM passages p {_SESSION} JOIN {table} v ON v.tenant = p.tenant AND v.n = p.n "
            f"WHERE v.model = %s AND v.dimension = %s AND {clause.sql}"
        )
        parameters = (model.name, model.dimension, *clause.parameters)
        if self._connection.has_vector:
            statement = f"SELECT v.n, v.embedding <#> %s AS distance {source} ORDER BY distance, v.n DESC LIMIT %s"
            rows = raw.execute(statement, (as_text(vector), *parameters, limit)).fetchall()
            return {PassageNumber(n): -distance for n, distance in rows}
        rows = raw.execute(f"SELECT v.n, v.vector {source}", parameters).fetchall()
        found = cosines([packed for _, packed in rows], vector)
        nearest = sorted(zip((n for n, _ in rows), found, strict=True), key=lambda item: (-item[1], -item[0]))
        return {PassageNumber(n): cosine for n, cosine in nearest[:limit]}


def _seen(sight: Sight) -> Where:
    """``scope.may_read`` and the rest of a sight, as conditions over ``passages AS p`` and ``sessions AS s``."""
    clause = Where([f"p.tenant = {TENANT}", "s.id IS NOT NULL", "s.deleted_us IS NULL"])
    if not sight.viewer.all_projects:
        clause.add("s.project = %s", sight.viewer.project)
    if sight.session is not None:
        clause.add("p.session = %s", *storable(sight.session))
    if sight.said is not None and sight.said.since is not None:
        clause.add("p.created_us >= %s", to_us(sight.said.since))
    if sight.said is not None and sight.said.until is not None:
        clause.add("p.created_us <= %s", to_us(sight.said.until))
    return clause


def _search_text(raw: _Raw, tokens: Sequence[str], sight: Sight, limit: int) -> PassageSearch:
    statistics = f"SELECT documents, tokens FROM passage_statistics WHERE tenant = {TENANT}"
    documents, total = raw.execute(statistics).fetchone() or (0, 0)
    # counted rather than kept: every passage would write the same few rows, those of the common words
    counts = f"SELECT term, count(*) FROM passage_terms WHERE tenant = {TENANT} AND term = ANY(%s) GROUP BY term"
    frequency = dict.fromkeys(tokens, 0) | dict(raw.execute(counts, (list(tokens),)).fetchall())
    wanted, _ = affordable(frequency, documents=documents)
    idf = [math.log1p((documents - frequency[token] + 0.5) / (frequency[token] + 0.5)) for token in wanted]
    mean = total / documents if documents else 0.0
    clause = _seen(sight)
    statement = _RANKED.format(condition=clause.sql)
    rows = raw.execute(statement, (wanted, idf, *clause.parameters, mean, limit)).fetchall() if wanted else []
    return PassageSearch(
        numbers=[PassageNumber(n) for (n,) in rows], frequency=frequency, documents=documents, mean_length=mean
    )


def _neighbours(raw: _Raw, numbers: Sequence[int], tokens: Sequence[str], reach: int) -> list[LoadedPassage]:
    statement = (
        f"SELECT p.n, {_next_to('<', 'DESC')}, {_next_to('>', 'ASC')} "
        f"FROM passages p WHERE p.tenant = {TENANT} AND p.n = ANY(%s)"
    )
    before: dict[int, int | None] = {}
    edge = set(numbers)
    for _ in range(reach + 1):
        rows = raw.execute(statement, (list(edge - before.keys()),)).fetchall()
        before |= {n: former for n, former, _ in rows}
        edge = {other for _, former, latter in rows for other in (former, latter) if other is not None}
    return _load(raw, before, tokens)


def _next_to(sign: str, direction: str) -> str:
    """The number of the passage next to ``p`` in its session, as a scalar subquery."""
    theirs, ours = (", ".join(f"{row}.{column}" for column in _PLACE) for row in ("x", "p"))
    order = ", ".join(f"x.{column} {direction}" for column in _PLACE)
    return (
        "(SELECT x.n FROM passages x WHERE x.tenant = p.tenant AND x.session = p.session "
        f"AND ({theirs}) {sign} ({ours}) ORDER BY {order} LIMIT 1)"
    )


def _load(raw: _Raw, before: Mapping[int, int | None], tokens: Sequence[str]) -> list[LoadedPassage]:
    statement = (
        "SELECT p.n, p.message, p.session, m.role, p.created_us, k.kind, p.text, s.parent IS NOT NULL, p.tokens "
        "FROM passages p JOIN messages m ON m.tenant = p.tenant AND m.id = p.message "
        f"JOIN parts k ON k.tenant = p.tenant AND k.id = p.part {_SESSION} "
        f"WHERE p.tenant = {TENANT} AND p.n = ANY(%s) ORDER BY p.session, {', '.join(f'p.{name}' for name in _PLACE)}"
    )
    return [_loaded(row, before[row[0]], tokens) for row in raw.execute(statement, (list(before),))]


def _loaded(row: Sequence[Any], before: int | None, tokens: Sequence[str]) -> LoadedPassage:
    n, message, session, role, created_us, kind, text, by_sub_agent, words = row
    counts = Counter(words.split())
    passage = EvidencePassage(
        number=PassageNumber(n),
        message=MessageId(message),
        session=SessionId(session),
        role=Role(role),
        at=from_us(created_us),
        kind=kind,
        text=text,
        by_sub_agent=by_sub_agent,
    )
    return LoadedPassage(
        passage=passage,
        held={token: counts[token] for token in tokens if token in counts},
        length=counts.total(),
        before=None if before is None else PassageNumber(before),
    )
