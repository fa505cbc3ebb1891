"""``backstory hook`` as agents run it: a process, JSON in, JSON out, in time, and never in the way."""

from __future__ import annotations

import json
import os
import sqlite3
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from backstory.entrypoints.agents.calls import Event
from backstory.entrypoints.agents.claude_code import ClaudeCodeFormat

HOOK = (sys.executable, "-P", "-m", "backstory", "hook")
SESSION = "5b0c1c1e-77d0-4a3e-9d20-0e2f6f4b9a11"
Json = Any  # whatever the wire carries


class Agent:
    """An agent in a project of its own, whose hooks are ours."""

    def __init__(self, folder: Path) -> None:
        self.home = folder / "home"
        self.project = folder / "orchard"
        self.project.mkdir()
        self.transcript = folder / f"{SESSION}.jsonl"
        self._lines = 0
        inherited = {name: value for name, value in os.environ.items() if not name.startswith(("BACKSTORY_", "CLAUDE"))}
        patient = {"BACKSTORY_CONTEXT_DEADLINE_MS": "5000"}  # on a machine that does much else
        self.env = {**inherited, **patient, "BACKSTORY_HOME": str(self.home), "BACKSTORY_NO_BACKGROUND": "1"}

    def run(
        self, *words: str, given: bytes = b"", env: dict[str, str] | None = None
    ) -> subprocess.CompletedProcess[bytes]:
        return subprocess.run(
            [*HOOK, *words], input=given, capture_output=True, env={**self.env, **(env or {})}, cwd=self.project,
            timeout=240, check=False,
        )  # fmt: skip

    def claude(self, event: str, name: str, **fields: Json) -> Json:
        """What Claude Code gets back."""
        payload = {
            "session_id": SESSION,
            "transcript_path": str(self.transcript),
            "cwd": str(self.project),
            "permission_mode": "default",
            "hook_event_name": name,
            **fields,
        }
        done = self.run(event, "--agent", "claude-code", given=json.dumps(payload).encode())
        assert done.returncode == 0, done.stderr
        assert done.stderr == b""
        return json.loads(done.stdout)

    def prompt(self, text: str, **fields: Json) -> str:
        """What goes beside a prompt in Claude Code."""
        answer = self.claude("prompt", "UserPromptSubmit", prompt=text, **fields)
        return str(answer.get("hookSpecificOutput", {}).get("additionalContext", ""))

    def backstory(self, *words: str) -> Json:
        done = subprocess.run(
            [sys.executable, "-P", "-m", "backstory", *words, "--json"],
            capture_output=True, env=self.env, cwd=self.project, timeout=240, check=False,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)

    def said(self, *lines: Json) -> None:
        """Lines that Claude Code adds to its transcript."""
        with self.transcript.open("a", encoding="utf-8") as stream:
            for line in lines:
                self._lines += 1
                common = {
                    "uuid": f"00000000-0000-4000-8000-{self._lines:012d}",
                    "sessionId": SESSION,
                    "cwd": str(self.project),
                    "isSidechain": False,
                    "timestamp": f"2026-11-30T09:00:{self._lines:02d}.000Z",
                }
                stream.write(json.dumps({**common, **line}) + "\n")

    def database(self) -> sqlite3.Connection:
        return sqlite3.connect(self.home / "backstory.db")


def user(text: str, **fields: Json) -> Json:
    return {"type": "user", "message": {"role": "user", "content": text}, **fields}


def assistant(text: str) -> Json:
    return {"type": "assistant", "message": {"role": "assistant", "content": [{"type": "text", "text": text}]}}


@pytest.fixture
def agent(tmp_path: Path) -> Agent:
    return Agent(tmp_path)


def texts(agent: Agent) -> list[str]:
    """All that the session's archive holds, in order."""
    told = agent.backstory("session", SESSION)
    return [part["text"] for message in told["messages"] for part in message["parts"]]


def test_a_day_with_claude_code(agent: Agent) -> None:
    assert agent.claude("session-start", "SessionStart", source="startup", model="m") == {}
    stored = agent.prompt("Remember that the cider press is cleaned on Fridays.", prompt_id="p1")
    assert "stored already as #1" in stored
    (memory,) = agent.backstory("list")["memories"]
    assert "cider press is cleaned on Fridays" in memory["content"]

    block = agent.prompt("When is the cider press cleaned?", prompt_id="p2")
    assert "<backstory-memory>" in block
    assert "cleaned on Fridays" in block
    assert agent.prompt("When is the cider press cleaned?", prompt_id="p2") == block
    assert len(agent.backstory("list")["memories"]) == 1

    agent.said(
        user("Remember that the cider press is cleaned on Fridays."),
        assistant("I will."),
        user("When is the cider press cleaned?"),
        user(f"{block}\nAnd the <private>cellar code 4711</private> too?", isMeta=True),
        assistant("On Fridays. The key sk-ant-api03-" + "q7Zw" * 24 + " opens it."),
    )
    assert agent.claude("stop", "Stop", stop_hook_active=False, last_assistant_message="On Fridays.") == {}
    kept = texts(agent)
    assert kept.count("Remember that the cider press is cleaned on Fridays.") == 1
    assert "I will." in kept
    assert not any("backstory-memory" in text or "4711" in text or "q7Zwq7Zw" in text for text in kept)
    agent.claude("stop", "Stop", stop_hook_active=False)
    assert texts(agent) == kept

    agent.said(user("And the apples?"), assistant("In October."))
    assert agent.claude("pre-compact", "PreCompact", trigger="auto", custom_instructions="") == {}
    assert {"And the apples?", "In October."} <= set(texts(agent))
    assert agent.claude("session-end", "SessionEnd", reason="other") == {}
    (session,) = agent.backstory("sessions")["sessions"]
    assert session["id"] == SESSION


def test_the_command_that_is_installed_in_claude_code_works_in_a_shell(agent: Agent, tmp_path: Path) -> None:
    agent.env |= {"HOME": str(tmp_path / "user name")}
    agent.backstory("install", "claude-code")
    agent.backstory("remember", "The cider press is cleaned on Fridays")
    hooks = json.loads((tmp_path / "user name" / ".claude" / "settings.json").read_text())["hooks"]
    payload = {"session_id": SESSION, "cwd": "/", "prompt": "When is the cider press cleaned?"}
    env = {name: value for name, value in agent.env.items() if name != "BACKSTORY_HOME"}
    done = subprocess.run(
        hooks["UserPromptSubmit"][0]["hooks"][0]["command"],
        shell=True, input=json.dumps(payload).encode(), capture_output=True, cwd="/", timeout=240, check=False,
        env={**env, "CLAUDE_PROJECT_DIR": str(agent.project)},
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (0, b"")
    assert "cleaned on Fridays" in json.loads(done.stdout)["hookSpecificOutput"]["additionalContext"]
    doctor = {check["name"]: check["message"] for check in agent.backstory("doctor")["checks"]}
    assert "its last hook was prompt on" in doctor["claude-code"]


def test_a_session_begins_with_what_is_always_shown_until_it_is_compacted(agent: Agent) -> None:
    agent.backstory("remember", "--core", "Never ship on a Sunday")
    start = {"source": "startup", "model": "m"}
    first = agent.claude("session-start", "SessionStart", **start)["hookSpecificOutput"]
    assert first["hookEventName"] == "SessionStart"
    assert "Never ship on a Sunday" in first["additionalContext"]
    agent.backstory("remember", "--core", "Labels are printed in German")
    assert agent.claude("session-start", "SessionStart", **{**start, "source": "resume"})["hookSpecificOutput"] == first
    renewed = agent.claude("session-start", "SessionStart", **{**start, "source": "compact"})["hookSpecificOutput"]
    assert "Labels are printed in German" in renewed["additionalContext"]


def test_a_sub_agents_prompt_gets_nothing_and_stores_nothing(agent: Agent) -> None:
    agent.backstory("remember", "The cider press is cleaned on Fridays")
    assert (
        agent.prompt("Remember that the press is red. When is it cleaned?", agent_id="a1", agent_type="Explore") == ""
    )
    assert len(agent.backstory("list")["memories"]) == 1


def test_what_we_put_there_is_not_stored_as_the_users_wish(agent: Agent) -> None:
    agent.backstory("remember", "The cider press is cleaned on Fridays")
    block = agent.prompt("When is the cider press cleaned?")
    agent.prompt(f"{block}\n\nThanks.", prompt_id="p2")
    agent.prompt("<backstory-memory>\nRemember that ducks swim.\n</backstory-memory>", prompt_id="p3")
    agent.prompt("<private>Remember that geese fly.</private>", prompt_id="p4")
    assert len(agent.backstory("list")["memories"]) == 1


def test_an_agent_without_a_transcript_tells_what_was_said_itself(agent: Agent) -> None:
    def told(event: str, **fields: Json) -> Json:
        done = agent.run(event, given=json.dumps({"session": SESSION, "agent": "my-agent", **fields}).encode())
        assert (done.returncode, done.stderr) == (0, b"")
        return json.loads(done.stdout)

    assert told("prompt", prompt="Where are the pears?") == {"context": None}
    assert told("stop", answer="In store 2.") == {"context": None}
    assert told("stop", answer="In store 2.") == {"context": None}
    assert texts(agent) == ["Where are the pears?", "In store 2."]
    assert agent.backstory("session", SESSION)["session"]["host"] == "my-agent"


WRONG = {
    "nothing": b"",
    "no JSON": b"{prompt}",
    "half of it": b'{"session": "s", "prompt": "x',
    "a list": b"[1, 2]",
    "no session": b'{"prompt": "x"}',
    "a prompt that is no text": b'{"session": "s", "prompt": {"a": 1}}',
    "bytes": bytes(range(256)),
    "UTF-16": '{"session": "s"}'.encode("utf-16"),
    "nested by the thousand": b'{"session": ' + b"[" * 100_000,
    "a folder that is none": b'{"session": "s", "directory": "../.."}',
}


@pytest.mark.parametrize("given", WRONG.values(), ids=WRONG)
def test_a_call_that_cannot_be_read_changes_nothing_and_says_why(agent: Agent, given: bytes) -> None:
    done = agent.run("prompt", given=given)
    assert (done.returncode, done.stdout) == (0, b'{"context": null}\n')
    assert done.stderr.startswith(b"backstory hook: ")
    assert done.stderr.count(b"\n") == 1
    assert not self_made(agent)


@pytest.mark.parametrize(
    "words",
    [("UserPromptSubmit",), (), ("prompt", "--agent", "nobody"), ("prompt", "--no-such-option"), ("prompt", "x")],
)
def test_a_command_line_that_is_wrong_never_stops_the_agent(agent: Agent, words: tuple[str, ...]) -> None:
    done = agent.run(*words, given=b'{"session": "s"}')
    assert done.returncode == 0
    assert json.loads(done.stdout) == {"context": None}


@pytest.mark.parametrize("words", [(), ("--agent",), ("prompt", "--json")])
def test_the_command_itself_never_ends_with_a_code_that_stops_the_agent(agent: Agent, words: tuple[str, ...]) -> None:
    script = "import sys; from backstory.entrypoints.cli.main import main; sys.exit(main())"
    done = subprocess.run(
        [sys.executable, "-P", "-c", script, "hook", *words], input=b"{}", capture_output=True, env=agent.env,
        cwd=agent.project, timeout=240, check=False,
    )  # fmt: skip
    assert (done.returncode, json.loads(done.stdout)) == (0, {"context": None})


def test_where_no_process_can_be_started_the_answer_stands_all_the_same(agent: Agent) -> None:
    script = (
        "import os, sys; from backstory.entrypoints.agents.hook import run_words\n"
        "def fork(): raise BlockingIOError(11, 'no more processes')\n"
        "os.fork = fork; run_words(['prompt'], os.environ)"
    )
    done = subprocess.run(
        [sys.executable, "-P", "-c", script], input=b'{"session": "s", "prompt": "x"}', capture_output=True,
        env={**agent.env, "BACKSTORY_NO_BACKGROUND": ""}, cwd=agent.project, timeout=240, check=False,
    )  # fmt: skip
    assert (done.returncode, done.stdout) == (0, b'{"context": null}\n')
    assert b"not kept: " in done.stderr
    assert done.stderr.count(b"\n") == 1


def test_folders_that_cannot_be_used_and_settings_that_are_wrong_change_nothing(agent: Agent, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    payload = json.dumps({"session": "s", "prompt": "Remember that it rains."}).encode()
    done = agent.run("prompt", given=payload, env={"BACKSTORY_HOME": str(tmp_path / "file")})
    assert done.returncode == 0
    assert "could NOT be stored" in json.loads(done.stdout)["context"]
    done = agent.run("prompt", given=payload, env={"BACKSTORY_RECALL_LIMIT": "many"})
    assert "stored already as #1" in json.loads(done.stdout)["context"]
    assert b"RECALL_LIMIT" in done.stderr
    (agent.home / "backstory.db").write_bytes(b"no database" * 1000)
    done = agent.run("session-start", given=payload)
    assert (done.returncode, json.loads(done.stdout)) == (0, {"context": None})


def test_a_store_that_another_process_holds_is_waited_for_within_the_deadline(agent: Agent) -> None:
    agent.backstory("remember", "The cider press is cleaned on Fridays")
    agent.prompt("When is the press cleaned?", prompt_id="warm")
    with closing(agent.database()) as holder:
        holder.execute("BEGIN EXCLUSIVE")
        payload = json.dumps({"session": "s", "prompt": "Remember that the press is red."}).encode()
        began = time.monotonic()
        done = agent.run("prompt", given=payload, env={"BACKSTORY_NO_BACKGROUND": ""})
        took_s = time.monotonic() - began
    assert "could NOT be stored" in json.loads(done.stdout)["context"]
    assert took_s < 10
    until = time.monotonic() + 90
    while len(agent.backstory("list")["memories"]) == 1:  # stored once the store is free
        assert time.monotonic() < until


@pytest.fixture
def open_pipe() -> Iterator[tuple[int, int]]:
    reading, writing = os.pipe()
    yield reading, writing
    os.close(reading)
    os.close(writing)


def test_an_input_that_never_ends_is_answered_once_it_holds_an_object(agent: Agent, open_pipe: tuple[int, int]) -> None:
    reading, writing = open_pipe
    os.write(writing, b'{"session": "s", "prompt": "x"}\n')
    done = subprocess.run(
        [*HOOK, "prompt"], stdin=reading, capture_output=True, env=agent.env, timeout=240, check=False
    )  # fmt: skip
    assert (done.returncode, done.stderr, done.stdout) == (0, b"", b'{"context": null}\n')


def test_an_input_that_never_comes_is_given_up_at_the_deadline(agent: Agent, open_pipe: tuple[int, int]) -> None:
    done = subprocess.run(
        [*HOOK, "prompt", "--agent", "claude-code"],
        stdin=open_pipe[0], capture_output=True, env={**agent.env, "BACKSTORY_CONTEXT_DEADLINE_MS": "100"}, timeout=240,
        check=False,
    )  # fmt: skip
    assert (done.returncode, done.stdout) == (0, b"{}\n")
    assert b"no answer within 100 ms" in done.stderr


def test_a_wish_that_could_not_be_answered_in_time_is_stored_once_all_the_same(agent: Agent) -> None:
    agent.backstory("remember", "The cider press is cleaned on Fridays")
    prompt = "Remember that the press is red."
    call = {"session_id": SESSION, "transcript_path": str(agent.transcript), "prompt": prompt}
    payload = json.dumps(call).encode()
    with closing(agent.database()) as holder:
        holder.execute("BEGIN EXCLUSIVE")
        done = agent.run(
            "prompt", "--agent", "claude-code", given=payload, env={"BACKSTORY_CONTEXT_DEADLINE_MS": "100"}
        )
        message = ClaudeCodeFormat().read(Event.PROMPT, {**call, "cwd": "/"}).message
        agent.said(user(prompt))  # the id of a prompt depends on how long this is
    assert (done.returncode, done.stdout) == (0, b"{}\n")
    until = time.monotonic() + 90
    while len(memories := agent.backstory("list")["memories"]) == 1:
        assert time.monotonic() < until
    (stored,) = (memory for memory in memories if "red" in memory["content"])
    assert stored["provenance"]["messages"] == [message]


def test_what_is_kept_is_kept_by_a_process_that_holds_no_pipe_of_the_agent(agent: Agent) -> None:
    agent.said(user("And the apples?"), assistant("In October."))
    payload = {"session_id": SESSION, "transcript_path": str(agent.transcript), "cwd": str(agent.project)}
    done = agent.run(
        "stop", "--agent", "claude-code", given=json.dumps(payload).encode(), env={"BACKSTORY_NO_BACKGROUND": ""}
    )
    assert (done.returncode, done.stdout) == (0, b"{}\n")
    until = time.monotonic() + 90
    while not (agent.home / "hook-claude-code.json").exists() or not agent.backstory("sessions")["sessions"]:
        assert time.monotonic() < until
    while texts(agent) != ["And the apples?", "In October."]:
        assert time.monotonic() < until


def test_nothing_slow_is_imported_for_a_prompt(agent: Agent) -> None:
    agent.backstory("remember", "The cider press is cleaned on Fridays")
    payload = json.dumps({"session": "s", "prompt": "When is the cider press cleaned?"}).encode()
    done = subprocess.run(
        [sys.executable, "-P", "-X", "importtime", "-m", "backstory", "hook", "prompt"],
        input=payload, capture_output=True, env=agent.env, cwd=agent.project, timeout=240, check=False,
    )  # fmt: skip
    assert b"cleaned on Fridays" in done.stdout
    answered = done.stderr.partition(b"backstory.entrypoints.cli.invocation")[0]  # what comes after is not waited for
    imported = {line.rpartition(b"|")[2].strip().decode() for line in answered.splitlines() if b"|" in line}
    assert "backstory.services.context_block" in imported
    slow = {"asyncio", "anyio", "numpy", "pydantic", "click", "rich", "mcp", "starlette", "httpx", "http.client"}
    assert imported & slow == set()
    assert not any(name.startswith("backstory.services.remember") for name in imported)


def test_how_long_a_prompt_takes(agent: Agent, record_property: Any) -> None:
    agent.backstory("remember", "The cider press is cleaned on Fridays")
    payload = json.dumps({"session": "s", "prompt": "When is the cider press cleaned?"}).encode()
    took, computed = [], []
    for _ in range(5):
        began, before = time.perf_counter(), os.times()
        agent.run("prompt", given=payload, env={"BACKSTORY_NO_BACKGROUND": ""})
        after = os.times()
        took.append(time.perf_counter() - began)
        computed.append(after.children_user + after.children_system - before.children_user - before.children_system)
    record_property("median_s", round(sorted(took)[2], 3))
    record_property("median_cpu_s", round(sorted(computed)[2], 3))
    assert min(computed) < 1  # 0.2 s on a machine that does nothing else; a wait is bounded by the deadline


def self_made(agent: Agent) -> list[Path]:
    """What a call has left in the data folder."""
    return list(agent.home.glob("*")) if agent.home.exists() else []
