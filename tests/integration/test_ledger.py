"""The ledger against a server that counts for itself: the sums agree, and nothing is called after a cap."""

from __future__ import annotations

import json
import os
import signal
import sqlite3
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import anyio
import pytest

from backstory.adapters.stores.sqlite import migrations
from backstory.adapters.stores.sqlite.opening import APPLICATION_ID
from backstory.adapters.stores.sqlite.store import open_sqlite
from backstory.bootstrap import App, open_app
from backstory.config import load
from backstory.domain.history import Author
from backstory.domain.ids import SessionId
from backstory.domain.ledger import Entry, Outcome, Spent
from backstory.domain.provenance import Origin
from backstory.domain.scope import Audience, Viewer
from backstory.errors import ConfigError
from backstory.ports.backend import Backend
from backstory.services.query import Query, Recalled
from backstory.services.remember import Draft
from backstory.testing.contracts.ledger import FULL, entry
from backstory.testing.fakes import START
from tests.integration.scripted_server import Answer, Request, ScriptedServer
from tests.stores import STORES

KEPT = ("Soup is served at six.", "Soup is never reheated.", "Soup bowls stand in the left cupboard.")
ONE_CALL = 130
"""Tokens that the server counts for each answer."""


@dataclass
class Kitchen:
    """A home with some memories, and a model server that counts what it takes."""

    server: ScriptedServer
    home: Path
    folder: Path
    settings: dict[str, str] = field(default_factory=dict)
    counted: list[tuple[int, int]] = field(default_factory=list)
    lock: threading.Lock = field(default_factory=threading.Lock)

    @property
    def env(self) -> dict[str, str]:
        return {
            "BACKSTORY_HOME": str(self.home),
            "BACKSTORY_EMBEDDER_PROVIDER": "none",
            "BACKSTORY_RECALL_RERANK": "auto",
            "BACKSTORY_MODELS_BASE_URL": self.server.url,
            "BACKSTORY_MODELS_MODEL": "tiny",
            "BACKSTORY_MODELS_PRICE_INPUT": "0.50",
            "BACKSTORY_MODELS_PRICE_OUTPUT": "2",
            **{f"BACKSTORY_MODELS_{name}": value for name, value in self.settings.items()},
        }

    def respond(self, _: Request) -> Answer:
        with self.lock:
            self.counted.append((100, 30))
        usage = {"prompt_tokens": 100, "completion_tokens": 30}
        choice = {"message": {"content": '{"order": [2]}'}, "finish_reason": "stop"}
        return Answer(body={"choices": [choice], "usage": usage})

    def app(self) -> App:
        return open_app(load(env=self.env, project_root=None).settings)

    def remember(self) -> None:
        async def work() -> None:
            app = self.app()
            viewer = await app.viewer(self.folder, audience=Audience.PERSON)
            for text in KEPT:
                await app.remember.remember(Draft(content=text, origin=Origin.USER), viewer=viewer, author=Author.USER)
            await app.close()

        anyio.run(work)

    def recall(self, *questions: str, session: str | None = None) -> list[Recalled]:
        """Ask one after another in one process."""

        async def work() -> list[Recalled]:
            app = self.app()
            project = await app.project(self.folder)
            viewer = Viewer(
                project=project.id, audience=Audience.MODEL, session=SessionId(session) if session else None
            )
            found = [await app.recall.recall(Query(text=question, viewer=viewer)) for question in questions]
            await app.close()
            return found

        return anyio.run(work)

    def entries(self) -> list[Entry]:
        async def work() -> list[Entry]:
            app = self.app()
            found = list(await app.backend.ledger.entries(since=START))
            await app.close()
            return found

        return anyio.run(work)

    def command(self, *args: str) -> subprocess.CompletedProcess[str]:
        kept = {name: value for name, value in os.environ.items() if not name.startswith("BACKSTORY_")}
        return subprocess.run(
            [sys.executable, "-m", "backstory", *args],
            env=kept | self.env,
            cwd=self.folder,
            capture_output=True,
            text=True,
            timeout=240,
        )

    def json(self, *args: str) -> Any:  # Any: JSON of any shape
        done = self.command(*args, "--json")
        assert (done.returncode, done.stderr) == (0, "")
        return json.loads(done.stdout)

    def start(self, script: str) -> subprocess.Popen[bytes]:
        kept = {name: value for name, value in os.environ.items() if not name.startswith("BACKSTORY_")}
        return subprocess.Popen([sys.executable, "-c", script], env=kept | self.env, cwd=self.folder)


@pytest.fixture
def kitchen(tmp_path: Path) -> Iterator[Kitchen]:
    server = ScriptedServer(lambda _: Answer(status=500))
    folder = tmp_path / "kitchen"
    folder.mkdir()
    with server.running():
        made = Kitchen(server=server, home=tmp_path / "home", folder=folder)
        server.respond = made.respond
        made.remember()
        yield made


def questions(count: int) -> list[str]:
    """Different ones: the same question about the same memories is asked once in a process."""
    return [f"What is said about soup, table {number}?" for number in range(count)]


def why_not_reranked(recalled: Recalled) -> list[str]:
    return [skipped.reason for skipped in recalled.skipped if skipped.part == "rerank"]


def sums(entries: list[Entry]) -> tuple[int, int]:
    return sum(each.input_tokens for each in entries), sum(each.output_tokens for each in entries)


def counted(kitchen: Kitchen) -> tuple[int, int]:
    return sum(each[0] for each in kitchen.counted), sum(each[1] for each in kitchen.counted)


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


# --- what a person is told --------------------------------------------------------------------------------------------


def test_status_tells_costs_caps_and_what_does_without_a_model(kitchen: Kitchen) -> None:
    kitchen.settings |= {"CAP_FEATURES": f"rerank={2 * ONE_CALL}", "CAP_DAY_COST": "5", "CAP_SESSION_TOKENS": "9000"}
    assert kitchen.json("status")["at_cap"] == []
    kitchen.recall(*questions(3))
    told = kitchen.json("status", "--cost")
    [line] = told["lines"]
    assert (line["feature"], line["model"], line["calls"], line["failed"]) == ("rerank", "openai:tiny", 2, 0)
    assert (line["input_tokens"], line["output_tokens"], line["cost"]) == (200, 60, "0.00022")
    assert [(cap["cap"], cap["of"], cap["left"]) for cap in told["caps"]] == [
        ("feature", "rerank", 0),
        ("session", None, None),
        ("day_cost", None, "4.99978"),
    ]
    assert [each["feature"] for each in told["at_cap"]] == ["rerank"]
    assert kitchen.json("status")["at_cap"] == told["at_cap"]
    shown = kitchen.command("status", "--cost").stdout
    assert "rerank\topenai:tiny\t2\t0\t0\t200\t60\t0.00022\t" in shown
    assert "Cap: 5.00 a day; 4.99978 left today" in shown
    assert "At the cap of 260 tokens a day for rerank: rerank works without the model until 00:00" in shown
    plain = kitchen.command("status").stdout
    assert "models    rerank works without the model: the cap of 260 tokens a day for rerank is reached" in plain


def test_status_tells_that_nothing_was_called(kitchen: Kitchen) -> None:
    told = kitchen.json("status", "--cost", "--days", "30")
    assert (told["lines"], told["caps"], told["at_cap"]) == ([], [], [])
    assert kitchen.command("status", "--cost").stdout == "No cap is set.\n"


@pytest.mark.parametrize("args", [("--days", "3"), ("--cost", "--days", "0"), ("--cost", "--days", "400")])
def test_days_that_mean_nothing_are_refused(kitchen: Kitchen, args: tuple[str, ...]) -> None:
    assert kitchen.command("status", *args).returncode == 2


def test_a_cap_in_money_needs_prices(kitchen: Kitchen) -> None:
    kitchen.settings |= {"CAP_DAY_COST": "1", "PRICE_OUTPUT": ""}
    with pytest.raises(ConfigError, match=r"models\.price_output is not set, and models\.cap_day_cost needs it"):
        kitchen.recall("soup?")


def test_a_project_sets_neither_caps_nor_prices(kitchen: Kitchen) -> None:
    (kitchen.folder / ".backstory.toml").write_text('[models]\ncap_day_tokens = 999\nprice_input = "0"\n')
    resolved = load(env=kitchen.env, project_root=kitchen.folder)
    assert (resolved.settings.models.cap_day_tokens, resolved.settings.models.price_input) == (None, "0.50")
    assert len(resolved.warnings) == 2


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
