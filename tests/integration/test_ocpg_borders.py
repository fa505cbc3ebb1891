"""Whose rows of ocpg's database are seen and written, and what happens where that is not allowed or fails."""
# ruff: noqa: E402 - where psycopg is missing, these tests are skipped before the modules that import it

from __future__ import annotations

import logging
from collections.abc import Callable
from pathlib import Path

import anyio
import pytest

psycopg = pytest.importorskip("psycopg")

from backstory.domain.lifecycle import Revision
from backstory.domain.memory import Visibility
from backstory.errors import StoreError
from backstory.testing.postgres import why_there_is_none
from tests.integration.ocpg_beside import TIMETABLES, by_row, contents
from tests.integration.ocpg_beside import made as made
from tests.integration.ocpg_beside import ocpg as ocpg
from tests.integration.ocpg_beside import server as server
from tests.integration.ocpg_databases import BAKERY, FERRY, Ocpg, decide, listed, notes, recalled, remembered, viewer

pytestmark = pytest.mark.skipif(why_there_is_none() is not None, reason=str(why_there_is_none()))


def test_no_project_sees_anothers_rows_on_either_side(ocpg: Ocpg) -> None:
    app = ocpg.open()
    remembered(app, BAKERY, "The bakery's password manager is on the till.")
    remembered(app, FERRY, "The ferry's logbook is on the bridge.")
    bakery, ferry = viewer(app, BAKERY), viewer(app, FERRY)
    assert bakery.project != ferry.project
    for memory in listed(app, None):
        seen = {memory.id in {one.id for one in listed(app, folder)} for folder in (BAKERY, FERRY)}
        assert seen == ({True} if memory.visibility is Visibility.GLOBAL else {True, False})
    assert "The ferry's logbook is on the bridge." not in ocpg.newest(BAKERY)
    assert "The bakery's password manager is on the till." not in ocpg.newest(FERRY)
    assert recalled(app, "/home/kim/unknown", "oven timetables password logbook") == []


def test_the_rows_are_one_tenants_alone(ocpg: Ocpg) -> None:
    assert len(listed(ocpg.open(), None)) == 5
    theirs = ocpg.open(tenant="harbour")
    assert listed(theirs, None) == []
    before = ocpg.everything()
    remembered(theirs, BAKERY, "The harbour pays by invoice.")
    assert ocpg.everything() == before


def test_a_role_that_may_only_read_reads_and_what_it_writes_comes_later(ocpg: Ocpg) -> None:
    owner = ocpg.open()
    assert len(listed(owner, None)) == 5
    user = ocpg.server.new_role()
    ocpg.run(f"GRANT USAGE ON SCHEMA backstory TO {user}; GRANT SELECT ON public.memories, memory_recalls TO {user}")
    ocpg.run(f"GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA backstory TO {user}")
    ocpg.run(f"INSERT INTO memories (content, project) VALUES ('The till prints in blue.', '{BAKERY}')")
    reader = ocpg.open(user=user)
    before = ocpg.everything()
    assert recalled(reader, BAKERY, "till prints") == ["The till prints in blue."]
    remembered(reader, BAKERY, "The till has a spare key.")
    assert ocpg.everything() == before
    remembered(owner, BAKERY, "The spare key is in the drawer.")
    assert ocpg.newest(BAKERY)[:2] == ["The spare key is in the drawer.", "The till has a spare key."]


def test_a_role_without_any_right_to_it_works_without_it(ocpg: Ocpg) -> None:
    ocpg.run("REVOKE ALL ON memories, memory_recalls FROM team")
    app = ocpg.open()
    assert listed(app, None) == []
    remembered(app, BAKERY, "The till has a spare key.")
    assert contents(listed(app, BAKERY)) == ["The till has a spare key."]


def test_it_can_be_switched_off(ocpg: Ocpg) -> None:
    app = ocpg.open(ocpg=False)
    before = ocpg.everything()
    remembered(app, BAKERY, "The till has a spare key.")
    assert contents(listed(app, None)) == ["The till has a spare key."]
    assert ocpg.everything() == before


@pytest.mark.parametrize(
    "script",
    ["", "CREATE TABLE memories (id text PRIMARY KEY, content text, tags text[])"],
    ids=["no table", "another program's table"],
)
def test_where_there_is_no_ocpg_nothing_of_it_is_made(made: Callable[[str], Ocpg], script: str) -> None:
    ocpg = made(script or "SELECT 1")
    app = ocpg.open()
    remembered(app, BAKERY, "The till has a spare key.")
    assert ocpg.run("SELECT relname FROM pg_class WHERE relname LIKE '%ocpg%'") == []
    assert notes(app) == []


def test_a_commit_that_fails_leaves_nothing_on_either_side(ocpg: Ocpg) -> None:
    app = ocpg.open()
    listed(app, None)
    ocpg.run(
        "CREATE FUNCTION fail() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RAISE EXCEPTION ''no''; END';"
        "CREATE CONSTRAINT TRIGGER fails AFTER INSERT ON backstory.changes DEFERRABLE INITIALLY DEFERRED"
        " FOR EACH ROW EXECUTE FUNCTION fail()"
    )
    before = ocpg.everything()
    with pytest.raises(StoreError, match="P0001"):
        remembered(app, BAKERY, "The till has a spare key.")
    assert ocpg.everything() == before
    assert len(listed(app, None)) == 5
    ocpg.run("DROP TRIGGER fails ON backstory.changes")
    remembered(app, BAKERY, "The till has a spare key.")
    assert ocpg.newest(BAKERY)[0] == "The till has a spare key."


def test_taking_in_that_fails_takes_in_nothing_and_is_made_up_for(ocpg: Ocpg, caplog: pytest.LogCaptureFixture) -> None:
    app = ocpg.open(ocpg=False)
    listed(app, None)
    ocpg.run(
        "CREATE FUNCTION fail() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RAISE EXCEPTION ''no''; END';"
        "CREATE CONSTRAINT TRIGGER fails AFTER INSERT ON backstory.changes DEFERRABLE INITIALLY DEFERRED"
        " FOR EACH ROW EXECUTE FUNCTION fail()"
    )
    linked = ocpg.open()
    assert listed(linked, None) == []
    assert "event=ocpg_not_read" in caplog.text
    assert ocpg.run("SELECT count(*) FROM backstory.ocpg_links") == [(0,)]
    ocpg.run("DROP TRIGGER fails ON backstory.changes")
    anyio.run(linked.close)
    assert len(listed(linked, None)) == 5


def test_a_row_that_ocpgs_own_constraints_refuse_stays_with_us_and_is_noted(
    ocpg: Ocpg, caplog: pytest.LogCaptureFixture
) -> None:
    ocpg.run("ALTER TABLE memories ADD CONSTRAINT short CHECK (length(content) < 60)")
    app = ocpg.open()
    before = ocpg.everything()
    text = "The till has a spare key, which lies in the second drawer from above."
    remembered(app, BAKERY, text)
    assert contents(listed(app, BAKERY))[-1] == text
    assert ocpg.everything() == before
    assert notes(app) == ["memory #6 is not in ocpg: its table refused it (SQLSTATE 23514)"]
    assert "event=ocpg_refused n=6" in caplog.text


def test_rows_that_no_memory_can_be_made_of_do_not_keep_the_others_out(
    ocpg: Ocpg, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    ocpg.run(
        "INSERT INTO memories (content, tags, session_id, project, created_at, access_count) VALUES"
        " ('', '{}', NULL, NULL, now(), 0),"
        f" ('Kept, with odd labels.', ARRAY['ok', NULL, E'two\\nlines', '', repeat('x', 70), 'ok'], repeat('s', 9000),"
        f"    '{BAKERY}', 'infinity', -3),"
        f" ('Of no project that has a name.', '{{}}', NULL, E'/tmp/\\x1b[31mred', NULL, 0),"
        f" (repeat('long ', 30000), '{{}}', NULL, '{BAKERY}', '0044-03-15 BC', 0),"
        " ('In a folder with a relative name.', '{}', NULL, '../etc', '1900-01-01', 0)"
    )
    app = ocpg.open()
    memories = by_row(listed(app, None))
    assert len(memories) == 7
    assert (memories["7"].content, memories["7"].tags, memories["7"].session) == (
        "Kept, with odd labels.",
        ("ok",),
        None,
    )
    assert memories["10"].content == "In a folder with a relative name."
    assert [note.partition(":")[0] for note in notes(app)] == ["row 6 of ocpg", "row 8 of ocpg", "row 9 of ocpg"]
    assert "event=ocpg_row_left_out row=6" in caplog.text
    ocpg.run("UPDATE memories SET content = 'Not empty any more.' WHERE id = 6")
    anyio.run(app.close)
    assert by_row(listed(app, None))["6"].content == "Not empty any more."


def test_a_table_that_is_gone_for_a_while_costs_nothing_but_the_link(ocpg: Ocpg) -> None:
    app = ocpg.open()
    listed(app, None)
    ocpg.run("ALTER TABLE memories RENAME TO away")
    remembered(app, BAKERY, "The till has a spare key.")
    assert len(listed(app, None)) == 6
    ocpg.run("ALTER TABLE away RENAME TO memories")
    anyio.run(app.close)
    assert len(listed(app, None)) == 6
    remembered(app, BAKERY, "The spare key is in the drawer.")
    assert ocpg.newest(BAKERY)[:2] == ["The spare key is in the drawer.", "The till has a spare key."]


def test_a_second_delivery_writes_no_second_row(ocpg: Ocpg) -> None:
    app = ocpg.open()
    for _ in range(2):
        remembered(app, BAKERY, "The till has a spare key.", key="once")
    assert len(ocpg.rows()) == 6


def test_a_restored_backup_changes_our_store_and_not_ocpgs(ocpg: Ocpg, tmp_path: Path) -> None:
    app = ocpg.open()
    upkeep = app.backend.upkeep
    assert upkeep is not None
    first = by_row(listed(app, None))
    anyio.run(upkeep.backup, tmp_path / "backup.db")
    decide(app, BAKERY, app.remember.update, f"#{first['1'].n}", Revision(content="The oven speaks MQTT."))
    remembered(app, BAKERY, "The till has a spare key.")
    decide(app, FERRY, app.remember.forget, [f"#{first['2'].n}"])
    ocpg.run(f"INSERT INTO memories (content, project) VALUES ('Tickets are sold on board.', '{FERRY}')")
    before = ocpg.rows("id, content, tags, project, memory_type, superseded_by, access_count")
    anyio.run(upkeep.restore, tmp_path / "backup.db")
    anyio.run(app.close)
    memories = listed(app, None)
    assert {*contents(memories)} >= {"The oven speaks MQTT.", "The till has a spare key.", "Tickets are sold on board."}
    assert len(memories) == 7
    remembered(app, BAKERY, "Anything that is written brings the rest along.")
    after = ocpg.rows("id, content, tags, project, memory_type, superseded_by, access_count")
    back = [row for row in after if row not in before]
    assert [row for row in before if row not in after] == []
    assert [content for _, content, *_ in back] == [TIMETABLES, "Anything that is written brings the rest along."]


def test_a_backup_of_another_store_never_writes_over_rows(ocpg: Ocpg, tmp_path: Path) -> None:
    other = ocpg.open(schema="another", ocpg=False)
    for n in range(7):
        remembered(other, BAKERY, f"Shelf {n} holds the tins of week {n}.")
    app = ocpg.open()
    assert other.backend.upkeep is not None
    assert app.backend.upkeep is not None
    anyio.run(other.backend.upkeep.backup, tmp_path / "backup.db")
    listed(app, None)
    before = ocpg.everything()
    anyio.run(app.backend.upkeep.restore, tmp_path / "backup.db")
    anyio.run(app.close)
    assert {*ocpg.everything()} >= {*before}
    assert len(listed(app, None)) == 12
    assert len(ocpg.rows()) == 12
    assert len({content for (content,) in ocpg.rows("content")}) == 12


def test_undoing_says_what_ocpg_says_again(ocpg: Ocpg) -> None:
    app = ocpg.open()
    before = ocpg.rows("id, content, tags, project, memory_type, created_at, superseded_by")
    remembered(app, BAKERY, "The till has a spare key.")
    decide(app, BAKERY, app.remember.undo, None)
    assert ocpg.rows("id, content, tags, project, memory_type, created_at, superseded_by") == before
