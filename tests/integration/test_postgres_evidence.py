"""Evidence in Postgres: what a host tells in odd characters, at the same moment, and under an older analyser."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial

import anyio
import pytest

pytest.importorskip("psycopg")

from backstory.adapters.stores.postgres.store import open_postgres
from backstory.domain.conversation import FrozenBlock, Message, Part, Role, Session, ShownMemory
from backstory.domain.ids import MemoryId, MessageId, PartId, SessionId
from backstory.domain.scope import Viewer
from backstory.domain.text import ANALYSER_VERSION
from backstory.ports.backend import Backend
from backstory.ports.evidence import Sight
from backstory.testing.fakes import ORCHARD, START, ulid
from backstory.testing.postgres import PostgresForTests, postgres_for_tests, why_there_is_none

S1 = SessionId("s1")
SIGHT = Sight(viewer=Viewer(project=ORCHARD))
SESSION = Session(id=S1, project=ORCHARD, host="opencode", directory="/repo", created_at=START, updated_at=START)


@pytest.fixture(scope="module")
def server() -> PostgresForTests:
    if (reason := why_there_is_none()) is not None:
        pytest.skip(reason)
    return postgres_for_tests()


@pytest.fixture
def schema(server: PostgresForTests) -> str:
    return server.new_name()


@pytest.fixture
def backend(server: PostgresForTests, schema: str) -> Iterator[Backend]:
    opened = open_postgres(server.dsn(), schema=schema)
    yield opened
    anyio.run(opened.memories.close)


def message(name: str, *parts: Part, session: SessionId = S1) -> Message:
    return Message(id=MessageId(name), session=session, role=Role.USER, created_at=START, parts=parts)


def part(name: str, text: str) -> Part:
    return Part(id=PartId(name), kind="text", text=text)


async def found(backend: Backend, token: str) -> list[str]:
    search = await backend.evidence.search_text([token], SIGHT, limit=9)
    loaded = await backend.evidence.neighbours(search.numbers, tokens=[token], reach=0)
    return sorted(item.passage.text for item in loaded)


def test_what_postgres_cannot_hold_is_kept_with_a_mark_in_its_place(backend: Backend) -> None:
    odd, mended = "gate\x00 and \ud800 half", "gate\ufffd and \ufffd half"
    store = backend.conversations

    async def check() -> None:
        await store.put_session(SESSION)
        await store.put_messages([message("m\x001", part("p\x001", odd))])
        (stored,) = await store.find_messages([MessageId("m\x001")])
        assert (stored.id, stored.parts[0].text) == ("m\ufffd1", mended)
        assert await store.messages(S1) == [stored]
        assert await found(backend, "gate") == [mended]
        shown = (ShownMemory(memory=MemoryId(ulid(1)), n=1, score=0.5, reason=odd),)
        block = FrozenBlock(
            message=MessageId("m\x001"), session=S1, text=odd, shown=shown, silent_because=None, created_at=START
        )
        kept = await store.freeze_block(block)
        assert (kept.text, kept.shown[0].reason) == (mended, mended)
        assert await store.blocks([block.message]) == {block.message: kept}
        await store.remove_part(PartId("p\x001"))
        assert await found(backend, "gate") == []

    anyio.run(check)


def test_a_part_and_its_message_told_at_the_same_moment_find_each_other(
    server: PostgresForTests, schema: str, backend: Backend
) -> None:
    other = open_postgres(server.dsn(), schema=schema)
    anyio.run(backend.conversations.put_session, SESSION)
    count = 25
    with ThreadPoolExecutor(2) as pool:
        for n in range(count):
            put = partial(other.conversations.put_part, message=MessageId(f"m{n}"), session=S1)
            told = [
                pool.submit(anyio.run, put, part(f"p{n}", f"gate {n}")),
                pool.submit(anyio.run, partial(backend.conversations.put_messages, [message(f"m{n}")])),
            ]
            for future in told:
                future.result(timeout=240)

    async def check() -> None:
        search = await backend.evidence.search_text(["gate"], SIGHT, limit=99)
        assert (len(search.numbers), search.documents, search.frequency["gate"]) == (count, count, count)
        await other.memories.close()

    anyio.run(check)


def test_many_writers_of_one_session_lose_nothing(server: PostgresForTests, schema: str, backend: Backend) -> None:
    anyio.run(backend.conversations.put_session, SESSION)
    writers = [open_postgres(server.dsn(), schema=schema) for _ in range(4)]

    def tell(writer: int) -> None:
        async def write() -> None:
            for n in range(12):
                shared = message("shared", part(f"shared-{n}", f"hedge {n}"))
                await writers[writer].conversations.put_messages(
                    [message(f"m{writer}-{n}", part(f"p{writer}-{n}", "gate")), shared]
                )
            await writers[writer].memories.close()

        anyio.run(write)

    with ThreadPoolExecutor(len(writers)) as pool:
        list(pool.map(tell, range(len(writers))))

    async def check() -> None:
        search = await backend.evidence.search_text(["gate", "hedg"], SIGHT, limit=99)
        assert dict(search.frequency) == {"gate": 48, "hedg": 12}
        assert search.documents == 60
        assert await backend.evidence.reindex() == 60
        again = await backend.evidence.search_text(["gate", "hedg"], SIGHT, limit=99)
        assert (again.documents, again.mean_length) == (60, search.mean_length)

    anyio.run(check)


def test_tenants_share_no_evidence_though_their_ids_are_the_same(
    server: PostgresForTests, schema: str, backend: Backend
) -> None:
    theirs = open_postgres(server.dsn(), schema=schema, tenant="other team")

    async def check() -> None:
        for tenant, text in ((backend, "gate here"), (theirs, "gate there")):
            await tenant.conversations.put_session(SESSION)
            await tenant.conversations.put_messages([message("m1", part("p1", text))])
        assert await found(backend, "gate") == ["gate here"]
        assert await found(theirs, "gate") == ["gate there"]
        assert await theirs.conversations.count_messages() == 1
        await theirs.memories.close()

    anyio.run(check)


def test_words_of_another_analyser_are_made_anew(server: PostgresForTests, schema: str, backend: Backend) -> None:
    async def check() -> None:
        await backend.conversations.put_session(SESSION)
        await backend.conversations.put_messages(
            [message("m1", part("p1", "gate")), message("m2", part("p2", "hedge"))]
        )
        assert not await backend.evidence.is_outdated()
        server.run(
            f"UPDATE {schema}.passage_statistics SET analyser = {ANALYSER_VERSION - 1}, tokens = tokens - 1;"
            f"UPDATE {schema}.passages SET tokens = replace(tokens, 'gate', 'old gate');"
            f"UPDATE {schema}.passage_terms SET term = 'old' WHERE term = 'gate';"
            f"INSERT INTO {schema}.passages "
            "(tenant, part, position, message, session, created_us, text, tokens, length) "
            "VALUES ('default', 'gone', 0, 'm1', 's1', 0, 'gate gone', '', 0)"
        )
        assert await backend.evidence.is_outdated()
        assert await backend.evidence.reindex() == 2
        assert not await backend.evidence.is_outdated()
        assert await found(backend, "gate") == ["gate"]
        assert await found(backend, "old") == []

    anyio.run(check)
