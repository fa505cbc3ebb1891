"""Folders and repositories, and the projects that they are taken for.

Test modules take the fixture by its name.
"""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from backstory.adapters.project_evidence import FolderEvidence
from backstory.adapters.stores.memory import open_memory_store
from backstory.adapters.stores.sqlite.store import open_sqlite
from backstory.domain.ids import ProjectId
from backstory.domain.project import Project
from backstory.domain.project_identity import Candidate, candidates
from backstory.entrypoints.drive import drive
from backstory.ports.backend import Backend
from backstory.services.project_identity import ProjectIdentity
from backstory.testing.fakes import FakeClock, SequentialIds

STORES: dict[str, Callable[[Path], Backend]] = {
    "memory": lambda folder: open_memory_store(),
    "sqlite": lambda folder: open_sqlite(folder / "store" / "memory.db"),
}
REMOTE = "https://code.example/team/ferry.git"


def git(folder: Path, *arguments: str) -> str:
    options = ["user.name=Nobody", "user.email=nobody@example.invalid", "protocol.file.allow=always"]
    given = [word for option in options for word in ("-c", option)]
    done = subprocess.run(["git", *given, *arguments], cwd=folder, check=True, capture_output=True, text=True)
    return done.stdout.strip()


@dataclass
class Desk:
    """A registry, and folders that come and go."""

    home: Path
    backend: Backend
    clock: FakeClock = field(default_factory=FakeClock)
    ids: SequentialIds = field(default_factory=SequentialIds)

    def folder(self, name: str) -> Path:
        path = self.home / name
        path.mkdir(parents=True, exist_ok=True)
        return path

    def repository(self, name: str, *, remote: str | None = None, commit: bool = True) -> Path:
        """A repository with a root commit of its own."""
        path = self.folder(name)
        git(path, "init", "-q", "-b", "main")
        if commit:
            git(path, "commit", "-q", "--allow-empty", "-m", f"start of {name}")
        if remote is not None:
            git(path, "remote", "add", "origin", remote)
        return path

    def clone(self, source: Path, name: str, *, remote: str | None, shallow: bool = False) -> Path:
        """A clone that names another remote than the folder it was made from; None takes the remote away."""
        path = self.home / name
        options = ["--depth", "1"] if shallow else []
        git(self.home, "clone", "-q", *options, f"file://{source}", str(path))
        git(path, "remote", *(["remove", "origin"] if remote is None else ["set-url", "origin", remote]))
        return path

    def look(self, path: Path, *, register: bool = True) -> Project:
        identity = ProjectIdentity(self.backend.projects, FolderEvidence(), clock=self.clock, ids=self.ids)
        return drive(identity.of_folder(path, register=register))

    def see(self, path: Path) -> ProjectId:
        return self.look(path).id

    def candidates(self, project: ProjectId) -> list[Candidate]:
        return list(candidates(project, drive(self.backend.projects.aliases())))


@pytest.fixture(params=STORES.values(), ids=list(STORES))
def desk(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Desk]:
    backend = request.param(tmp_path)
    home = tmp_path / "home"
    home.mkdir()
    yield Desk(home=home, backend=backend)
    drive(backend.memories.close())
