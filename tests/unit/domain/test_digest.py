"""A session's digest: what its pieces stand for, and what becomes of them when messages are undone."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime

from backstory.domain.digest import (
    DigestState,
    Piece,
    SessionDigest,
    Strategy,
    messages_of,
    under_parent,
    without_messages,
)
from backstory.domain.ids import MessageId, SessionId

NOW = datetime(2026, 3, 2, 10, tzinfo=UTC)
SESSION = SessionId("ses_1")


def leaf(n: int, *messages: str, start: int = 0, text: str = "what was said") -> Piece:
    return Piece(
        session=SESSION,
        id=f"node0_{n:03}",
        strategy=Strategy.TREE,
        level=0,
        text=text,
        start=start,
        end=start + len(messages) - 1,
        sources=tuple(MessageId(message) for message in messages),
        made_by="none",
        prompt="tree-leaf/1",
        source_tokens=5,
        created_at=NOW,
    )


def parent(n: int, level: int, children: list[Piece]) -> Piece:
    return replace(
        leaf(n),
        id=f"node{level}_{n:03}",
        level=level,
        start=children[0].start,
        end=children[-1].end,
        sources=(),
        children=tuple(child.id for child in children),
    )


def digest(*pieces: Piece, shown: tuple[str, ...] = ()) -> SessionDigest:
    state = DigestState(session=SESSION, strategy=Strategy.TREE, shown=shown, updated_at=NOW)
    return SessionDigest(state=state, pieces=pieces)


def test_a_parent_stands_for_the_messages_of_all_its_leaves_in_order() -> None:
    first, second = leaf(1, "a", "b"), leaf(2, "c", start=2)
    top = parent(1, 1, [first, second])
    whole = digest(*under_parent(top, [first, second]), top)
    assert messages_of([top], whole) == ["a", "b", "c"]


def test_a_child_that_is_gone_does_not_hide_the_others() -> None:
    first, second = leaf(1, "a"), leaf(2, "b", start=1)
    top = parent(1, 1, [first, second])
    assert messages_of([top], digest(second, top)) == ["b"]


def test_pieces_under_a_parent_are_no_longer_active() -> None:
    first, second, third = leaf(1, "a"), leaf(2, "b", start=1), leaf(3, "c", start=2)
    top = parent(1, 1, [first, second])
    whole = digest(third, *under_parent(top, [first, second]), top)
    assert [piece.id for piece in whole.active()] == ["node1_001", "node0_003"]


def test_undoing_a_message_that_nothing_stands_for_changes_nothing() -> None:
    assert without_messages(digest(leaf(1, "a")), frozenset({MessageId("z")})) is None


def test_undoing_a_message_drops_its_leaf_and_brings_back_the_leaves_beside_it() -> None:
    first, second = leaf(1, "a"), leaf(2, "b", start=1)
    top = parent(1, 1, [first, second])
    whole = digest(*under_parent(top, [first, second]), top, shown=("node1_001",))

    update = without_messages(whole, frozenset({MessageId("b")}))

    assert update is not None
    assert update.dropped == ("node0_002", "node1_001")
    assert [(piece.id, piece.active, piece.parent) for piece in update.changed] == [("node0_001", True, None)]
    assert update.state.shown == ("node0_001",)
    assert update.state.due


def test_undoing_goes_up_through_every_level() -> None:
    leaves = [leaf(n, f"m{n}", start=n) for n in range(4)]
    low = [parent(1, 1, leaves[:2]), parent(2, 1, leaves[2:])]
    top = parent(1, 2, low)
    pieces = [
        *under_parent(low[0], leaves[:2]),
        *under_parent(low[1], leaves[2:]),
        *under_parent(top, low),
        top,
    ]

    update = without_messages(digest(*pieces, shown=(top.id,)), frozenset({MessageId("m3")}))

    assert update is not None
    assert set(update.dropped) == {"node0_003", "node1_002", "node2_001"}
    assert {piece.id for piece in update.changed} == {"node1_001", "node0_002"}
    assert update.state.shown == ("node1_001", "node0_002")


def test_what_is_shown_beside_an_undone_piece_stays_shown() -> None:
    first, second = leaf(1, "a"), leaf(2, "b", start=1)
    update = without_messages(digest(first, second, shown=(first.id, second.id)), frozenset({MessageId("b")}))
    assert update is not None
    assert update.state.shown == (first.id,)


def test_a_task_does_not_outlive_what_it_may_come_from() -> None:
    whole = digest(leaf(1, "a"))
    state = replace(
        whole.state, current_task="port it", shown_task="port it", suggested_response="go", shown_response="go"
    )
    update = without_messages(replace(whole, state=state), frozenset({MessageId("a")}))
    assert update is not None
    after = update.state
    assert (after.current_task, after.shown_task, after.suggested_response, after.shown_response) == (None,) * 4
