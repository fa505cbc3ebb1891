"""Memories out into a store of ocpg: as they came where nothing changed, and nothing that it would show too widely."""

from __future__ import annotations

import json
import stat
from dataclasses import replace
from pathlib import Path

from backstory.adapters.formats.ocpg import keeping, reader
from backstory.adapters.formats.ocpg.writer import OcpgWriter
from backstory.domain.ids import MemoryId
from backstory.domain.interchange import ForeignMemory, Keepsake
from backstory.domain.lifecycle import forget, set_pin, supersede
from backstory.domain.memory import Memory, Sensitivity, Times, Visibility
from backstory.domain.provenance import Origin, Provenance
from backstory.domain.scope import Viewer
from backstory.entrypoints.drive import drive
from backstory.ports.formats import Exported, FoundStore, ReadLimits
from backstory.services.exporting import Exporting, ExportPolicy
from backstory.testing.fakes import START
from tests.unit.adapters.formats.decided import by_origin, own, put, reworded
from tests.unit.adapters.formats.exchange import PERSON, Exchange, contents, sample
from tests.unit.adapters.formats.ocpg_dumps import FERRY, SCRIPT, TABLES, block, one_row, script
from tests.unit.adapters.formats.ocpg_dumps import exchange as exchange

COLUMNS = (
    "id", "content", "tags", "session_id", "project", "created_at", "memory_type", "access_count", "last_accessed_at",
    "updated_at", "superseded_by",
)  # fmt: skip


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
