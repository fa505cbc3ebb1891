"""ocpg's dumps and CSV files in and out: each row one memory, and back as it was but for what changed here."""

from __future__ import annotations

import json
import stat
from dataclasses import replace
from pathlib import Path

import pytest

from backstory.adapters.formats.ocpg import keeping, reader
from backstory.adapters.formats.ocpg.writer import OcpgWriter
from backstory.domain.ids import MemoryId
from backstory.domain.interchange import ForeignMemory, Keepsake, Remark, Unreadable
from backstory.domain.memory import (
    Active,
    Kind,
    Memory,
    Sensitivity,
    Superseded,
    Times,
    Visibility,
    forget,
    set_pin,
    supersede,
)
from backstory.domain.provenance import Origin, Provenance
from backstory.domain.scope import Viewer
from backstory.entrypoints.drive import drive
from backstory.errors import InputError
from backstory.ports.formats import Exported, FoundStore, ReadLimits
from backstory.services.exporting import Exporting, ExportPolicy
from backstory.testing.fakes import START
from tests.unit.adapters.formats.decided import by_origin, own, put, reworded
from tests.unit.adapters.formats.exchange import PERSON, Exchange, contents, sample

BAKERY, FERRY = "/home/kim/bakery", "/home/kim/ferry"
COLUMNS = (
    "id", "content", "tags", "session_id", "project", "created_at", "memory_type", "access_count", "last_accessed_at",
    "updated_at", "superseded_by",
)  # fmt: skip
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


def taken(folder: Path, text: str) -> list[ForeignMemory]:
    """The memories of a script."""
    return [record for record in Exchange("ocpg").records(script(folder, text)) if isinstance(record, ForeignMemory)]


def told(folder: Path, text: str | bytes) -> list[str]:
    """Why records of a script cannot come in."""
    file = folder / "dump.sql"
    file.write_bytes(text if isinstance(text, bytes) else text.encode("utf-8", "surrogateescape"))
    records = Exchange("ocpg").records(file)
    return [f"{record.where}: {record.reason}" for record in records if isinstance(record, Unreadable)]


@pytest.fixture
def exchange() -> Exchange:
    return Exchange("ocpg")


# ---- in --------------------------------------------------------------------------------------------------------------


def test_each_row_becomes_a_memory_with_all_that_it_says(exchange: Exchange, tmp_path: Path) -> None:
    report = exchange.bring_in(script(tmp_path))
    assert (report.new.memories, report.refused.count) == (5, 0)
    memories = by_origin(exchange)
    oven = memories["1"]
    assert oven.content == "The oven speaks Modbus on port 1502."
    assert (oven.kind, oven.visibility, oven.tags) == (Kind.FACT, Visibility.PROJECT, ("oven", "needs, quotes"))
    assert (oven.counters.recalled, oven.counters.sessions, oven.origin) == (2, 1, Origin.IMPORTED)
    assert oven.times.learned.isoformat() == "2025-06-01T10:00:00.500000+00:00"
    assert oven.times.updated.isoformat() == "2025-07-01T00:00:00+00:00"
    assert memories["3"].content == 'Line one\nline two\ttab \\ back "quote" 日本語 🥐 </block>'
    assert memories["3"].visibility is Visibility.GLOBAL
    assert (memories["6"].kind, memories["6"].visibility) == (Kind.EPISODIC, Visibility.GLOBAL)
    assert memories["4"].status == Superseded(by=memories["5"].id, since=memories["5"].times.learned)
    assert memories["1"].project == memories["5"].project != memories["6"].project


def test_a_second_import_changes_nothing(exchange: Exchange, tmp_path: Path) -> None:
    exchange.bring_in(script(tmp_path))
    again = exchange.bring_in(script(tmp_path))
    assert (again.new.memories, again.updated.memories, again.known.memories, again.new.keepsakes) == (0, 0, 5, 0)


def test_a_row_that_changed_there_since_changes_here(exchange: Exchange, tmp_path: Path) -> None:
    exchange.bring_in(script(tmp_path))
    there = SCRIPT.replace("port 1502", "port 1602").replace("2025-07-01 00", "2025-07-02 00")
    assert exchange.bring_in(script(tmp_path, there)).updated.memories == 1
    assert "1602" in by_origin(exchange)["1"].content


def test_the_older_layouts_keep_their_preferences_users_and_hosts(exchange: Exchange, tmp_path: Path) -> None:
    first = (
        "CREATE TABLE memories (id serial PRIMARY KEY, content text, tags text[], session_id text, project text,"
        " source_host text, created_at timestamptz); INSERT INTO memories VALUES"
        f" (1, 'The till listens on 9100.', '{{}}', NULL, '{BAKERY}', 'till-3', '2024-05-01Z'),"
        " (2, 'Backups go to the attic.', '{}', NULL, NULL, NULL, '2024-05-02Z');"
    )
    middle = TABLES.replace("embedding public.vector(3), superseded_by integer", "note text") + (
        "INSERT INTO memories (id, content, tags, session_id, project, created_at, memory_type) VALUES"
        f" (1, 'Write commits in Norwegian.', '{{}}', NULL, '{BAKERY}', '2024-06-01Z', 'preference'),"
        " (2, 'Kim reads diffs side by side.', '{}', NULL, 'user:kim', '2024-06-02Z', 'project_fact');"
    )
    script(tmp_path, first, name="first.sql")
    script(tmp_path, middle, name="middle.sql")
    assert exchange.bring_in(tmp_path).new.memories == 4
    found = {memory.content[:3]: memory for memory in exchange.memories()}
    assert (found["The"].visibility, found["The"].provenance.raw["source_host"]) == (Visibility.PROJECT, "till-3")
    assert found["Bac"].visibility is Visibility.GLOBAL
    assert (found["Wri"].kind, found["Wri"].visibility) == (Kind.PREFERENCE, Visibility.GLOBAL)
    assert (found["Kim"].kind, found["Kim"].visibility) == (Kind.USER, Visibility.GLOBAL)


def test_csv_files_beside_their_dump_are_the_same_memories(exchange: Exchange, tmp_path: Path) -> None:
    exchange.bring_in(script(tmp_path))
    csv = tmp_path / "csv"
    exchange.take_out(csv / "memories.csv")
    assert set(contents(csv)) == {"memories.csv", "memory_recalls.csv", "embeddings.csv"}
    again = exchange.bring_in(csv / "memories.csv")
    assert (again.new.memories, again.known.memories) == (0, 5)
    (csv / "dump.sql").write_text(SCRIPT)
    assert [store.label for store in exchange.found(csv)] == ["dump.sql"]
    (csv / "other.sql").write_text(SCRIPT)  # of which of the two the files are cannot be told
    assert [store.label for store in exchange.found(csv)] == ["dump.sql", "memories.csv", "other.sql"]


def test_only_what_is_ocpgs_is_taken_for_a_store(exchange: Exchange, tmp_path: Path) -> None:
    script(tmp_path, "CREATE TABLE memories (id int, words text);", name="another.sql")
    script(tmp_path, '{"memories": []}', name="expected.json")
    script(tmp_path, "id,name\n1,x\n", name="memories.csv")
    script(tmp_path, "", name="empty.sql")
    (tmp_path / "link.sql").symlink_to(script(tmp_path / "elsewhere"))
    assert [store.label for store in exchange.found(tmp_path)] == ["elsewhere/dump.sql"]


def test_the_formats_name_stands_for_the_database_that_ocpg_uses(
    exchange: Exchange, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in {"HOST": "db.example", "USER": "kim@x", "SSL": "REQUIRE", "PASSWORD": "geheim"}.items():
        monkeypatch.setenv(f"OCPG_{name}", value)
    (store,) = exchange.found(Path("ocpg"))
    assert store.place == "postgres://kim%40x@db.example:5432/ocpg?sslmode=require"


# ---- damaged and hostile ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("values", "reason"),
    [
        ({"content": "NULL"}, "memories #1: it has no content"),
        ({"content": "''"}, "memories #1: it has no content"),
        ({"content": "md5('x')"}, "memories #1: it has no content"),
        ({"id": "'one'"}, "memories, row 1: its id is no number"),
        ({"id": "99999999999999999999"}, "memories, row 1: its id is no number"),
        ({"content": r"E'half \ud800 a character'"}, "memories #1: its text is not in the encoding of the file"),
    ],
)
def test_a_row_that_cannot_be_read_is_told(tmp_path: Path, values: dict[str, str | None], reason: str) -> None:
    assert told(tmp_path, one_row(**values)) == [reason]


def test_text_in_another_encoding_is_told_or_read_where_the_dump_names_it(tmp_path: Path) -> None:
    latin = one_row(content="'Café'").encode("latin-1")
    assert told(tmp_path, latin) == ["memories #1: its text is not in the encoding of the file"]
    assert told(tmp_path, b"SET client_encoding = 'LATIN1';\n" + latin) == []
    for encoding in ("utf-8-sig", "utf-16"):
        assert told(tmp_path, one_row(content="'Café'").encode(encoding)) == []
    with pytest.raises(InputError, match="encoding that is not known"):
        told(tmp_path, b"SET client_encoding = 'MULE_INTERNAL';\n" + latin)


@pytest.mark.parametrize(
    "values",
    [
        {"created_at": "'infinity'"},
        {"created_at": "'0044-03-15 00:00:00+00 BC'"},
        {"created_at": "now()"},
        {"tags": "'{{nested},{x}}'"},
        {"tags": "ARRAY['a','b']"},
        {"access_count": "-3"},
        {"access_count": "99999999999999999999999999"},
        {"access_count": "'NaN'"},
        {"embedding": "'[nan]'"},
        {"embedding": "'DROP TABLE'"},
        {"superseded_by": "1"},
        {"superseded_by": "77"},
        {"session_id": "E'bad\\u001b[31m'"},
        {"memory_type": "'guess'"},
        {"tags": "'{" + ",".join(f"t{n}" for n in range(30)) + "}'"},
    ],
)
def test_odd_values_do_not_keep_a_row_out(exchange: Exchange, tmp_path: Path, values: dict[str, str | None]) -> None:
    assert exchange.bring_in(script(tmp_path, one_row(**values))).new.memories == 1
    (memory,) = exchange.memories()
    assert memory.status == Active()
    assert memory.counters.recalled == 0


def test_a_projects_fact_without_a_project_is_remarked_and_goes_back_as_it_was(
    exchange: Exchange, tmp_path: Path
) -> None:
    report = exchange.bring_in(script(tmp_path, one_row(project="NULL")))
    assert report.remarks.told == ["memories #1: it names no project, and comes into the one that you are in"]
    exchange.take_out(tmp_path / "out.sql")
    assert "VALUES (1, 'Kept.', '{}', NULL, NULL, '2025-06-01Z', 'project_fact'," in (tmp_path / "out.sql").read_text()


@pytest.mark.parametrize("size", ["9" * 6000, "0", "99999", "3.5", "x"])
def test_a_vector_of_an_impossible_size_is_one_of_the_usual(exchange: Exchange, tmp_path: Path, size: str) -> None:
    exchange.bring_in(script(tmp_path, one_row().replace("vector(3)", f"vector({size})")))
    exchange.take_out(tmp_path / "out.sql")
    assert "embedding public.vector(768)" in (tmp_path / "out.sql").read_text()


def test_recalls_are_kept_page_by_page(exchange: Exchange, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reader, "PAGE", 1)
    exchange.bring_in(script(tmp_path))
    exchange.take_out(tmp_path / "out.sql")
    assert block((tmp_path / "out.sql").read_text(), "memory_recalls") == block(SCRIPT, "memory_recalls")


def test_a_pointer_to_nowhere_is_remarked(exchange: Exchange, tmp_path: Path) -> None:
    records = exchange.records(script(tmp_path, one_row(superseded_by="77")))
    assert [record.text for record in records if isinstance(record, Remark)] == [
        "it points to #77, which is not there; it counts as current"
    ]


def test_the_second_of_two_rows_with_one_id_is_told(exchange: Exchange, tmp_path: Path) -> None:
    twice = one_row() + one_row(content="'Another.'").removeprefix(TABLES)
    assert [memory.memory.content for memory in taken(tmp_path, twice)] == ["Kept."]
    assert told(tmp_path, twice) == ["memories #1: another row has its id; the first one counts"]


def test_dumps_of_pg_restore_folders_links_and_large_files_are_refused_with_a_reason(
    exchange: Exchange, tmp_path: Path
) -> None:
    custom = tmp_path / "memories.dump"
    custom.write_bytes(b"PGDMP\x01\x0e\x00" + bytes(100))
    assert exchange.found(tmp_path) == []  # it may be of anything
    custom.write_bytes(b"PGDMP\x01\x0e\x00CREATE TABLE public.memories (search_vector tsvector)")
    with pytest.raises(InputError, match="format of pg_restore"):
        exchange.records(custom)
    with pytest.raises(InputError, match="the limit is 10"):
        exchange.records(script(tmp_path), limits=ReadLimits(file_bytes=10))
    (tmp_path / "memories.csv").mkdir()
    for wrong in (tmp_path, tmp_path / "missing.sql"):
        with pytest.raises(InputError):
            list(reader.OcpgReader().read(FoundStore(format="ocpg", place=str(wrong)), limits=ReadLimits()))


def test_every_cut_of_a_dump_gives_the_rows_before_it_and_a_reason(exchange: Exchange, tmp_path: Path) -> None:
    start = SCRIPT.index("FROM stdin;")
    for cut in range(start + 20, SCRIPT.index("\\.\n"), 37):
        file = script(tmp_path, SCRIPT[:cut])
        records = exchange.records(file)
        assert any(isinstance(record, Unreadable) for record in records)
        whole = SCRIPT[start:cut].count("\n") - 1
        assert whole - 1 <= sum(isinstance(record, ForeignMemory) for record in records) <= whole + 1


def test_what_is_held_does_not_grow_with_the_rows(exchange: Exchange, tmp_path: Path) -> None:
    import tracemalloc

    peaks = []
    for rows in (200, 800):
        file = tmp_path / f"{rows}.sql"
        with file.open("w") as sink:
            sink.write(TABLES + "COPY memories (id, content, tags, session_id, project, created_at) FROM stdin;\n")
            for n in range(1, rows + 1):
                sink.write(f"{n}\tNote {n} {'x' * 3000}\t{{}}\t\\N\t{BAKERY}\t2025-06-01 00:00:00+00\n")
            sink.write("\\.\n")
        tracemalloc.start()
        records = reader.OcpgReader().read(FoundStore(format="ocpg", place=str(file)), limits=ReadLimits())
        assert sum(isinstance(record, ForeignMemory) for record in records) == rows
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    assert peaks[1] < peaks[0] + 600 * 400  # an id and a date a row; the rows have 3000 characters


def test_vectors_beyond_the_limit_are_left_out_and_told(
    exchange: Exchange, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reader, "VECTORS_KEPT", 1)
    records = exchange.records(script(tmp_path))
    kept = [record for record in records if isinstance(record, Keepsake) and record.key.startswith("vector/")]
    assert len(kept) == 1
    assert [record.text for record in records if isinstance(record, Remark)] == [
        "1 vectors are not kept for an export; ocpg makes them again"
    ]


# ---- and out ---------------------------------------------------------------------------------------------------------


def test_what_was_not_changed_goes_back_as_it_was(exchange: Exchange, tmp_path: Path) -> None:
    exchange.bring_in(script(tmp_path))
    (written,) = exchange.take_out(tmp_path / "out.sql")
    assert (written.memories, written.left_out) == (5, [])
    text = (tmp_path / "out.sql").read_text()
    for table in ("memories", "memory_recalls"):
        assert block(text, table) == block(SCRIPT, table)
    assert "setval('public.memories_id_seq', 7, true)" in text
    assert "embedding public.vector(3)" in text
    assert stat.S_IMODE((tmp_path / "out.sql").stat().st_mode) == 0o600
    other = Exchange("ocpg")
    other.bring_in(tmp_path / "out.sql")
    other.take_out(tmp_path / "again.sql")
    assert (tmp_path / "again.sql").read_text() == text


def block(text: str, table: str) -> list[str]:
    """The rows of a table in a script of COPY."""
    start = text.index(f"COPY public.{table} ")
    return text[text.index("\n", start) + 1 : text.index("\n\\.\n", start)].splitlines()


def exported(exchange: Exchange, folder: Path, viewer: Viewer = PERSON) -> tuple[dict[str, list[str]], list[str]]:
    """The rows of an export by id, and what was left out."""
    exporting = Exporting(exchange.backend, clock=exchange.clock)
    (store,) = drive(exporting.stores("ocpg", viewer, ExportPolicy(whole_stores=True), run=drive))
    written = OcpgWriter().write(store, folder / "out.sql")
    rows = [line.split("\t") for line in block((folder / "out.sql").read_text(), "memories")]
    return {row[0]: row for row in rows}, written.left_out


def test_a_changed_memory_changes_its_row_and_no_other(exchange: Exchange, tmp_path: Path) -> None:
    exchange.bring_in(script(tmp_path))
    before, _ = exported(exchange, tmp_path)
    oven = by_origin(exchange)["1"]
    reworded(exchange, oven, "The oven speaks MQTT.")
    after, _ = exported(exchange, tmp_path)
    assert {id_: row for id_, row in after.items() if id_ != "1"} == {k: v for k, v in before.items() if k != "1"}
    changed = dict(zip((*COLUMNS[:10], "embedding", COLUMNS[10]), after["1"], strict=True))
    assert changed["content"] == "The oven speaks MQTT."
    assert changed["embedding"] == r"\N"  # it was that of other words
    assert changed["created_at"] == "2025-06-01 10:00:00.5+00"
    assert changed["updated_at"] > "2026"
    assert changed["tags"] == '{oven,"needs, quotes"}'


def test_a_forgotten_memory_leaves_with_its_recalls(exchange: Exchange, tmp_path: Path) -> None:
    exchange.bring_in(script(tmp_path))
    oven = by_origin(exchange)["1"]
    put(exchange, forget(oven, now=exchange.clock.now(), reason=None), before=oven)
    rows, _ = exported(exchange, tmp_path)
    assert {*rows} == {"3", "4", "5", "6"}
    text = (tmp_path / "out.sql").read_text()
    assert block(text, "memory_recalls") == ["3\tses_9\t2025-09-02 00:00:00+00"]
    assert "Modbus" not in text


def test_a_memory_that_never_was_there_gets_the_next_id(exchange: Exchange, tmp_path: Path) -> None:
    exchange.bring_in(script(tmp_path))
    old = by_origin(exchange)["6"]
    new = own(exchange, "Tickets are sold on board.", project=old.project)
    put(exchange, supersede(old, by=new.id, now=exchange.clock.now()), before=old)
    everywhere = own(exchange, "Use tabs in Makefiles.", n=2)
    put(exchange, set_pin(everywhere, pinned=True), before=everywhere)
    rows, left_out = exported(exchange, tmp_path, replace(PERSON, project=old.project))
    assert rows["6"][-1] == "8"
    assert (rows["8"][1], rows["8"][4], rows["8"][6]) == ("Tickets are sold on board.", FERRY, "project_fact")
    assert (rows["9"][4], rows["9"][6]) == ("global", "stack_fact")
    assert "setval('public.memories_id_seq', 9, true)" in (tmp_path / "out.sql").read_text()
    assert left_out == ["1 memories are pinned, which ocpg does not know"]


def test_what_ocpg_would_show_to_everybody_is_left_out_and_told(exchange: Exchange, tmp_path: Path) -> None:
    exchange.bring_in(script(tmp_path))
    memories = by_origin(exchange)
    put(exchange, replace(memories["1"], expires_at=exchange.clock.now().replace(year=2099)), before=memories["1"])
    web = own(exchange, "Somebody on the web says so.")
    put(exchange, replace(web, origin=Origin.WEB), before=web)
    put(exchange, replace(memories["5"], sensitivity=Sensitivity.PRIVATE), before=memories["5"])
    rows, left_out = exported(exchange, tmp_path)
    assert {*rows} == {"3", "6"}
    assert [reason.partition(": ")[2] for reason in left_out] == [
        "it expires, which ocpg does not know",
        "ocpg would offer it unasked, which text of origin web never is",
        "what took its place cannot be named there",
    ]


def test_a_hostile_layout_cannot_put_statements_into_an_export(exchange: Exchange, tmp_path: Path) -> None:
    hostile = (
        "-- Dumped from database version 18'; DROP TABLE x; --\n"
        "-- Name: memories; Type: TABLE; Schema: public; Owner: x\\! rm\n"
        + TABLES.replace("superseded_by integer\n", "superseded_by integer,\n CHECK (memory_type IN ('x''); DROP'))")
        + one_row(content=r"E'\\.\n\\! rm -rf /'").removeprefix(TABLES)
    )
    exchange.bring_in(script(tmp_path, hostile))
    exchange.take_out(tmp_path / "out.sql")
    text = (tmp_path / "out.sql").read_text()
    assert "Dumped from" not in text
    assert "'x''); DROP'::text" in text
    assert exchange.bring_in(tmp_path / "out.sql").known.memories == 1
    assert "'\\.\n\\! rm -rf /'" in text  # inside a string, where psql has no commands


def test_what_a_file_claims_of_a_row_is_no_statement_in_an_export(tmp_path: Path) -> None:
    claim = "0); DROP TABLE x; --\n\\! rm"
    names = ("access_count", "created_at", "updated_at", "last_accessed_at")
    source = Provenance(origin_system="ocpg", origin_id="5", raw=dict.fromkeys(names, claim))
    planted = Memory(
        id=MemoryId("01K" + "0" * 23), content="Gates are oiled", project=None, visibility=Visibility.GLOBAL,
        provenance=source, times=Times(learned=START, updated=START, confirmed=START),
    )  # fmt: skip
    kept = [Keepsake(format="ocpg", store="", key=key, text=text) for key, text in (
        ("layout", '{"is_copied": false, "dimension": -5, "last": 9999999999}'), ("vector/x", '"[1]"'),
        ("vector/5", json.dumps(claim)), ("recalls/000000", json.dumps([[5, "ses", claim]])))]  # fmt: skip

    exported = Exported(label="", memories=[planted], sessions=[], projects={}, keepsakes=kept)
    OcpgWriter().write(exported, tmp_path / "out.sql")

    text = (tmp_path / "out.sql").read_text()
    assert "DROP" not in text
    assert "vector(768)" in text
    assert "setval('public.memories_id_seq', 5, true)" in text
    written = reader.OcpgReader().read(FoundStore(format="ocpg", place=str(tmp_path / "out.sql")), limits=ReadLimits())
    assert [record.memory.content for record in written if isinstance(record, ForeignMemory)] == ["Gates are oiled"]


def test_keepsakes_that_are_no_longer_what_they_were_count_as_not_there() -> None:
    spoilt = [Keepsake(format="ocpg", store="", key=key, text=text) for key, text in (
        ("layout", '{"columns": ["id"], "dimension": "many", "types": [1]}'), ("order/000000", '"[gone]"'),
        ("recalls/000000", "[[1, 2, 3], [1]]"), ("vector/1", "7"))]  # fmt: skip
    kept = keeping.kept_of(spoilt)
    assert (kept.layout.columns, kept.layout.dimension, kept.order, kept.recalls, kept.vectors) == (
        keeping.COLUMNS, 768, (), (), {},
    )  # fmt: skip


# ---- the older product's own samples ---------------------------------------------------------------------------------


def test_the_sample_comes_in_whole_and_goes_out_byte_for_byte(exchange: Exchange, tmp_path: Path) -> None:
    folder = sample("ocpg")
    stores = {store.label: store for store in exchange.found(folder)}
    assert {*stores} == {"legacy-first-schema.sql", "legacy-preference-schema.sql", "ocpg-dump.sql"}
    first = exchange.bring_in(folder)
    assert (first.new.memories, first.refused.count, first.remarks.count) == (24, 0, 0)
    assert sum(memory.provenance.raw["store"] == "ocpg-dump.sql" for memory in exchange.memories()) == 20
    assert exchange.bring_in(folder).new.memories == 0
    exchange.take_out(tmp_path)
    found, wanted = contents(tmp_path), contents(folder)
    for name in ("ocpg-dump.sql", "memories.csv", "memory_recalls.csv", "embeddings.csv"):
        assert found[name] == wanted[name]
    assert {*found} == {*wanted} - {"expected.json"}


def test_the_samples_csv_alone_is_the_same_memories_as_its_dump(exchange: Exchange) -> None:
    folder = sample("ocpg")
    assert exchange.bring_in(folder / "ocpg-dump.sql").new.memories == 20
    again = exchange.bring_in(folder / "memories.csv")
    assert (again.new.memories, again.known.memories) == (0, 20)


def test_the_samples_older_layouts_say_the_same_after_they_went_out(exchange: Exchange, tmp_path: Path) -> None:
    folder = sample("ocpg")
    for name in ("legacy-first-schema.sql", "legacy-preference-schema.sql"):
        one, other = Exchange("ocpg"), Exchange("ocpg")
        one.bring_in(folder / name)
        one.take_out(tmp_path / name)
        other.bring_in(tmp_path / name)
        assert list(map(said, other.memories())) == list(map(said, one.memories()))
        assert "source_host" in (tmp_path / name).read_text() or "'preference'::text" in (tmp_path / name).read_text()


def said(memory: Memory) -> Memory:
    """A memory without its project, whose id is another one in each store."""
    return replace(memory, project=None)
