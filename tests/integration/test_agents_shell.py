"""The command line in a shell that a coding agent runs: it acts for the agent, and its output is read by a model."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.integration.shell import Shell


@pytest.fixture
def person(tmp_path: Path) -> Shell:
    project = tmp_path / "orchard"
    project.mkdir()
    return Shell(home=tmp_path / "home", folder=project)


@pytest.fixture
def agent(person: Shell) -> Shell:
    return Shell(home=person.home, folder=person.folder, variables={**person.variables, "BACKSTORY_CALLER": "agent"})


def _stored(shell: Shell, *words: str) -> dict[str, object]:
    found: dict[str, object] = json.loads(shell.run("remember", *words, "--json").stdout)["memory"]
    return found


def test_what_an_agent_stores_in_its_shell_is_its_own_word_and_not_the_user_s(person: Shell, agent: Shell) -> None:
    assert _stored(agent, "The plums are picked in August")["origin"] == "agent"
    assert _stored(person, "The pears are picked in October")["origin"] == "user"
    author = json.loads(agent.run("history", "--json").stdout)
    assert {change["author"] for change in author["changes"]} == {"user", "agent"}


def test_an_agent_s_shell_shows_nothing_that_stays_on_this_machine(person: Shell, agent: Shell) -> None:
    person.run("remember", "The gate code is under the third stone", "--local-only")
    for command in (("list",), ("recall", "gate code"), ("list", "--json"), ("export", "-"), ("show", "#1")):
        assert "third stone" not in "".join(_told(agent, *command)), command
    assert "third stone" in person.run("list").stdout


def test_an_agent_s_shell_shows_no_words_of_what_was_forgotten(person: Shell, agent: Shell) -> None:
    person.run("remember", "The gate code is under the third stone")
    person.run("forget", "#1")
    for command in (("history",), ("history", "--json"), ("shown",), ("show", "#1"), ("why", "#1"), ("export", "-")):
        assert "third stone" not in "".join(_told(agent, *command)), command
    assert "third stone" in person.run("history").stdout


@pytest.mark.parametrize(
    "command",
    [
        ("review", "accept", "#1"),
        ("erase", "#1", "--yes"),
        ("projects", "merge", "one", "other", "--yes"),
        ("projects", "split", "one", "--alias", "x", "--name", "y", "--yes"),
    ],
)
def test_what_only_a_person_decides_is_refused_there(person: Shell, agent: Shell, command: tuple[str, ...]) -> None:
    person.run("remember", "The pears are picked in October")
    done = agent.run(*command)
    assert done.returncode != 0
    assert "person" in done.stderr
    assert "pears" in person.run("list").stdout


def _told(shell: Shell, *command: str) -> tuple[str, str]:
    done = shell.run(*command)
    return done.stdout, done.stderr
