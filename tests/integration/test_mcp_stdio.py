"""``backstory mcp`` as clients start it: a child process, spoken to by the SDK's own client and by hand."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Awaitable, Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, TypeVar

import anyio
import mcp.types as protocol
import pytest
from mcp import Client, StdioServerParameters

T = TypeVar("T")
Json = Any  # whatever the wire carries

COMMAND = (sys.executable, "-m", "backstory", "mcp")
END_WITHIN_S = 5.0
HELLO = {
    "protocolVersion": "2025-06-18",
    "capabilities": {},
    "clientInfo": {"name": "by hand", "version": "1"},
}


class House:
    """A home with a store, and folders to start the server in."""

    def __init__(self, base: Path) -> None:
        self.base = base
        self.env = {name: value for name, value in os.environ.items() if not name.startswith("BACKSTORY_")}
        self.env |= {"BACKSTORY_HOME": str(base / "home"), "BACKSTORY_RECALL_MODE": "lexical"}
        self.folder = self.project("shop")

    def project(self, name: str) -> Path:
        folder = self.base / name
        folder.mkdir()
        subprocess.run(["git", "init", "-q", str(folder)], check=True)
        return folder

    def talk(
        self,
        work: Callable[[Client], Awaitable[T]],
        *,
        folder: Path | None = None,
        roots: Sequence[Path] | None = None,
        arguments: Sequence[str] = (),
        mode: Any = "auto",
    ) -> T:
        """Let the SDK's client start a server in the folder, and work with it."""

        async def tell(context: object) -> protocol.ListRootsResult:
            return protocol.ListRootsResult.model_validate({"roots": [{"uri": root.as_uri()} for root in roots or ()]})

        async def connected() -> T:
            command, *rest = (*COMMAND, *arguments)
            server = StdioServerParameters(command=command, args=rest, env=self.env, cwd=folder or self.folder)
            callback = None if roots is None else tell
            async with Client(server, mode=mode, list_roots_callback=callback, read_timeout_seconds=60) as client:
                return await work(client)

        return anyio.run(connected)

    def say(self, name: str, /, **options: Any) -> str:
        """The answer of one tool in a process of its own."""
        where = {key: options.pop(key) for key in ("folder", "roots", "arguments", "mode") if key in options}
        return self.talk(lambda client: told(client, name, **options), **where)


class ByHand:
    """A server spoken to in lines."""

    def __init__(self, house: House, *, code: str | None = None, home: Path | None = None) -> None:
        command = COMMAND if code is None else (sys.executable, "-c", code)
        env = house.env | ({} if home is None else {"BACKSTORY_HOME": str(home)})
        self.errors = house.base / f"{id(self)}.stderr"
        with self.errors.open("wb") as errors:
            self.process = subprocess.Popen(
                command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=errors, env=env, cwd=house.folder
            )

    def raw(self, line: bytes) -> None:
        assert self.process.stdin
        self.process.stdin.write(line)
        self.process.stdin.flush()

    def send(self, method: str, params: Json, *, number: int | None = None) -> None:
        message = {"jsonrpc": "2.0", "method": method, "params": params}
        self.raw(json.dumps(message if number is None else message | {"id": number}).encode() + b"\n")

    def answer(self) -> Json:
        assert self.process.stdout
        return json.loads(self.process.stdout.readline())

    def ask(self, method: str, params: Json, *, number: int = 1) -> Json:
        self.send(method, params, number=number)
        return self.answer()

    def greet(self) -> Json:
        told = self.ask("initialize", HELLO, number=0)
        self.send("notifications/initialized", {})
        return told

    def call(self, name: str, arguments: Json, *, number: int = 1) -> str:
        result = self.ask("tools/call", {"name": name, "arguments": arguments}, number=number)["result"]
        return str(result["content"][0]["text"])

    def close(self) -> int:
        """End the input; the exit code."""
        assert self.process.stdin
        self.process.stdin.close()
        return self.process.wait(timeout=END_WITHIN_S)


async def told(client: Client, name: str, **arguments: Json) -> str:
    (content,) = (await client.call_tool(name, arguments)).content
    assert isinstance(content, protocol.TextContent)
    return content.text


@pytest.fixture
def house(tmp_path: Path) -> House:
    return House(tmp_path)


@pytest.fixture
def by_hand(house: House) -> Iterator[Callable[..., ByHand]]:
    started: list[ByHand] = []

    def start(**options: Any) -> ByHand:
        started.append(ByHand(house, **options))
        return started[-1]

    yield start
    for one in started:
        one.process.kill()
        one.process.wait()


def test_memories_outlive_the_server_and_stay_in_the_project_that_is_named_told_or_started_in(house: House) -> None:
    mill = house.project("mill")
    house.say("memory_remember", content="The till takes coins.", mode="legacy")
    house.say("memory_remember", content="The wheel turns.", arguments=["--project", str(mill)], roots=[house.folder])
    assert "coins" in house.say("memory_recall", query="till", roots=[house.folder], folder=mill)
    assert "wheel" in (found := house.say("memory_recall", query="till wheel", folder=mill))
    assert "coins" not in found


def test_started_in_a_home_it_knows_no_project(house: House) -> None:
    house.env["HOME"] = str(house.base)
    assert "No project folder is known" in house.say("memory_recall", query="till", folder=house.base)


def test_calls_are_answered_at_the_same_time_and_a_cancelled_one_disturbs_none(house: House) -> None:
    async def many(client: Client) -> list[str]:
        answers: list[str] = []

        async def one(number: int) -> None:
            answers.append(await told(client, "memory_remember", content=f"Shelf {number} holds box {number}."))

        async with anyio.create_task_group() as tasks:
            for number in range(20):
                tasks.start_soon(one, number)
            with anyio.move_on_after(0.001):
                await told(client, "memory_recall", query="till " * 2000)
        return answers

    answers = house.talk(many, mode="legacy")
    assert sorted(int(answer.split("#")[1].split()[0]) for answer in answers) == list(range(1, 21))


def test_arguments_as_text_are_read_and_huge_ones_refused(by_hand: Callable[..., ByHand]) -> None:
    server = by_hand()
    server.greet()
    assert "Stored as #1" in server.call("memory_remember", '{"content": "The till takes coins.", "tags": "shop,till"}')
    assert "coins" in server.call("memory_recall", {"query": "till", "limit": "5", "tags": '["till"]'})
    assert "content" in server.call("memory_remember", {"content": "x" * 5_000_000})
    assert "error" in server.ask("tools/call", {"name": "memory_recall", "arguments": "no object"})
    assert "coins" in server.call("memory_recall", {"query": "till"})


def test_lines_that_are_no_messages_do_no_harm(by_hand: Callable[..., ByHand]) -> None:
    server = by_hand()
    greeting = server.greet()["result"]
    assert greeting["serverInfo"]["name"] == "backstory"
    assert "memory_recall" in greeting["instructions"]
    assert set(greeting["capabilities"]) == {"tools", "resources", "prompts", "completions"}
    for line in (b"\n", b"hello\n", b"{\n", b'{"jsonrpc": "2.0"}\n', b"\xff\xfe\n", b"[" * 100_000 + b"\n"):
        server.raw(line)
    server.send("notifications/unheard-of", {})
    assert "error" in server.ask("unheard/of", {}, number=5)
    assert server.ask("ping", {}, number=6)["result"] == {}


def test_what_was_asked_before_the_end_of_input_is_answered(by_hand: Callable[..., ByHand]) -> None:
    server = by_hand()
    server.send("initialize", HELLO, number=0)
    server.send("notifications/initialized", {})
    arguments = {"content": "The till takes coins."}
    server.send("tools/call", {"name": "memory_remember", "arguments": arguments}, number=1)
    assert server.close() == 0
    assert server.process.stdout
    answers = [json.loads(line) for line in server.process.stdout]
    assert [answer["id"] for answer in answers] == [0, 1]
    assert "Stored as #1" in str(answers[1])


def test_a_signal_ends_it_in_order(by_hand: Callable[..., ByHand]) -> None:
    server = by_hand()
    server.greet()
    server.process.send_signal(signal.SIGTERM)
    assert server.process.wait(timeout=END_WITHIN_S) == 0
    assert "Traceback" not in server.errors.read_text()


def test_stray_output_cannot_break_the_protocol(by_hand: Callable[..., ByHand]) -> None:
    code = """
import os, sys
from backstory.entrypoints.tools.recall import RECALL
from backstory.entrypoints.cli.main import main
answer = RECALL.handler
async def noisy(arguments, call):
    print("a stray print")
    os.write(1, b"a stray write\\n")
    os.system("echo a stray child; cat")
    return await answer(arguments, call)
object.__setattr__(RECALL, "handler", noisy)
sys.exit(main(["mcp"]))
"""
    server = by_hand(code=code)
    server.greet()
    assert "Nothing found" in server.call("memory_recall", {"query": "till"})
    assert server.close() == 0
    noise = server.errors.read_text()
    assert all(f"a stray {what}" in noise for what in ("print", "write", "child"))


def test_a_store_that_cannot_be_opened_is_told_and_the_server_lives_on(
    house: House, by_hand: Callable[..., ByHand]
) -> None:
    home = house.base / "no-home"
    home.mkdir()
    (home / "backstory.db").write_bytes(b"this is no database, but it is long enough to look like one" * 20)
    server = by_hand(home=home)
    server.greet()
    for _ in range(2):
        assert "not available" in server.call("memory_recall", {"query": "till"})
    assert server.ask("ping", {}, number=7)["result"] == {}
