"""Bridges over one home, and what the tests of a bridge tell it and read of its store.

Test modules take the fixtures by their names.
"""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from backstory.testing.opencode import wait_for
from tests.integration.bridge_process import BridgeProcess, Json

WORDS_ONLY = {"BACKSTORY_EMBEDDER_PROVIDER": "none"}
CREATED_MS = 1_770_000_000_000
Start = Callable[..., BridgeProcess]


@pytest.fixture
def home(tmp_path: Path) -> Path:
    return tmp_path / "home"


@pytest.fixture
def project(tmp_path: Path) -> Path:
    folder = tmp_path / "shop"
    folder.mkdir()
    return folder


@pytest.fixture
def start(home: Path, project: Path) -> Iterator[Start]:
    """Starts bridges over one home; without the model unless ``environ`` says otherwise."""
    running: list[BridgeProcess] = []

    def start(**options: Json) -> BridgeProcess:
        running.append(BridgeProcess(home, **{"directory": project, "environ": WORDS_ONLY, **options}))
        return running[-1]

    yield start
    for bridge in running:
        if bridge.process.poll() is None:
            bridge.process.kill()
            bridge.process.wait()


def kept_rows(home: Path, statement: str, *parameters: object) -> list[tuple[Json, ...]]:
    with sqlite3.connect(home / "backstory.db") as raw:
        return raw.execute(statement, parameters).fetchall()


def user_message(message: str, *, session: str = "ses_1", role: str = "user", created: int = CREATED_MS) -> Json:
    return {"info": {"id": message, "sessionID": session, "role": role, "time": {"created": created}}}


def text_part(part: str, message: str, text: str, *, session: str = "ses_1", **more: Json) -> Json:
    return {"part": {"id": part, "messageID": message, "sessionID": session, "type": "text", "text": text, **more}}


def settle(bridge: BridgeProcess, home: Path, session: str = "ses_mark") -> None:
    """Wait until every event sent so far was taken: they are taken in order, and this one comes last."""
    bridge.ask("hello", protocol=1)  # makes sure that there is a store
    mark = f"mark_{time.monotonic_ns()}"
    bridge.event("message.updated", user_message(mark, session=session))
    assert wait_for(lambda: kept_rows(home, "SELECT 1 FROM messages WHERE id = ?", mark))
