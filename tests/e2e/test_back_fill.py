"""A history that the real OpenCode made, brought in from its database and its API: whole, once, and untouched."""

from __future__ import annotations

import hashlib
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from backstory.testing.opencode import OpenCode
from backstory.testing.opencode_server import Server
from backstory.testing.scripted_model import ScriptedModel

pytestmark = pytest.mark.opencode

TASK = {"description": "look", "prompt": "count the melons", "subagent_type": "general"}


def import_(opencode: OpenCode, store: Path, *places: str) -> Any:  # Any: JSON
    environ = opencode.environment({"BACKSTORY_HOME": str(store), "BACKSTORY_NO_BACKGROUND": "1"})
    command = [sys.executable, "-m", "backstory", "import", *places, "--json"]
    done = subprocess.run(command, cwd=opencode.root, env=environ, capture_output=True, text=True, timeout=240)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def kept(opencode: OpenCode, store: Path, session: str) -> Any:
    environ = opencode.environment({"BACKSTORY_HOME": str(store), "BACKSTORY_NO_BACKGROUND": "1"})
    command = [sys.executable, "-m", "backstory", "session", session, "--raw", "--json"]
    folder = opencode.root / "project"
    done = subprocess.run(command, cwd=folder, env=environ, capture_output=True, text=True, timeout=240)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def contents(folder: Path) -> dict[str, tuple[int, str]]:
    """Time and digest of every database file."""
    return {
        path.name: (path.stat().st_mtime_ns, hashlib.sha256(path.read_bytes()).hexdigest())
        for path in folder.glob("opencode.db*")
    }


def address_of(server: Server) -> str:
    return next(line.rpartition(" ")[2] for line in server.output if "listening on" in line)


def make_history(server: Server, model: ScriptedModel, project: Path) -> tuple[str, str]:
    """A session with a tool call, and one that asks a sub-agent."""
    reading = server.create_session(title="Read it")
    model.when(said="read it", last_role="user", times=1).call("read", filePath=str(project / "melons.txt"))
    server.prompt(reading, "read it")
    asking = server.create_session(title="Delegating")
    model.when(said="delegate", last_role="user", times=1).call("task", **TASK)
    server.prompt(asking, "delegate it")
    return reading, asking


def test_every_session_and_message_of_opencode_comes_in_once_and_nothing_of_its_home_changes(
    tmp_path: Path, scripted: ScriptedModel, opencode_binary: Path
) -> None:
    opencode = OpenCode(tmp_path / "opencode", scripted.url, binary=opencode_binary, config={"snapshot": False})
    project = opencode.project(files={"melons.txt": "seven melons\n"})
    data = opencode.home / ".local" / "share" / "opencode"
    store = tmp_path / "store"
    with opencode.serve(cwd=project) as server:
        reading, asking = make_history(server, scripted, project)
        (child,) = (info["id"] for info in server.call("GET", f"/session/{asking}/children"))
        told = {session: server.messages(session) for session in (reading, asking, child)}
        first = import_(opencode, store, "opencode")  # while it runs
        through_api = import_(opencode, tmp_path / "other", address_of(server))
    count = sum(len(messages) for messages in told.values())
    assert first["by_kind"]["sessions"] == 3
    assert first["by_kind"]["messages"] == count
    assert (first["refused"], first["remarks"]) == ([], [])
    assert through_api["by_kind"] == first["by_kind"]
    before = contents(data)
    second = import_(opencode, store, "opencode")
    assert second["imported"] == 0
    assert set(second["by_kind"].values()) == {0}
    assert contents(data) == before
    assert "seven melons" in json.dumps(kept(opencode, store, reading))
    assert "count the melons" in json.dumps(kept(opencode, store, child))
