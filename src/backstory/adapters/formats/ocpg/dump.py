"""The text of an ocpg dump, in the order and the words of ``pg_dump``, for any of its layouts."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence

from backstory.adapters.formats.ocpg.keeping import Layout, Recall
from backstory.adapters.formats.ocpg.values import copy_text, literal

Row = Mapping[str, str | None]

_FIT = re.compile(r"[\w.() ~+-]{1,80}", re.ASCII)
_TIME = "timestamp with time zone"
_COLUMNS = {
    "id": "integer NOT NULL",
    "content": "text NOT NULL",
    "tags": "text[] DEFAULT '{}'::text[] NOT NULL",
    "session_id": "text",
    "project": "text",
    "source_host": "text",
    "created_at": f"{_TIME} DEFAULT now()",
    "memory_type": "text DEFAULT 'project_fact'::text NOT NULL",
    "access_count": "integer DEFAULT 0 NOT NULL",
    "last_accessed_at": _TIME,
    "updated_at": _TIME,
    "search_vector": "tsvector GENERATED ALWAYS AS (to_tsvector('english'::regconfig, content)) STORED",
    "embedding": "public.vector({dimension})",
    "superseded_by": "integer",
}
_NUMBER = re.compile(r"[0-9]{1,10}", re.ASCII)  # anything else could be a statement
_NUMBERS = frozenset({"id", "access_count", "superseded_by"})  # of INSERT, without quotes
_RECALLS = ("memory_id", "session_id", "recalled_at")
_EXTENSIONS = {
    "pg_trgm": "text similarity measurement and index searching based on trigrams",
    "vector": "vector data type and ivfflat and hnsw access methods",
}
"""What each extension says of itself, as a dump repeats it."""
_INDEXES = {
    "embedding": "hnsw (embedding public.vector_cosine_ops)",
    "project_created": "btree (project, created_at DESC)",
    "search": "gin (search_vector)",
    "tags": "gin (tags)",
    "trgm": "gin (content public.gin_trgm_ops)",
}
_SETTINGS = """\
SET statement_timeout = 0;
SET lock_timeout = 0;
SET idle_in_transaction_session_timeout = 0;
SET client_encoding = 'UTF8';
SET standard_conforming_strings = on;
SELECT pg_catalog.set_config('search_path', '', false);
SET check_function_bodies = false;
SET xmloption = content;
SET client_min_messages = warning;
SET row_security = off;
"""


def dump(layout: Layout, rows: Sequence[tuple[int, Row]], recalls: Sequence[Recall], *, last: int | None) -> str:
    """The script that makes the tables of a layout with these rows. ``last`` is the highest id that was given."""
    return "".join(_Dump(layout).parts(rows, recalls, last=last))


def recall_rows(recalls: Iterable[Recall]) -> list[Row]:
    """Recalls as rows of their table."""
    return [dict(zip(_RECALLS, (str(row), session, time), strict=True)) for row, session, time in recalls]


class _Dump:
    def __init__(self, layout: Layout) -> None:
        self._layout = layout
        self._owner = _fit(layout.owner) or "-"

    def parts(self, rows: Sequence[tuple[int, Row]], recalls: Sequence[Recall], *, last: int | None) -> Iterator[str]:
        yield self._preface()
        if self._layout.has("embedding"):
            yield from (self._extension(name) for name in _EXTENSIONS)
        yield "SET default_tablespace = '';\n\nSET default_table_access_method = heap;\n\n"
        yield from self._tables()
        yield self._data("memories", (name for name in _COLUMNS if self._layout.has(name)), (row for _, row in rows))
        if self._layout.has_recalls:
            yield self._data("memory_recalls", _RECALLS, recall_rows(recalls))
        yield self._sequence_set(last)
        yield from self._constraints()
        yield "--\n-- PostgreSQL database dump complete\n--\n\n\n"

    def _preface(self) -> str:
        server, program = _fit(self._layout.server), _fit(self._layout.program)
        lines = [f"-- Dumped from database version {server}\n"] if server else []
        lines += [f"-- Dumped by pg_dump version {program}\n"] if program else []
        versions = "".join(lines) + "\n" if lines else ""
        return f"--\n-- PostgreSQL database dump\n--\n\n\n{versions}{_SETTINGS}\n"

    def _extension(self, name: str) -> str:
        return (
            f"--\n-- Name: {name}; Type: EXTENSION; Schema: -; Owner: -\n--\n\n"
            f"CREATE EXTENSION IF NOT EXISTS {name} WITH SCHEMA public;\n\n\n"
            f"--\n-- Name: EXTENSION {name}; Type: COMMENT; Schema: -; Owner: \n--\n\n"
            f"COMMENT ON EXTENSION {name} IS '{_EXTENSIONS[name]}';\n\n\n"
        )

    def _tables(self) -> Iterator[str]:
        columns = [f"    {name} {kind.format(dimension=self._layout.dimension) if name == 'embedding' else kind}"
                   for name, kind in _COLUMNS.items() if self._layout.has(name)]  # fmt: skip
        if self._layout.has("memory_type"):
            words = ", ".join(f"{literal(word)}::text" for word in self._layout.types)
            columns.append(f"    CONSTRAINT memories_type_check CHECK ((memory_type = ANY (ARRAY[{words}])))")
        yield self._part("memories", "TABLE", _table("memories", columns) + "\n")
        counting = [
            "CREATE SEQUENCE public.memories_id_seq", "    AS integer", "    START WITH 1", "    INCREMENT BY 1",
            "    NO MINVALUE", "    NO MAXVALUE", "    CACHE 1;\n\n",
        ]  # fmt: skip
        yield self._part("memories_id_seq", "SEQUENCE", "\n".join(counting))
        owned = "ALTER SEQUENCE public.memories_id_seq OWNED BY public.memories.id;\n"
        yield self._part("memories_id_seq", "SEQUENCE OWNED BY", owned)
        if self._layout.has_recalls:
            columns = ["    memory_id integer NOT NULL", "    session_id text NOT NULL",
                       f"    recalled_at {_TIME} DEFAULT now() NOT NULL"]  # fmt: skip
            yield self._part("memory_recalls", "TABLE", _table("memory_recalls", columns) + "\n")
        counted = (
            "ALTER TABLE ONLY public.memories ALTER COLUMN id"
            " SET DEFAULT nextval('public.memories_id_seq'::regclass);\n"
        )
        yield self._part("memories id", "DEFAULT", counted)

    def _data(self, table: str, columns: Iterable[str], rows: Iterable[Row]) -> str:
        names = list(columns)
        lines = _copied(table, names, rows) if self._layout.is_copied else _inserted(table, names, rows)
        head = f"-- Data for Name: {table}; Type: TABLE DATA; Schema: public; Owner: {self._owner}"
        return f"--\n{head}\n--\n\n{lines}\n\n"

    def _sequence_set(self, last: int | None) -> str:
        is_called = "true" if last is not None and (last != self._layout.last or self._layout.is_called) else "false"
        moved = f"SELECT pg_catalog.setval('public.memories_id_seq', {last or 1}, {is_called});\n"
        return self._part("memories_id_seq", "SEQUENCE SET", moved)

    def _constraints(self) -> Iterator[str]:
        has_recalls, has_by = self._layout.has_recalls, self._layout.has("superseded_by")
        yield self._constraint("memories", "pkey", "PRIMARY KEY (id)")
        if has_recalls:
            yield self._constraint("memory_recalls", "pkey", "PRIMARY KEY (memory_id, session_id)")
        for name, index in _INDEXES.items():
            if name in ("embedding", "trgm") and not self._layout.has("embedding"):
                continue
            made = f"CREATE INDEX idx_memories_{name} ON public.memories USING {index};\n"
            yield self._part(f"idx_memories_{name}", "INDEX", made)
        points = "FOREIGN KEY ({}) REFERENCES public.memories(id) ON DELETE {}"
        if has_by:
            yield self._constraint("memories", "superseded_by_fkey", points.format("superseded_by", "SET NULL"))
        if has_recalls:
            yield self._constraint("memory_recalls", "memory_id_fkey", points.format("memory_id", "CASCADE"))

    def _constraint(self, table: str, name: str, meaning: str) -> str:
        kind = "FK CONSTRAINT" if meaning.startswith("FOREIGN") else "CONSTRAINT"
        added = f"ALTER TABLE ONLY public.{table}\n    ADD CONSTRAINT {table}_{name} {meaning};\n"
        return self._part(f"{table} {table}_{name}", kind, added)

    def _part(self, name: str, kind: str, statement: str) -> str:
        return f"--\n-- Name: {name}; Type: {kind}; Schema: public; Owner: {self._owner}\n--\n\n{statement}\n\n"


def _table(name: str, columns: Sequence[str]) -> str:
    return f"CREATE TABLE public.{name} (\n" + ",\n".join(columns) + "\n);\n"


def _copied(table: str, columns: Sequence[str], rows: Iterable[Row]) -> str:
    written = [name for name in columns if name != "search_vector"]  # the server makes it
    lines = ("\t".join(copy_text(row[name]) for name in written) + "\n" for row in rows)
    return f"COPY public.{table} ({', '.join(written)}) FROM stdin;\n{''.join(lines)}\\.\n"


def _inserted(table: str, columns: Sequence[str], rows: Iterable[Row]) -> str:
    lines = (", ".join(_inserted_value(name, row) for name in columns) for row in rows)
    return "".join(f"INSERT INTO public.{table} VALUES ({line});\n" for line in lines)


def _inserted_value(name: str, row: Row) -> str:
    if name == "search_vector":
        return "DEFAULT"
    value = row[name]
    is_number = value is not None and (name in _NUMBERS or name == "memory_id") and _NUMBER.fullmatch(value)
    return value if value is not None and is_number else literal(value)


def _fit(words: str | None) -> str | None:
    """What a dump said of itself, if it can stand in a comment."""
    return words if words is not None and _FIT.fullmatch(words) else None
