"""The ledger against a server that counts for itself: the sums agree, and nothing is called after a cap."""

from __future__ import annotations

import signal
import sqlite3
import time
from collections.abc import Callable, Mapping
from contextlib import closing
from pathlib import Path

import anyio
import pytest

from backstory.adapters.stores.sqlite import migrations
from backstory.adapters.stores.sqlite.opening import APPLICATION_ID
from backstory.adapters.stores.sqlite.store import open_sqlite
from backstory.domain.ledger import Outcome, Spent
from backstory.domain.scope import Audience
from backstory.ports.backend import Backend
from backstory.services.query import Query, Recalled
from backstory.testing.contracts.ledger import FULL, entry
from backstory.testing.fakes import START
from tests.integration.kitchens import KEPT, ONE_CALL, Kitchen, counted, questions, sums, why_not_reranked
from tests.integration.kitchens import kitchen as kitchen
from tests.integration.scripted_server import Answer
from tests.stores import STORES

# --- what the server counted, and nothing after a cap -----------------------------------------------------------------


@pytest.mark.parametrize(
    ("settings", "cap"),
    [
        ({"CAP_FEATURES": f"rerank={3 * ONE_CALL}"}, "390 tokens a day for rerank"),
        ({"CAP_DAY_TOKENS": str(2 * ONE_CALL + 1)}, "261 tokens a day"),
        ({"CAP_DAY_COST": "0.00033"}, "0.00033 a day"),
        ({"CAP_SESSION_TOKENS": str(3 * ONE_CALL)}, "390 tokens a session"),
    ],
    ids=["feature", "day", "cost", "session"],
)
def test_the_ledger_adds_up_to_what_the_server_counted_and_nothing_is_called_after_a_cap(
    kitchen: Kitchen, settings: Mapping[str, str], cap: str
) -> None:
    kitchen.settings.update(settings)
    found = kitchen.recall(*questions(5), session="ses-1")
    found += kitchen.recall(*questions(2), session="ses-1")  # another process would read the same books
    assert len(kitchen.server.requests) == 3
    entries = kitchen.entries()
    assert sums(entries) == counted(kitchen) == (300, 90)
    assert {each.cost for each in entries} == {110}  # 100 at 0.50 and 30 at 2.00 a million
    assert {(each.outcome, each.estimated, each.session) for each in entries} == {(Outcome.OK, False, "ses-1")}
    asked, not_asked = found[:3], found[3:]
    assert [why_not_reranked(each) for each in asked] == [[], [], []]
    for recalled in not_asked:
        [reason] = why_not_reranked(recalled)
        assert f"the cap of {cap} is reached" in reason
        assert {result.memory.content for result in recalled.results} == set(KEPT)  # by the gate


def test_another_session_goes_on_where_one_is_at_its_cap(kitchen: Kitchen) -> None:
    kitchen.settings["CAP_SESSION_TOKENS"] = "1"
    kitchen.recall(*questions(2), session="ses-1")
    kitchen.recall(*questions(2), session="ses-2")
    assert len(kitchen.server.requests) == 2


def test_a_cap_of_nothing_asks_no_model_at_all(kitchen: Kitchen) -> None:
    kitchen.settings["CAP_DAY_TOKENS"] = "0"
    [recalled] = kitchen.recall("soup?")
    assert len(why_not_reranked(recalled)) == 1
    assert (kitchen.server.requests, kitchen.entries()) == ([], [])


def test_a_command_is_booked_too(kitchen: Kitchen) -> None:
    assert kitchen.command("recall", "soup?").returncode == 0
    kitchen.settings["CAP_DAY_TOKENS"] = "1"
    skipped = kitchen.json("recall", "soup?")["skipped"]
    assert [each for each in skipped if "the cap of 1 tokens a day is reached (130 spent)" in each]
    assert len(kitchen.entries()) == len(kitchen.server.requests) == 1


def test_an_answer_from_memory_costs_nothing(kitchen: Kitchen) -> None:
    kitchen.recall("soup?", "soup?")
    assert len(kitchen.entries()) == len(kitchen.server.requests) == 1


def test_failures_and_attempts_are_booked(kitchen: Kitchen) -> None:
    kitchen.server.script += [Answer(status=503), Answer(status=401), Answer(hang_up=True)]
    kitchen.recall(*questions(3))
    refused, broken_off, plain = kitchen.entries()
    assert (refused.outcome, refused.requests, refused.input_tokens, refused.cost) == (Outcome.REFUSED, 2, 0, 0)
    assert (broken_off.outcome, broken_off.requests, broken_off.estimated) == (Outcome.OK, 2, True)
    assert broken_off.input_tokens > 100
    assert (plain.outcome, plain.requests, plain.input_tokens) == (Outcome.OK, 1, 100)


def test_a_server_that_cannot_be_reached_costs_nothing(kitchen: Kitchen) -> None:
    kitchen.settings |= {"BASE_URL": "http://127.0.0.1:9", "MAX_RETRIES": "0"}
    kitchen.recall("soup?")
    assert kitchen.entries() == []


def test_a_server_that_is_left_alone_after_failures_costs_nothing_meanwhile(kitchen: Kitchen) -> None:
    kitchen.server.respond = lambda _: Answer(status=500)
    kitchen.settings["MAX_RETRIES"] = "0"
    kitchen.recall(*questions(5))
    assert len(kitchen.entries()) == len(kitchen.server.requests) == 3
    assert sums(kitchen.entries()) == (0, 0)


def test_a_question_put_again_in_simpler_words_is_one_call(kitchen: Kitchen) -> None:
    kitchen.server.script.append(Answer(status=400, body={"error": {"message": "unknown field response_format"}}))
    kitchen.recall("soup?")
    [call] = kitchen.entries()
    assert (call.outcome, call.requests, call.input_tokens, call.estimated) == (Outcome.OK, 2, 100, False)


def test_a_server_that_is_too_slow_is_booked_with_the_most_it_can_take(kitchen: Kitchen) -> None:
    kitchen.server.respond = lambda _: Answer(delay_seconds=30)
    kitchen.settings["TIMEOUT_MS"] = "1000"
    kitchen.recall("soup?")
    [slow] = kitchen.entries()
    assert (slow.outcome, slow.requests, slow.estimated, slow.output_tokens) == (Outcome.TIMEOUT, 1, True, 512)


# --- several processes, and one that dies -----------------------------------------------------------------------------

ASKING = """
import anyio, os, sys
from pathlib import Path
from backstory.bootstrap import open_app
from backstory.config import load
from backstory.domain.scope import Audience
from backstory.services.query import Query

async def main():
    app = open_app(load(env=os.environ, project_root=None).settings)
    viewer = await app.viewer(Path.cwd(), audience=Audience.MODEL)
    for number in range({count}):
        await app.recall.recall(Query(text=f"Soup {{number}} of {name}?", viewer=viewer))
    await app.close()

anyio.run(main)
"""


def test_processes_that_call_at_once_add_up_and_share_a_cap(kitchen: Kitchen) -> None:
    kitchen.settings["CAP_DAY_TOKENS"] = str(20 * ONE_CALL)
    processes = [kitchen.start(ASKING.format(count=30, name=name)) for name in ("one", "other")]
    assert [process.wait(240) for process in processes] == [0, 0]
    entries = kitchen.entries()
    assert sums(entries) == counted(kitchen)
    # calls under way count in full, so that the last few may find no room; none goes beyond
    assert 10 <= len(kitchen.counted) <= 20
    assert {each.outcome for each in entries} == {Outcome.OK}


def test_a_process_that_dies_in_a_call_leaves_it_booked_in_full(kitchen: Kitchen) -> None:
    kitchen.settings["CAP_DAY_TOKENS"] = "500"
    kitchen.server.respond = lambda _: Answer(delay_seconds=60)
    process = kitchen.start(ASKING.format(count=1, name="one"))
    _wait_for(lambda: bool(kitchen.server.requests))
    process.send_signal(signal.SIGKILL)
    process.wait(30)
    [left] = kitchen.entries()
    assert (left.outcome, left.estimated, left.output_tokens) == (Outcome.UNFINISHED, True, 512)
    [recalled] = kitchen.recall("soup?")
    [reason] = why_not_reranked(recalled)
    assert "500 tokens a day is reached" in reason
    assert len(kitchen.server.requests) == 1


def _wait_for(holds: Callable[[], bool]) -> None:
    end = time.monotonic() + 30
    while not holds():
        assert time.monotonic() < end
        time.sleep(0.02)


def test_a_store_that_others_are_writing_to_costs_a_prompt_little(kitchen: Kitchen) -> None:
    with closing(sqlite3.connect(kitchen.home / "backstory.db", isolation_level=None)) as raw:
        raw.execute("BEGIN IMMEDIATE")
        started = time.monotonic()

        async def work() -> Recalled:
            app = kitchen.app()
            viewer = await app.viewer(kitchen.folder, audience=Audience.MODEL, register=False)
            found = await app.recall.recall(Query(text="soup?", viewer=viewer, embed_within_s=0.6))
            await app.close()
            return found

        recalled = anyio.run(work)
        assert time.monotonic() - started < 8, "a writer waits 10 s"
        raw.execute("ROLLBACK")
    assert why_not_reranked(recalled) == []
    assert kitchen.entries() == []  # without a cap, a call is made all the same


# --- it is kept -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["sqlite", "git", "postgres"])
def test_a_backup_holds_the_ledger_and_any_store_takes_it_over(kind: str, tmp_path: Path) -> None:
    async def work() -> None:
        store: Backend = STORES[kind](tmp_path / "from")
        await store.ledger.book(FULL)
        await store.ledger.book(entry(2))
        assert store.upkeep is not None
        await store.upkeep.backup(tmp_path / "backup.db")
        await store.ledger.book(entry(3))
        await store.upkeep.restore(tmp_path / "backup.db")
        assert list(await store.ledger.entries(since=START)) == [entry(2), FULL]
        assert [each.what for each in await store.upkeep.verify(full=True)] == []
        await store.memories.close()

    (tmp_path / "from").mkdir()
    anyio.run(work)


def test_a_store_of_the_format_before_gets_an_empty_ledger(tmp_path: Path) -> None:
    path = tmp_path / "memory.db"
    raw = sqlite3.connect(path)
    for version, script in migrations.scripts():
        if version <= 6:
            raw.executescript(script.read_text(encoding="utf-8"))
    raw.execute(f"PRAGMA application_id = {APPLICATION_ID}")
    raw.execute("PRAGMA user_version = 6")
    raw.commit()
    raw.close()

    async def work() -> None:
        backend = open_sqlite(path)
        assert await backend.ledger.spent() == Spent()
        await backend.ledger.book(FULL)
        assert list(await backend.ledger.entries(since=START)) == [FULL]
        await backend.memories.close()

    anyio.run(work)
