"""``backstory dream``: sessions distilled at the command line, over the wire to a model, or by rules."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from backstory.adapters.stores.sqlite.store import open_sqlite
from backstory.domain.conversation import Message, Part, Role, Session
from backstory.domain.digest import Lease
from backstory.domain.dream_state import DreamState
from backstory.domain.ids import MessageId, PartId, SessionId
from backstory.entrypoints.drive import drive
from tests.command_line import KNOWN, CommandLine
from tests.integration.scripted_server import Answer, ScriptedServer

NOW = datetime.now(UTC).replace(microsecond=0)
NIGHT = SessionId("ses_night")
DECISION = "We decided that the ferry leaves from pier 12, because pier 4 is under repair."
SAID = f"{DECISION} The key is ghp_{'a1B2' * 9}"
FACT = "The ferry leaves from pier 12."
SECRET = "a1B2a1B2"


class Harbour(CommandLine):
    """A project whose store has one session, with a model that answers over HTTP."""

    def __init__(self, home: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
        super().__init__(home, monkeypatch, capsys, name="harbour")
        self.say(NIGHT)

    def say(self, session: SessionId, text: str = SAID, *, at: datetime = NOW, **fields: Any) -> None:
        backend = open_sqlite(self.path)
        info = Session(id=session, project=self.project, host="opencode", directory="/h", created_at=at, updated_at=at)
        messages = [self._message(session, 0, text, at), self._message(session, 1, "Noted: pier 12.", at)]
        drive(backend.conversations.put_session(replace(info, **fields)))
        drive(backend.conversations.put_messages(messages))
        drive(backend.memories.close())

    def _message(self, session: SessionId, number: int, text: str, at: datetime) -> Message:
        name = MessageId(f"{session}-m{number}")
        made = at + timedelta(seconds=number)
        part = Part(id=PartId(f"{name}-p"), kind="text", text=text)
        role = Role.ASSISTANT if number else Role.USER
        return Message(id=name, session=session, role=role, created_at=made, completed_at=made, parts=(part,))

    def state(self, session: SessionId = NIGHT) -> DreamState | None:
        backend = open_sqlite(self.path)
        try:
            return drive(backend.dreams.state(session))
        finally:
            drive(backend.memories.close())

    def note(self, state: DreamState) -> None:
        backend = open_sqlite(self.path)
        assert drive(backend.dreams.apply(state))
        drive(backend.memories.close())

    def memories(self) -> list[str]:
        return [memory["content"] for memory in self.json("list")["memories"]]


@pytest.fixture
def harbour(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Harbour:
    return Harbour(tmp_path, monkeypatch, capsys)


@pytest.fixture
def model(harbour: Harbour) -> Iterator[ScriptedServer]:
    """A model that proposes one fact, and calls none a duplicate."""

    def respond(request: Any) -> Answer:
        asked = request.body["messages"][-1]["content"]
        proposed = {"new": [{"text": FACT, "type": "decision", "scope": "project", "sources": [1]}]}
        said = proposed if "<conversation>" in asked else {"duplicates": []}
        message = {"message": {"role": "assistant", "content": json.dumps(said)}, "finish_reason": "stop"}
        return Answer(body={"model": "tiny", "choices": [message]})

    server = ScriptedServer(respond)
    with server.running():
        harbour.set(MODELS_PROVIDER="openai", MODELS_BASE_URL=f"{server.url}/v1", MODELS_MODEL="tiny")
        yield server


def test_a_dry_run_shows_what_would_be_kept_and_writes_nothing(harbour: Harbour, model: ScriptedServer) -> None:
    told = harbour.ok("dream", "--dry-run")
    assert f"+ new (decision): {FACT}" in told
    assert "would be 1 change by openai:tiny" in told
    assert harbour.memories() == [KNOWN]
    assert harbour.state() is None


def test_a_session_is_distilled_once_and_the_dream_can_be_taken_back(harbour: Harbour, model: ScriptedServer) -> None:
    done = harbour.json("dream", "ses_n")
    (session,) = done["sessions"]
    assert (session["session"], session["outcome"], session["made_by"]) == (NIGHT, "done", ["openai:tiny"])
    (edit,) = session["edits"]
    assert (edit["done"], edit["memory"]["content"]) == ("new", FACT)
    assert FACT in harbour.memories()
    asked = len(model.requests)
    assert "nothing new" in harbour.ok("dream", NIGHT)
    assert "No session has anything new" in harbour.ok("dream")
    assert len(model.requests) == asked
    harbour.ok("undo", session["changes"][0])
    assert FACT not in harbour.memories()


def test_no_secret_reaches_the_model_or_a_memory(harbour: Harbour, model: ScriptedServer) -> None:
    harbour.ok("dream", "--all")
    assert "pier 12" in str(model.requests[0].body)
    assert SECRET not in str([request.body for request in model.requests])
    assert SECRET not in str(harbour.memories())


def test_calls_are_booked_for_dreaming(harbour: Harbour, model: ScriptedServer) -> None:
    harbour.ok("dream")
    assert "dream" in {line["feature"] for line in harbour.json("status", "--cost")["lines"]}


def test_rules_ask_nobody(harbour: Harbour, model: ScriptedServer) -> None:
    harbour.say(SessionId("ses_plain"), DECISION)
    (session,) = harbour.json("dream", "ses_plain", "--rules")["sessions"]
    assert session["made_by"] == ["rules"]
    assert DECISION in harbour.memories()
    assert model.requests == []


def test_old_sessions_are_distilled_when_all_are_asked_for(harbour: Harbour) -> None:
    old = SessionId("ses_old")
    harbour.say(old, at=NOW - timedelta(days=90))
    recent = [one["session"] for one in harbour.json("dream", "--rules", "--dry-run")["sessions"]]
    every = [one["session"] for one in harbour.json("dream", "--rules", "--all", "--dry-run")["sessions"]]
    assert (recent, every) == ([NIGHT], [NIGHT, old])


def test_a_failing_model_fails_the_command_and_is_told_by_status_and_doctor(
    harbour: Harbour, model: ScriptedServer
) -> None:
    model.respond = lambda request: Answer(status=401, body={"error": {"message": "no"}})
    done = harbour.run("dream")
    assert done.returncode != 0
    assert f"{NIGHT} could not be distilled" in done.stderr
    assert "1 session waits to be distilled" in harbour.ok("status")
    (waiting,) = harbour.json("status")["dreams"]["waiting"]
    assert (waiting["session"], waiting["attempts"]) == (NIGHT, 1)
    checks = json.loads(harbour.run("doctor", "--json").stdout)["checks"]
    assert [check["state"] for check in checks if check["name"] == "distilling"] == ["warn"]


def test_another_process_is_left_alone(harbour: Harbour, model: ScriptedServer) -> None:
    lease = Lease(token="other", expires_at=datetime.now(UTC) + timedelta(minutes=3))
    harbour.note(DreamState(session=NIGHT, project=harbour.project, due=True, lease=lease, updated_at=NOW))
    assert "another process is at it" in harbour.ok("dream", NIGHT)
    assert model.requests == []


@pytest.mark.parametrize(
    ("setting", "value", "words"),
    [
        ("DREAM_ENABLED", "false", "dream.enabled is off"),
        ("ARCHIVE_ENABLED", "false", "archive.enabled is off"),
        ("MODELS_PROVIDER", "host", "outside OpenCode no language model is set up"),
    ],
)
def test_what_the_settings_are_against_is_said(harbour: Harbour, setting: str, value: str, words: str) -> None:
    harbour.set(**{setting: value})
    done = harbour.run("dream")
    assert done.returncode == 2
    assert words in done.stderr
