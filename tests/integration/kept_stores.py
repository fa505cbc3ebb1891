"""Stores in a file with something of everything in them, and the damage that tests do to them."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from dataclasses import replace
from pathlib import Path

from backstory.adapters.stores.sqlite.store import open_sqlite
from backstory.domain.conversation import FrozenBlock, Message, Part, Role, Session, ShownMemory
from backstory.domain.history import Action, Edit
from backstory.domain.ids import MessageId, PartId, SessionId
from backstory.domain.lifecycle import forget, supersede
from backstory.domain.memory import Memory, Visibility
from backstory.domain.scope import Audience, Viewer
from backstory.domain.selection import EVERY_STATE, Selection
from backstory.entrypoints.drive import drive
from backstory.ports.backend import Backend
from backstory.ports.index import Embedded
from backstory.ports.models import EmbeddingModel
from backstory.ports.upkeep import Finding, StoreUpkeep
from backstory.testing.contracts.digest_store import piece, written
from backstory.testing.contracts.doubt_store import doubt_of
from backstory.testing.contracts.dream_store import FULL_STATE
from backstory.testing.contracts.summaries import summary_of
from backstory.testing.fakes import FULL_MEMORY, START, add_memories, sample_change, sample_memory

MODEL = EmbeddingModel(name="compass", dimension=2)
EVERYONE = Viewer(project=None, audience=Audience.PERSON, all_projects=True)
ALL = Selection(viewer=EVERYONE, now=START, states=EVERY_STATE)


def note(text: str) -> Memory:
    return sample_memory(text, visibility=Visibility.GLOBAL, project=None)


def message(name: str, text: str, session: str = "ses-1") -> Message:
    part = Part(id=PartId(f"part-{name}"), kind="text", text=text)
    return Message(id=MessageId(name), session=SessionId(session), role=Role.USER, created_at=START, parts=(part,))


def filled(path: Path) -> Backend:
    """A store with something of everything in it; its last number is #6."""
    backend = open_sqlite(path)
    plain = [note(f"The {word} runs in Frankfurt") for word in ("cluster", "ledger", "parser")]
    first, second, third = drive(add_memories(backend.memories, *plain))
    private = replace(FULL_MEMORY, visibility=Visibility.GLOBAL, project=None)
    drive(add_memories(backend.memories, private, first_change=10))
    newer = note("The ledger runs in Dublin")
    hidden = supersede(second, by=newer.id, now=START)
    drive(
        backend.memories.commit(
            sample_change(
                20, Edit(before=None, after=newer), Edit(before=second, after=hidden), action=Action.SUPERSEDE
            )
        )
    )
    gone = forget(third, now=START, reason="no longer so")
    drive(backend.memories.commit(sample_change(21, Edit(before=third, after=gone), action=Action.FORGET)))
    drive(add_memories(backend.memories, note("The zebra is striped"), first_change=30))
    drive(backend.vectors.put_vectors([Embedded(id=first.id, revision=1, vector=(1.0, 0.0))], model=MODEL))
    session = Session(
        id=SessionId("ses-1"), project=None, host="opencode", directory="/x", created_at=START, updated_at=START
    )
    drive(backend.conversations.put_session(session))
    drive(
        backend.conversations.put_messages([message("m1", "where does the cluster run"), message("m2", "in Frankfurt")])
    )
    shown = ShownMemory(memory=first.id, n=first.n, score=0.9, reason="fits")
    block = FrozenBlock(
        message=MessageId("m1"), session=session.id, text="block", shown=(shown,), silent_because=None, created_at=START
    )
    drive(backend.conversations.freeze_block(block))
    drive(written(backend.digests, piece(1), session=session.id))
    drive(backend.dreams.apply(replace(FULL_STATE, session=session.id)))
    drive(backend.dreams.put_summary(summary_of(first, project=None)))
    drive(backend.doubts.replace([first.id], [doubt_of(first)]))
    return backend


def upkeep_of(backend: Backend) -> StoreUpkeep:
    assert backend.upkeep is not None
    return backend.upkeep


def verify(path: Path, *, full: bool = True) -> list[Finding]:
    return drive(upkeep_of(open_sqlite(path)).verify(full=full))


def contents(backend: Backend) -> list[str]:
    return sorted(memory.content for memory in drive(backend.memories.select(ALL, limit=1000)))


def damage(path: Path, *statements: str) -> None:
    """What no command of ours does."""
    with closing(sqlite3.connect(path, isolation_level=None)) as raw:
        for statement in statements:
            raw.execute(statement)
        raw.execute("PRAGMA wal_checkpoint(TRUNCATE)")


def closed(path: Path) -> Path:
    backend = filled(path)
    drive(backend.memories.close())
    return path


def overwrite_page_of(path: Path, table: str) -> None:
    with closing(sqlite3.connect(path)) as raw:
        root = raw.execute("SELECT rootpage FROM sqlite_master WHERE name = ?", (table,)).fetchone()[0]
        size = raw.execute("PRAGMA page_size").fetchone()[0]
    with path.open("r+b") as file:
        file.seek((root - 1) * size)
        file.write(b"\xde\xad" * (size // 2))


def cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


def scribbled(path: Path) -> None:
    overwrite_page_of(path, "memories")


def diary(path: Path) -> None:
    path.write_bytes(b"dear diary" * 1000)


def forged(path: Path) -> None:
    damage(path, "UPDATE memories SET content = 'forged' WHERE n = 1")
