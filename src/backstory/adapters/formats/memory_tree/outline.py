"""What of a tree's files follows from its nodes and messages: the index, and the order of the buffer."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from backstory.domain.conversation import Message
from backstory.domain.digest import Piece


def index_record(pieces: Sequence[Piece]) -> dict[str, Any] | None:
    """The index of nodes in the order in which they were made; None without any."""
    levels: dict[str, list[str]] = {}
    for piece in sorted(pieces, key=lambda piece: piece.level):
        levels.setdefault(str(piece.level), []).append(piece.id)
    return {"root_node_id": pieces[0].id, "nodes_by_level": levels} if pieces else None


def buffer_outline(pieces: Sequence[Piece], messages: Sequence[Message]) -> list[str]:
    """The ids of what the buffer holds: the nodes that no parent covers, by place, and the messages in no leaf."""
    active = sorted((piece for piece in pieces if piece.active), key=lambda piece: (piece.start, piece.end))
    digested = {source for piece in pieces for source in piece.sources}
    return [*(piece.id for piece in active), *(message.id for message in messages if message.id not in digested)]


def as_told(told: Mapping[str, Any] | None, now: Any) -> Any:
    """What a file said, as long as all is as it was when it came in; else what there is now."""
    return told.get("told") if told is not None and told.get("was") == now else now
