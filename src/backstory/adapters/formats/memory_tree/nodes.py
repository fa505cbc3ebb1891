"""The nodes of a tree as its files have them, turned into pieces of a digest and back."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any

from backstory.domain.digest import Piece, Strategy
from backstory.domain.ids import MessageId, SessionId
from backstory.domain.observation_cursor import IMPORTED
from backstory.domain.summary_tree import is_node_id

Json = Mapping[str, Any]
KEYS = (
    "session_id", "id", "level", "summary", "parent_id", "children", "round_start", "round_end", "source_ref",
    "details", "is_active",
)  # fmt: skip
_MOST_MESSAGES = 10**9


def level_of(node_id: str) -> int:
    """The level that a node's id names."""
    return int(node_id.removeprefix("node").partition("_")[0])


def piece_of(
    told: Json, *, session: SessionId, sources: Sequence[MessageId], source_tokens: int, at: datetime
) -> Piece | None:
    """The piece of a node, its place in the tree not checked yet; None for what is no node.

    Nodes of the earliest versions lack keys: a missing ``parent_id`` or ``is_active`` is found by ``placed``.
    """
    name, summary = told.get("id"), told.get("summary")
    if not isinstance(name, str) or not is_node_id(name) or not isinstance(summary, str):
        return None
    start, end = _number(told.get("round_start")), _number(told.get("round_end"))
    start = 0 if start is None else start
    below = told.get("children")
    parent = told.get("parent_id")
    return Piece(
        session=session,
        id=name,
        strategy=Strategy.TREE,
        level=level_of(name),
        text=summary,
        start=start,
        end=max(start, start + max(len(sources) - 1, 0) if end is None else end),
        sources=tuple(dict.fromkeys(sources)),
        children=tuple(child for child in below if isinstance(child, str)) if isinstance(below, list) else (),
        parent=parent if isinstance(parent, str) else None,
        active=bool(told.get("is_active", True)),
        made_by=IMPORTED,
        prompt="",
        source_tokens=source_tokens,
        created_at=at,
    )


def placed(pieces: Sequence[Piece], *, without_flags: frozenset[str] = frozenset()) -> list[Piece]:
    """The pieces as a tree: every child is there, on a lower level, and under one parent alone.

    So nobody who follows children goes in circles. ``without_flags`` name no parent and no activity of their own: they
    have those that other nodes tell of.
    """
    by_id = {piece.id: piece for piece in pieces}
    parent_of: dict[str, str] = {}
    kept: dict[str, tuple[str, ...]] = {}
    for piece in pieces:
        below = [
            child
            for child in dict.fromkeys(piece.children)
            if child in by_id and by_id[child].level < piece.level and child not in parent_of
        ]
        parent_of.update(dict.fromkeys(below, piece.id))
        kept[piece.id] = tuple(below)
    tree: list[Piece] = []
    for piece in pieces:
        parent = parent_of.get(piece.id)
        active = parent is None if piece.id in without_flags else piece.active
        tree.append(replace(piece, children=kept[piece.id], parent=parent, active=active))
    return _with_sizes(tree)


def node_record(piece: Piece, *, key: str, details: str | None, beside: Json) -> dict[str, Any]:
    """A node as its file has it. ``key`` names the tree; ``beside`` is what was told otherwise when it came in."""
    record: dict[str, Any] = {
        "session_id": key,
        "id": piece.id,
        "level": piece.level,
        "summary": piece.text,
        "parent_id": piece.parent,
        "children": list(piece.children),
        "round_start": piece.start,
        "round_end": piece.end,
        "source_ref": None,
        "details": details,
        "is_active": int(piece.active),
    }
    for name, told in _pairs(beside.get("values")):
        was, now = told.get("was"), told.get("told")
        if name not in record or record[name] == was:
            record[name] = now
    keys = beside.get("keys")
    return {name: record[name] for name in keys if name in record} if isinstance(keys, list) else record


def told_otherwise(record: Json, told: Json) -> dict[str, Any]:
    """What a file says that ``record``, made from what came in, does not: never a text of somebody."""
    beside: dict[str, Any] = {}
    values = {
        name: {"was": record.get(name), "told": value}
        for name, value in told.items()
        if name not in ("summary", "details") and (name not in record or not _same(record[name], value))
    }
    if values:
        beside["values"] = values
    if tuple(told) != KEYS:
        beside["keys"] = list(told)
    return beside


def node_text(piece: Piece) -> str:
    """What stands in the buffer for a node: the plugin counts messages in Chinese."""
    below = f" (children: {', '.join(piece.children)})" if piece.children else ""
    return f"[{piece.id}] 第{piece.start}-{piece.end}条: {piece.text}{below}"


def _with_sizes(pieces: Sequence[Piece]) -> list[Piece]:
    """A parent stands for as much as its children together."""
    sizes: dict[str, int] = {}
    for piece in sorted(pieces, key=lambda piece: piece.level):
        below = sum(sizes.get(child, 0) for child in piece.children)
        sizes[piece.id] = below if piece.level else piece.source_tokens
    return [replace(piece, source_tokens=sizes[piece.id]) for piece in pieces]


def _pairs(values: object) -> list[tuple[str, Json]]:
    found = values.items() if isinstance(values, Mapping) else ()
    return [(name, told) for name, told in found if isinstance(name, str) and isinstance(told, Mapping)]


def _same(one: object, other: object) -> bool:
    return one == other and type(one) is type(other)


def _number(value: object) -> int | None:
    fits = isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= _MOST_MESSAGES
    return value if fits and isinstance(value, int) else None
