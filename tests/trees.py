"""Sessions and their trees for tests: messages in words, and a tree grown by the rules with scripted texts."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import timedelta

from backstory.domain.conversation import Message, Part, Role
from backstory.domain.digest import DigestState, DigestUpdate, Piece, SessionDigest, Strategy, under_parent
from backstory.domain.ids import MessageId, PartId, SessionId
from backstory.domain.summary_tree import (
    Batch,
    History,
    Leaves,
    Merge,
    TreePolicy,
    next_number,
    next_step,
    node_id,
)
from backstory.testing.fakes import START

SESSION = SessionId("ses-tree")
POLICY = TreePolicy()


def message(number: int, text: str = "", *, user: bool = False, finished: bool = True, **fields: object) -> Message:
    """The ``number``-th message of a session; ``text`` empty: some words with its number."""
    name = MessageId(f"msg-{number:04d}")
    at = START + timedelta(minutes=number)
    said = Part(id=PartId(f"{name}-1"), kind="text", text=text or f"Step {number}: the parser test now passes.")
    base = Message(
        id=name,
        session=SESSION,
        role=Role.USER if user else Role.ASSISTANT,
        created_at=at,
        completed_at=at if finished else None,
        parts=(said,),
    )
    return replace(base, **fields)  # type: ignore[arg-type]  # the fields of a message


def tool_part(number: int, *, name: str = "bash", status: str = "completed", output: str = "", **given: object) -> Part:
    """A tool's call as the archive keeps it."""
    detail = {"state": {"status": status, "input": given}}
    return Part(id=PartId(f"tool-{number:04d}"), kind="tool", tool=name, text=output, detail=json.dumps(detail))


def talk(count: int, *, every: int = 3) -> list[Message]:
    """A conversation in which the user says every third message, from the first on."""
    return [message(number, user=number % every == 0) for number in range(count)]


def before_turn(messages: Sequence[Message]) -> int:
    """Where the current turn begins."""
    return next((at for at in range(len(messages) - 1, -1, -1) if messages[at].role is Role.USER), 0)


def no_digest() -> SessionDigest:
    return SessionDigest(state=DigestState(session=SESSION, strategy=Strategy.TREE, updated_at=START))


def applied(digest: SessionDigest, update: DigestUpdate) -> SessionDigest:
    """The digest after a change, as a store would have it."""
    changed = {piece.id: piece for piece in update.changed}
    kept = (changed.get(piece.id, piece) for piece in digest.pieces if piece.id not in update.dropped)
    state = replace(update.state, revision=digest.state.revision + 1)
    return SessionDigest(state=state, pieces=(*kept, *update.added))


def grown(
    digest: SessionDigest,
    messages: Sequence[Message],
    *,
    policy: TreePolicy = POLICY,
    text: Callable[[str], str] = "about {}".format,
    forced: bool = False,
) -> SessionDigest:
    """The tree after all that is due, where each node says ``text`` of its id."""
    turn = before_turn(messages)
    for _ in range(1000):
        history = History(digest=digest, messages=messages[:turn], current=len(messages) - turn, forced=forced)
        step = next_step(history, policy)
        if step is None:
            return digest
        digest = applied(digest, update_of(digest, step, text))
    raise AssertionError("the tree never stops growing")


def update_of(
    digest: SessionDigest, step: Leaves | Merge, text: Callable[[str], str] = "about {}".format
) -> DigestUpdate:
    """The change by which a step is done, where each node says ``text`` of its id."""
    if isinstance(step, Merge):
        start, end = step.children[0].start, step.children[-1].end
        parent = piece(step.level, next_number(digest.pieces, step.level), start, end, text=text)
        parent = replace(parent, children=tuple(child.id for child in step.children))
        return DigestUpdate(state=digest.state, added=(parent,), changed=under_parent(parent, step.children))
    first = next_number(digest.pieces, 0)
    added = tuple(leaf(first + at, batch, text=text) for at, batch in enumerate(step.batches))
    return DigestUpdate(state=digest.state, added=added)


def leaf(number: int, batch: Batch, *, text: Callable[[str], str] = "about {}".format) -> Piece:
    made = piece(0, number, batch.start, batch.end, text=text)
    return replace(made, sources=tuple(message.id for message in batch.messages))


def piece(level: int, number: int, start: int, end: int, *, text: Callable[[str], str] = "about {}".format) -> Piece:
    name = node_id(level, number)
    return Piece(
        session=SESSION,
        id=name,
        strategy=Strategy.TREE,
        level=level,
        text=text(name),
        start=start,
        end=end,
        made_by="scripted:1",
        prompt="scripted/1",
        source_tokens=len(text(name).split()),
        created_at=START,
    )
