"""Twenty projects, each with a word of its own that no other may ever hear, by any way a question can be put."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

import anyio
import pytest

from backstory import Visibility, open_memory
from backstory.bootstrap import App, open_app
from backstory.config import load
from backstory.domain.conversation import Message, Part, Role, Session
from backstory.domain.ids import MessageId, PartId, SessionId
from backstory.domain.scope import Audience
from backstory.entrypoints.cli.main import main
from backstory.entrypoints.drive import drive
from backstory.entrypoints.tools import Call, find_tool, run_tool
from tests.integration.bridge_process import BridgeProcess

WORDS = (
    "abalone", "bittern", "cormorant", "dunlin", "egret", "fulmar", "gannet", "hoopoe", "ibis", "jacana",
    "kestrel", "linnet", "merganser", "nightjar", "osprey", "plover", "quetzal", "redstart", "siskin", "turnstone",
)  # fmt: skip
NOW = datetime(2026, 3, 2, 12, tzinfo=UTC)
SHARED = "who keeps the harbour lantern?"


@dataclass(frozen=True)
class Harbour:
    """The store, and a folder for each word."""

    home: Path
    folders: dict[str, Path]
    env: dict[str, str]

    @property
    def store(self) -> str:
        return f"sqlite://{self.home / 'backstory.db'}"


@pytest.fixture(scope="module")
def harbour(tmp_path_factory: pytest.TempPathFactory) -> Harbour:
    base = tmp_path_factory.mktemp("isolation")
    env = {"BACKSTORY_HOME": str(base / "store"), "BACKSTORY_EMBEDDER_PROVIDER": "none", "BACKSTORY_NO_BACKGROUND": "1"}
    made = Harbour(home=base / "store", folders=_folders(base), env=env)
    for word, folder in made.folders.items():
        _fill(made, word, folder)
    return made


def _folders(base: Path) -> dict[str, Path]:
    """Plain folders, some inside others; repositories, some made from one template, some inside others."""
    template = base / "template"
    _git(base, "init", "-q", str(template))
    _git(template, "commit", "-q", "--allow-empty", "-m", "start")
    folders: dict[str, Path] = {}
    for number, word in enumerate(WORDS):
        parent = base / "work" if number % 4 or number == 0 else folders[WORDS[number - 1]]
        folder = folders[word] = parent / f"folder-{number}"
        if number % 3 == 0 and parent not in folders.values():
            folder.mkdir(parents=True)
        elif number % 3 == 1:
            _git(base, "clone", "-q", str(template), str(folder))
            _git(folder, "remote", "set-url", "origin", f"https://code.example/{word}")
        else:
            _git(base, "init", "-q", str(folder))
    return folders


def _git(folder: Path, *arguments: str) -> None:
    identity = ["-c", "user.name=Nobody", "-c", "user.email=nobody@example.invalid"]
    subprocess.run(["git", *identity, *arguments], cwd=folder, check=True, capture_output=True)


def _fill(harbour: Harbour, word: str, folder: Path) -> None:
    """Memories of a project and of a session of its own, and what was said in that session."""
    with open_memory(store=harbour.store, project=folder, session=f"ses-{word}", settings=QUIET) as memory:
        memory.remember(f"The {word} keeps the harbour lantern", tags=[word], area=f"birds/{word}")
        memory.remember(f"In this session the {word} kept the lantern", visibility=Visibility.SESSION)
        memory.update(
            f"The {word} keeps", content=f"The {word} keeps the harbour lantern lit", reason=f"{word} said so"
        )
    app = _app(harbour)
    try:
        project = drive(app.project(folder))
        session = Session(
            id=SessionId(f"ses-{word}"), project=project.id, host="h", directory=str(folder), title=f"about the {word}",
            created_at=NOW, updated_at=NOW,
        )  # fmt: skip
        part = Part(id=PartId(f"prt-{word}"), kind="text", text=f"Our {word} keeps the harbour lantern burning")
        message = Message(
            id=MessageId(f"msg-{word}"), session=session.id, role=Role.USER, created_at=NOW, parts=(part,)
        )  # fmt: skip
        drive(app.backend.conversations.put_session(session))
        drive(app.backend.conversations.put_messages([message]))
    finally:
        drive(app.close())


QUIET = {"embedder.provider": "none"}


def _app(harbour: Harbour) -> App:
    return open_app(load(env={}, project_root=None, flags={"store.url": harbour.store, **QUIET}).settings)


def _heard(text: str, own: str) -> tuple[bool, list[str]]:
    """Whether the own word was heard, and which others were."""
    return own in text, [word for word in WORDS if word != own and word in text]


def _neighbours(word: str) -> list[str]:
    """Two other words: the ones asked for by name from this project."""
    at = WORDS.index(word)
    return [WORDS[at - 1], WORDS[(at + 7) % len(WORDS)]]


def test_there_are_twenty_projects(harbour: Harbour) -> None:
    app = _app(harbour)
    assert len(drive(app.backend.projects.projects())) == len(WORDS)
    drive(app.close())


@pytest.mark.parametrize("word", WORDS)
def test_the_library_keeps_projects_apart(harbour: Harbour, word: str) -> None:
    with open_memory(store=harbour.store, project=harbour.folders[word], settings=QUIET) as memory:
        recalled = memory.recall(SHARED, limit=100)
        everything = memory.recall("", limit=100)
        said = [str(result.memory) for result in (*recalled.results, *everything.results)]
        said += [str(memory.history()), str(memory.context_block(SHARED))]
        assert _heard("\n".join(said), word) == (True, [])
        for other in WORDS:
            if other != word:
                assert memory.recall(f"{other} lantern", tags=[other]).results == ()
                assert not any(other in str(result.memory) for result in memory.recall(other).results)


@pytest.mark.parametrize("word", WORDS)
def test_the_command_line_keeps_projects_apart(
    harbour: Harbour, word: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in harbour.env.items():
        monkeypatch.setenv(name, value)

    def said(*arguments: str) -> str:
        main([*arguments, "--project", str(harbour.folders[word])])
        captured = capsys.readouterr()
        return captured.out + captured.err

    for command in (
        ("recall", SHARED), ("recall", SHARED, "--in", "evidence"), ("recall", SHARED, "--in", "all", "--json"),
        ("list",), ("list", "--json"), ("list", "--containing", "lantern"), ("tags",),
        ("history", "--json"), ("export",),
    ):  # fmt: skip
        assert _heard(said(*command), word) == (True, []), command
    assert _heard(said("history"), word)[1] == []
    assert _heard(said("status", "--json"), word)[1] == []
    for other in _neighbours(word):
        assert json.loads(said("recall", other, "--in", "all", "--json"))["results"] == []
        for command in (("show", f"{_number(other)}"), ("why", f"{_number(other)}"), ("history", f"{_number(other)}")):
            answer = said(*command)
            assert "keeps the harbour lantern" not in answer
            assert f"said so, {other}" not in answer
            assert "belongs to" in answer
        assert "no memory here contains" in said("show", f"the {other} keeps")


def _number(word: str) -> int:
    """Each project stored two memories, one after another."""
    return 2 * WORDS.index(word) + 1


@pytest.mark.parametrize("word", WORDS)
def test_the_tools_keep_projects_apart(harbour: Harbour, word: str) -> None:
    app = _app(harbour)
    viewer = drive(app.viewer(harbour.folders[word], audience=Audience.MODEL, session=SessionId("ses-new")))

    def said(name: str, **arguments: object) -> str:
        tool = find_tool(name)
        assert tool is not None
        return anyio.run(partial(run_tool, tool, arguments, Call(app=app, viewer=viewer, tool=name))).text

    try:
        for name, arguments in (
            ("memory_recall", {"query": SHARED}),
            ("memory_recall", {"query": SHARED, "where": "all"}),
            ("memory_inspect", {"view": "recent", "limit": 100}),
            ("memory_inspect", {"view": "tags", "limit": 100}),
        ):
            assert _heard(said(name, **arguments), word) == (True, []), (name, arguments)
        assert _heard(said("memory_inspect", view="stats") + said("memory_inspect", view="shown"), word)[1] == []
        for other in _neighbours(word):
            for name, more in (
                ("memory_inspect", {"view": "why", "id": _number(other)}),
                ("memory_update", {"id": _number(other), "content": "taken over"}),
                ("memory_forget", {"id": _number(other)}),
            ):
                assert "harbour lantern" not in said(name, **more)
    finally:
        drive(app.close())
    _still_there(harbour)


def _still_there(harbour: Harbour) -> None:
    app = _app(harbour)
    for word in WORDS:
        stored = drive(app.backend.memories.by_number(_number(word)))
        assert stored is not None
        assert stored.content == f"The {word} keeps the harbour lantern lit"
        assert type(stored.status).__name__ == "Active"
    drive(app.close())


@pytest.fixture(scope="module")
def bridge(harbour: Harbour) -> Iterator[BridgeProcess]:
    process = BridgeProcess(harbour.home, directory=harbour.folders[WORDS[0]], environ=harbour.env)
    yield process
    process.close()


def test_the_bridge_keeps_projects_apart(harbour: Harbour, bridge: BridgeProcess) -> None:
    """One process serves all folders of a host at once, as it is in a server."""
    ask: Callable[..., object] = bridge.ask
    for word, folder in harbour.folders.items():
        place = {"directory": str(folder), "session": f"ses-now-{word}"}
        blocks = [ask("chat.message", **place, message=f"msg-now-{word}", text=SHARED)]
        foreign = [
            ask("chat.message", **place, message=f"msg-{word}-{other}", text=f"Is the lantern lit by a {other}?")
            for other in _neighbours(word)
        ]
        snapshot = ask("snapshot", **place)
        shown = ask("blocks", **place, messages=[f"msg-now-{word}"])
        tool = ask("tool", **place, name="memory_recall", arguments={"query": SHARED})
        text = json.dumps([*blocks, shown, tool])
        assert _heard(text, word) == (True, [])
        assert _heard(json.dumps([snapshot, *foreign]), word)[1] == []


def test_after_a_merge_only_the_one_project_hears_both(harbour: Harbour) -> None:
    """Last in this file: it changes whose the first word is."""
    app = _app(harbour)
    from backstory.domain.history import Author

    first, second, third = WORDS[:3]
    one, other = (drive(app.project(harbour.folders[word])) for word in (first, second))
    drive(app.projects.merge(one.id, other.id, author=Author.USER))
    drive(app.close())
    heard = {}
    for word in (first, second, third):
        with open_memory(store=harbour.store, project=harbour.folders[word], settings=QUIET) as memory:
            text = str(memory.recall(SHARED, limit=100).results)
        heard[word] = {canary for canary in WORDS if canary in text}
    assert heard == {first: {first, second}, second: {first, second}, third: {third}}
