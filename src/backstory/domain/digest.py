"""A session's digest: pieces that stand for stretches of its messages, and which of them its requests show.

Derived data: every piece names the messages, or the pieces, that it was made from, and can be made again. A tree's
leaves and parents, and observations and their reflections, are the same shape; what differs is when they are made
(``summary_tree.py``, ``observation.py``) and how they are written down (``digest_block.py``).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from enum import StrEnum

from backstory.domain.ids import MessageId, SessionId


class Strategy(StrEnum):
    """What replaces a session's old messages in its requests; a session has one at most."""

    TREE = "tree"
    OBSERVATIONS = "observations"


@dataclass(frozen=True, slots=True, kw_only=True)
class Piece:
    """What stands for a stretch of a session.

    ``id`` is unique in its session (``node0_001``, ``obs0_001``). Level 0 is made from the messages ``sources``, a
    higher one from the pieces ``children``. ``start`` and ``end`` are the numbers of its first and last message in the
    session, from 0, both included. ``text`` may be empty: nothing worth a note was said. A piece that a parent covers,
    or that was dropped, is not ``active``. ``made_by`` names the model, or the rule without a model; ``prompt`` the
    version of what it was asked; ``source_tokens`` the size of the messages that it stands for, as raw messages.
    """

    session: SessionId
    id: str
    strategy: Strategy
    level: int
    text: str
    start: int
    end: int
    sources: tuple[MessageId, ...] = ()
    children: tuple[str, ...] = ()
    parent: str | None = None
    active: bool = True
    made_by: str
    prompt: str
    source_tokens: int
    created_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Lease:
    """Work on a session's digest that one process has taken, until ``expires_at``; then another may take it."""

    token: str
    expires_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class DigestState:
    """Where a session's digest stands.

    ``revision`` counts the writes, from 0 for a session without any. ``shown`` are the pieces that its requests show
    since the user message ``shown_for``, oldest first. ``due`` says that work was found and not finished: the next
    start looks for it. ``attempts`` counts failures in a row, after which nothing is tried before ``not_before``;
    ``problem`` is the last one in a sentence. ``current_task`` and ``suggested_response`` are the observer's newest,
    ``shown_task`` and ``shown_response`` what they were when ``shown`` was chosen.
    """

    session: SessionId
    strategy: Strategy
    revision: int = 0
    shown: tuple[str, ...] = ()
    shown_for: MessageId | None = None
    shown_task: str | None = None
    shown_response: str | None = None
    current_task: str | None = None
    suggested_response: str | None = None
    system_prompt: str | None = None
    due: bool = False
    forced: bool = False
    lease: Lease | None = None
    attempts: int = 0
    not_before: datetime | None = None
    problem: str | None = None
    last_cycle_at: datetime | None = None
    last_cycle: str | None = None
    updated_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionDigest:
    """The state of a session and all its pieces, in the order in which they were made."""

    state: DigestState
    pieces: tuple[Piece, ...] = ()

    def piece(self, piece_id: str) -> Piece | None:
        """One of the pieces, active or not."""
        return next((piece for piece in self.pieces if piece.id == piece_id), None)

    def active(self) -> list[Piece]:
        """The pieces that no parent covers, by the place of what they stand for."""
        return sorted((piece for piece in self.pieces if piece.active), key=lambda piece: (piece.start, piece.end))

    def shown(self) -> list[Piece]:
        """The pieces that requests show now, by place."""
        ids = set(self.state.shown)
        return sorted((piece for piece in self.pieces if piece.id in ids), key=lambda piece: (piece.start, piece.end))


@dataclass(frozen=True, slots=True, kw_only=True)
class DigestUpdate:
    """One change of a session's digest: the state it has afterwards, and what becomes of its pieces.

    ``state.revision`` is the one that was read; the store counts on from it. ``changed`` are pieces that are known,
    with another ``parent`` or ``active``; nothing else of a piece ever changes. ``dropped`` are removed for good.
    """

    state: DigestState
    added: tuple[Piece, ...] = ()
    changed: tuple[Piece, ...] = ()
    dropped: tuple[str, ...] = ()


def messages_of(pieces: Sequence[Piece], digest: SessionDigest) -> list[MessageId]:
    """The messages that pieces stand for, down through their children, in the order of the pieces."""
    by_id = {piece.id: piece for piece in digest.pieces}
    found: dict[MessageId, None] = {}
    waiting = list(reversed(pieces))
    while waiting:
        piece = waiting.pop()
        found.update(dict.fromkeys(piece.sources))
        waiting += [by_id[child] for child in reversed(piece.children) if child in by_id]
    return list(found)


def under_parent(parent: Piece, children: Sequence[Piece]) -> tuple[Piece, ...]:
    """The children as they are once a parent covers them."""
    return tuple(replace(child, active=False, parent=parent.id) for child in children)


def without_messages(digest: SessionDigest, removed: frozenset[MessageId]) -> DigestUpdate | None:
    """The change that takes what was undone out of a digest; None where no piece was made from it.

    A piece made from a removed message goes, and so does every piece made from that one; their other children come
    back, so that only what was undone must be digested again. Messages that shared a piece with a removed one are raw
    again. The task and the next step may come from what was undone, and go with it.
    """
    gone = {piece.id for piece in digest.pieces if not removed.isdisjoint(piece.sources)}
    if not gone:
        return None
    grown = True
    while grown:
        above = {piece.id for piece in digest.pieces if not gone.isdisjoint(piece.children)} - gone
        grown = bool(above)
        gone |= above
    back = tuple(
        replace(piece, active=True, parent=None)
        for piece in digest.pieces
        if piece.id not in gone and piece.parent in gone
    )
    shown = _still_shown(digest, gone, {piece.id for piece in back})
    state = replace(
        digest.state, shown=shown, due=True,
        current_task=None, suggested_response=None, shown_task=None, shown_response=None,
    )  # fmt: skip
    return DigestUpdate(state=state, changed=back, dropped=tuple(sorted(gone)))


def _still_shown(digest: SessionDigest, gone: set[str], back: set[str]) -> tuple[str, ...]:
    """What requests go on to show: in the place of a piece that went, its children that came back."""
    by_id: Mapping[str, Piece] = {piece.id: piece for piece in digest.pieces}
    shown: list[str] = []
    waiting = list(reversed(digest.state.shown))
    while waiting:
        piece_id = waiting.pop()
        if piece_id not in gone:
            shown.append(piece_id)
        elif piece_id in by_id:
            waiting += [child for child in reversed(by_id[piece_id].children) if child in back or child in gone]
    return tuple(shown)
