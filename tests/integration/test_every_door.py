"""One memory, written through any door, is read through every other: the same text, for the same readers."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Protocol

import pytest

from backstory import Sensitivity, Visibility, open_memory
from backstory.adapters.stores.sqlite.store import open_sqlite
from backstory.bootstrap import App
from backstory.config import Settings
from backstory.entrypoints.agents.calls import Event, GenericFormat
from backstory.entrypoints.agents.hook import answer_call
from backstory.entrypoints.cli.main import main
from tests.integration.bridge_process import BridgeProcess
from tests.served import Served
from tests.unit.entrypoints.mcp.talking import Person

LONG = "The pruning plan, row by row: " + "; ".join(f"row {row} has {row * 7 % 13} trees" for row in range(160))
TEXTS = {
    "plain": "The press is cleaned on Fridays",
    "Unicode": "Prüfe Ærø, Łódź, Ещё, 東京の天気, مرحبا, e\u0301 and \u00e9",
    "emoji": "Labels end in 🍐🍏 or 👩\u200d🌾, never in ❤\ufe0f",
    "lines": "Steps of a release:\n  1. tag it\n\n  2. press \"ship\"\n\tand wait",
    "quotes": "He said \"it's 'done'\" and “really” — `rm -rf ./out` is fine",
    "backslashes": "Paths are C:\\new\\table\\u0041 and \\\\server\\share; the pattern is ^\\d+\\n$",
    "C++": "C++ and C# and F# builds run with -std=c++23 && -O2 || fail; 100% of {braces} and $(dollars)",
    "long": LONG[:3_900],
}  # fmt: skip
SESSION = "ses_door"
Json = Any  # whatever comes back


class Door(Protocol):
    """A way in and out, for one folder. ``read`` gives all that a model sees there, as text."""

    def write(self, text: str) -> None: ...

    def read(self, folder: Path) -> str: ...


class House:
    """One store, two projects, and every door to it."""

    def __init__(self, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
        self.home = folder / "home"
        self.here, self.there = folder / "here", folder / "there"
        self.home.mkdir()
        for project in (self.here, self.there):
            project.mkdir()
        os.environ |= {
            "BACKSTORY_HOME": str(self.home),
            "BACKSTORY_NO_BACKGROUND": "1",
            "BACKSTORY_RECALL_MODE": "lexical",
        }
        self._capsys = capsys
        self.bridge = BridgeProcess(self.home, directory=self.here, environ={"BACKSTORY_RECALL_MODE": "lexical"})
        self.doors: dict[str, Door] = {
            "CLI": Cli(self), "library": Library(self), "OpenCode": OpenCode(self), "MCP": Mcp(self),
            "HTTP": Http(self), "hook": Hook(self),
        }  # fmt: skip

    def app(self) -> App:
        return App(Settings(), open_sqlite(self.home / "backstory.db"), None, no_embedder="not in this test")

    def cli(self, *words: str, folder: Path | None = None) -> Json:
        self._capsys.readouterr()
        code = main([*words, "--json", "--project", str(folder or self.here)])
        out, err = self._capsys.readouterr()
        assert code == 0, err
        return json.loads(out)


class Cli:
    """An agent's shell."""

    def __init__(self, house: House) -> None:
        self._house = house

    def write(self, text: str) -> None:
        self._house.cli("remember", text)

    def read(self, folder: Path) -> str:
        os.environ["BACKSTORY_CALLER"] = "agent"
        try:
            return joined(
                memory["content"] for memory in self._house.cli("list", "--limit", "100", folder=folder)["memories"]
            )
        finally:
            del os.environ["BACKSTORY_CALLER"]


class Library:
    """A program."""

    def __init__(self, house: House) -> None:
        self._house = house

    def write(self, text: str) -> None:
        with open_memory(project=self._house.here) as memory:
            memory.remember(text)

    def read(self, folder: Path) -> str:
        with open_memory(project=folder, session=SESSION) as memory:
            return joined(result.memory.content for result in memory.recall("", limit=100).results)


class OpenCode:
    """The plugin's process."""

    def __init__(self, house: House) -> None:
        self._house = house

    def write(self, text: str) -> None:
        assert "Stored as #" in self._house.bridge.tool("memory_remember", content=text, session=SESSION)

    def read(self, folder: Path) -> str:
        asked = {"session": SESSION, "name": "memory_recall", "arguments": {"limit": 100}, "directory": str(folder)}
        return unindented(self._house.bridge.finish(self._house.bridge.begin("tool", **asked))["result"]["output"])


class Mcp:
    """A client of the protocol."""

    def __init__(self, house: House) -> None:
        self._house = house

    def write(self, text: str) -> None:
        assert "Stored as #" in Person(self._house.app(), folder=self._house.here).say("memory_remember", content=text)

    def read(self, folder: Path) -> str:
        return unindented(Person(self._house.app(), folder=folder).say("memory_recall", limit=100))


class Http:
    """A client of the server."""

    def __init__(self, house: House) -> None:
        self._house = house

    def _served(self, folder: Path) -> Served:
        return Served(open_sqlite(self._house.home / "backstory.db"), folder)

    def write(self, text: str) -> None:
        self._served(self._house.here).post("/v1/memories", content=text)

    def read(self, folder: Path) -> str:
        return joined(memory["content"] for memory in self._served(folder).get("/v1/memories", limit=100)["memories"])


class Hook:
    """An agent's prompts; each is answered with what fits it, so each text is asked for by its own words."""

    def __init__(self, house: House) -> None:
        self._house = house

    def _prompt(self, text: str, folder: Path) -> str:
        payload = {"session": SESSION, "prompt": text, "message": f"m{hash((text, folder))}", "directory": str(folder)}
        told, env = GenericFormat(), {**os.environ, "BACKSTORY_CONTEXT_BLOCK_BUDGET_TOKENS": "8000"}
        response = answer_call(told, told.read(Event.PROMPT, payload), env).response
        assert isinstance(response, dict)
        return str(response["context"])

    def write(self, text: str) -> None:
        assert "stored already as #" in self._prompt(f"Remember that {text}.", self._house.here)

    def read(self, folder: Path) -> str:
        return "\n".join(unindented(self._prompt(f"{word}?", folder)) for word in MARKS)


MARKS: list[str] = []
"""The word that tells each written text from the others."""


def joined(contents: Iterator[str]) -> str:
    return "\n\n".join(contents)


def unindented(text: str) -> str:
    """A text for a model, its entries as they were: each is indented by two blanks below its first line."""
    return re.sub(r"^  ", "", text, flags=re.MULTILINE)


@pytest.fixture
def house(tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Iterator[House]:
    for name in ("BACKSTORY_HOME", "BACKSTORY_NO_BACKGROUND", "BACKSTORY_RECALL_MODE", "BACKSTORY_CALLER"):
        monkeypatch.setenv(name, "")  # put back after the test, whatever the house does
    MARKS.clear()
    built = House(tmp_path, capsys)
    yield built
    built.bridge.close()


def test_a_text_is_the_same_through_every_door(house: House) -> None:
    written: dict[str, str] = {}
    for name, door in house.doors.items():
        for kind, text in TEXTS.items():
            if name == "hook" and ("\n" in text or kind in ("long", "quotes")):
                continue  # of a prompt, a sentence is remembered
            mark = f"door{len(written)}mark"
            MARKS.append(mark)
            written[f"{name}, {kind}"] = f"{mark} {text}"
            door.write(written[f"{name}, {kind}"])
    missing = [
        f"{by} not through {door}"
        for door in house.doors
        if door != "hook"
        for seen in [house.doors[door].read(house.here)]
        for by, text in written.items()
        if text not in seen
    ]
    assert missing == []
    beside = house.doors["hook"].read(house.here)
    for by, text in written.items():
        if "\n" not in text:  # a block has one line for each memory, and cuts a long one
            assert text[:400] in beside, by
    assert all(house.doors[door].read(house.there).count("mark") in (0, len(MARKS)) for door in house.doors)


def test_a_memory_has_the_same_readers_whatever_door_it_came_in_by(house: House) -> None:
    with open_memory(project=house.here, session=SESSION) as memory:
        memory.remember("kiwi of the library holds everywhere", visibility=Visibility.GLOBAL)
        memory.remember("plum of the library holds in its session", visibility=Visibility.SESSION)
        memory.remember("fig of the library is for people here", sensitivity=Sensitivity.LOCAL_ONLY)
        memory.remember("pear of the library holds here")
    house.cli("remember", "--global", "kiwi of the shell holds everywhere")
    house.cli("remember", "--local-only", "fig of the shell is for people here")
    house.cli("remember", "pear of the shell holds here")
    say = house.bridge.tool
    say("memory_remember", content="kiwi of the plugin holds everywhere", scope="global", session=SESSION)
    say("memory_remember", content="plum of the plugin holds in its session", scope="session", session=SESSION)
    say("memory_remember", content="pear of the plugin holds here", session=SESSION)
    client = Person(house.app(), folder=house.here)
    client.say("memory_remember", content="kiwi of the client holds everywhere", scope="global")
    client.say("memory_remember", content="pear of the client holds here")
    served = Served(open_sqlite(house.home / "backstory.db"), house.here)
    served.post("/v1/memories", content="kiwi of the server holds everywhere", scope="global")
    served.post("/v1/memories", content="pear of the server holds here")
    house.doors["hook"].write("the pear of the hook holds here")
    writers = ("library", "shell", "plugin", "client", "server", "hook")
    MARKS.extend(f"{fruit} of the {writer}" for fruit in ("kiwi", "plum", "fig", "pear") for writer in writers)

    for name, door in house.doors.items():
        here, there = door.read(house.here), door.read(house.there)
        sees_session = name in ("library", "OpenCode", "hook")
        expected = {"kiwi": (5, 5), "pear": (6, 0), "fig": (0, 0), "plum": (2, 2) if sees_session else (0, 0)}
        for fruit, counts in expected.items():
            told = tuple(len(set(re.findall(rf"{fruit} of the (\w+)", seen))) for seen in (here, there))
            assert told == counts, (name, fruit)
    people = {memory["content"].split()[0] for memory in house.cli("list", "--limit", "100")["memories"]}
    assert "fig" in people
