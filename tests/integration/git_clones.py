"""Clones of one remote, each with a store on its ref.

Test modules take the fixtures by their names.
"""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Coroutine, Iterator
from dataclasses import replace
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import anyio
import pytest

from backstory.adapters.clock import UlidSource
from backstory.adapters.project_folder import see_project
from backstory.adapters.stores.gitbranch.store import open_git
from backstory.domain.history import Action, Author, Change, Edit
from backstory.domain.ids import ChangeId, ProjectId
from backstory.domain.lifecycle import forget
from backstory.domain.memory import Memory
from backstory.domain.scope import Audience, Viewer
from backstory.domain.selection import Selection
from backstory.ports.backend import Backend
from backstory.ports.synchronisation import Synchronised
from backstory.ports.upkeep import Finding
from backstory.services.synchronise import Synchronise
from backstory.testing.fakes import START, sample_memory

REF = "refs/memory/agent"
IDS = UlidSource()
T = TypeVar("T")


def git(folder: Path, *arguments: str) -> str:
    command = ["git", "-c", "user.name=Ada", "-c", "user.email=ada@example.invalid", *arguments]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, errors="replace")
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


class Clone:
    """A clone with a store of its own, and what people do with it."""

    def __init__(self, folder: Path, **options: object) -> None:
        self.folder = folder
        self.backend: Backend = open_git(folder, index=folder.with_suffix(".db"), **options)  # type: ignore[arg-type]
        self.project = self.do(
            self.backend.projects.identify, see_project(folder), now=START, new_id=ProjectId(IDS.new_id())
        ).id

    def do(self, call: Callable[..., Coroutine[Any, Any, T]], *arguments: object, **named: object) -> T:
        return anyio.run(partial(call, *arguments, **named))

    def commit(self, *edits: Edit, minutes: int = 0, action: Action = Action.UPDATE) -> Memory:
        change = Change(
            id=ChangeId(IDS.new_id()), at=START + timedelta(minutes=minutes), author=Author.USER, action=action,
            edits=edits,
        )  # fmt: skip
        return self.do(self.backend.memories.commit, change).edits[0].after

    def add(self, content: str, *, minutes: int = 0, **fields: Any) -> Memory:
        memory = sample_memory(content, project=self.project, at=START + timedelta(minutes=minutes), **fields)
        return self.commit(Edit(before=None, after=memory), minutes=minutes, action=Action.ADD)

    def reword(self, memory: Memory, content: str, *, minutes: int) -> Memory:
        return self.commit(Edit(before=memory, after=replace(memory, content=content)), minutes=minutes)

    def rate(self, memory: Memory, *, helpful: int, irrelevant: int = 0, minutes: int) -> Memory:
        rated = replace(memory, counters=replace(memory.counters, helpful=helpful, irrelevant=irrelevant))
        return self.commit(Edit(before=memory, after=rated), minutes=minutes, action=Action.FEEDBACK)

    def forget(self, memory: Memory, *, minutes: int) -> Memory:
        gone = forget(memory, now=START + timedelta(minutes=minutes), reason="wrong")
        return self.commit(Edit(before=memory, after=gone), minutes=minutes, action=Action.FORGET)

    def sync(self, remote: str | None = None, *, dry_run: bool = False, trusted: bool = False) -> Synchronised:
        service = Synchronise(self.backend)
        return self.do(service.with_remote, remote, dry_run=dry_run, trusted=trusted)

    def memories(self, *, states: frozenset[str] = frozenset({"active"})) -> list[Memory]:
        viewer = Viewer(project=self.project, audience=Audience.PERSON)
        selection = Selection(viewer=viewer, now=START, states=states)
        return self.do(self.backend.memories.select, selection, limit=1000)

    def contents(self) -> list[str]:
        return sorted(memory.content for memory in self.memories())

    def tree(self) -> str:
        return git(self.folder, "ls-tree", "-r", REF)

    def close(self) -> None:
        self.do(self.backend.memories.close)


def check(clone: Clone) -> list[Finding]:
    assert clone.backend.upkeep is not None
    found: list[Finding] = clone.do(clone.backend.upkeep.verify, full=True)
    return found


@pytest.fixture
def remote(tmp_path: Path) -> Path:
    folder = tmp_path / "remote.git"
    subprocess.run(["git", "init", "-q", "--bare", "-b", "main", str(folder)], check=True)
    return folder


@pytest.fixture
def clone(tmp_path: Path, remote: Path) -> Iterator[Callable[..., Clone]]:
    clones: list[Clone] = []

    def make(name: str, **options: object) -> Clone:
        git(tmp_path, "clone", "-q", str(remote), name)
        clones.append(Clone(tmp_path / name, **options))
        return clones[-1]

    yield make
    for one in clones:
        one.close()
