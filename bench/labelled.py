"""The labelled sets of coding memories and prompts: read from their files, and put into a store."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from backstory.adapters.clock import UlidSource
from backstory.domain.history import Action, Author, Change, Edit
from backstory.domain.ids import ChangeId, MemoryId, ProjectId
from backstory.domain.lifecycle import supersede
from backstory.domain.memory import Kind, Memory, Times, Visibility
from backstory.domain.scope import Viewer
from backstory.ports.backend import Backend
from bench.report import Unavailable

EVERY_PROJECT = "*"
ANSWERS = 2
"""The grade of a memory that answers; 1 is useful beside it."""
_LEARNED = datetime(2026, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True, kw_only=True)
class Stored:
    """One memory of a set; ``project`` None holds everywhere."""

    id: str
    text: str
    project: str | None
    kind: Kind = Kind.FACT
    learned: datetime = _LEARNED
    supersedes: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """One prompt. ``grades`` are empty when no memory answers; ``history`` asks for what no longer holds."""

    id: str
    kind: str
    sub: str = ""
    project: str | None
    text: str
    grades: Mapping[str, int]
    history: bool = False

    @property
    def answers(self) -> frozenset[str]:
        return frozenset(memory for memory, grade in self.grades.items() if grade == ANSWERS)

    def viewer(self) -> Viewer:
        everywhere = self.project == EVERY_PROJECT
        project = None if everywhere or self.project is None else ProjectId(self.project)
        return Viewer(project=project, all_projects=everywhere)


@dataclass(frozen=True, slots=True, kw_only=True)
class LabelledSet:
    """Memories and the prompts asked of them; ``now`` is when they are asked."""

    name: str
    now: datetime
    memories: Sequence[Stored]
    questions: Sequence[Question]


def read_sets(folder: Path) -> list[LabelledSet]:
    """Both sets. Raises Unavailable, saying where it looked, when a file is missing."""
    return [read_coding_small(folder / "coding-memories"), read_coding(folder / "coding-prompts")]


async def fill(backend: Backend, labelled: LabelledSet) -> dict[MemoryId, str]:
    """Put a set's memories into an empty store; returns the set's own id of each."""
    ids = UlidSource()
    memories = {stored.id: _memory(stored, MemoryId(ids.new_id())) for stored in labelled.memories}
    for stored in labelled.memories:
        if stored.supersedes is not None:
            new = memories[stored.id]
            old = memories[stored.supersedes]
            memories[stored.supersedes] = supersede(old, by=new.id, now=new.times.learned)
    edits = tuple(Edit(before=None, after=memory) for memory in memories.values())
    await backend.memories.commit(
        Change(id=ChangeId(ids.new_id()), at=labelled.now, author=Author.USER, action=Action.IMPORT, edits=edits)
    )
    return {memory.id: name for name, memory in memories.items()}


def _memory(stored: Stored, memory_id: MemoryId) -> Memory:
    return Memory(
        id=memory_id,
        content=stored.text,
        kind=stored.kind,
        visibility=Visibility.GLOBAL if stored.project is None else Visibility.PROJECT,
        project=None if stored.project is None else ProjectId(stored.project),
        times=Times(learned=stored.learned, updated=stored.learned, confirmed=stored.learned),
    )


def read_coding_small(folder: Path) -> LabelledSet:
    """The set of ``coding_memories.json`` in a folder; prompts are asked across projects. Raises Unavailable."""
    data = _read(folder / "coding_memories.json")
    memories = [
        Stored(id=row["id"], text=row["text"], project=row["project"] if row["scope"] == "project" else None)
        for row in data["memories"]
    ]
    questions = [
        Question(
            id=f"c{place}",
            kind=row["kind"],
            project=EVERY_PROJECT,
            text=row["query"],
            grades=dict.fromkeys(row["gold"], ANSWERS),
        )
        for place, row in enumerate(data["queries"])
    ]
    return LabelledSet(
        name="coding-memories", now=_LEARNED + timedelta(days=30), memories=memories, questions=questions
    )


def read_coding(folder: Path) -> LabelledSet:
    """The set of ``memories.json`` and ``prompts.json`` in a folder; prompts are asked in their project. Raises
    Unavailable."""
    memories = _read(folder / "memories.json")["memories"]
    prompts = _read(folder / "prompts.json")
    return LabelledSet(
        name="coding-prompts",
        now=_date(prompts["now"]),
        memories=[
            Stored(
                id=row["id"],
                text=row["text"],
                project=row["project"],
                kind=Kind(row["kind"]),
                learned=_date(row["date"]),
                supersedes=row.get("supersedes"),
            )
            for row in memories
        ],
        questions=[
            Question(
                id=row["id"],
                kind=row["kind"],
                sub=row.get("sub", ""),
                project=row["project"],
                text=row["text"],
                grades=row["relevant"],
                history=row.get("history", False),
            )
            for row in prompts["prompts"]
        ],
    )


def _date(text: str) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


def _read(path: Path) -> Any:  # Any: the sets are ours to read, each in its own shape
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise Unavailable(f"there is no labelled set at {path}; name the folder that holds it with --data") from None
