"""Help texts and reference pages: reviewed as text, renewed with BACKSTORY_RENEW_GOLDEN=1."""

from __future__ import annotations

import os
import shlex
from pathlib import Path

import click
import pytest

from backstory.entrypoints.cli.examples import EXAMPLES
from backstory.entrypoints.cli.main import COMMANDS, SECTIONS, cli
from backstory.entrypoints.cli.reference import HELP_WIDTH, commands, render_commands, render_exit_codes
from backstory.entrypoints.errors import RULES

ROOT = Path(__file__).parents[4]
GOLDEN = ROOT / "tests" / "golden" / "help"
REFERENCE = ROOT / "docs" / "reference"
RENEW = os.environ.get("BACKSTORY_RENEW_GOLDEN") == "1"

CONTEXTS = dict(commands())


def check(file: Path, text: str) -> None:
    """Compare with the committed text, or commit to the new one."""
    if RENEW:
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")
    assert file.read_text(encoding="utf-8") == text, f"renew {file.name} with BACKSTORY_RENEW_GOLDEN=1, and review it"


@pytest.mark.parametrize("name", CONTEXTS)
def test_the_help_is_the_reviewed_one(name: str) -> None:
    check(GOLDEN / f"{name.replace(' ', '-')}.txt", CONTEXTS[name].get_help() + "\n")


def test_no_reviewed_help_is_left_of_a_command_that_is_gone() -> None:
    names = {f"{name.replace(' ', '-')}.txt" for name in CONTEXTS}
    assert {file.name for file in GOLDEN.iterdir()} == names


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_of_the_table_is_there(name: str) -> None:
    assert f"backstory {name}" in CONTEXTS


@pytest.mark.parametrize("name", CONTEXTS)
def test_every_option_says_what_it_does(name: str) -> None:
    options = [param for param in CONTEXTS[name].command.params if isinstance(param, click.Option)]
    assert [option.name for option in options if not option.help] == []


@pytest.mark.parametrize("name", CONTEXTS)
def test_every_command_a_person_types_shows_examples_that_fit_a_terminal(name: str) -> None:
    below = name.partition(" ")[2]
    assert below in EXAMPLES or not below
    assert [line for line in EXAMPLES.get(below, ()) if len(line) > HELP_WIDTH - 2] == []


@pytest.mark.parametrize(
    ("name", "line"), [(name, line) for name, lines in EXAMPLES.items() for line in lines], ids=lambda text: str(text)
)
def test_every_example_of_the_help_can_be_given(name: str, line: str, tmp_path: Path) -> None:
    (tmp_path / "backstory-backup.db").touch()
    piped = next(part for part in line.replace("~", str(tmp_path)).split(" | ") if "backstory" in part)
    words = shlex.split(piped.partition(" < ")[0], comments=True)
    args = words[words.index("backstory") + 1 :]
    command: click.Command = cli
    context = command.make_context("backstory", args.copy(), resilient_parsing=True)
    while isinstance(command, click.Group) and args and not args[0].startswith("-"):
        found = command.get_command(context, args[0])
        if found is None:
            break
        command, args = found, args[1:]
    context = command.make_context(name, args.copy())  # raises where an argument or option is wrong
    assert " ".join(words).find(f"backstory {name}") >= 0
    assert context.command is command


def test_the_help_lists_every_command_once_below_a_heading_and_whole() -> None:
    listed = [name for _, names in SECTIONS for name in names]
    assert sorted(listed) == sorted(COMMANDS)
    _, _, lists = CONTEXTS["backstory"].get_help().partition(f"{SECTIONS[0][0]}:")
    assert "..." not in lists


def test_no_line_of_the_help_is_wider_than_its_terminal() -> None:
    assert {name for name in CONTEXTS for line in CONTEXTS[name].get_help().splitlines() if len(line) > HELP_WIDTH} == {
        "backstory completion"  # its lines are to be copied
    }


def test_the_page_of_commands_is_current() -> None:
    check(REFERENCE / "cli.md", render_commands())


def test_the_page_of_exit_codes_is_current_and_names_every_error_of_the_table() -> None:
    check(REFERENCE / "exit-codes.md", render_exit_codes())
    assert all(f"`{rule.error.__name__}`" in render_exit_codes() for rule in RULES)
