"""A database of ocpg beside our schema: read, written to, and still ocpg's own."""

# ruff: noqa: E402 - where psycopg is missing, these tests are skipped before the modules that import it

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import anyio
import pytest

psycopg = pytest.importorskip("psycopg")

from backstory.domain.lifecycle import Revision
from backstory.domain.memory import Source, Superseded
from backstory.domain.provenance import Origin
from backstory.domain.selection import CURRENT
from backstory.testing.postgres import why_there_is_none
from tests.integration.ocpg_beside import API, INFRA, MONOREPO, OVEN, SAMPLE_FILES, TIMETABLES, by_row, contents, sample
from tests.integration.ocpg_beside import made as made
from tests.integration.ocpg_beside import ocpg as ocpg
from tests.integration.ocpg_beside import server as server
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
)

pytestmark = pytest.mark.skipif(why_there_is_none() is not None, reason=str(why_there_is_none()))


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
