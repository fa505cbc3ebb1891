"""A change in the making: what it will do to memories, and which of them will no longer say what they said."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from backstory.domain.history import Edit
from backstory.domain.ids import MemoryId
from backstory.domain.memory import Deleted, Memory, Superseded
from backstory.domain.near_duplicates import Verdict, compare
from backstory.domain.restatement import readers


@dataclass(frozen=True, slots=True, kw_only=True)
class Gone:
    """A memory that no longer says what it said to its readers, as it was; ``how`` completes "it was …". ``by`` took
    its place. ``holds`` tells that it is as true as before: told to others, or said by what took its place."""

    memory: Memory
    how: str
    by: MemoryId | None = None
    holds: bool = False


class ChangePlan:
    """Edits in the order in which their memories were first named, each memory once."""

    def __init__(self, edits: Iterable[tuple[Memory | None, Memory]] = ()) -> None:
        self._edits: dict[MemoryId, Edit] = {}
        for before, after in edits:
            self._edits[after.id] = Edit(before=before, after=after)

    def __contains__(self, memory: MemoryId) -> bool:
        return memory in self._edits

    @property
    def edits(self) -> tuple[Edit, ...]:
        """The edits so far."""
        return tuple(self._edits.values())

    def planned(self, memory: Memory) -> Memory:
        """A memory as it will be; one that is not named stays as it is."""
        edit = self._edits.get(memory.id)
        return memory if edit is None else edit.after

    def named(self, memory: MemoryId) -> Memory | None:
        """The memory of this id as it will be; None where it is not named."""
        edit = self._edits.get(memory)
        return None if edit is None else edit.after

    def add(self, memory: Memory) -> None:
        """Let there be a memory that is not stored yet."""
        self._edits[memory.id] = Edit(before=None, after=memory)

    def plan(self, memory: Memory, after: Memory) -> None:
        """Let ``memory``, as it is stored, become ``after``; a later plan for it replaces an earlier one. A plan that
        changes nothing is none."""
        if memory.id in self._edits or after != memory:
            self.name(memory, after)

    def name(self, memory: Memory, after: Memory) -> None:
        """Like ``plan``, and the memory is part of the change even where it stays as it is."""
        edit = self._edits.get(memory.id)
        self._edits[memory.id] = Edit(before=memory if edit is None else edit.before, after=after)

    def gone(self) -> Iterator[Gone]:
        """The memories that will no longer say what they said: replaced, forgotten, put into words that say something
        else, or for other readers."""
        for edit in self._edits.values():
            before, after = edit.before, edit.after
            if before is None or isinstance(before.status, Deleted):
                continue
            match after.status:
                case Superseded(by=by):
                    if not isinstance(before.status, Superseded):
                        yield Gone(memory=before, how="replaced", by=by, holds=self._says_so(by, before))
                case Deleted():
                    yield Gone(memory=before, how="forgotten")
                case _ if _says_something_else(before, after):
                    yield Gone(memory=before, how="changed")
                case _ if readers(before) != readers(after):
                    yield Gone(memory=before, how="moved", holds=True)

    def _says_so(self, successor: MemoryId, memory: Memory) -> bool:
        """Whether what takes the place of a memory is in the plan and says the same."""
        after = self.named(successor)
        return after is not None and not _says_something_else(memory, after)


def _says_something_else(before: Memory, after: Memory) -> bool:
    if before.content == after.content:
        return False
    return compare(before.content, after.content).verdict is not Verdict.SAME
