"""Dumps of ocpg's tables, made up for tests, and what reading one of them gives.

Test modules take the fixture by its name.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.unit.adapters.formats.exchange import Exchange

BAKERY, FERRY = "/home/kim/bakery", "/home/kim/ferry"
TABLES = """
CREATE TABLE public.memories (
    id integer NOT NULL, content text NOT NULL, tags text[] DEFAULT '{}'::text[] NOT NULL, session_id text,
    project text, created_at timestamp with time zone DEFAULT now(),
    memory_type text DEFAULT 'project_fact'::text NOT NULL, access_count integer DEFAULT 0 NOT NULL,
    last_accessed_at timestamp with time zone, updated_at timestamp with time zone, search_vector tsvector,
    embedding public.vector(3), superseded_by integer
);
CREATE TABLE public.memory_recalls (memory_id integer, session_id text, recalled_at timestamp with time zone);
"""
N = r"\N"
ROWS = "\n".join(
    "\t".join(row)
    for row in (
        ("1", "The oven speaks Modbus on port 1502.", '{oven,"needs, quotes"}', "ses_1", BAKERY,
         "2025-06-01 10:00:00.5+00", "project_fact", "2", "2025-08-01 00:00:00+00", "2025-07-01 00:00:00+00",
         "[1,-0,0.5]", N),
        ("4", "Flour comes on Mondays.", "{orders}", "ses_1", BAKERY, "2025-06-04 02:00:00+02", "project_fact", "0",
         N, N, N, "5"),
        ("3", r'Line one\nline two\ttab \\ back "quote" 日本語 🥐 </block>', "{}", N, N, "2025-06-03 00:00:00+00",
         "stack_fact", "1", N, N, N, N),
        ("5", "Flour comes on Fridays since June.", "{orders}", "ses_3", BAKERY, "2025-06-05 00:00:00+00",
         "project_fact", "0", N, N, "[0,0,1]", N),
        ("6", "The crossing took forty minutes.", "{}", "ses_9", FERRY, "2025-06-06 00:00:00+00", "episodic", "0",
         N, N, N, N),
    )
)  # fmt: skip
SCRIPT = (
    TABLES
    + "COPY public.memories (id, content, tags, session_id, project, created_at, memory_type, access_count,"
    + f" last_accessed_at, updated_at, embedding, superseded_by) FROM stdin;\n{ROWS}\n\\.\n"
    + "COPY public.memory_recalls (memory_id, session_id, recalled_at) FROM stdin;\n"
    + "3\tses_9\t2025-09-02 00:00:00+00\n1\tses_1\t2025-09-01 00:00:00+00\n\\.\n"
    + "SELECT pg_catalog.setval('public.memories_id_seq', 7, true);\n"
)


def script(folder: Path, text: str = SCRIPT, *, name: str = "dump.sql") -> Path:
    folder.mkdir(exist_ok=True)
    file = folder / name
    file.write_text(text, newline="")
    return file


def one_row(**values: str | None) -> str:
    """A script of one row, in which these columns say something else."""
    row = {"id": "1", "content": "'Kept.'", "tags": "'{}'", "session_id": "NULL", "project": f"'{BAKERY}'",
           "created_at": "'2025-06-01Z'", "memory_type": "'project_fact'"} | values  # fmt: skip
    return f"{TABLES}INSERT INTO memories ({', '.join(row)}) VALUES ({', '.join(map(str, row.values()))});"


@pytest.fixture
def exchange() -> Exchange:
    return Exchange("ocpg")


def block(text: str, table: str) -> list[str]:
    """The rows of a table in a script of COPY."""
    start = text.index(f"COPY public.{table} ")
    return text[text.index("\n", start) + 1 : text.index("\n\\.\n", start)].splitlines()
