"""Histories of agents and memories of other products, through the command line: in once, found, and out as Markdown."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from itertools import islice
from pathlib import Path

import pytest

from backstory.adapters.formats.claude_code.reader import ClaudeCodeTranscripts
from backstory.bootstrap import open_app
from backstory.config import load
from backstory.domain.ids import SessionId
from backstory.domain.interchange import ForeignRecord
from backstory.domain.scope import Audience
from backstory.entrypoints.drive import drive
from backstory.ports.formats import ReadLimits
from backstory.services.import_report import ImportReport
from backstory.services.imported_memories import ImportPolicy
from tests.command_line import CommandLine

SESSION = "0a6afc57-2f31-4cb4-8ff0-01247f50c64c"


@pytest.fixture
def cli(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> CommandLine:
    return CommandLine(tmp_path, monkeypatch, capsys, name="bakery")


def transcript(folder: Path, project: Path, *said: str) -> Path:
    lines = [
        {
            "type": "user" if number % 2 == 0 else "assistant",
            "uuid": f"u{number}",
            "sessionId": SESSION,
            "cwd": str(project),
            "timestamp": f"2026-03-01T10:00:{number:02d}Z",
            "message": {"content": [{"type": "text", "text": text}]},
        }
        for number, text in enumerate(said)
    ]
    path = folder / "projects" / "-bakery" / f"{SESSION}.jsonl"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return path


def test_claude_codes_history_comes_in_once_and_grows_with_it(
    cli: CommandLine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CLAUDE_CONFIG_DIR", str(tmp_path / "claude"))
    project = Path.cwd()
    path = transcript(tmp_path / "claude", project, "How hot is the oven?", "At three hundred degrees.")
    first = cli.json("import", "claude-code")
    assert (first["by_kind"]["sessions"], first["by_kind"]["messages"]) == (1, 2)
    assert first["refused"] == []
    assert cli.json("import", "claude-code")["imported"] == 0
    transcript(tmp_path / "claude", project, "How hot is the oven?", "At three hundred degrees.", "Thanks", "Gladly.")
    before = path.read_bytes()
    assert cli.json("import", "claude-code")["by_kind"]["messages"] == 2
    assert path.read_bytes() == before
    assert "three hundred" in cli.ok("session", SESSION)


def test_an_import_that_was_killed_goes_on_where_it_stopped(tmp_path: Path) -> None:
    project = tmp_path / "bakery"
    project.mkdir()
    path = transcript(tmp_path / "claude", project, *(f"Say {number}" for number in range(55)))
    app = open_app(load(env={"BACKSTORY_HOME": str(tmp_path / "store")}, project_root=None).settings)
    reader = ClaudeCodeTranscripts()
    (store,) = reader.find(str(path))

    def bring_in(records: Iterable[ForeignRecord]) -> ImportReport:
        viewer = drive(app.viewer(project, audience=Audience.PERSON))
        return drive(app.importing.bring_in(records, viewer, ImportPolicy(dry_run=False, trusted=False)))

    def cut(records: Iterator[ForeignRecord]) -> Iterator[ForeignRecord]:
        yield from islice(records, 2)  # the session, and its first messages
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        bring_in(cut(reader.read(store, limits=ReadLimits())))
    second = bring_in(reader.read(store, limits=ReadLimits()))
    third = bring_in(reader.read(store, limits=ReadLimits()))
    assert len(drive(app.backend.conversations.message_ids(SessionId(SESSION)))) == 55
    assert (second.refused.count, third.refused.count) == (0, 0)
    assert (third.new.messages, third.known.messages) == (0, 55)
    drive(app.close())


def test_a_list_of_memories_waits_for_review(cli: CommandLine, tmp_path: Path) -> None:
    notes = tmp_path / "notes.txt"
    notes.write_text("- Rye is milled on Tuesdays\n- The mill is closed in March\n")
    assert cli.run("import", str(notes)).returncode != 0, "such a text is nobody's until somebody says whose"
    assert cli.json("import", str(notes), "--format", "chatgpt")["by_kind"]["memories"] == 2
    assert cli.json("import", str(notes), "--format", "chatgpt")["imported"] == 0
    assert "Tuesdays" in cli.ok("review")


def test_markdown_out_is_the_same_twice_and_shows_what_came_in(cli: CommandLine, tmp_path: Path) -> None:
    rules = Path("AGENTS.md")
    rules.write_text("# Ovens\n\n- Clean the *north* oven <b>first</b>\n")
    assert cli.json("import", str(rules))["by_kind"]["memories"] == 1
    out = tmp_path / "out"
    cli.ok("export", str(out), "--format", "markdown")
    before = {path: path.read_bytes() for path in out.rglob("*.md")}
    cli.ok("export", str(out), "--format", "markdown")
    assert {path: path.read_bytes() for path in out.rglob("*.md")} == before
    page = (out / "bakery" / "fact.md").read_text()
    assert "> The gate is oiled in spring" in page
    assert "```text\nClean the *north* oven <b>first</b>\n```" in page
    assert "origin: file" in page
