"""``conflicts`` and ``resolve`` on a store file, and what the tools say of contradictions."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import anyio
import pytest

from backstory.adapters.stores.memory import open_memory_store
from backstory.bootstrap import App, open_app
from backstory.config import Settings, load
from backstory.domain.history import Author
from backstory.domain.ids import ProjectId, SessionId
from backstory.domain.provenance import Origin
from backstory.domain.scope import Audience, Viewer
from backstory.entrypoints.cli.main import main
from backstory.entrypoints.tools import Call, find_tool, run_tool
from backstory.services.remember import Draft, Remember

Run = Callable[..., Any]
OLD, NEW = "The metrics port is 8080.", "The metrics port is 9090."


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    """Runs a command and gives its output; with ``code`` it has to fail so."""
    monkeypatch.setenv("BACKSTORY_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("BACKSTORY_NO_BACKGROUND", "1")
    monkeypatch.chdir(tmp_path)

    def command(*arguments: str, code: int = 0) -> str:
        assert main(arguments) == code
        return "".join(capsys.readouterr())

    return command


@pytest.fixture
def disputed(run: Run, tmp_path: Path) -> None:
    """Two memories that disagree, however that was found."""
    run("remember", OLD)
    run("remember", NEW)
    app = open_app(load(env=os.environ, project_root=None).settings, folder=tmp_path)

    async def flag() -> None:
        viewer = await app.viewer(tmp_path, audience=Audience.PERSON)
        evidence = "9090 against 8080"
        await app.truth.conflicts.flag("#2", "#1", evidence=evidence, viewer=viewer, author=Author.SYSTEM)
        await app.close()

    anyio.run(flag)


@pytest.mark.usefixtures("disputed")
def test_both_sides_are_listed_and_a_decision_settles_them(run: Run) -> None:
    listed = run("conflicts")
    assert OLD in listed
    assert NEW in listed
    assert "9090 against 8080" in listed
    (conflict,) = json.loads(run("conflicts", "--json"))["conflicts"]
    assert {side["memory"]["n"] for side in conflict["sides"]} == {1, 2}
    assert "in conflict: 9090 against 8080" in run("list")
    assert "Would replace #1" in run("resolve", "2", "--keep", "--dry-run")
    assert len(json.loads(run("conflicts", "--json"))["conflicts"]) == 1
    done = run("resolve", "2", "--keep", "--reason", "asked the team")
    assert "Kept #2" in done
    assert "Replaced #1" in done
    assert run("conflicts") == "No memories here are in conflict.\n"
    assert "asked the team" in run("history")
    run("undo")
    assert len(json.loads(run("conflicts", "--json"))["conflicts"]) == 1


@pytest.mark.usefixtures("disputed")
def test_a_new_text_takes_the_place_of_both(run: Run) -> None:
    told = json.loads(run("resolve", "metrics port is 8080", "--with", "Metrics moved to statsd.", "--json"))
    assert told["action"] == "resolve"
    assert [edit["after"]["n"] for edit in told["edits"]] == [3, 1, 2]
    assert run("recall", "metrics port").count("statsd") == 1


@pytest.mark.usefixtures("disputed")
def test_forgetting_one_side_tells_what_becomes_of_the_other(run: Run) -> None:
    said = run("forget", "1")
    assert "Forgotten #1" in said
    assert "Forgotten #2" not in said
    assert "#2 is no longer in conflict." in said


def test_exactly_one_decision_is_asked_for(run: Run) -> None:
    run("remember", OLD)
    assert "--both" in run("resolve", "1", code=2)
    assert "--both" in run("resolve", "1", "--keep", "--both", code=2)
    assert "no conflict" in run("resolve", "1", "--keep", code=2)
    assert json.loads(run("conflicts", "--json")) == {"conflicts": []}


def test_the_agent_hears_what_its_statement_disagrees_with(app: App) -> None:
    person = Viewer(project=MODEL.project, audience=Audience.PERSON)
    draft = Draft(content=OLD, origin=Origin.USER)
    anyio.run(lambda: app.remember.remember(draft, viewer=person, author=Author.USER))
    said = call(app, "memory_remember", {"content": NEW})
    assert "it disagrees with #1: 9090 against 8080" in said
    assert f"#1 says: {OLD}" in said
    assert "conflicted: 9090 against 8080" in call(app, "memory_recall", {"query": "metrics port"})
    assert "It replaces #1" in call(app, "memory_remember", {"content": NEW, "supersedes": 1})


MODEL = Viewer(project=ProjectId("P1"), session=SessionId("ses-1"), audience=Audience.MODEL)


@pytest.fixture
def app() -> App:
    made = App(Settings(), open_memory_store(), None, no_embedder="not in this test")
    made.remember = Remember(
        made.backend.memories, made.reference, clock=made.clock, ids=made.ids, limits=made.limits,
        text=made.backend.text,
    )  # fmt: skip
    return made


def call(app: App, name: str, arguments: object) -> str:
    tool = find_tool(name)
    assert tool is not None
    return anyio.run(run_tool, tool, arguments, Call(app=app, viewer=MODEL, tool=name)).text
