"""Stores of ocpg that are damaged, hostile or too large: what is whole comes in, the rest is told."""

from __future__ import annotations

from pathlib import Path

import pytest

from backstory.adapters.formats.ocpg import reader
from backstory.domain.interchange import ForeignMemory, Keepsake, Remark, Unreadable
from backstory.domain.memory import Active
from backstory.errors import InputError
from backstory.ports.formats import FoundStore, ReadLimits
from tests.unit.adapters.formats.exchange import Exchange
from tests.unit.adapters.formats.ocpg_dumps import BAKERY, SCRIPT, TABLES, block, one_row, script
from tests.unit.adapters.formats.ocpg_dumps import exchange as exchange


def taken(folder: Path, text: str) -> list[ForeignMemory]:
    """The memories of a script."""
    return [record for record in Exchange("ocpg").records(script(folder, text)) if isinstance(record, ForeignMemory)]


def told(folder: Path, text: str | bytes) -> list[str]:
    """Why records of a script cannot come in."""
    file = folder / "dump.sql"
    file.write_bytes(text if isinstance(text, bytes) else text.encode("utf-8", "surrogateescape"))
    records = Exchange("ocpg").records(file)
    return [f"{record.where}: {record.reason}" for record in records if isinstance(record, Unreadable)]


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
