"""A home with some memories, and a model server that counts what it takes.

Test modules take the fixture by its name.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import anyio
import pytest

from backstory.bootstrap import App, open_app
from backstory.config import load
from backstory.domain.history import Author
from backstory.domain.ids import SessionId
from backstory.domain.ledger import Entry
from backstory.domain.provenance import Origin
from backstory.domain.scope import Audience, Viewer
from backstory.services.query import Query, Recalled
from backstory.services.remember import Draft
from backstory.testing.fakes import START
from tests.integration.scripted_server import Answer, Request, ScriptedServer

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
