"""ocpg's dumps and CSV files in and out: each row one memory, and back as it was but for what changed here."""

from __future__ import annotations

from pathlib import Path

import pytest

from backstory.domain.memory import Kind, Superseded, Visibility
from backstory.domain.provenance import Origin
from tests.unit.adapters.formats.decided import by_origin
from tests.unit.adapters.formats.exchange import Exchange, contents, sample
from tests.unit.adapters.formats.ocpg_dumps import BAKERY, SCRIPT, TABLES, script
from tests.unit.adapters.formats.ocpg_dumps import exchange as exchange


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


def test_the_samples_csv_alone_is_the_same_memories_as_its_dump(exchange: Exchange) -> None:
    folder = sample("ocpg")
    assert exchange.bring_in(folder / "ocpg-dump.sql").new.memories == 20
    again = exchange.bring_in(folder / "memories.csv")
    assert (again.new.memories, again.known.memories) == (0, 20)
