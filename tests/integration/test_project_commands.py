"""``backstory projects`` as people use it: real processes, a real store, real git."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest


class Person:
    """Somebody who works in several folders. Nothing is left running behind a command."""

    def __init__(self, home: Path) -> None:
        self.home = home
        kept = {name: value for name, value in os.environ.items() if not name.startswith(("BACKSTORY_", "GIT_"))}
        self.env = {
            **kept,
            "BACKSTORY_HOME": str(home / "store"),
            "BACKSTORY_NO_BACKGROUND": "1",
            "BACKSTORY_RECALL_MODE": "lexical",
        }

    def run(self, folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "backstory", *arguments]
        return subprocess.run(command, cwd=folder, env=self.env, capture_output=True, text=True, timeout=240)

    def ok(self, folder: Path, *arguments: str) -> str:
        done = self.run(folder, *arguments)
        assert done.returncode == 0, done.stderr
        return done.stdout

    def json(self, folder: Path, *arguments: str) -> Any:  # Any: JSON of any shape
        return json.loads(self.ok(folder, *arguments, "--json"))

    def folder(self, name: str) -> Path:
        path = self.home / name
        path.mkdir(parents=True)
        return path


@pytest.fixture
def person(tmp_path: Path) -> Person:
    return Person(tmp_path)


@pytest.fixture
def moved(person: Person) -> tuple[Path, Path]:
    """A folder without git that was renamed after something was remembered in it, and another one."""
    notes, shed = person.folder("notes"), person.folder("shed")
    person.ok(notes, "remember", "Seedlings are watered at dawn")
    person.ok(shed, "remember", "The spade hangs by the door")
    return notes.rename(person.home / "papers"), shed


def test_a_moved_folder_is_offered_and_linked_again_and_taken_back(person: Person, moved: tuple[Path, Path]) -> None:
    papers, shed = moved
    person.ok(papers, "remember", "Papers are sorted by year")
    card = person.json(papers, "projects", "show")
    [candidate] = card["candidates"]
    assert "moved" in candidate["reason"]
    assert person.json(papers, "status")["candidates"] == [candidate]
    assert "projects show" in person.ok(papers, "status")
    assert person.json(papers, "list")["total"] == 1
    merge = ("projects", "merge", candidate["project"]["id"], ".")

    planned = person.json(papers, *merge, "--dry-run")
    assert (planned["dry_run"], len(planned["memories"]), planned["change"]) == (True, 1, None)
    refused = person.run(papers, *merge)
    assert refused.returncode == 2
    assert "--yes" in refused.stderr
    assert "1 memory, 0 sessions to move" in refused.stdout
    assert person.json(papers, "list")["total"] == 1

    done = person.json(papers, *merge, "--yes")
    assert (done["dry_run"], done["memories"]) == (False, planned["memories"])
    assert {memory["content"] for memory in person.json(papers, "list")["memories"]} == {
        "Seedlings are watered at dawn",
        "Papers are sorted by year",
    }
    assert person.json(papers, "recall", "when are seedlings watered?")["results"]
    assert not person.json(shed, "recall", "when are seedlings watered?")["results"]

    person.ok(papers, "undo", done["change"])
    assert person.json(papers, "list")["total"] == 1
    assert len(person.json(papers, "projects")["projects"]) == 3


def test_a_moved_folder_is_found_again_before_anything_is_stored_in_it(
    person: Person, moved: tuple[Path, Path]
) -> None:
    papers, _ = moved
    card = person.json(papers, "projects", "show")
    assert card["memories"] == 0
    [candidate] = card["candidates"]
    person.ok(papers, "projects", "merge", candidate["project"]["id"], ".", "--yes")
    assert "Seedlings" in person.ok(papers, "list")


def test_projects_are_listed_and_shown(person: Person, moved: tuple[Path, Path]) -> None:
    papers, shed = moved
    listed = person.json(shed, "projects", "list")["projects"]
    assert [card["name"] for card in listed] == ["notes", "shed"]
    assert set(listed[0]) == {
        "id", "name", "root", "memories", "sessions", "last_seen", "aliases", "candidates"
    }  # fmt: skip
    assert set(listed[0]["aliases"][0]) == {"alias", "kind", "first_seen", "last_seen", "traits"}
    rows = [line.split("\t") for line in person.ok(shed, "projects").splitlines()]
    assert [(row[0], row[3], row[4]) for row in rows] == [("notes", "1", "1"), ("shed", "1", "1")]
    shown = person.ok(papers, "projects", "show", "shed")
    assert f"dir:{shed}" in shown
    assert "first seen" in shown


def test_a_clone_that_became_another_project_is_split_off(person: Person) -> None:
    ferry = person.folder("ferry")
    git = ["git", "-c", "user.name=N", "-c", "user.email=n@example.invalid"]
    for arguments in (["init", "-q"], ["commit", "-q", "--allow-empty", "-m", "start"],
                      ["remote", "add", "origin", "https://code.example/team/ferry"]):  # fmt: skip
        subprocess.run([*git, *arguments], cwd=ferry, check=True)
    person.ok(ferry, "remember", "The ferry leaves at nine")
    other = person.home / "other"
    subprocess.run([*git, "clone", "-q", str(ferry), str(other)], check=True)
    subprocess.run([*git, "remote", "set-url", "origin", "git@code.example:team/ferry.git"], cwd=other, check=True)
    person.ok(other, "remember", "The other one leaves at ten")
    assert person.json(other, "list")["total"] == 2
    done = person.json(ferry, "projects", "split", ".", "--alias", str(other), "--name", "other ferry", "--yes")
    assert (done["target"]["name"], done["memories"], done["change"]) == ("other ferry", [], None)
    assert person.json(other, "list")["total"] == 0
    assert person.json(ferry, "list")["total"] == 2
    assert person.json(other, "projects", "show")["candidates"][0]["project"]["name"] == "ferry"


def test_a_project_is_renamed(person: Person, moved: tuple[Path, Path]) -> None:
    _, shed = moved
    assert person.json(shed, "projects", "rename", "shed", "tool shed")["former_name"] == "shed"
    assert person.json(shed, "status")["project"]["name"] == "tool shed"
    refused = person.run(shed, "projects", "rename", "shed", "x")
    assert refused.returncode == 3
    long = person.run(shed, "projects", "rename", ".", "x" * 101)
    assert (long.returncode, "100" in long.stderr) == (2, True)


def test_before_anything_was_stored_there_is_no_project(person: Person) -> None:
    folder = person.folder("new")
    assert person.json(folder, "projects") == {"projects": []}
    assert person.run(folder, "projects", "show").returncode == 3
    assert not (person.home / "store").exists()


def test_a_merge_is_told_where_its_memories_went_and_taken_back_by_name_only(
    person: Person, moved: tuple[Path, Path]
) -> None:
    papers, _ = moved
    person.ok(papers, "remember", "Papers are sorted by year")
    [candidate] = person.json(papers, "projects", "show")["candidates"]
    change = person.json(papers, "projects", "merge", candidate["project"]["id"], ".", "--yes")["change"]
    told = person.run(papers, "history")
    assert change not in told.stdout
    assert f"backstory undo {change}" in told.stderr
    refused = person.run(papers, "undo")
    assert refused.returncode == 2
    assert f"backstory undo {change}" in refused.stderr
    assert person.json(papers, "list")["total"] == 2
    person.ok(papers, "undo", change)
    assert person.json(papers, "list")["total"] == 1
    assert person.run(papers, "history").stderr == ""
    person.ok(papers, "undo")
    assert person.json(papers, "list")["total"] == 0
