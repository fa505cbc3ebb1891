"""Repositories of git with memories in them, and what reads and writes those.

Test modules take the fixture by its name.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable, Coroutine, Iterator
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import anyio
import pytest

from backstory.adapters.clock import UlidSource
from backstory.adapters.stores.gitbranch.store import open_git
from backstory.codecs.logfmt import parse_lines
from backstory.domain.history import Action, Author, Change, Edit
from backstory.domain.ids import ChangeId
from backstory.domain.memory import Memory
from backstory.domain.scope import Audience, Viewer
from backstory.domain.selection import Selection
from backstory.ports.backend import Backend
from backstory.testing.fakes import ORCHARD, START, sample_memory

REF = "refs/memory/agent"
LINES = ".opencode/memory"
T = TypeVar("T")
IDS = UlidSource()


class Repository:
    """A git repository, and commands in it as somebody else would give them."""

    def __init__(self, folder: Path, *, bare: bool = False) -> None:
        self.folder = folder
        folder.mkdir(parents=True, exist_ok=True)
        self.git("init", "-q", "-b", "main", *(["--bare"] if bare else []))

    def git(self, *arguments: str, data: str | None = None, cwd: Path | None = None) -> str:
        who = ["-c", "user.name=Ada", "-c", "user.email=ada@example.invalid"]
        env = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
        done = subprocess.run(
            ["git", *who, *arguments], cwd=cwd or self.folder, env=env, input=data, capture_output=True, text=True,
            errors="replace",
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        return done.stdout.strip()

    def file(self, path: str, ref: str = REF) -> str:
        return self.git("show", f"{ref}:{path}") + "\n"

    def files(self, ref: str = REF) -> list[str]:
        return self.git("ls-tree", "-r", "--name-only", ref).splitlines()

    def lines(self, ref: str = REF) -> list[str]:
        """Every line of every day file."""
        days = [path for path in self.files(ref) if path.startswith(LINES) and "deletions" not in path]
        return [line.text for path in days for line in parse_lines(self.file(path, ref))]

    def write_as_the_original_tool(self, path: str, text: str, *, message: str = "memory: add context/x") -> None:
        """What the original tool does, on an index of our own: read-tree, update-index, write-tree, commit-tree."""
        blob = self.git("hash-object", "-w", "--stdin", data=text)
        environ = {"GIT_INDEX_FILE": str(self.folder / "its-index")}
        known = subprocess.run(["git", "rev-parse", "-q", "--verify", REF], cwd=self.folder, capture_output=True)
        for arguments in (
            *([["read-tree", REF]] if known.returncode == 0 else []),
            ["update-index", "--add", "--cacheinfo", f"100644,{blob},{path}"],
        ):
            subprocess.run(["git", *arguments], cwd=self.folder, env={**os.environ, **environ}, check=True)
        tree = subprocess.run(
            ["git", "write-tree"],
            cwd=self.folder,
            env={**os.environ, **environ},
            check=True,
            capture_output=True,
            text=True,
        ).stdout.strip()
        parent = ["-p", REF] if known.returncode == 0 else []
        self.git("update-ref", REF, self.git("commit-tree", tree, *parent, "-m", message))
        (self.folder / "its-index").unlink()


@pytest.fixture
def repository(tmp_path: Path) -> Repository:
    return Repository(tmp_path / "repository")


@pytest.fixture
def opened(tmp_path: Path) -> Iterator[Callable[..., Backend]]:
    backends: list[Backend] = []

    def make(folder: Path, *, index: str = "local.db", **options: object) -> Backend:
        backends.append(open_git(folder, index=tmp_path / index, **options))  # type: ignore[arg-type]
        return backends[-1]

    yield make
    for backend in backends:
        anyio.run(backend.memories.close)


def run(call: Callable[..., Coroutine[Any, Any, T]], *arguments: object, **named: object) -> T:
    return anyio.run(partial(call, *arguments, **named))


def commit(backend: Backend, *edits: Edit, action: Action = Action.ADD, **fields: Any) -> Change:
    change = Change(id=ChangeId(IDS.new_id()), at=START, author=Author.USER, action=action, edits=edits, **fields)
    return run(backend.memories.commit, change)


def add(backend: Backend, content: str, **fields: object) -> Memory:
    return commit(backend, Edit(before=None, after=sample_memory(content, **fields))).edits[0].after


def everything(backend: Backend, *, states: frozenset[str] = frozenset({"active"})) -> list[Memory]:
    viewer = Viewer(project=ORCHARD, audience=Audience.PERSON, all_projects=True)
    return run(backend.memories.select, Selection(viewer=viewer, now=START, states=states), limit=10_000)


def contents(backend: Backend, **options: frozenset[str]) -> list[str]:
    return sorted(memory.content for memory in everything(backend, **options))
