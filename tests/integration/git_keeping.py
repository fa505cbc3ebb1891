"""A repository with a store on its ref, and what writes and looks behind its back.

Test modules take the fixture by its name.
"""

from __future__ import annotations

import subprocess
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from backstory.adapters.stores.gitbranch.reference import DEFAULT_REF
from backstory.adapters.stores.gitbranch.store import open_git
from backstory.domain.history import Action, Edit
from backstory.domain.lifecycle import forget
from backstory.domain.memory import Sensitivity
from backstory.ports.backend import Backend
from backstory.testing.fakes import START, add_memories, sample_change
from tests.integration.upkeeping import EVERYTHING, everywhere


@dataclass
class Clone:
    """A repository with a store on its ref."""

    folder: Path

    @property
    def file(self) -> Path:
        return self.folder / "local.db"

    def open(self, **options: Any) -> Backend:  # Any: options of open_git
        return open_git(self.folder, index=self.file, **options)

    def git(self, *arguments: str, data: str | None = None) -> str:
        done = subprocess.run(
            ["git", "-c", "user.name=somebody", "-c", "user.email=else@where", *arguments],
            cwd=self.folder, input=data, capture_output=True, text=True, check=True,
        )  # fmt: skip
        return done.stdout.strip()

    def tip(self) -> str:
        return self.git("rev-parse", DEFAULT_REF)

    def files(self) -> list[str]:
        return self.git("ls-tree", "-r", "--name-only", DEFAULT_REF).splitlines()

    def object_file(self, name: str) -> Path:
        """Where git keeps an object by itself."""
        full = self.git("rev-parse", name)
        return self.folder / ".git" / "objects" / full[:2] / full[2:]

    def day_file(self) -> str:
        return next(path for path in self.files() if path.endswith(".logfmt") and "deletions" not in path)

    def rewrite(self, **contents: str | None) -> None:
        """Put a commit on the ref as another tool would: files with new contents; None removes one."""
        index = {"GIT_INDEX_FILE": str(self.folder / "other-index")}

        def git(*arguments: str, data: str | None = None) -> str:
            done = subprocess.run(
                ["git", "-c", "user.name=else", "-c", "user.email=else@where", *arguments], cwd=self.folder,
                input=data, capture_output=True, text=True, check=True, env={"PATH": "/usr/bin:/bin", **index},
            )  # fmt: skip
            return done.stdout.strip()

        git("read-tree", DEFAULT_REF)
        for path, content in contents.items():
            if content is None:
                git("rm", "--cached", "-q", path)
            else:
                blob = git("hash-object", "-w", "--stdin", data=content)
                git("update-index", "--add", "--cacheinfo", f"100644,{blob},{path}")
        commit = git("commit-tree", git("write-tree"), "-p", DEFAULT_REF, "-m", "by another tool")
        git("update-ref", DEFAULT_REF, commit)


@pytest.fixture
def clone(tmp_path: Path) -> Clone:
    folder = tmp_path / "repository"
    subprocess.run(["git", "init", "-q", str(folder)], check=True)
    return Clone(folder=folder)


async def fill(backend: Backend) -> None:
    _, second, third, _ = await add_memories(
        backend.memories,
        everywhere("The cluster is called heron"),
        everywhere("Cut releases on Tuesdays"),
        everywhere("Invoices are kept seven years"),
        everywhere("My keys are in the drawer", sensitivity=Sensitivity.PRIVATE),
    )
    after = replace(second, content="Cut releases on Fridays")
    await backend.memories.commit(sample_change(20, Edit(before=second, after=after), action=Action.UPDATE))
    gone = forget(third, now=START, reason="no longer so")
    await backend.memories.commit(sample_change(21, Edit(before=third, after=gone), action=Action.FORGET))


async def contents(backend: Backend) -> list[str]:
    return sorted(memory.content for memory in await backend.memories.select(EVERYTHING, limit=100))
