"""What stands in a store of ocpg, one after another: tables, rows, the count of ids, and what cannot be read.

Where it comes from, a script, CSV files or a database, makes no difference here.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

MEMORIES, RECALLS = "memories", "memory_recalls"
NEEDED = {MEMORIES: frozenset({"id", "content", "tags", "session_id", "project"}),
          RECALLS: frozenset({"memory_id", "session_id"})}  # fmt: skip
"""By which columns a table of that name is ocpg's."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """A table as it is created. ``types`` are the words after each column's name; ``words`` are texts of its checks."""

    schema: str
    name: str
    types: Mapping[str, tuple[str, ...]]
    words: frozenset[str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Data:
    """A row that is put into a table, the ``n``-th of it. A column is missing where the script leaves it to the
    server. ``is_copied`` tells rows of COPY from those of INSERT."""

    table: str
    n: int
    values: Mapping[str, str | None]
    is_copied: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Counted:
    """Where the sequence of ids stands, and whether that number was given already."""

    last: int
    is_called: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Trouble:
    """Something that cannot be read, where it stands and why."""

    where: str
    reason: str


Event = Table | Data | Counted | Trouble
