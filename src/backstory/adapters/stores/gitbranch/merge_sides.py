"""What each of two histories of one ref has that the other has not: files, changes, the newest image of each memory.

What follows where they do not agree is ``merging.py``.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime

from backstory.adapters.stores.gitbranch.reference import File, Reference
from backstory.adapters.stores.gitbranch.tree import CHANGES
from backstory.codecs.change import decode_change
from backstory.domain.history import Change, Edit
from backstory.domain.ids import ChangeId, MemoryId
from backstory.domain.memory import Memory
from backstory.errors import InputError


@dataclass(frozen=True, slots=True, kw_only=True)
class Head:
    """The newest image of a memory on one side, and the change that made it."""

    image: Memory
    at: datetime
    change: ChangeId


@dataclass(slots=True)
class Side:
    """What one history has that the other has not."""

    files: dict[str, File]
    changes: list[Change] = field(default_factory=list)
    heads: dict[MemoryId, Head] = field(default_factory=dict)
    starts: dict[MemoryId, Edit] = field(default_factory=dict)
    added: dict[MemoryId, tuple[datetime, str, int]] = field(default_factory=dict)


def read_side(reference: Reference, base: str | None, tip: str) -> Side:
    """The files in which a commit differs from where the two histories part; its changes are not read yet."""
    return Side(files={file.path: file for file in reference.files_between(base, tip)})


def read_changes(reference: Reference, side: Side, rest: Side) -> None:
    """Add to a side its changes that ``rest``, the other one, has not."""
    names = [
        file.new
        for path, file in side.files.items()
        if path.startswith(CHANGES) and file.new is not None and path not in rest.files
    ]
    for data in reference.contents(names):
        try:
            change = decode_change(data.decode("utf-8", "replace"))
        except InputError:
            continue  # it travels as it is; whoever reads it will say so
        side.changes.append(change)
        for edit in change.edits:
            _note(side, change, edit)


def _note(side: Side, change: Change, edit: Edit) -> None:
    memory_id = edit.after.id
    if edit.before is None and memory_id not in side.added:
        side.added[memory_id] = (change.at, change.id, edit.after.n)
    start = side.starts.get(memory_id)
    if start is None or edit.after.revision < start.after.revision:
        side.starts[memory_id] = edit
    head = side.heads.get(memory_id)
    if head is None or (head.image.revision, head.at, head.change) < (edit.after.revision, change.at, change.id):
        side.heads[memory_id] = Head(image=edit.after, at=change.at, change=change.id)
