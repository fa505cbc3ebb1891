"""Repositories, bundles and exports of opencode-plugin-git-memory, made up for tests.

Test modules take the fixtures by their names.
"""

from __future__ import annotations

import json
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from backstory.codecs.logfmt import parse_lines
from backstory.domain.interchange import ForeignRecord
from tests.unit.adapters.formats.exchange import Exchange

FOLDER = ".opencode/memory"
AGENT, TEAM = "refs/memory/agent", "refs/memory/team"
PUMP = (
    'ts=2026-04-02T07:00:00.000Z type=decision scope=pump content="Two \\"quiet\\" pumps\\nnot one" issue=#4 tags=a,b'
)
TAR = 'ts=2026-04-02T07:30:00.000Z type=pattern scope="boat house" content="Tar C:\\\\keel in May" tags="two words"'
EMPTY = 'ts=2026-04-03T06:00:00.000Z type=context scope=x content=""'
GONE = (
    "ts=2026-04-05T09:00:00.000Z action=deleted original_ts=2026-04-01T09:00:00.000Z type=learning scope=oars"
    ' content="Ash oars" reason="sold \\"all\\""'
)
FILES = {"2026-04-02.logfmt": f"{PUMP}\n{TAR}\n", "2026-04-03.logfmt": f"{EMPTY}\n", "deletions.logfmt": f"{GONE}\n"}
CREW = {"2026-04-04.logfmt": 'ts=2026-04-04T10:00:00.000Z type=preference scope=crew content="Tea at four"\n'}


def git(folder: Path, *arguments: str, data: str | None = None) -> str:
    who = ["-c", "user.name=Somebody", "-c", "user.email=who@example.org"]
    done = subprocess.run(["git", *who, *arguments], cwd=folder, input=data, capture_output=True, text=True, check=True)
    return done.stdout.rstrip("\n")


def commit(folder: Path, ref: str, files: Mapping[str, str], *, at: str = FOLDER) -> None:
    """A commit with these files on a ref, as plumbing makes it."""
    lines = [
        f"100644 blob {git(folder, 'hash-object', '-w', '--stdin', data=text)}\t{name}" for name, text in files.items()
    ]
    tree = git(folder, "mktree", data="\n".join(lines))
    for name in reversed(at.split("/")):
        tree = git(folder, "mktree", data=f"040000 tree {tree}\t{name}")
    git(folder, "update-ref", ref, git(folder, "commit-tree", tree, "-m", "memory: add"))


def files_on(folder: Path, ref: str) -> dict[str, str]:
    names = git(folder, "ls-tree", "-r", "-z", "--name-only", ref).split("\0")
    return {name.removeprefix(f"{FOLDER}/"): git(folder, "show", f"{ref}:{name}") + "\n" for name in names if name}


@pytest.fixture
def harbour(tmp_path: Path) -> Path:
    """A repository with two refs of memories."""
    folder = tmp_path / "harbour"
    folder.mkdir()
    git(folder, "init", "-q")
    commit(folder, AGENT, FILES)
    commit(folder, TEAM, CREW)
    return folder


@pytest.fixture
def exchange() -> Exchange:
    return Exchange("git-memory")


def bundle(repository: Path, name: str = "all.bundle") -> Path:
    place = repository.parent / "store"
    place.mkdir(exist_ok=True)
    git(repository, "bundle", "create", "-q", str(place / name), AGENT, TEAM)
    return place


def unbundled(place: Path, tmp_path: Path) -> Path:
    folder = tmp_path / "unbundled"
    folder.mkdir()
    git(folder, "init", "-q")
    git(folder, "fetch", "-q", str(place), "refs/memory/*:refs/memory/*")
    return folder


def exported(place: Path, name: str, *lines: str) -> None:
    """An export of the product's, in the form that its name says."""
    records = [line.record for line in parse_lines("\n".join(lines)) if line.record is not None]
    told = [
        {"ts": r.ts, "type": r.type, "scope": r.scope, "content": r.content, **({"issue": r.issue} if r.issue else {}),
         **({"tags": list(r.tags)} if r.tags else {})}
        for r in records
    ]  # fmt: skip
    text = "\n".join(lines)
    if name.endswith(".json"):
        text = json.dumps(told, indent=2, ensure_ascii=False)
    elif name.endswith(".jsonl"):
        text = "\n".join(json.dumps(one, separators=(",", ":"), ensure_ascii=False) for one in told)
    (place / name).write_text(text, encoding="utf-8")


def of(kind: type[ForeignRecord], records: list[ForeignRecord]) -> list[Any]:
    return [record for record in records if isinstance(record, kind)]
