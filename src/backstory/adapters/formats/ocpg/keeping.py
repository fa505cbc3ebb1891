"""What of an ocpg database has no place among memories, as keepsakes: how it is laid out, the order of its rows, who
recalled what when, and the vectors, which are another model's."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

from backstory.adapters.formats.ocpg.rows import EPISODIC, PREFERENCE, PROJECT, STACK, SYSTEM
from backstory.adapters.formats.ocpg.values import time_of
from backstory.domain.ids import MemoryId
from backstory.domain.interchange import Keepsake

VECTORS_KEPT = 10_000
"""Vectors of a store that are kept, for an export that is equal to what came in: about 60 MB. ocpg makes those that
are missing again."""
_NEEDED = frozenset({"id", "content", "tags", "session_id", "project", "created_at", "search_vector"})
PAGE = 5_000
"""Rows in a keepsake."""
_ID_DIGITS = 11
_VECTOR_TEXT = re.compile(r"\[[0-9eE+.,\s-]*\]", re.ASCII)
_MOST_DIMENSIONS = 16_000  # of pgvector
_LAYOUT, _ORDER, _RECALLS, _VECTOR = "layout", "order/", "recalls/", "vector/"

ALL_COLUMNS = (
    "id", "content", "tags", "session_id", "project", "source_host", "created_at", "memory_type", "access_count",
    "last_accessed_at", "updated_at", "search_vector", "embedding", "superseded_by",
)  # fmt: skip
"""Those of all layouts, in their order."""
COLUMNS = tuple(name for name in ALL_COLUMNS if name != "source_host")
"""Those of the newest layout."""
TYPES = (STACK, PREFERENCE, PROJECT, EPISODIC)
"""All types, in the order in which the constraints of its layouts name theirs."""

Recall = tuple[int, str, str]
"""The row that was recalled, the session, and when, in Postgres's words."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Layout:
    """How an ocpg database is laid out. ``types`` are the words that its constraint lets through, ``dimension`` is that
    of its vectors. The sequence of ids stands at ``last``. ``is_script`` and ``is_csv`` say what files there were, and
    ``is_copied`` whether its dump has rows in COPY or in INSERT. The rest is what the dump says of itself."""

    columns: tuple[str, ...] = COLUMNS
    types: tuple[str, ...] = (STACK, PROJECT, EPISODIC)
    has_recalls: bool = True
    dimension: int = 768
    last: int | None = None
    is_called: bool = True
    is_script: bool = True
    is_csv: bool = False
    is_copied: bool = True
    server: str | None = None
    program: str | None = None
    owner: str | None = None

    def has(self, column: str) -> bool:
        """Whether its memories have a column."""
        return column in self.columns


@dataclass(frozen=True, slots=True, kw_only=True)
class Kept:
    """What was kept of a store. ``order`` is empty where its rows stood by id."""

    layout: Layout
    order: tuple[int, ...]
    recalls: tuple[Recall, ...]
    vectors: dict[int, str]


def layout_kept(layout: Layout, store: str) -> Keepsake:
    """The keepsake of a layout."""
    return _keepsake(store, _LAYOUT, asdict(layout))


def order_kept(ids: Sequence[int], store: str) -> Iterator[Keepsake]:
    """The keepsakes of the order of rows; none where they stand by id."""
    if any(ids[at] > ids[at + 1] for at in range(len(ids) - 1)):
        for start in range(0, len(ids), PAGE):
            yield _keepsake(store, f"{_ORDER}{start // PAGE:06}", list(ids[start : start + PAGE]))


def recalls_kept(recalls: Sequence[Recall], store: str, *, page: int) -> Keepsake:
    """The keepsake of some of those who recalled what, at most ``PAGE``; ``page`` counts them from 0."""
    return _keepsake(store, f"{_RECALLS}{page:06}", list(recalls))


def vector_kept(row: int, vector: str, store: str, *, memory: MemoryId | None) -> Keepsake:
    """The keepsake of a row's vector, which says something of what ``memory`` says."""
    return replace(_keepsake(store, f"{_VECTOR}{row}", vector), memory=memory)


def kept_of(keepsakes: Iterable[Keepsake]) -> Kept:
    """What keepsakes of one store say. Ones that are no longer what they were, as after a text in them was erased,
    count as not there."""
    layout, order, recalls, vectors = Layout(), list[int](), list[Recall](), dict[int, str]()
    for keepsake in sorted(keepsakes, key=lambda one: one.key):
        value = json.loads(keepsake.text)
        if keepsake.key == _LAYOUT and isinstance(value, dict):
            layout = _layout(value)
        elif keepsake.key.startswith(_ORDER) and isinstance(value, list):
            order += [row for row in value if isinstance(row, int)]
        elif keepsake.key.startswith(_RECALLS) and isinstance(value, list):
            recalls += [(row[0], row[1], row[2]) for row in value if _is_recall(row)]
        elif keepsake.key.startswith(_VECTOR) and isinstance(value, str):
            row = keepsake.key.removeprefix(_VECTOR)
            if row.isascii() and row.isdecimal() and len(row) < _ID_DIGITS and _VECTOR_TEXT.fullmatch(value):
                vectors[int(row)] = value
    return Kept(layout=layout, order=tuple(order), recalls=tuple(recalls), vectors=vectors)


def _layout(value: dict[str, Any]) -> Layout:
    made: dict[str, Any] = {}  # Any: each field has its own type, which its default tells
    for name, standard in asdict(Layout()).items():
        given = value.get(name, standard)
        if isinstance(standard, tuple) and isinstance(given, list | tuple):
            made[name] = tuple(word for word in given if isinstance(word, str))
        elif type(given) is type(standard) or (standard is None and isinstance(given, int | str)):
            made[name] = given
    columns = tuple(name for name in ALL_COLUMNS if name in made["columns"])
    for name, most in (("dimension", _MOST_DIMENSIONS), ("last", (1 << 31) - 1)):
        if not (isinstance(made.get(name), int) and 0 < made[name] <= most):
            made.pop(name, None)
    return Layout(**(made | {"columns": columns if _NEEDED.issubset(columns) else COLUMNS}))


def _is_recall(row: object) -> bool:
    if not isinstance(row, list) or [type(value) for value in row] != [int, str, str]:
        return False
    return 0 <= row[0] < 1 << 31 and time_of(row[2]) is not None


def _keepsake(store: str, key: str, value: object) -> Keepsake:
    return Keepsake(format=SYSTEM, store=store, key=key, text=json.dumps(value, ensure_ascii=False))
