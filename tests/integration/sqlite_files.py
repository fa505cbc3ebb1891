"""Stores in a file of SQLite, and other users' and processes' ways to them."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Callable
from pathlib import Path

from backstory.adapters.stores.sqlite.store import open_sqlite
from backstory.domain.memory import Memory
from backstory.domain.scope import Audience, Viewer
from backstory.domain.selection import Selection
from backstory.entrypoints.drive import drive
from backstory.ports.backend import Backend
from backstory.testing.fakes import ORCHARD, START, add_memories, sample_memory

ALL = Selection(viewer=Viewer(project=ORCHARD, audience=Audience.PERSON), now=START)


def add(backend: Backend, content: str, change: int = 1) -> Memory:
    """Store one memory."""
    return drive(add_memories(backend.memories, sample_memory(content), first_change=change))[0]


def contents(path: Path) -> list[str]:
    """The texts of a store, oldest first, read by a connection of its own."""
    backend = open_sqlite(path, create=False)
    found = [memory.content for memory in drive(backend.memories.select(ALL, limit=100_000))]
    drive(backend.memories.close())
    return found[::-1]


def made(path: Path, *texts: str) -> Path:
    """A closed store with these memories."""
    backend = open_sqlite(path)
    for number, text in enumerate(texts, start=1):
        add(backend, text, number)
    drive(backend.memories.close())
    return path


def pragma(path: Path, name: str) -> object:
    """What a fresh connection reads."""
    raw = sqlite3.connect(path)
    value = raw.execute(f"PRAGMA {name}").fetchone()[0]
    raw.close()
    return value


def as_ordinary_user(folder: Path, say: Callable[[], object]) -> str:
    """What ``say`` gives as text; root, who may write anywhere, becomes somebody else for it."""
    if os.geteuid() != 0:
        return str(say())
    for parent in (folder, *folder.parents):
        if parent.stat().st_mode & 0o011 == 0:
            parent.chmod(parent.stat().st_mode | 0o011)
    answer, told = os.pipe()
    if (child := os.fork()) == 0:
        os.setuid(65534)
        try:
            os.write(told, str(say()).encode())
        except BaseException as error:
            os.write(told, repr(error).encode())
        os._exit(0)
    os.close(told)
    with os.fdopen(answer) as stream:
        text = stream.read()
    os.waitpid(child, 0)
    return text
