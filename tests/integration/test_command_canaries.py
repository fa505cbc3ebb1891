"""Which kinds of text each command may show, through a pipe and in its log; and that no file holds what none may.

Whoever adds a command has to say here what it may show.
"""

from __future__ import annotations

import io
import logging
import os
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path

import anyio
import pytest

from backstory.entrypoints.cli.main import COMMANDS, main
from tests.canaries import ELSEWHERE, FORGOTTEN, LOCAL, NIGHT, NOWHERE, OPEN, PRIVATE, TALK, Boathouse, heard

MINE = {OPEN, PRIVATE, LOCAL}
"""What a person sees of a project at their own command line."""
ALL = MINE | {ELSEWHERE}
EVER = MINE | {FORGOTTEN}
REFS = ("#1", "#2", "#3", "#4", "#5", "#6")

IN_COMMANDS: Mapping[str, Sequence[tuple[set[str], str]]] = {
    "remember": [(set(), "remember A new lamp was hung")],
    "recall": [
        (MINE, "recall lamp oil"), (ALL, "recall lamp oil --all-projects"), (MINE, "recall lamp --superseded"),
        (MINE, "recall lamp --in evidence"), (MINE, "recall lamp --in all"), (MINE, "recall slipway"),
    ],
    "list": [(MINE, "list"), (ALL, "list --all-projects"), (EVER, "list --forgotten"), (MINE, "list --superseded")],
    "show": [*((EVER, f"show {ref}") for ref in REFS), *((EVER | ALL, f"show {ref} --all-projects") for ref in REFS)],
    "why": [*((EVER, f"why {ref} --query lamp") for ref in REFS)],
    "update": [(MINE, f"update {ref} --issue L-1") for ref in REFS],
    "forget": [(MINE, f"forget {ref} --dry-run") for ref in REFS],
    "erase": [*((EVER, f"erase {ref} --dry-run") for ref in REFS), (set(), "erase --receipts")],
    "pin": [(MINE, f"pin {ref}") for ref in REFS],
    "useful": [(MINE, f"useful {ref}") for ref in REFS],
    "irrelevant": [(MINE, f"irrelevant {ref}") for ref in REFS],
    "conflicts": [(MINE, "conflicts"), (ALL, "conflicts --all-projects")],
    "resolve": [(MINE, f"resolve {ref} --both --dry-run") for ref in REFS],
    "tags": [(MINE, "tags"), (ALL, "tags --all-projects")],
    "retag": [(MINE, "retag lamp lantern --dry-run")],
    "history": [(EVER, "history"), (EVER | ALL, "history --all-projects"), *((EVER, f"history {ref}") for ref in REFS)],
    "undo": [(EVER, "undo")],
    "inspect": [
        *((EVER, f"inspect {view}") for view in ("recent", "project", "conflicts", "shown", "silent", "stats")),
    ],
    "shown": [(EVER, f"shown --session {TALK}"), (EVER, "shown")],
    "prune": [(MINE, "prune --dry-run")],
    "dream": [(MINE, f"dream {NIGHT} --rules --dry-run"), (MINE, "dream --all --rules")],
    "consolidate": [(MINE, "consolidate --dry-run"), (MINE, "consolidate --yes")],
    "review": [(MINE, "review"), (MINE, "review list")],
    "projects": [(set(), "projects list"), (set(), "projects")],
    "sessions": [(set(), "sessions"), (set(), "sessions --all-projects")],
    "session": [
        (set(), f"session {TALK}"), (set(), f"session {TALK} --tools --raw"),
        (set(), f"session {NIGHT} --search ferry"),
    ],
    "export": [
        ({OPEN}, "export -"), ({OPEN, PRIVATE}, "export - --private"), ({OPEN, FORGOTTEN}, "export - --forgotten"),
        ({OPEN, PRIVATE, FORGOTTEN, ELSEWHERE}, "export - --private --forgotten --all-projects"),
    ],
    "import": [(set(), "export {folder}/own.jsonl"), (set(), "import {folder}/own.jsonl --dry-run")],
    "sync": [(set(), "sync --dry-run")],
    "embed": [(set(), "embed")],
    "backup": [(set(), "backup {folder}/kept.backup --force")],
    "restore": [(set(), "backup {folder}/kept.backup --force"), (set(), "restore {folder}/kept.backup")],
    "check": [(set(), "check --full"), (MINE, "check --code --dry-run")],
    "reindex": [(set(), "reindex")],
    "scan": [(MINE, "scan"), (MINE, "scan --fix --dry-run")],
    "config": [(set(), "config"), (set(), "config get store.url")],
    "status": [(MINE, "status"), (set(), "status --cost")],
    "install": [(set(), "install opencode --dry-run")],
    "uninstall": [(set(), "uninstall opencode --dry-run")],
    "doctor": [(set(), "doctor")],
    "tools": [(set(), "tools"), (set(), "tools --cost"), (set(), "tools --toolset ocpg")],
    "bridge": [],  # a process of its own below
    "hook": [],  # below: it answers a hook, and takes no --json
    "mcp": [],  # in test_mcp_canaries.py
    "serve": [],  # in test_http_canaries.py
    "completion": [(set(), "completion bash")],
}  # fmt: skip

USAGE = 2
"""The exit code of a command line that cannot be read, or asks for what cannot be done."""
REFUSED = ("resolve", "sync")
"""There is no conflict and no remote here."""


def test_every_command_stands_in_the_table() -> None:
    assert set(COMMANDS) == set(IN_COMMANDS)


@pytest.mark.parametrize("command", IN_COMMANDS)
def test_a_command_shows_no_more_than_it_may(
    house: Boathouse, command: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Through a pipe, as text and as JSON, with the log at its most talkative: that never holds any of it."""
    own = house.copied(tmp_path)
    own.close()
    _at_the_command_line(own, monkeypatch)
    for may, line in IN_COMMANDS[command]:
        for more in ((), ("--json",)):
            code, out, err = _run([*_words(line, tmp_path), *more, *_verbose(command)], capsys)
            said, logged = heard(out + _told(err)), heard(_logged(err))
            assert said <= may, (line, more, said - may)
            assert logged == set(), (line, more, logged)
            assert code != USAGE or command in REFUSED, (line, err)


def test_no_file_holds_what_was_private_secret_or_erased(
    house: Boathouse, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    own = house.copied(tmp_path)
    anyio.run(_dream, own)
    own.close()
    _at_the_command_line(own, monkeypatch)
    for line in (
        "backup {folder}/kept.backup",
        "export {folder}/kept.jsonl --private --forgotten --all-projects",
        "reindex",
    ):
        code, _, err = _run(_words(line, tmp_path), capsys)
        assert code == 0, err
    found = {path.name: _bytes(path) for path in tmp_path.rglob("*") if path.is_file()}
    assert any(name.startswith("kept") for name in found)
    for name, data in found.items():
        assert [word for word in NOWHERE if word.encode() in data or word.encode("utf-16-le") in data] == [], name


def _at_the_command_line(house: Boathouse, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in os.environ if name.startswith("BACKSTORY_")]:
        monkeypatch.delenv(name)
    monkeypatch.chdir(house.folder)
    monkeypatch.setenv("BACKSTORY_STORE", house.app.settings.store.url)
    monkeypatch.setenv("BACKSTORY_HOME", str(house.base / "home"))
    monkeypatch.setenv("BACKSTORY_NO_BACKGROUND", "1")
    monkeypatch.setenv("BACKSTORY_RECALL_MODE", "lexical")
    monkeypatch.setenv("XDG_CONFIG_HOME", str(house.base))
    monkeypatch.setattr(sys, "stdin", io.StringIO(""))


def _words(line: str, folder: Path) -> list[str]:
    head, *rest = line.format(folder=folder).split(" ")
    return [head, *filter(None, rest)]


def _verbose(command: str) -> tuple[str, ...]:
    return () if command in ("completion", "bridge") else ("--verbose",)


def _told(err: str) -> str:
    """What is said to the person on standard error: all but the lines of the log."""
    return "\n".join(line for line in err.splitlines() if not line.startswith("time="))


def _logged(err: str) -> str:
    return "\n".join(line for line in err.splitlines() if line.startswith("time="))


def _run(arguments: Sequence[str], capsys: pytest.CaptureFixture[str]) -> tuple[int, str, str]:
    capsys.readouterr()
    root = logging.getLogger()
    before, level = list(root.handlers), root.level
    try:
        code = main(arguments)
    finally:
        for handler in [handler for handler in root.handlers if handler not in before]:
            root.removeHandler(handler)
        root.setLevel(level)
    out, err = capsys.readouterr()
    return code, out, err


async def _dream(house: Boathouse) -> None:
    await house.app.truth.dreaming.work(NIGHT, at_once=True)
    await house.app.truth.dreaming.work(TALK, at_once=True)


def _bytes(path: Path) -> bytes:
    """The bytes of a file, and of what is packed in it."""
    data = path.read_bytes()
    if data[:2] == b"\x1f\x8b":
        import gzip

        with suppress(OSError):
            data += gzip.decompress(data)
    return data
