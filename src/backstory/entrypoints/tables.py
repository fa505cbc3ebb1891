"""Results as tables for people. How a table looks on a terminal and in a pipe is up to who prints it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from backstory.domain.memory import Conflicted, Memory, status_name
from backstory.entrypoints.local_time import shown_day, shown_time
from backstory.entrypoints.render import place_of, shortened, state_word

if TYPE_CHECKING:
    from backstory.config.reference import Row
    from backstory.domain.doubt import Doubt
    from backstory.domain.history import Change
    from backstory.domain.ids import MemoryId, ProjectId
    from backstory.domain.project import Project

_NUMBERS_SHOWN = 8


@dataclass(frozen=True, slots=True)
class Column:
    """A column of a table; wide ones take the room that is left."""

    title: str
    is_number: bool = False
    is_wide: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """Rows of cells, and what is said when there are none."""

    columns: Sequence[Column]
    rows: Sequence[Sequence[str]]
    empty: str


def memory_table(
    memories: Sequence[Memory], projects: Mapping[ProjectId, Project], *, here: ProjectId | None, empty: str,
    doubts: Mapping[MemoryId, Doubt] | None = None,
) -> Table:  # fmt: skip
    """Memories, one a row; where some hold no more, a column says their state, and where some are doubted
    or in conflict, the last one says what is to be checked."""
    table = Table(
        columns=(
            Column("#", is_number=True),
            Column("kind"),
            Column("where"),
            Column("learned"),
            Column("memory", is_wide=True),
            Column("tags"),
        ),
        rows=[
            (
                f"{memory.n}",
                memory.kind.value,
                place_of(memory, projects, here),
                shown_day(memory.times.learned),
                memory.content,
                " ".join(memory.tags),
            )
            for memory in memories
        ],
        empty=empty,
    )
    states = [_state(memory) for memory in memories]
    if any(state not in ("", "forgotten") for state in states):  # who lists the forgotten knows that they are
        table = _with_column(table, Column("state"), states)
    checks = [_check(memory, doubts or {}) for memory in memories]
    return _with_column(table, Column("check", is_wide=True), checks) if any(checks) else table


def doubt_table(rows: Sequence[tuple[Memory, Doubt]]) -> Table:
    """Memories that should be checked, and why."""
    return Table(
        columns=(
            Column("#", is_number=True),
            Column("anchor"),
            Column("check", is_wide=True),
            Column("memory", is_wide=True),
        ),
        rows=[(f"{memory.n}", doubt.anchor, doubt.reason, memory.content) for memory, doubt in rows],
        empty="Nothing is to be checked.",
    )


def change_table(changes: Sequence[Change]) -> Table:
    """Changes, one a row."""
    return Table(
        columns=(
            Column("change"),
            Column("when"),
            Column("who"),
            Column("action"),
            Column("memories", is_wide=True),
            Column("reason"),
        ),
        rows=[
            (
                change.id,
                shown_time(change.at),
                change.author.value,
                change.action.value,
                _named(change),
                change.reason or "",
            )
            for change in changes
        ],
        empty="Nothing happened here yet.",
    )


def tag_table(counts: Sequence[tuple[str, int]]) -> Table:
    """Tags, the most used first."""
    return Table(
        columns=(Column("tag"), Column("memories", is_number=True)),
        rows=[(tag, f"{count}") for tag, count in counts],
        empty="No memory here has a tag.",
    )


def setting_table(rows: Sequence[Row]) -> Table:
    """Settings with value and source."""
    return Table(
        columns=(Column("setting"), Column("value", is_wide=True), Column("from", is_wide=True)),
        rows=[(row.name, row.value, row.source) for row in rows],
        empty="There are no settings.",
    )


def _with_column(table: Table, column: Column, cells: Sequence[str]) -> Table:
    rows = [(*row, cell) for row, cell in zip(table.rows, cells, strict=True)]
    return replace(table, columns=(*table.columns, column), rows=rows)


def _state(memory: Memory) -> str:
    """What a memory is no more; nothing for one that holds, in conflict or not: the check says so."""
    name = status_name(memory.status)
    return "" if name in ("active", "conflicted") else state_word(name)


def _check(memory: Memory, doubts: Mapping[MemoryId, Doubt]) -> str:
    told = [f"in conflict: {memory.status.evidence}"] if isinstance(memory.status, Conflicted) else []
    return "; ".join([*told, *([doubts[memory.id].reason] if memory.id in doubts else [])])


def _named(change: Change) -> str:
    first = change.edits[0].after if change.edits else None
    if first is None:
        return ""
    if len(change.edits) == 1:
        return f"#{first.n} {shortened(first.content)}"
    numbers = ", ".join(f"#{edit.after.n}" for edit in change.edits[:_NUMBERS_SHOWN])
    return f"{numbers} and {len(change.edits) - _NUMBERS_SHOWN} more" if len(change.edits) > _NUMBERS_SHOWN else numbers
