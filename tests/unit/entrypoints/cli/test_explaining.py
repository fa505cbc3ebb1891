"""The commands that explain, rate and prune, over a file in a folder of the test's own."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from backstory.adapters.clock import SystemClock
from backstory.bootstrap import App, open_app
from backstory.config import load
from backstory.domain.conversation import Message, Part, Role, Session
from backstory.domain.history import Action, Author, Change, Edit
from backstory.domain.ids import ChangeId, MessageId, PartId, SessionId
from backstory.domain.memory import Memory, Source, Visibility
from backstory.domain.ranking import EVEN_EVIDENCE
from backstory.domain.scope import Audience, Viewer
from backstory.entrypoints.cli.main import main
from backstory.entrypoints.drive import drive
from backstory.testing.fakes import START, sample_memory, ulid

SESSION = SessionId("ses_1")
PROMPT = "on which port does the invoice service run?"


@pytest.fixture(autouse=True)
def own_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BACKSTORY_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("BACKSTORY_STORE", f"sqlite://{tmp_path}/memory.db")
    monkeypatch.setenv("BACKSTORY_EMBEDDER_PROVIDER", "none")
    monkeypatch.setenv("BACKSTORY_NO_BACKGROUND", "1")
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def app(own_home: None, tmp_path: Path) -> Iterator[App]:
    """The store as another process of the same person has it open."""
    opened = open_app(load(env=os.environ, project_root=tmp_path, flags={}).settings, folder=tmp_path)
    yield opened
    drive(opened.close())


def run(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    assert main([*arguments]) == 0, capsys.readouterr().err
    return capsys.readouterr().out


def run_json(capsys: pytest.CaptureFixture[str], *arguments: str) -> Any:  # Any: JSON
    return json.loads(run(capsys, *arguments, "--json"))


def ask(app: App, folder: Path, prompt: str, name: str) -> None:
    """A prompt is typed in OpenCode, answered with a block and a snapshot, and kept."""
    project = drive(app.project(folder))
    at = SystemClock().now()
    part = Part(id=PartId(name), kind="text", text=prompt)
    message = Message(id=MessageId(name), session=SESSION, role=Role.USER, created_at=at, parts=(part,))
    session = Session(id=SESSION, project=project.id, host="opencode", directory=".", created_at=at, updated_at=at)
    drive(app.backend.conversations.put_session(session))
    drive(app.backend.conversations.put_messages([message]))
    viewer = Viewer(project=project.id, session=SESSION, audience=Audience.MODEL)
    context = drive(app.blocks.for_prompt(prompt, viewer))
    drive(app.blocks.freeze(context, notes=(), message=message.id, session=SESSION))
    drive(app.blocks.snapshot(viewer, session=SESSION))


def faded(app: App, folder: Path, content: str) -> Memory:
    """A derived fact that nobody confirmed for a year."""
    project = drive(app.project(folder))
    memory = sample_memory(content, project=project.id, source=Source.DREAMED, weight=0.25, at=START)
    memory = replace(memory, times=replace(memory.times, confirmed=SystemClock().now() - timedelta(days=365)))
    change = Change(
        id=ChangeId(ulid(1)),
        at=START,
        author=Author.SYSTEM,
        action=Action.DREAM,
        edits=(Edit(before=None, after=memory),),
    )
    return drive(app.backend.memories.commit(change)).edits[0].after


def test_why_tells_worth_showings_and_the_score_now(
    capsys: pytest.CaptureFixture[str], app: App, tmp_path: Path
) -> None:
    run(capsys, "remember", "The invoice service runs on port 8443")
    ask(app, tmp_path, PROMPT, "msg_1")
    told = run(capsys, "why", "1")
    for expected in (
        "Worth 3.50 now, of 5 at most",
        "State: active",
        "session ses_1, message msg_1",
        "Now, for “on which port",
        f"in all, where {EVEN_EVIDENCE:g} is a score of 0.50",
    ):
        assert expected in told
    shape = run_json(capsys, "why", "1", "--query", "invoice port")
    assert shape["worth"]["total"] == pytest.approx(3.5, abs=1e-3)
    assert shape["showings"][0]["parts"]
    assert shape["score_now"]["prompt"] == "invoice port"
    assert {part["name"] for part in shape["score_now"]["parts"]} == {"words", "freshness", "project", "sessions"}


def test_every_block_is_found_by_session_and_message_with_its_reasons(
    capsys: pytest.CaptureFixture[str], app: App, tmp_path: Path
) -> None:
    run(capsys, "remember", "The invoice service runs on port 8443")
    run(capsys, "remember", "We use tabs", "--pin")
    ask(app, tmp_path, PROMPT, "msg_1")
    ask(app, tmp_path, "rename the login button", "msg_2")
    latest = run(capsys, "shown")
    assert latest.index("msg_2") < latest.index("msg_1")
    assert "silent: " in latest
    assert "#1 The invoice service runs on port 8443" in latest
    beside = run(capsys, "shown", "--message", "msg_1")
    assert "<backstory-memory>" in beside
    assert PROMPT in beside
    of_session = run_json(capsys, "shown", "--session", "ses_1")
    assert [block["message"] for block in of_session["blocks"]] == ["msg_2", "msg_1"]
    shown = of_session["blocks"][1]["shown"][0]
    assert (shown["n"], shown["content"]) == (1, "The invoice service runs on port 8443")
    assert shown["reason"]
    assert {part["name"] for part in shown["parts"]} == {"words", "freshness", "project"}
    assert "We use tabs" in of_session["snapshot"]["text"]
    assert run_json(capsys, "shown", "--session", "ses_9") == {"blocks": [], "snapshot": None}
    assert run(capsys, "inspect", "shown", "--message", "msg_1") == beside
    assert main(["shown", "--message", "msg_9"]) == 3


def test_silence_is_explained(capsys: pytest.CaptureFixture[str], app: App, tmp_path: Path) -> None:
    run(capsys, "remember", "The invoice service runs on port 8443")
    ask(app, tmp_path, "the harbour has a port, what else is in the city beside the long river?", "msg_1")
    told = run(capsys, "inspect", "silent")
    assert "not shown: too weak: " in told
    shape = run_json(capsys, "inspect", "silent", "--message", "msg_1")
    assert [(item["memory"]["n"], item["shown"]) for item in shape["candidates"]] == [(1, False)]
    assert "invoice" not in shape["prompt"]


def test_the_other_views_tell_what_there_is(capsys: pytest.CaptureFixture[str]) -> None:
    run(capsys, "remember", "The invoice service runs on port 8443")
    run(capsys, "remember", "I like short answers", "--global")
    stats = run_json(capsys, "inspect")
    assert (stats["memories"], stats["by_source"], stats["by_visibility"]) == (
        2,
        {"explicit": 2},
        {"global": 1, "project": 1},
    )
    assert "2 memories in sight" in run(capsys, "inspect", "stats")
    assert len(run_json(capsys, "inspect", "recent")["memories"]) == 2
    project = run_json(capsys, "inspect", "project")
    assert [memory["visibility"] for memory in project["memories"]] == [Visibility.PROJECT.value]
    assert project["summaries"] == []
    assert "No memories here are in conflict." in run(capsys, "inspect", "conflicts")
    assert main(["inspect", "stats", "--message", "m"]) == 2


def test_verdicts_are_one_change_each_and_can_be_undone(capsys: pytest.CaptureFixture[str]) -> None:
    run(capsys, "remember", "The invoice service runs on port 8443")
    assert "Noted as useful #1" in run(capsys, "useful", "1")
    assert "Noted as irrelevant #1" in run(capsys, "irrelevant", "invoice")
    assert run_json(capsys, "show", "1")["counters"]["irrelevant"] == 1
    run(capsys, "undo")
    counters = run_json(capsys, "show", "1")["counters"]
    assert (counters["helpful"], counters["irrelevant"]) == (1, 0)


def test_pruning_lists_first_and_can_be_undone(capsys: pytest.CaptureFixture[str], app: App, tmp_path: Path) -> None:
    run(capsys, "remember", "The invoice service runs on port 8443")
    faded(app, tmp_path, "the old build server is called otter")
    plan = run(capsys, "prune", "--dry-run")
    assert "Would prune #2: the old build server is called otter" in plan
    assert "worth 0.00, below 0.15" in plan
    shape = run_json(capsys, "prune", "--dry-run")
    assert [(item["n"], item["pruned_because"]) for item in shape["memories"]] == [(2, "worth 0.00, below 0.15")]
    assert run_json(capsys, "show", "2")["status"]["state"] == "active"
    assert "Pruned #2" in run(capsys, "prune")
    assert run_json(capsys, "show", "2")["status"]["reason"] == "pruned: worth 0.00, below 0.15"
    run(capsys, "undo")
    assert run_json(capsys, "show", "2")["status"]["state"] == "active"
    assert "Nothing has faded" in run(capsys, "prune")
