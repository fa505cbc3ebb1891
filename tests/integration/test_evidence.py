"""What the bridge archives is found from the command line and by the agent's tool, within its borders."""

from __future__ import annotations

import json
import os
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import anyio
import pytest

from backstory.adapters.stores.sqlite import migrations
from backstory.adapters.stores.sqlite.opening import APPLICATION_ID
from backstory.adapters.stores.sqlite.store import open_sqlite
from backstory.domain.ids import ProjectId
from backstory.domain.scope import Viewer
from backstory.ports.evidence import Sight
from backstory.testing.opencode import wait_for
from tests.integration.bridge_home import CREATED_MS
from tests.integration.bridge_home import home as home
from tests.integration.bridge_home import project as project
from tests.integration.bridge_process import BridgeProcess, Json

WORDS_ONLY = {"BACKSTORY_EMBEDDER_PROVIDER": "none", "BACKSTORY_NO_BACKGROUND": "1"}


@pytest.fixture
def bridge(home: Path, project: Path) -> Iterator[BridgeProcess]:
    process = BridgeProcess(home, directory=project, environ=WORDS_ONLY)
    yield process
    if process.process.poll() is None:
        process.process.kill()
        process.process.wait()


def tell(bridge: BridgeProcess, *texts: str, session: str = "ses_1") -> None:
    """A session in which the user says these things, as OpenCode's events tell it."""
    info = {"id": session, "title": "Talk", "time": {"created": CREATED_MS, "updated": CREATED_MS}}
    bridge.event("session.created", {"info": info})
    for n, text in enumerate(texts):
        message = f"msg_{session}_{n}"
        when = {"created": CREATED_MS + n}
        bridge.event("message.updated", {"info": {"id": message, "sessionID": session, "role": "user", "time": when}})
        part = {"id": f"prt_{session}_{n}", "messageID": message, "sessionID": session, "type": "text", "text": text}
        bridge.event("message.part.updated", {"part": part})


def settle(home: Path, parts: int) -> None:
    def kept() -> bool:
        with sqlite3.connect(home / "backstory.db") as raw:
            return bool(raw.execute("SELECT count(*) FROM parts").fetchone()[0] == parts)

    assert wait_for(kept)


def recall(home: Path, folder: Path, *arguments: str) -> str:
    env = {name: value for name, value in os.environ.items() if not name.startswith("BACKSTORY_")}
    done = subprocess.run(
        [sys.executable, "-m", "backstory", *arguments],
        cwd=folder,
        env={**env, **WORDS_ONLY, "BACKSTORY_HOME": str(home)},
        capture_output=True,
        text=True,
        timeout=240,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def asked(home: Path, folder: Path, *arguments: str) -> Json:
    return json.loads(recall(home, folder, "--json", "recall", *arguments))


def test_a_message_of_one_session_is_found_from_the_command_line(
    bridge: BridgeProcess, home: Path, project: Path
) -> None:
    bridge.ask("hello", protocol=1)
    tell(bridge, "hello there", "the exporter of heron loses rows at midnight", "order it by id")
    settle(home, 3)
    shown = recall(home, project, "recall", "--in", "evidence", "why does heron lose rows")
    assert "the exporter of heron loses rows at midnight" in shown
    assert "[user] order it by id" in shown
    assert "session ses_1" in shown
    found = asked(home, project, "--in", "evidence", "heron rows")
    assert found["results"] == []
    first = found["evidence"][0]
    assert (first["message"], first["session"], first["role"]) == ("msg_ses_1_1", "ses_1", "user")
    assert first["before"]["text"] == "hello there"
    assert "evidence" not in asked(home, project, "heron rows")


def test_memories_and_evidence_come_in_two_lists(bridge: BridgeProcess, home: Path, project: Path) -> None:
    bridge.ask("hello", protocol=1)
    bridge.tool("memory_remember", content="The heron exporter runs at midnight")
    tell(bridge, "heron is slow today")
    settle(home, 1)
    found = asked(home, project, "--in", "all", "heron")
    assert [item["content"] for item in found["results"]] == ["The heron exporter runs at midnight"]
    assert [item["text"] for item in found["evidence"]] == ["heron is slow today"]
    shown = recall(home, project, "recall", "--in", "all", "heron")
    assert shown.index("runs at midnight") < shown.index("Said in sessions") < shown.index("slow today")
    assert "slow today" not in recall(home, project, "recall", "heron")
    said = bridge.tool("memory_recall", query="heron", where="all")
    assert said.index("runs at midnight") < said.index("slow today")
    assert "slow today" not in bridge.tool("memory_recall", query="heron")
    assert "slow today" in bridge.tool("memory_recall", query="heron", where="evidence")


def test_another_project_does_not_find_it(bridge: BridgeProcess, home: Path, project: Path, tmp_path: Path) -> None:
    bridge.ask("hello", protocol=1)
    tell(bridge, "the heron exporter is ours")
    settle(home, 1)
    other = tmp_path / "other"
    other.mkdir()
    silent = asked(home, other, "--in", "evidence", "heron")
    assert silent["evidence"] == []
    assert silent["why_no_evidence"]
    assert asked(home, other, "--in", "evidence", "--all-projects", "heron")["evidence"]
    assert asked(home, project, "--in", "evidence", "--session", "ses_9", "heron")["evidence"] == []


def test_private_text_and_secrets_are_in_no_index(bridge: BridgeProcess, home: Path, project: Path) -> None:
    token = "ghp_" + "a1B2c3D4e5F6g7H8i9J0" + "k1L2m3N4o5P6q7R8"
    bridge.ask("hello", protocol=1)
    tell(bridge, f"heron uses {token} and <private>zanzibar</private> too")
    settle(home, 1)
    assert bridge.close() == 0
    assert asked(home, project, "--in", "evidence", "heron")["evidence"]
    assert asked(home, project, "--in", "evidence", "zanzibar")["evidence"] == []
    stored = b"".join(path.read_bytes() for path in home.glob("backstory.db*"))
    assert token.encode() not in stored
    assert b"zanzibar" not in stored


def test_a_store_of_the_first_format_gets_its_passages_in_the_background(tmp_path: Path) -> None:
    path = tmp_path / "old.db"
    with sqlite3.connect(path) as raw:
        first = migrations.scripts()[0][1].read_text(encoding="utf-8")
        raw.executescript(first)
        raw.execute(f"PRAGMA application_id = {APPLICATION_ID}")
        raw.execute("PRAGMA user_version = 1")
        raw.execute("INSERT INTO sessions VALUES ('s', 'p', 'test', '/', NULL, NULL, 0, 0, NULL)")
        raw.execute("INSERT INTO messages VALUES ('m', 's', 'user', NULL, NULL, 0, NULL, NULL)")
        raw.execute("INSERT INTO parts VALUES ('a', 'm', 's', 'text', 'the old heron', NULL, 0, NULL)")
    raw.close()

    async def check() -> None:
        backend = open_sqlite(path)
        sight = Sight(viewer=Viewer(project=ProjectId("p")))
        assert await backend.evidence.is_outdated()
        assert (await backend.evidence.search_text(["heron"], sight, limit=9)).numbers == []
        assert await backend.evidence.reindex() == 1
        assert not await backend.evidence.is_outdated()
        assert len((await backend.evidence.search_text(["heron"], sight, limit=9)).numbers) == 1
        await backend.memories.close()

    anyio.run(check)
