"""Help texts and reference pages: reviewed as text, renewed with BACKSTORY_RENEW_GOLDEN=1."""

from __future__ import annotations

import os
from pathlib import Path

import click
import pytest

from backstory.entrypoints.cli.main import COMMANDS
from backstory.entrypoints.cli.reference import commands, render_commands, render_exit_codes
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


def test_the_page_of_commands_is_current() -> None:
    check(REFERENCE / "cli.md", render_commands())


def test_the_page_of_exit_codes_is_current_and_names_every_error_of_the_table() -> None:
    check(REFERENCE / "exit-codes.md", render_exit_codes())
    assert all(f"`{rule.error.__name__}`" in render_exit_codes() for rule in RULES)
