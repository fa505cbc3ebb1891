"""Vectors of words beside those of passages: what older stores do to get them, and where they must not be lost."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import anyio
import pytest

from backstory.adapters.stores.sqlite import migrations
from backstory.adapters.stores.sqlite.opening import APPLICATION_ID
from backstory.adapters.stores.sqlite.store import open_sqlite
from backstory.domain.conversation import Message, Part, Role
from backstory.domain.evidence_passages import PassageNumber
from backstory.domain.evidence_talk import speaker_of
from backstory.domain.ids import MessageId, PartId, SessionId
from backstory.ports.backend import Backend
from backstory.ports.evidence import EmbeddedPassage
from backstory.ports.models import EmbeddingModel
from backstory.testing.fakes import START, hash_words
from backstory.testing.postgres import PostgresForTests, postgres_for_tests, why_there_is_none

MODEL = EmbeddingModel(name="all-MiniLM-L6-v2-int8", dimension=2)
WORDLESS = EmbeddingModel(name="of-an-endpoint", dimension=2)
"""Reading once more would cost somebody money, and bring nothing."""
NAMED = ("Ada: I am back", "Émile van-Dijk: so am I", "Жанна: и я", f"{'A' * 31} {'B' * 31}: long names are names")
CALL = "Bash: \nls: no such file"
"""What a tool was asked and gave: it begins with a name, but nobody says it."""
OTHERS = ("so it is: a colon", "bash: \nls", f"A sentence {'that goes on ' * 5}and says so: nothing", "None here")
BEFORE = 13
"""The format of files before there were words."""


async def told(backend: Backend) -> Backend:
    """With a passage of each text."""
    for n, text in enumerate((*NAMED, *OTHERS, CALL)):
        part = Part(id=PartId(f"p{n}"), kind="text", text=text)
        if text == CALL:
            tool, _, gave = text.partition(": \n")
            part = Part(id=PartId(f"p{n}"), kind="tool", tool=tool, text=gave)
        said = Message(id=MessageId(f"m{n}"), session=SessionId("s"), role=Role.USER, created_at=START, parts=(part,))
        await backend.conversations.put_messages([said])
    return backend


async def embed(backend: Backend) -> None:
    """Give every passage a vector, and those with a speaker words."""
    missing = await backend.evidence.unembedded(model=MODEL, limit=99)
    read = [
        EmbeddedPassage(
            number=item.number,
            vector=(1.0, 0.0),
            words=None if speaker_of(item.text, kind=item.kind) is None else hash_words(item.text),
        )
        for item in missing
    ]
    assert await backend.evidence.put_vectors(read, model=MODEL) == len(missing)


async def unembedded(backend: Backend) -> set[str]:
    return {item.text for item in await backend.evidence.unembedded(model=MODEL, limit=99)}


async def with_words(backend: Backend) -> int:
    """How many passages of the whole server have words that this store may compare."""
    numbers = [PassageNumber(n) for n in range(1, 200)]
    return len(await backend.evidence.compare_words(hash_words("back"), numbers, model=MODEL))


def test_the_names_of_this_test_are_such() -> None:
    assert [speaker_of(text) is not None for text in (*NAMED, *OTHERS)] == [True] * len(NAMED) + [False] * len(OTHERS)


def test_a_file_of_the_format_before_has_what_may_begin_with_a_name_embedded_anew(tmp_path: Path) -> None:
    path = tmp_path / "memory.db"
    with closing(sqlite3.connect(path)) as raw:
        for version, script in migrations.scripts():
            if version <= BEFORE:
                raw.executescript(script.read_text(encoding="utf-8"))
        raw.execute(f"PRAGMA application_id = {APPLICATION_ID}")
        raw.execute(f"PRAGMA user_version = {BEFORE}")
        for n, text in enumerate((*NAMED, *OTHERS, CALL), start=1):
            kind = "tool" if text == CALL else "text"
            raw.execute("INSERT INTO parts VALUES (?, 'm', 's', ?, ?, NULL, 0, NULL)", (f"p{n}", kind, text))
            raw.execute("INSERT INTO passages VALUES (?, ?, 0, 'm', 's', 0, ?)", (n, f"p{n}", text))
            for model in (MODEL, WORDLESS):
                raw.execute("INSERT INTO passage_vectors VALUES (?, ?, 2, ?)", (n, model.name, bytes(4)))
        raw.commit()

    async def check() -> None:
        backend = open_sqlite(path)
        assert await unembedded(backend) == set(NAMED)
        assert await backend.evidence.unembedded(model=WORDLESS, limit=99) == []
        assert await with_words(backend) == 0
        await embed(backend)
        assert await with_words(backend) == len(NAMED)
        await backend.memories.close()

    anyio.run(check)


def test_words_whose_vector_is_gone_are_found_and_dropped(tmp_path: Path) -> None:
    path = tmp_path / "memory.db"

    async def check() -> None:
        backend = await told(open_sqlite(path))
        await embed(backend)
        assert backend.upkeep is not None
        assert await backend.upkeep.verify(full=True) == []
        with closing(sqlite3.connect(path)) as raw:  # foreign keys are not kept to
            raw.execute("DELETE FROM passage_vectors WHERE n = 1")
            raw.commit()
        assert "passage_word_vectors of 1" in {found.where for found in await backend.upkeep.verify(full=True)}
        assert (await backend.upkeep.rebuild()).corrected == 1
        assert await backend.upkeep.verify(full=True) == []
        assert await unembedded(backend) == {NAMED[0]}
        assert await with_words(backend) == len(NAMED) - 1
        with closing(sqlite3.connect(path)) as raw:
            raw.execute("DELETE FROM passage_vectors WHERE n = 2")
            raw.commit()
        await embed(backend)  # over the words that were left
        assert await with_words(backend) == len(NAMED)
        assert await backend.upkeep.verify(full=True) == []
        await backend.memories.close()

    anyio.run(check)


@pytest.fixture(scope="module")
def server() -> PostgresForTests:
    if (reason := why_there_is_none()) is not None:
        pytest.skip(reason)
    return postgres_for_tests()


def test_tenants_of_the_format_before_have_what_may_begin_with_a_name_embedded_anew(server: PostgresForTests) -> None:
    import psycopg

    from backstory.adapters.stores.postgres.migrations import scripts
    from backstory.adapters.stores.postgres.store import open_postgres

    schema = server.new_name()
    migration = next(path for _, path in scripts() if path.stem.endswith("passage_words"))

    def tenant(name: str) -> Backend:
        return open_postgres(server.dsn(), schema=schema, tenant=name)

    async def fill() -> None:
        for name in ("ours", "theirs"):
            backend = await told(tenant(name))
            await embed(backend)
            await backend.memories.close()

    async def look() -> None:
        for name in ("ours", "theirs"):
            backend = tenant(name)
            assert backend.upkeep is not None
            assert await unembedded(backend) == set(NAMED)
            assert await with_words(backend) == 0
            await embed(backend)
            assert await with_words(backend) == len(NAMED)
            assert await backend.upkeep.verify(full=True) == []
            await backend.memories.close()

    anyio.run(fill)
    server.run(f"ALTER TABLE {schema}.passage_vectors DROP COLUMN words")
    with psycopg.connect(server.dsn(), options=f"-c search_path={schema}") as raw:  # the owner, whom policies bind
        raw.execute(migration.read_bytes())
    anyio.run(look)
    unforced = f"""SELECT relname FROM pg_class WHERE relnamespace = '{schema}'::regnamespace
        AND relname IN ('passages', 'passage_vectors') AND NOT (relrowsecurity AND relforcerowsecurity)"""
    assert server.run(unforced) == []


def test_a_vector_whose_twin_is_made_anew_keeps_its_words(server: PostgresForTests) -> None:
    from backstory.adapters.stores.postgres.store import open_postgres

    schema = server.new_name()

    async def check() -> None:
        backend = await told(open_postgres(server.dsn(), schema=schema))
        assert backend.upkeep is not None
        await embed(backend)
        server.run(f"DELETE FROM {schema}.passage_embeddings")
        assert (await backend.upkeep.rebuild()).corrected == len(NAMED) + len(OTHERS) + 1
        assert await with_words(backend) == len(NAMED)
        await backend.memories.close()

    anyio.run(check)


def test_words_move_from_a_file_to_a_server_and_back(server: PostgresForTests, tmp_path: Path) -> None:
    from backstory.adapters.stores.postgres.store import open_postgres

    async def check() -> None:
        file = await told(open_sqlite(tmp_path / "memory.db"))
        await embed(file)
        there = open_postgres(server.dsn(), schema=server.new_name())
        again = open_sqlite(tmp_path / "again.db")
        for store, copy in ((there, "out.db"), (again, "back.db")):
            source = file if store is there else there
            assert source.upkeep is not None
            assert store.upkeep is not None
            await source.upkeep.backup(tmp_path / copy)
            await store.upkeep.restore(tmp_path / copy)
            assert await with_words(store) == len(NAMED)
            assert await unembedded(store) == set()
        for backend in (file, there, again):
            await backend.memories.close()

    anyio.run(check)
