"""How a session's summary tree grows: which messages make the next leaf, which nodes the next parent.

What nodes say is ``services/summary_tree.py``; opening them again is ``tree_rendering.py``.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

from backstory.domain.conversation import Message, Role
from backstory.domain.digest import Piece, SessionDigest, messages_of
from backstory.domain.digest_plan import Run, undigested
from backstory.domain.transcript import is_settled
from backstory.errors import InputError

BULK_BATCHES = 4
"""Leaves that catch up are at most this many times as large as others."""
PATIENCE = 3
"""Failures in a row after which a model is no longer waited for."""
MAX_BULK_LEAVES = 10
"""Of one step of catching up, so that it takes about a second."""

_NODE_ID = re.compile(r"node(\d{1,4})_(\d{3,12})", re.ASCII)


@dataclass(frozen=True, slots=True, kw_only=True)
class TreePolicy:
    """When a tree grows; the values are those that opencode-memory-tree is shipped with.

    ``max_raw`` messages that are in no node yet, the current turn's among them, are one leaf of the oldest
    ``min_batch``. ``compact_threshold`` nodes of one level that no parent covers are one parent of the first
    ``compact_branch``. Where more than ``max_sync`` messages are in no node, the older ones become larger leaves, in a
    session that was long before its tree began by rule and at once. Raises InputError for values that fit nothing.
    """

    max_raw: int = 10
    min_batch: int = 5
    compact_threshold: int = 6
    compact_branch: int = 3
    max_sync: int = 50

    def __post_init__(self) -> None:
        _at_least("min_batch", self.min_batch, 1, "message")
        _at_least("max_raw", self.max_raw, self.min_batch, "messages, as many as min_batch")
        _at_least("max_sync", self.max_sync, self.max_raw, "messages, as many as max_raw")
        _at_least("compact_branch", self.compact_branch, 2, "nodes")
        _at_least("compact_threshold", self.compact_threshold, self.compact_branch, "nodes, as many as compact_branch")


@dataclass(frozen=True, slots=True, kw_only=True)
class History:
    """A session as its tree sees it.

    ``messages`` are those before the current turn, oldest first; ``current`` is how many messages that turn has.
    ``forced``: the host is about to drop them, so all are to be in nodes. ``first_number`` is the number in the session
    of the first of ``messages``.
    """

    digest: SessionDigest
    messages: Sequence[Message]
    current: int = 0
    forced: bool = False
    first_number: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Batch:
    """The messages of a new leaf; ``start`` is the number of the first."""

    start: int
    messages: tuple[Message, ...]

    @property
    def end(self) -> int:
        """The number of the last message."""
        return self.start + len(self.messages) - 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Leaves:
    """Leaves to be made from neighbouring batches. ``by_rule``: without asking a model."""

    batches: tuple[Batch, ...]
    by_rule: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Merge:
    """A parent to be made over neighbouring nodes, by place. ``level`` is the parent's."""

    level: int
    children: tuple[Piece, ...]
    by_rule: bool = False


def is_node_id(text: str) -> bool:
    """Whether a text has the form of a node's id, such as ``node0_001``."""
    return _NODE_ID.fullmatch(text) is not None


def node_id(level: int, number: int) -> str:
    """The id of a level's node; numbers count from 1 and are padded to three digits."""
    return f"node{level}_{number:03d}"


def next_number(pieces: Sequence[Piece], level: int) -> int:
    """The number that a level's next node gets: one more than the highest there is."""
    found = (_NODE_ID.fullmatch(piece.id) for piece in pieces)
    return max((int(match[2]) for match in found if match and int(match[1]) == level), default=0) + 1


def next_step(history: History, policy: TreePolicy) -> Leaves | Merge | None:
    """What a tree needs next; None while it needs nothing.

    A gap, as an undo leaves one, is filled first, since no node behind it can be shown. Then what is far behind catches
    up; parents come before new leaves, unless the host is about to drop messages.
    """
    if not history.messages:
        return None  # nobody can tell what lies between the nodes
    run, leaf = _raw(history), next_leaf(history, policy)
    if run is not None and run.closed:
        return None if leaf is None else Leaves(batches=(leaf,))
    if run is not None and (behind := _catch_up(run, history, policy)) is not None:
        return behind
    leaves = None if leaf is None else Leaves(batches=(leaf,))
    if leaves is not None and history.forced:
        return leaves
    return next_merge(history.digest, policy) or leaves


def next_leaf(history: History, policy: TreePolicy) -> Batch | None:
    """The messages of the next leaf, always the oldest that are in no node; None while there are too few.

    A message that may still change is in no leaf, nor is any behind it. A gap too small for two leaves is one.
    """
    run = _raw(history)
    if run is None:
        return None
    wanted, needed = _batch_size(run, history, policy)
    taken = tuple(_unchanging(run, history, at_most=wanted))
    return Batch(start=_start(run, history), messages=taken) if len(taken) >= needed else None


def next_merge(digest: SessionDigest, policy: TreePolicy) -> Merge | None:
    """The next parent, on the lowest level that has enough nodes for one; None where none has.

    Its children are neighbours, so that no other node stands for anything between them. Where no ``compact_branch``
    nodes of the level are neighbours, as an undo may leave them, nodes of other levels beside them are taken too. By
    rule where twice as many nodes wait as should.
    """
    active = digest.active()
    for level in sorted({piece.level for piece in active}):
        count = sum(piece.level == level for piece in active)
        if count >= policy.compact_threshold:
            children = _neighbours(active, level, policy.compact_branch)
            return Merge(
                level=max(child.level for child in children) + 1,
                children=children,
                by_rule=count >= 2 * policy.compact_threshold,
            )
    return None


def _raw(history: History) -> Run | None:
    return undigested(history.messages, frozenset(messages_of(history.digest.pieces, history.digest)))


def _batch_size(run: Run, history: History, policy: TreePolicy) -> tuple[int, int]:
    """How many messages the next leaf takes, and how many it must get."""
    count = len(run.messages)
    if run.closed:
        return (count if count < 2 * policy.min_batch else policy.min_batch), 1
    if history.forced:
        return (count if count < policy.max_raw + policy.min_batch else policy.max_raw), 1
    if count + history.current < policy.max_raw:
        return 0, 1
    return policy.min_batch, policy.min_batch


def _catch_up(run: Run, history: History, policy: TreePolicy) -> Leaves | None:
    """Large batches of even size, after which ``max_sync`` messages are in no node; the user's newest counts as one.

    They wait for a model only where a tree that kept up had to let a long turn pass.
    """
    excess = len(run.messages) + min(history.current, 1) - policy.max_sync
    if excess <= 0:
        return None
    bulk = BULK_BATCHES * policy.min_batch
    wanted = min(max(excess, policy.min_batch), MAX_BULK_LEAVES * bulk)
    taken = tuple(_unchanging(run, history, at_most=wanted))
    if len(taken) < policy.min_batch:
        return None
    start, leaves = _start(run, history), math.ceil(len(taken) / bulk)
    cuts = [len(taken) * leaf // leaves for leaf in range(leaves + 1)]
    batches = (Batch(start=start + low, messages=taken[low:high]) for low, high in pairwise(cuts))
    by_rule = not history.digest.pieces or excess > policy.max_sync or history.digest.state.attempts >= PATIENCE
    return Leaves(batches=tuple(batches) if by_rule else (next(batches),), by_rule=by_rule)


def _unchanging(run: Run, history: History, *, at_most: int) -> Iterator[Message]:
    """The first messages of a run, up to one that may still change.

    One that was never finished, since its host died, changes no more once the assistant has finished another behind it:
    a session's messages are written one after the other.
    """
    over: int | None = None
    for place, message in enumerate(run.messages[:at_most], run.start):
        if not is_settled(message):
            over = _last_finished(history.messages) if over is None else over
            if place > over:
                return
        yield message


def _last_finished(messages: Sequence[Message]) -> int:
    places = range(len(messages) - 1, -1, -1)
    return next((at for at in places if messages[at].role is Role.ASSISTANT and is_settled(messages[at])), -1)


def _start(run: Run, history: History) -> int:
    """The number of a run's first message: numbers go on from the leaf before it, whatever was undone since."""
    if run.start == 0:
        return history.first_number
    before = history.messages[run.start - 1].id
    return next(piece.end + 1 for piece in history.digest.pieces if before in piece.sources)


def _neighbours(active: Sequence[Piece], level: int, count: int) -> tuple[Piece, ...]:
    windows = [tuple(active[at : at + count]) for at in range(len(active) - count + 1)]
    alike = (window for window in windows if all(piece.level == level for piece in window))
    return next(alike, None) or next(window for window in windows if any(piece.level == level for piece in window))


def _at_least(name: str, value: int, least: int, unit: str) -> None:
    if value < least:
        raise InputError(f"{name} is {value}, but must be at least {least} {unit}", field=name)
