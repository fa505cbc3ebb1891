"""Options that contradict each other, or do nothing where they stand, are refused before anything is done."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.command_line import KNOWN, CommandLine


@pytest.fixture
def shell(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> CommandLine:
    return CommandLine(tmp_path, monkeypatch, capsys, name="orchard")


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ("remember Oil it. --global --scope project", "--global and --scope project contradict each other"),
        ("remember Oil it. --area web --scope deploy", "--area web and --scope deploy contradict each other"),
        ("update 1 --area web --scope deploy", "--area web and --scope deploy contradict each other"),
        ("remember Oil it. --core --temporary", "--core and --temporary contradict each other"),
        ("list --forgotten --superseded", "--forgotten and --superseded contradict each other"),
        ("recall gate --session s1", "--session does nothing without --in evidence or --in all"),
        ("recall gate --in evidence --tag a", "--tag does nothing without memories to look in"),
        ("recall gate --in evidence --superseded", "--superseded does nothing without memories to look in"),
        ("recall gate --since 2026-03 --until 2025-01", "until ('2025-01') lies before since ('2026-03')"),
        ("forget 1 --all", "--all does nothing without --match"),
        ("forget 1 --match gate", "name the memories, or give --match; not both"),
        ("erase --dry-run", "--dry-run does nothing without a REF or --text"),
        ("erase 1 --receipts", "--receipts and what is to be erased contradict each other"),
        ("import x.jsonl --list", "--list and a PLACE contradict each other"),
        ("import x.jsonl --here --keep-projects", "--here and --keep-projects contradict each other"),
        ("embed --quiet --json", "--quiet and --json contradict each other"),
        ("serve --socket s --port 0", "--socket and --host or --port contradict each other"),
        ("serve --print-token --port 0", "--print-token and an address contradict each other"),
        ("session s1 --yes", "--yes does nothing without --forget-digest"),
        ("sessions --limit 2 prune --dry-run", "--limit is for `backstory sessions` alone"),
        ("review --limit 2 accept 1", "--limit is for `backstory review` alone"),
        ("install opencode --force --dry-run", "--force is not for opencode"),
    ],
)
def test_it_is_said_which_options_do_not_go_together(shell: CommandLine, given: str, said: str) -> None:
    done = shell.run(*given.split(" "))
    assert done.returncode == 2
    assert said in done.stderr
    assert shell.json("list")["total"] == 1


@pytest.mark.parametrize(
    "given",
    [
        "--global --scope global",
        "--global --area web",
        "--global --scope web",
        "--area web --scope web",
        "--scope project",
    ],
)
def test_options_that_agree_are_taken_together(shell: CommandLine, given: str) -> None:
    shell.ok("remember", "Oil it in May.", *given.split())


def test_filters_count_for_the_memories_of_a_search_in_everything(shell: CommandLine) -> None:
    assert shell.json("recall", "gate", "--in", "all", "--tag", "none")["results"] == []
    assert shell.json("recall", "gate", "--in", "all")["results"][0]["content"] == KNOWN


def test_a_subcommand_takes_options_of_its_own_behind_its_name(shell: CommandLine) -> None:
    shell.ok("sessions", "prune", "--older-than", "90d", "--dry-run")
    shell.ok("sessions", "--limit", "2")
    shell.ok("sessions", "--json", "prune", "--older-than", "90d", "--dry-run")
