"""A database of ocpg beside our schema: read, written to, and still ocpg's own."""
# ruff: noqa: E402 - where psycopg is missing, these tests are skipped before the modules that import it

from __future__ import annotations

import contextlib
import json
import logging
import random
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import anyio
import pytest

psycopg = pytest.importorskip("psycopg")

from backstory.domain.history import Edit
from backstory.domain.ids import SessionId
from backstory.domain.memory import Deleted, Kind, Memory, Revision, Sensitivity, Source, Superseded, Visibility
from backstory.domain.provenance import Origin
from backstory.domain.selection import CURRENT
from backstory.errors import Conflict, NotFound, StoreBusy, StoreError
from backstory.ports.store import Use
from backstory.testing.fakes import sample_change
from backstory.testing.postgres import PostgresForTests, postgres_for_tests, why_there_is_none
from tests.integration.ocpg_databases import (
    BAKERY,
    FERRY,
    LAYOUTS,
    NEWEST,
    SAMPLES,
    Ocpg,
    decide,
    listed,
    notes,
    recalled,
    remembered,
    viewer,
)

pytestmark = pytest.mark.skipif(why_there_is_none() is not None, reason=str(why_there_is_none()))

OVEN = "The oven controller speaks Modbus on port 1502."
TIMETABLES = "Timetables are published every Thursday evening."
FRIDAYS = "Flour is ordered on Fridays since June."
SAMPLE_FILES = ("ocpg-dump.sql", "legacy-first-schema.sql", "legacy-preference-schema.sql")
API, INFRA, MONOREPO = "/home/dev/acme/api", "/home/dev/globex/infra", "/srv/ci/monorepo"


@pytest.fixture(scope="module")
def server() -> PostgresForTests:
    return postgres_for_tests()


@pytest.fixture
def made(server: PostgresForTests) -> Iterator[Callable[[str], Ocpg]]:
    databases: list[Ocpg] = []

    def make(script: str = NEWEST) -> Ocpg:
        databases.append(Ocpg.made(server, script))
        return databases[-1]

    yield make
    for database in databases:
        database.drop()


@pytest.fixture
def ocpg(made: Callable[[str], Ocpg]) -> Ocpg:
    return made(NEWEST)


def sample(name: str) -> str:
    if not (SAMPLES / name).exists():
        pytest.skip(f"{name} of the sample stores is not here")
    return (SAMPLES / name).read_text(encoding="utf-8")


def contents(memories: list[Memory]) -> list[str]:
    return [memory.content for memory in memories]


def by_row(memories: list[Memory]) -> dict[str, Memory]:
    return {memory.provenance.origin_id or "": memory for memory in memories}


# --- read -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("layout", LAYOUTS)
def test_every_layout_is_read_and_found_in_the_folder_it_belongs_to(made: Callable[[str], Ocpg], layout: str) -> None:
    ocpg = made(LAYOUTS[layout])
    before = ocpg.everything()
    app = ocpg.open()
    assert recalled(app, BAKERY, "which port does the oven controller use?")[0] == OVEN
    assert recalled(app, FERRY, "when are timetables published?")[0] == TIMETABLES
    assert OVEN not in contents(listed(app, FERRY))
    assert TIMETABLES not in contents(listed(app, BAKERY))
    assert len(listed(app, None)) == len(ocpg.rows())
    assert ocpg.everything() == before


@pytest.mark.parametrize("name", SAMPLE_FILES)
def test_every_sample_is_read_completely_and_left_as_it_is(made: Callable[[str], Ocpg], name: str) -> None:
    ocpg = made(sample(name))
    before, dumped = ocpg.everything(), ocpg.dump()
    app = ocpg.open()
    assert {int(key): memory.content for key, memory in by_row(listed(app, None)).items()} == dict(
        ocpg.rows("id, content")
    )
    assert {int(key): memory.tags for key, memory in by_row(listed(app, None)).items()} == {
        id_: tuple(tags) for id_, tags in ocpg.rows("id, tags")
    }
    assert ocpg.everything() == before
    assert ocpg.dump() == dumped
    assert notes(app) == []


def test_a_row_keeps_its_times_its_counters_its_session_and_what_replaced_it(ocpg: Ocpg) -> None:
    memories = by_row(listed(ocpg.open(), None))
    oven, mondays, fridays = memories["1"], memories["4"], memories["5"]
    assert (oven.origin, oven.source, oven.provenance.origin_system) == (Origin.IMPORTED, Source.IMPORTED, "ocpg")
    assert oven.times.learned == datetime(2025, 6, 1, 10, 0, 0, 1, tzinfo=UTC)
    assert oven.times.updated == datetime(2025, 7, 1, tzinfo=UTC)
    assert oven.times.used == datetime(2025, 8, 1, tzinfo=UTC)
    assert (oven.counters.recalled, oven.counters.sessions, oven.session) == (2, 2, "ses_1")
    assert mondays.status == Superseded(by=fridays.id, since=fridays.times.learned)


def test_types_say_who_sees_a_memory_in_each_layout(made: Callable[[str], Ocpg]) -> None:
    kinds = {
        layout: [(memory.kind.value, memory.visibility.value) for memory in listed(made(script).open(), None)]
        for layout, script in LAYOUTS.items()
    }
    facts = [("fact", "project"), ("fact", "project")]
    assert kinds["oldest"] == [*facts, ("fact", "global")]
    assert kinds["middle"] == [*facts, ("preference", "global"), ("user", "global")]
    assert kinds["newest"] == [*facts, ("fact", "global"), ("fact", "project"), ("fact", "project")]


def test_the_sample_is_seen_from_each_folder_as_ocpg_shows_it_there(made: Callable[[str], Ocpg]) -> None:
    ocpg = made(sample("ocpg-dump.sql"))
    app = ocpg.open()
    for folder in (API, INFRA, MONOREPO, "/home/dev/elsewhere"):
        assert contents(listed(app, folder, states=CURRENT))[::-1] == ocpg.newest(folder)
    expected = json.loads((SAMPLES / "expected.json").read_text(encoding="utf-8"))
    superseded = {key for key, memory in by_row(listed(app, None)).items() if isinstance(memory.status, Superseded)}
    assert superseded == {str(n) for n in expected["recall_hidden_superseded"]}


def test_a_folder_inside_a_repository_is_that_repository(made: Callable[[str], Ocpg], tmp_path: Path) -> None:
    git = tmp_path / "boat" / ".git"
    (git / "refs").mkdir(parents=True)
    (git / "objects").mkdir()
    (git / "HEAD").write_text("ref: refs/heads/main\n", encoding="utf-8")
    (tmp_path / "boat" / "deck").mkdir()
    ocpg = made(NEWEST.replace(FERRY, str(tmp_path / "boat" / "deck")))
    app = ocpg.open()
    assert recalled(app, str(tmp_path / "boat"), "timetables published") == [TIMETABLES]
    assert recalled(app, str(tmp_path / "boat" / "deck"), "timetables published") == [TIMETABLES]
    assert len(anyio.run(app.backend.projects.projects)) == 2


def test_opening_the_store_again_takes_in_nothing_twice(ocpg: Ocpg) -> None:
    first = listed(ocpg.open(), None)
    app = ocpg.open()
    assert listed(app, None) == first
    anyio.run(app.close)
    assert listed(app, None) == first
    assert len(anyio.run(lambda: app.backend.memories.history(limit=100))) == 1


def test_links_that_were_lost_are_found_again(ocpg: Ocpg) -> None:
    app = ocpg.open()
    first = listed(app, None)
    anyio.run(app.close)
    ocpg.run("DELETE FROM backstory.ocpg_links")
    assert listed(app, None) == first
    decide(app, BAKERY, app.remember.update, f"#{by_row(first)['1'].n}", Revision(content="The oven speaks MQTT now."))
    assert ocpg.rows("content", "id = 1") == [("The oven speaks MQTT now.",)]


def test_two_processes_that_open_it_at_once_take_in_each_row_once(ocpg: Ocpg) -> None:
    apps = [ocpg.open() for _ in range(3)]

    async def work() -> None:
        async with anyio.create_task_group() as tasks:
            for app in apps:
                tasks.start_soon(app.backend.projects.projects)

    anyio.run(work)
    assert len(listed(apps[0], None)) == 5


# --- written ----------------------------------------------------------------------------------------------------------


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


def test_recalls_are_counted_on_both_sides_once(ocpg: Ocpg) -> None:
    app = ocpg.open()
    oven = by_row(listed(app, None))["1"]
    seen = Use(memories=(oven.id,), at=app.clock.now(), session=SessionId("ses_x"), surfaced=True)
    anyio.run(app.backend.memories.record_use, seen)
    assert ocpg.run("SELECT count(*) FROM memory_recalls WHERE memory_id = 1") == [(2,)]
    anyio.run(app.backend.memories.record_use, replace(seen, surfaced=False))
    assert ocpg.rows("access_count", "id = 1") == [(3,)]
    assert ocpg.run("SELECT session_id FROM memory_recalls WHERE memory_id = 1 ORDER BY 1")[-1] == ("ses_x",)
    ocpg.run("UPDATE memories SET access_count = access_count + 1, last_accessed_at = now() WHERE id = 1")
    ocpg.run("INSERT INTO memory_recalls (memory_id, session_id) VALUES (1, 'ses_y')")
    anyio.run(app.close)
    counters = by_row(listed(app, None))["1"].counters
    assert (counters.recalled, counters.sessions, counters.surfaced) == (4, 4, 1)
    anyio.run(app.close)
    assert by_row(listed(app, None))["1"].counters == counters
    assert by_row(listed(app, None))["1"].revision == oven.revision


# --- what ocpg does meanwhile -----------------------------------------------------------------------------------------


def test_what_ocpg_stores_is_found_here_within_seconds(ocpg: Ocpg) -> None:
    app = ocpg.open()
    assert recalled(app, BAKERY, "sourdough") == []
    ocpg.run(
        "INSERT INTO memories (content, tags, session_id, project, memory_type) VALUES"
        f" ('The sourdough starter is fed at six.', '{{starter}}', 'ses_8', '{BAKERY}', 'project_fact')"
    )
    until = time.monotonic() + 20
    while (found := recalled(app, BAKERY, "sourdough")) == [] and time.monotonic() < until:
        time.sleep(0.2)
    assert found == ["The sourdough starter is fed at six."]
    assert recalled(app, FERRY, "sourdough") == []


def test_what_ocpg_changes_replaces_and_deletes_is_so_here_and_stays_in_the_history(ocpg: Ocpg) -> None:
    app = ocpg.open()
    before = by_row(listed(app, None))
    anyio.run(app.close)
    ocpg.run("UPDATE memories SET content = 'The oven speaks OPC UA.', updated_at = now() WHERE id = 1")
    ocpg.run("UPDATE memories SET tags = ARRAY['python', 'pydantic'] WHERE id = 3")
    ocpg.run(
        "INSERT INTO memories (content, project, memory_type) VALUES ('Timetables are published daily.',"
        f" '{FERRY}', 'project_fact')"
    )
    ocpg.run("UPDATE memories SET superseded_by = 6 WHERE id = 2")
    ocpg.run("DELETE FROM memories WHERE id = 5")
    after = by_row(listed(app, None))
    assert after["1"].content == "The oven speaks OPC UA."
    assert (after["1"].id, after["1"].n) == (before["1"].id, before["1"].n)
    assert after["3"].tags == ("python", "pydantic")
    assert isinstance(after["2"].status, Superseded)
    assert after["2"].status.by == after["6"].id
    assert isinstance(after["5"].status, Deleted)
    assert after["4"].status == replace(before["1"]).status  # nothing replaces it any more
    assert recalled(app, FERRY, "when are timetables published?") == ["Timetables are published daily."]
    history = anyio.run(lambda: app.backend.memories.history(memory=before["1"].id))
    assert [edit.before.content for edit in history[0].edits if edit.before and edit.before.n == before["1"].n] == [
        OVEN
    ]


def test_a_row_that_comes_back_is_believed_again(ocpg: Ocpg) -> None:
    app = ocpg.open()
    first = by_row(listed(app, None))
    anyio.run(app.close)
    ocpg.run("CREATE TABLE kept AS SELECT * FROM memories WHERE id = 2")
    ocpg.run("DELETE FROM memories WHERE id = 2")
    assert isinstance(by_row(listed(app, None))["2"].status, Deleted)
    anyio.run(app.close)
    ocpg.run(
        "INSERT INTO memories (id, content, tags, session_id, project, created_at, memory_type)"
        " SELECT id, content, tags, session_id, project, created_at, memory_type FROM kept"
    )
    again = by_row(listed(app, None))["2"]
    assert (again.id, again.content, again.status) == (first["2"].id, TIMETABLES, first["2"].status)


def test_another_row_under_an_old_id_is_another_memory(ocpg: Ocpg) -> None:
    app = ocpg.open()
    first = by_row(listed(app, None))["2"]
    anyio.run(app.close)
    ocpg.run("DELETE FROM memories WHERE id = 2")
    ocpg.run(f"INSERT INTO memories (id, content, project) VALUES (2, 'Tickets are sold on board.', '{FERRY}')")
    memories = [memory for memory in listed(app, None) if memory.provenance.origin_id == "2"]
    assert [(type(memory.status).__name__, memory.content) for memory in memories] == [
        ("Deleted", TIMETABLES),
        ("Active", "Tickets are sold on board."),
    ]
    assert memories[0].id == first.id != memories[1].id


def test_a_decision_on_words_that_ocpg_has_just_changed_is_refused(ocpg: Ocpg) -> None:
    app = ocpg.open()
    known = by_row(listed(app, None))["1"]
    ocpg.run("UPDATE memories SET content = 'The oven speaks OPC UA.', updated_at = now() WHERE id = 1")
    mine = replace(known, content="The oven speaks MQTT.")
    with pytest.raises(Conflict):
        anyio.run(app.backend.memories.commit, sample_change(1, *edits(known, mine)))
    assert ocpg.rows("content", "id = 1") == [("The oven speaks OPC UA.",)]
    assert by_row(listed(app, None))["1"].content == "The oven speaks OPC UA."


def test_a_recall_that_ocpg_has_just_counted_too_is_added(ocpg: Ocpg) -> None:
    app = ocpg.open()
    known = by_row(listed(app, None))["1"]
    ocpg.run("UPDATE memories SET access_count = access_count + 1 WHERE id = 1")
    use = Use(memories=(known.id,), at=app.clock.now(), session=None, surfaced=False)
    anyio.run(app.backend.memories.record_use, use)
    assert ocpg.rows("access_count", "id = 1") == [(4,)]
    assert by_row(listed(app, None))["1"].counters.recalled == 4


@pytest.mark.parametrize("later", ["ocpg", "here"])
def test_of_two_wordings_the_newer_counts_and_the_other_stays_in_the_history(ocpg: Ocpg, later: str) -> None:
    app = ocpg.open()
    known = by_row(listed(app, None))["1"]
    anyio.run(app.close)
    unlinked = ocpg.open(ocpg=False)
    decide(unlinked, BAKERY, unlinked.remember.update, f"#{known.n}", Revision(content="The oven speaks MQTT."))
    decide(unlinked, BAKERY, unlinked.remember.pin, f"#{known.n}", pinned=True)
    assert ocpg.rows("content", "id = 1") == [(OVEN,)]
    at = "now() + interval '1 minute'" if later == "ocpg" else "now() - interval '1 hour'"
    ocpg.run(f"UPDATE memories SET content = 'The oven speaks OPC UA.', updated_at = {at} WHERE id = 1")
    stands, other = "The oven speaks OPC UA.", "The oven speaks MQTT."
    if later == "here":
        stands, other = other, stands
    assert by_row(listed(app, None))["1"].content == stands
    remembered(app, BAKERY, "Anything that is written brings the rest along.")
    assert ocpg.rows("content", "id = 1") == [(stands,)]
    history = anyio.run(lambda: app.backend.memories.history(memory=known.id))
    assert other in {image.content for change in history for edit in change.edits for image in (edit.before, edit.after)
                     if image is not None}  # fmt: skip
    assert by_row(listed(app, None))["1"].pinned


# --- borders ----------------------------------------------------------------------------------------------------------


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


# --- what goes wrong --------------------------------------------------------------------------------------------------


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


def test_both_sides_agree_after_they_wrote_at_the_same_time(ocpg: Ocpg) -> None:
    app = ocpg.open()
    listed(app, None)

    def plugin() -> None:
        chance = random.Random(7)
        with psycopg.connect(ocpg.server.dsn(user="postgres", database=ocpg.name), autocommit=True) as raw:
            for step in range(80):
                ids = [id_ for (id_,) in raw.execute("SELECT id FROM memories")]
                statement, values = chance.choice(
                    [
                        ("UPDATE memories SET content = %s, updated_at = now() WHERE id = %s", (f"ocpg {step}", None)),
                        ("UPDATE memories SET access_count = access_count + 1 WHERE id = %s", (None,)),
                        ("INSERT INTO memories (content, project) VALUES (%s, %s)", (f"ocpg's {step}", BAKERY)),
                        ("UPDATE memories SET superseded_by = %s WHERE id = %s", (None, None)),
                        ("DELETE FROM memories WHERE id = %s AND id > 5", (None,)),
                    ]
                )
                with contextlib.suppress(psycopg.errors.ForeignKeyViolation):
                    raw.execute(statement, [chance.choice(ids) if value is None else value for value in values])

    writing = threading.Thread(target=plugin)
    writing.start()
    for step in range(6):
        with contextlib.suppress(Conflict, NotFound, StoreBusy):
            known = listed(app, BAKERY, states=CURRENT)[0]
            decide(app, BAKERY, app.remember.update, f"#{known.n}", Revision(content=f"ours {step}"))
            remembered(app, BAKERY, f"ours instead {step}", supersedes=f"#{known.n}")
    writing.join()
    anyio.run(app.close)
    memories = {memory.id: memory for memory in listed(app, None)}
    rows = {id_: (content, by) for id_, content, by in ocpg.rows("id, content, superseded_by")}
    linked = dict(ocpg.run("SELECT memory, ocpg_id FROM backstory.ocpg_links WHERE present"))
    assert {*linked} == {id_ for id_, memory in memories.items() if not isinstance(memory.status, Deleted)}
    for id_, row in linked.items():
        status = memories[id_].status
        by = linked[status.by] if isinstance(status, Superseded) else None
        assert rows.pop(row) == (memories[id_].content, by)
    assert rows == {}


def edits(before: Memory, after: Memory) -> list[Edit]:
    return [Edit(before=before, after=after)]
