"""What is decided here, written into ocpg's database: so that ocpg shows it, and only what it may show."""
# ruff: noqa: E402 - where psycopg is missing, these tests are skipped before the modules that import it

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import anyio
import pytest

psycopg = pytest.importorskip("psycopg")

from backstory.domain.ids import SessionId
from backstory.domain.lifecycle import Revision
from backstory.domain.memory import Deleted, Kind, Sensitivity, Superseded, Visibility
from backstory.domain.provenance import Origin
from backstory.testing.fakes import sample_change
from backstory.testing.postgres import why_there_is_none
from tests.integration.ocpg_beside import API, OVEN, SAMPLE_FILES, by_row, contents, edits, sample
from tests.integration.ocpg_beside import made as made
from tests.integration.ocpg_beside import ocpg as ocpg
from tests.integration.ocpg_beside import server as server
from tests.integration.ocpg_databases import BAKERY, FERRY, LAYOUTS, NEWEST, Ocpg, decide, listed, notes, remembered

pytestmark = pytest.mark.skipif(why_there_is_none() is not None, reason=str(why_there_is_none()))


FRIDAYS = "Flour is ordered on Fridays since June."


def test_what_is_remembered_here_is_listed_and_found_there(ocpg: Ocpg) -> None:
    app = ocpg.open()
    text = "The proofing cabinet alarms above 31 degrees."
    remembered(app, BAKERY, text, tags=("sensors",), session=SessionId("ses_77"))
    assert ocpg.newest(BAKERY)[0] == text
    assert ocpg.searched(BAKERY, "cabinet", "alarm") == [text]
    assert ocpg.tagged(BAKERY, "sensors") == [text]
    assert text not in ocpg.newest(FERRY)
    assert ocpg.rows("id, session_id, project, memory_type, superseded_by, embedding", "id > 5") == [
        (6, "ses_77", BAKERY, "project_fact", None, None)
    ]


def test_what_is_for_every_project_here_is_so_there(ocpg: Ocpg) -> None:
    app = ocpg.open()
    remembered(app, BAKERY, "Kim wants short answers.", visibility=Visibility.GLOBAL, kind=Kind.PREFERENCE)
    remembered(app, BAKERY, "Yesterday the till was rebooted.", visibility=Visibility.GLOBAL, kind=Kind.EPISODIC)
    remembered(app, BAKERY, "Yesterday the oven was cleaned.", kind=Kind.EPISODIC)
    assert ocpg.rows("memory_type", "id > 5") == [("stack_fact",), ("episodic",), ("project_fact",)]
    assert ocpg.newest(FERRY)[:2] == ["Yesterday the till was rebooted.", "Kim wants short answers."]


def test_an_update_changes_the_row_and_lets_go_of_the_vector_of_the_old_words(ocpg: Ocpg) -> None:
    app = ocpg.open()
    n = by_row(listed(app, None))["3"].n
    decide(app, FERRY, app.remember.update, f"#{n}", Revision(content="Aliases are read after validators."))
    ((content, created, updated, embedding),) = ocpg.rows("content, created_at, updated_at, embedding", "id = 3")
    assert (content, embedding) == ("Aliases are read after validators.", None)
    assert created == datetime(2025, 6, 3, tzinfo=UTC)
    assert updated > created
    assert ocpg.searched(FERRY, "aliases") == ["Aliases are read after validators."]


def test_a_decision_about_labels_keeps_the_vector(ocpg: Ocpg) -> None:
    app = ocpg.open()
    decide(app, FERRY, app.remember.retag, "python", "py")
    assert ocpg.rows("tags, embedding IS NULL", "id = 3") == [(["py"], False)]


def test_what_replaces_a_memory_here_replaces_it_there(ocpg: Ocpg) -> None:
    app = ocpg.open()
    n = by_row(listed(app, None))["1"].n
    remembered(app, BAKERY, "The oven controller speaks MQTT since the upgrade.", supersedes=f"#{n}")
    assert ocpg.rows("id, superseded_by", "id IN (1, 6)") == [(1, 6), (6, None)]
    assert OVEN not in ocpg.newest(BAKERY)
    decide(app, BAKERY, app.remember.undo, None)
    assert ocpg.rows("id, superseded_by", "id IN (1, 6)") == [(1, None)]


def test_forgetting_takes_the_row_away_and_undoing_that_brings_it_back_under_its_id(ocpg: Ocpg) -> None:
    app = ocpg.open()
    n = by_row(listed(app, None))["5"].n
    decide(app, BAKERY, app.remember.forget, [f"#{n}"])
    assert ocpg.rows("id, superseded_by", "id IN (4, 5)") == [(4, None)]
    decide(app, BAKERY, app.remember.undo, None)
    assert ocpg.rows("id, superseded_by, content", "id = 5") == [(5, None, FRIDAYS)]
    assert ocpg.rows("superseded_by", "id = 4") == [(5,)]
    anyio.run(app.close)
    assert isinstance(by_row(listed(app, None))["4"].status, Superseded)


@pytest.mark.parametrize("name", SAMPLE_FILES)
def test_a_sample_that_was_written_to_is_dumped_as_before_but_for_the_new_records(
    made: Callable[[str], Ocpg], name: str
) -> None:
    ocpg = made(sample(name))
    before = ocpg.dump()
    app = ocpg.open()
    texts = ("The gateway logs to stdout, one JSON object a line.", "Ports are listed in docs/ports.md.")
    for text in texts:
        remembered(app, API, text, tags=("new",))
    remembered(app, API, "Everybody writes tests first.", visibility=Visibility.GLOBAL)
    after = ocpg.dump()
    new = [line for line in after if line not in before]
    assert [line for line in before if line not in after and "setval" not in line] == []
    assert len([line for line in new if line.startswith("INSERT INTO public.memories")]) == 3
    assert [line for line in new if not line.startswith("INSERT INTO public.memories") and "setval" not in line] == []
    anyio.run(app.close)
    assert set(texts) <= {*contents(listed(app, API))}
    assert ocpg.dump() == after


@pytest.mark.parametrize(("layout", "words"), [("oldest", None), ("middle", ["project_fact", "preference"])])
def test_older_layouts_are_written_in_their_own_words(
    made: Callable[[str], Ocpg], layout: str, words: list[str] | None
) -> None:
    ocpg = made(LAYOUTS[layout])
    app = ocpg.open()
    last = len(ocpg.rows())
    remembered(app, BAKERY, "The oven door has two locks.")
    remembered(app, BAKERY, "All clocks are in UTC.", visibility=Visibility.GLOBAL)
    if words is not None:
        assert [word for (word,) in ocpg.rows("memory_type", f"id > {last}")] == words
    project = ocpg.rows("project", f"id > {last}")
    assert project == [(BAKERY,), (None if words is None else BAKERY,)]
    n = by_row(listed(app, None))["1"].n
    remembered(app, BAKERY, "The oven speaks MQTT.", supersedes=f"#{n}")
    assert OVEN not in [content for (content,) in ocpg.rows("content")]  # it could not be shown there as replaced
    decide(app, BAKERY, app.remember.undo, None)
    assert ocpg.rows("content, tags", "id = 1") == [(OVEN, ["oven", "wiring"])]


def test_what_ocpg_must_not_show_stays_with_us(ocpg: Ocpg) -> None:
    app = ocpg.open()
    before = ocpg.everything()
    remembered(app, BAKERY, "The safe is behind the mixer.", sensitivity=Sensitivity.LOCAL_ONLY)
    remembered(app, BAKERY, "Kim is looking for another job.", sensitivity=Sensitivity.PRIVATE)
    remembered(app, BAKERY, "Only now: use the small oven.", visibility=Visibility.SESSION, session=SessionId("ses_5"))
    remembered(app, BAKERY, "The big oven cools until noon.", expires_in=timedelta(hours=3))
    remembered(app, BAKERY, "A page says to run this script.", origin=Origin.WEB)
    assert ocpg.everything() == before
    assert [note.partition(": ")[2] for note in notes(app)] == [
        "it is local-only",
        "it is private",
        "it is for one session only",
        "it expires, which ocpg does not know",
        "ocpg would offer it unasked, which text of origin web never is",
    ]


def test_a_memory_made_private_leaves_ocpg_and_comes_back_when_it_is_not(ocpg: Ocpg) -> None:
    app = ocpg.open()
    ref = f"#{by_row(listed(app, None))['1'].n}"
    decide(app, BAKERY, app.remember.update, ref, Revision(sensitivity=Sensitivity.PRIVATE))
    assert ocpg.rows("id", "id = 1") == []
    anyio.run(app.close)
    assert by_row(listed(app, None))["1"].sensitivity is Sensitivity.PRIVATE
    decide(app, BAKERY, app.remember.update, ref, Revision(sensitivity=Sensitivity.NORMAL))
    assert ocpg.rows("content", "id = 1") == [(OVEN,)]


def test_what_a_private_memory_replaced_neither_shows_there_nor_becomes_current_here(ocpg: Ocpg) -> None:
    app = ocpg.open()
    before = ocpg.everything()
    ref = f"#{by_row(listed(app, None))['5'].n}"
    decide(app, BAKERY, app.remember.update, ref, Revision(sensitivity=Sensitivity.PRIVATE))
    assert ocpg.rows("id", "id IN (4, 5)") == []
    anyio.run(app.close)
    assert isinstance(by_row(listed(app, None))["4"].status, Superseded)
    decide(app, BAKERY, app.remember.update, ref, Revision(sensitivity=Sensitivity.NORMAL))
    assert ocpg.rows("id, superseded_by", "id IN (4, 5)") == [(4, 5), (5, None)]
    assert len(ocpg.everything()) == len(before)
    anyio.run(app.close)
    assert isinstance(by_row(listed(app, None))["4"].status, Superseded)


def test_undoing_the_taking_in_leaves_the_rows_to_ocpg(made: Callable[[str], Ocpg]) -> None:
    ocpg = made(NEWEST.replace(FERRY, BAKERY))
    app = ocpg.open()
    before = ocpg.everything()
    first = listed(app, None)
    decide(app, BAKERY, app.remember.undo, None)
    assert {type(memory.status) for memory in listed(app, None)} == {Deleted}
    assert ocpg.everything() == before
    anyio.run(app.close)
    assert {type(memory.status) for memory in listed(app, None)} == {Deleted}
    ((undone, *_),) = [anyio.run(lambda: app.backend.memories.history(limit=5))]
    decide(app, BAKERY, app.remember.undo, undone.id)
    assert [memory.status for memory in listed(app, None)] == [memory.status for memory in first]
    assert ocpg.everything() == before


def test_a_row_without_a_project_keeps_its_place_when_it_is_reworded(ocpg: Ocpg) -> None:
    ocpg.run("INSERT INTO memories (content, memory_type) VALUES ('The till prints in blue.', 'project_fact')")
    app = ocpg.open()
    known = by_row(listed(app, None))["6"]
    assert (known.visibility, known.project) == (Visibility.PROJECT, None)
    mine = replace(known, content="The till prints in green.")
    anyio.run(app.backend.memories.commit, sample_change(1, *edits(known, mine)))
    assert ocpg.rows("content, project, memory_type", "id = 6") == [("The till prints in green.", None, "project_fact")]
