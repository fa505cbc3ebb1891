"""``backstory sessions`` and ``backstory session`` as people use them, on a real store."""

from __future__ import annotations

import base64
import json
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from backstory.adapters.stores.sqlite.store import open_sqlite
from backstory.domain.conversation import Message, Part, Role, Session
from backstory.domain.ids import MessageId, PartId, ProjectId, SessionId
from backstory.domain.part_admission import KeepLimits, admit_message
from backstory.entrypoints.cli.main import main
from backstory.entrypoints.drive import drive
from tests.command_line import CommandLine

NOW = datetime.now(UTC).replace(microsecond=0)
LOG = "".join(f"{n}: compiled\n" for n in range(9000))
PICTURE = b"\x89PNG\r\n\x1a\n" + bytes(range(256)) * 8
DAY = timedelta(days=1)


class Archive(CommandLine):
    """A store with a project in it, and what was said there."""

    def __init__(self, home: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
        super().__init__(home, monkeypatch, capsys, name="orchard")
        self.backend = open_sqlite(self.path)

    def session(self, name: str, *, days_ago: int = 0, parent: str | None = None, project: str | None = None) -> None:
        at = NOW - days_ago * DAY
        drive(
            self.backend.conversations.put_session(
                Session(
                    id=SessionId(name),
                    project=ProjectId(project) if project else self.project,
                    host="opencode",
                    directory="/orchard",
                    parent=SessionId(parent) if parent else None,
                    title=f"About {name}",
                    created_at=at,
                    updated_at=at,
                )
            )
        )

    def say(self, session: str, name: str, *parts: Part, days_ago: int = 0, role: Role = Role.USER) -> None:
        message = Message(
            id=MessageId(name), session=SessionId(session), role=role, created_at=NOW - days_ago * DAY, parts=parts
        )
        told = admit_message(message, KeepLimits())
        drive(self.backend.conversations.put_messages([told.message], blobs=told.blobs))


def text(name: str, said: str) -> Part:
    return Part(id=PartId(name), kind="text", text=said)


@pytest.fixture
def archive(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Archive:
    archive = Archive(tmp_path, monkeypatch, capsys)
    archive.session("ses_long", days_ago=1)
    archive.session("ses_child", days_ago=2, parent="ses_long")
    archive.session("ses_old", days_ago=200)
    archive.session("ses_theirs", project="01BX5ZZKBKACTAV9WEVGEMMVRA")
    archive.say("ses_long", "msg_1", text("prt_1", "why does the pump stall"), days_ago=1)
    address = "data:image/png;base64," + base64.b64encode(PICTURE).decode()
    build = {"state": {"status": "completed", "input": {"command": "make"}, "attachments": [{"url": address}]}}
    tool = Part(id=PartId("prt_2"), kind="tool", tool="bash", text=LOG, detail=json.dumps(build))
    archive.say("ses_long", "msg_2", tool, text("prt_3", "the inlet is clogged"), role=Role.ASSISTANT)
    archive.say("ses_old", "msg_0", text("prt_0", "plums ripen in August"), days_ago=200)
    drive(archive.backend.conversations.mark_removed(MessageId("msg_2"), at=NOW))
    drive(archive.backend.memories.close())
    return archive


def test_sessions_are_listed_with_what_belongs_to_them(archive: Archive) -> None:
    listed = archive.json("sessions")
    assert [entry["id"] for entry in listed["sessions"]] == ["ses_long", "ses_child", "ses_old"]
    long, child, _ = listed["sessions"]
    assert (long["messages"], long["taken_back"], long["children"]) == (2, 1, ["ses_child"])
    assert (child["parent"], child["first_message_at"], listed["total"]) == ("ses_long", None, 3)
    assert "sub-agent of ses_long" in archive.ok("sessions")
    assert archive.json("sessions", "--all-projects")["total"] == 4
    assert len(archive.json("sessions", "--limit", "1")["sessions"]) == 1


def test_a_session_is_read_with_speaker_date_and_marks(archive: Archive) -> None:
    told = archive.ok("session", "ses_l")
    assert "why does the pump stall" in told
    assert "the inlet is clogged" in told
    assert "taken back" in told
    assert "ses_child" in told
    assert "compiled" not in told
    assert "(1 more part: --tools, --raw)" in told
    tools = archive.ok("session", "ses_long", "--tools")
    assert '{"command": "make"}' in tools
    assert "image/png, 2,056 bytes" in tools
    assert len(tools) < 6000


def test_messages_are_paged_and_found_by_their_place(archive: Archive) -> None:
    first = archive.run("session", "ses_long", "--limit", "1")
    assert "1 of 2 messages come after these: --page 2" in first.stderr
    assert "clogged" in archive.ok("session", "ses_long", "--limit", "1", "--page", "2")
    assert [m["id"] for m in archive.json("session", "ses_long", "--from", "msg_2")["messages"]] == ["msg_2"]
    around = archive.json("session", "ses_long", "--around", "msg_1")
    assert ([m["id"] for m in around["messages"]], around["total"], around["left"]) == (["msg_1", "msg_2"], 2, 0)
    found = archive.ok("session", "ses_long", "--search", "pump stall")
    assert "why does the pump stall" in found
    refused = archive.run("session", "ses_long", "--page", "2", "--around", "msg_1")
    assert (refused.returncode, "--page and --around cannot go together" in refused.stderr) == (2, True)


def test_a_large_part_is_shown_whole(archive: Archive) -> None:
    assert LOG in archive.ok("session", "ses_long", "--part", "prt_2")
    [message] = [archive.json("session", "ses_long", "--part", "prt_2")]
    state = json.loads(message["parts"][0]["detail"])["state"]
    assert base64.b64decode(state["attachments"][0]["url"].partition(",")[2]) == PICTURE
    assert LOG in archive.ok("session", "ses_long", "--raw")
    excerpt = archive.json("session", "ses_long")["messages"][1]["parts"][0]
    assert len(excerpt["text"]) < 15_500
    assert [blob["media_type"] for blob in excerpt["blobs"]] == ["text/plain", "image/png"]


def test_an_unknown_or_foreign_session_is_refused_with_what_is_near(archive: Archive) -> None:
    for ref, near in (("ses_lang", "ses_long"), ("old", "ses_old")):
        refused = archive.run("session", ref)
        assert refused.returncode == 3
        assert near in refused.stderr
    foreign = archive.run("session", "ses_theirs")
    assert foreign.returncode == 3
    assert archive.run("session", "ses_theirs", "--all-projects").returncode == 0


def test_what_is_old_is_shown_and_removed_when_a_person_agrees(archive: Archive) -> None:
    age = ("sessions", "prune", "--older-than", "90d")
    planned = archive.json(*age, "--dry-run")
    assert (planned["dry_run"], planned["messages"], planned["sessions"]) == (True, 1, 1)
    refused = archive.run(*age)
    assert (refused.returncode, "--yes" in refused.stderr) == (2, True)
    assert archive.json("sessions")["total"] == 3
    done = archive.json(*age, "--yes")
    assert done == planned | {"dry_run": False}
    assert archive.json("sessions")["total"] == 2
    assert "Nothing is that old" in archive.ok(*age)
    assert archive.json("list")["total"] == 1
    assert archive.json("check", "--full")["findings"] == []


def test_pruning_needs_an_age_of_the_person_or_of_the_settings(
    archive: Archive, monkeypatch: pytest.MonkeyPatch
) -> None:
    refused = archive.run("sessions", "prune", "--dry-run")
    assert (refused.returncode, "--older-than 90d" in refused.stderr) == (2, True)
    monkeypatch.setenv("BACKSTORY_ARCHIVE_RETENTION_DAYS", "100")
    assert archive.json("sessions", "prune", "--dry-run")["messages"] == 1


def test_where_nothing_is_kept_it_says_so_and_makes_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("BACKSTORY_HOME", str(tmp_path / "store"))
    assert main(["sessions", "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == {"sessions": [], "total": 0}
    assert not (tmp_path / "store").exists()
