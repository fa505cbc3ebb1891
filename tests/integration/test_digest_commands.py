"""Digests of sessions at the command line: looked at, opened, made now, forgotten, and told of by status and doctor."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from backstory.adapters.stores.sqlite.store import open_sqlite
from backstory.domain.conversation import Message, Part, Role, Session
from backstory.domain.digest import DigestState, DigestUpdate, Lease, Piece, Strategy
from backstory.domain.ids import MessageId, PartId, SessionId
from backstory.entrypoints.drive import drive
from tests.command_line import CommandLine
from tests.integration.scripted_server import Answer, ScriptedServer

NOW = datetime.now(UTC).replace(microsecond=0)
PUMP, ORCHARD = SessionId("ses_pump"), SessionId("ses_orchard")
SUMMARY = "The inlet was clogged; it was cleaned and the pump runs again."


class Farm(CommandLine):
    """A project whose store has two long sessions."""

    def __init__(self, home: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
        self.home = home
        super().__init__(home, monkeypatch, capsys, name="farm")
        with self.opened() as backend:
            for session in (PUMP, ORCHARD):
                info = Session(
                    id=session, project=self.project, host="opencode", directory="/f", created_at=NOW, updated_at=NOW
                )
                drive(backend.conversations.put_session(info))
                for number in range(12):
                    drive(backend.conversations.put_messages([said(session, number)]))

    def opened(self) -> Any:  # Any: a context manager over a Backend
        from contextlib import contextmanager

        @contextmanager
        def opening() -> Iterator[Any]:
            backend = open_sqlite(self.path)
            try:
                yield backend
            finally:
                drive(backend.memories.close())

        return opening()

    def digest(self, session: SessionId, *pieces: Piece, **state: Any) -> None:
        known = DigestState(session=session, strategy=pieces[0].strategy, updated_at=NOW, **state)
        with self.opened() as backend:
            assert drive(backend.digests.apply(DigestUpdate(state=known, added=pieces)))

    def spoil(self) -> None:
        with closing(sqlite3.connect(self.path, isolation_level=None)) as raw:
            raw.execute("UPDATE digests SET shown = 'no list'")


def said(session: SessionId, number: int) -> Message:
    at = NOW - timedelta(minutes=60 - number)
    name = MessageId(f"{session}-m{number}")
    words = f"Message {number}: I took the pump apart and looked at the inlet, the seals and the wires one by one."
    part = Part(id=PartId(f"{name}-p"), kind="text", text=words)
    role = Role.USER if number % 2 == 0 else Role.ASSISTANT
    return Message(id=name, session=session, role=role, created_at=at, completed_at=at, parts=(part,))


def leaf(number: int, first: int, last: int, **fields: Any) -> Piece:
    plain: dict[str, Any] = {
        "session": PUMP,
        "id": f"node0_{number:03}",
        "strategy": Strategy.TREE,
        "level": 0,
        "text": SUMMARY,
        "start": first,
        "end": last,
        "sources": tuple(MessageId(f"{PUMP}-m{n}") for n in range(first, last + 1)),
        "made_by": "openai:tiny",
        "prompt": "tree-leaf/1",
        "source_tokens": 90,
        "created_at": NOW,
    }
    return Piece(**{**plain, **fields})


def note(number: int, text: str) -> Piece:
    return leaf(number, number, number, session=ORCHARD, id=f"obs0_{number:03}", text=text,
                strategy=Strategy.OBSERVATIONS, sources=(MessageId(f"{ORCHARD}-m{number}"),))  # fmt: skip


@pytest.fixture
def farm(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Farm:
    return Farm(tmp_path, monkeypatch, capsys)


@pytest.fixture
def tree(farm: Farm) -> Farm:
    """The pump's session has a parent over two leaves, and a leaf beside it that is shown."""
    parent = leaf(9, 0, 5, id="node1_001", level=1, sources=(), children=("node0_001", "node0_002"))
    covered = {"parent": "node1_001", "active": False}
    farm.digest(PUMP, leaf(1, 0, 2, **covered), leaf(2, 3, 5, **covered), leaf(3, 6, 8), parent, shown=("node1_001",))
    return farm


# --- looking ----------------------------------------------------------------------------------------------------------


def test_the_pieces_are_listed_by_place_with_who_made_them_and_where_they_stand(tree: Farm) -> None:
    rows = [line.split("\t") for line in tree.ok("session", "ses_p", "--digest").splitlines()]
    assert [(row[0], row[1], row[2], row[6]) for row in rows] == [
        ("node1_001", "1", "0-5", "shown"),
        ("node0_001", "0", "0-2", "under node1_001"),
        ("node0_002", "0", "3-5", "under node1_001"),
        ("node0_003", "0", "6-8", "active"),
    ]
    assert (rows[1][3], rows[1][4], rows[1][7]) == ("openai:tiny", "tree-leaf/1", SUMMARY)


def test_as_json_a_digest_names_all_that_its_pieces_were_made_from(tree: Farm) -> None:
    told = tree.json("session", "ses_pump", "--digest")
    assert (told["session"], told["digest"]["strategy"], told["log"]) == (PUMP, "tree", None)
    parent, first, *_ = told["pieces"]
    assert (parent["children"], parent["shown"]) == (["node0_001", "node0_002"], True)
    assert (first["sources"], first["parent"], first["active"]) == (
        [f"{PUMP}-m{n}" for n in range(3)],
        "node1_001",
        False,
    )


def test_a_node_opens_down_to_the_words_that_were_said(tree: Farm) -> None:
    parent = tree.ok("session", "ses_pump", "--digest", "--node", "node1_001")
    assert "node0_001" in parent
    assert "node0_002" in parent
    opened = tree.ok("session", "ses_pump", "--node", "node0_002")
    assert "Message 4: I took the pump apart" in opened
    assert "Message 6:" not in opened
    assert "not found" in tree.ok("session", "ses_pump", "--node", "node0_077")
    refused = tree.run("session", "ses_pump", "--node", "node0_002", "--page", "9")
    assert (refused.returncode, "there is no page 9" in refused.stderr) == (2, True)
    assert tree.json("session", "ses_pump", "--node", "node0_002")["piece"]["id"] == "node0_002"


def test_an_observed_session_shows_its_log_as_text(farm: Farm) -> None:
    notes = (note(0, "Date: 2026-03-02\n- 09:15 plums are picked first"), note(1, "- 09:20 pears come last"))
    farm.digest(ORCHARD, *notes, current_task="Pick the plums", suggested_response="Fetch the ladder")
    told = farm.ok("session", "ses_orchard", "--digest")
    assert told.index("plums are picked first") < told.index("pears come last")
    assert "Current task: Pick the plums" in told
    assert "Next step: Fetch the ladder" in told
    assert "- 09:20 pears come last" in farm.json("session", "ses_orchard", "--digest")["log"]
    opened = farm.ok("session", "ses_orchard", "--node", "obs0_001")
    assert "pears come last" in opened
    assert "plums" not in opened
    assert f"{ORCHARD}-m1" in opened


def test_sessions_are_listed_with_what_stands_for_them(tree: Farm) -> None:
    pump, orchard = sorted(tree.json("sessions")["sessions"], key=lambda each: str(each["id"]), reverse=True)
    assert (pump["digest"]["pieces"], pump["digest"]["shown"], pump["digest"]["strategy"]) == (4, 1, "tree")
    assert orchard["digest"] is None
    assert "\t4 pieces (tree)\t" in tree.ok("sessions")
    assert "Digest: 4 pieces (tree); --digest shows it" in tree.ok("session", "ses_pump")


def test_a_session_without_a_digest_says_so(farm: Farm) -> None:
    assert "has no digest" in farm.ok("session", "ses_pump", "--digest")
    assert farm.json("session", "ses_pump", "--digest")["digest"] is None
    assert "has no memory tree" in farm.ok("session", "ses_pump", "--node", "node0_001")


@pytest.mark.parametrize("other", [("--page", "2"), ("--part", "p"), ("--search", "pump"), ("--forget-digest",)])
def test_a_digest_is_not_asked_for_together_with_messages(farm: Farm, other: tuple[str, ...]) -> None:
    refused = farm.run("session", "ses_pump", "--digest", *other)
    assert (refused.returncode, "cannot go together" in refused.stderr) == (2, True)


# --- forgetting -------------------------------------------------------------------------------------------------------


def test_a_digest_is_forgotten_when_a_person_agrees(tree: Farm) -> None:
    refused = tree.run("session", "ses_pump", "--forget-digest")
    assert (refused.returncode, "--yes" in refused.stderr) == (2, True)
    assert tree.json("session", "ses_pump", "--digest")["pieces"] != []
    assert "Its messages are kept" in tree.ok("session", "ses_pump", "--forget-digest", "--yes")
    assert tree.json("session", "ses_pump", "--digest")["pieces"] == []
    assert tree.json("session", "ses_pump")["total"] == 12
    assert tree.json("session", "ses_pump", "--forget-digest") == {"session": PUMP, "forgotten": False}


def test_a_digest_that_cannot_be_read_is_told_with_the_command_that_forgets_it(tree: Farm) -> None:
    tree.spoil()
    failed = tree.run("session", "ses_pump", "--digest")
    assert failed.returncode == 7
    assert "`backstory session ses_pump --forget-digest`" in failed.stderr
    assert "restore a backup" not in failed.stderr
    assert "cannot be read" in tree.ok("sessions")
    [problem] = [each["digest"]["problem"] for each in tree.json("sessions")["sessions"] if each["digest"]]
    assert "cannot be read" in problem
    tree.ok("session", "ses_pump", "--forget-digest", "--yes")
    assert tree.json("check", "--full")["findings"] == []
    with tree.opened() as backend:
        assert drive(backend.digests.digest(PUMP)) is None


def test_a_digest_of_a_session_that_is_not_kept_is_found_by_its_whole_id(farm: Farm) -> None:
    lone = SessionId("ses_lone")
    farm.digest(lone, leaf(1, 0, 2, session=lone))
    assert farm.run("session", "ses_lone", "--digest").returncode == 3
    assert farm.run("session", "ses_lon", "--digest", "--all-projects").returncode == 3
    assert len(farm.json("session", "ses_lone", "--digest", "--all-projects")["pieces"]) == 1
    farm.ok("session", "ses_lone", "--forget-digest", "--all-projects", "--yes")


# --- making -----------------------------------------------------------------------------------------------------------


def test_nothing_is_digested_where_no_strategy_is_chosen_or_nothing_kept(farm: Farm) -> None:
    refused = farm.run("sessions", "digest", "ses_pump")
    assert (refused.returncode, "session.strategy is off" in refused.stderr) == (2, True)
    farm.set(SESSION_STRATEGY="tree", ARCHIVE_ENABLED="false")
    assert "archive.enabled is off" in farm.run("sessions", "digest", "ses_pump").stderr


def test_without_a_model_extracts_are_made_when_a_person_says_so(farm: Farm) -> None:
    farm.set(SESSION_STRATEGY="tree")
    refused = farm.run("sessions", "digest", "ses_pump")
    assert (refused.returncode, "--extracts" in refused.stderr) == (2, True)
    planned = farm.json("sessions", "digest", "ses_pump", "--extracts", "--dry-run")
    assert (planned["messages"], planned["undigested"], planned["made_by"]) == (12, 12, "extracts, by rule")
    assert farm.json("session", "ses_pump", "--digest")["pieces"] == []
    done = farm.json("sessions", "digest", "ses_pump", "--extracts")
    assert (done["steps"], done["digest"]["pieces"], done["digest"]["due"]) == (1, 1, False)
    assert "extract" in farm.json("session", "ses_pump", "--digest")["pieces"][0]["made_by"]
    assert "Nothing is due" in farm.ok("sessions", "digest", "ses_pump", "--extracts")


def test_whom_the_settings_or_a_parent_except_is_not_digested(farm: Farm) -> None:
    farm.set(SESSION_STRATEGY="observations", OBSERVATION_AGENTS="build")
    assert "left as they are" in farm.run("sessions", "digest", "ses_pump", "--extracts").stderr
    farm.set(SESSION_STRATEGY="tree")
    with farm.opened() as backend:
        child = Session(
            id=PUMP, project=None, host="opencode", directory="/f", parent=ORCHARD, created_at=NOW, updated_at=NOW
        )
        drive(backend.conversations.put_session(child))
    assert "sub-agent" in farm.run("sessions", "digest", "ses_pump", "--extracts").stderr


def completion(text: str) -> Answer:
    choice = {"index": 0, "message": {"role": "assistant", "content": text}, "finish_reason": "stop"}
    return Answer(body={"model": "tiny", "choices": [choice], "usage": {"prompt_tokens": 90, "completion_tokens": 14}})


def test_the_settings_model_writes_and_what_it_cost_is_told(farm: Farm) -> None:
    with ScriptedServer(lambda _: completion(SUMMARY)).running() as server:
        farm.set(SESSION_STRATEGY="tree", MODELS_BASE_URL=server.url + "/v1", MODELS_MODEL="tiny")
        said = farm.ok("sessions", "digest", "ses_pump")
        assert "1 step done in ses_pump, by openai:tiny. It has 1 piece (tree)." in said
    [line] = farm.json("status", "--cost")["lines"]
    assert (line["feature"], line["calls"], line["input_tokens"]) == ("summary_tree", 1, 90)


def test_a_model_that_fails_is_told_and_when_it_is_tried_again(farm: Farm) -> None:
    with ScriptedServer(lambda _: completion("")).running() as server:
        farm.set(SESSION_STRATEGY="tree", MODELS_BASE_URL=server.url + "/v1", MODELS_MODEL="tiny")
        failed = farm.run("sessions", "digest", "ses_pump")
        assert failed.returncode == 10
        assert "0 steps done; then it failed" in failed.stderr
        [waiting] = farm.json("status")["digests"]["waiting"]
        assert (waiting["session"], waiting["attempts"], waiting["due"]) == (PUMP, 1, True)
        assert waiting["not_before"] is not None
        assert waiting["problem"] in failed.stderr
        shown = farm.ok("status")
        assert "tree; 1 session has work left" in shown
        assert "tried again" in shown
        assert "0 pieces (tree), failed" in farm.ok("sessions")


# --- status and doctor ------------------------------------------------------------------------------------------------


def test_status_says_nothing_of_digests_where_none_are_made(farm: Farm) -> None:
    assert "Long sessions" not in farm.ok("status")
    assert farm.json("status")["digests"] == {"strategy": "off", "waiting": []}
    farm.set(SESSION_STRATEGY="observations")
    assert "observations; no session has work left" in farm.ok("status")


def test_status_tells_what_another_process_is_at_and_what_cannot_be_read(farm: Farm) -> None:
    lease = Lease(token="theirs", expires_at=datetime.now(UTC) + timedelta(minutes=3))
    farm.digest(PUMP, leaf(1, 0, 2), due=True, lease=lease)
    told = farm.ok("status")
    assert "1 session has work left, of which 1 is being worked on" in told
    assert "a process works on it" in told
    farm.set(SESSION_STRATEGY="tree", MODELS_PROVIDER="none")
    busy = farm.run("sessions", "digest", "ses_pump")
    assert (busy.returncode, "another process works on ses_pump" in busy.stderr) == (7, True)
    farm.spoil()
    assert "--forget-digest" in farm.ok("status")


def test_a_strategys_features_at_a_cap_are_told(farm: Farm) -> None:
    farm.set(SESSION_STRATEGY="observations", MODELS_CAP_DAY_TOKENS="0")
    assert [each["feature"] for each in farm.json("status")["at_cap"]] == ["observation", "reflection", "dream"]
    farm.set(SESSION_STRATEGY="tree")
    assert [each["feature"] for each in farm.json("status")["at_cap"]] == ["summary_tree", "dream"]
    farm.set(MODELS_PROVIDER="none")
    assert farm.json("status")["at_cap"] == []
