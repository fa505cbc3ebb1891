"""Which messages of a request a digest replaces, and which may be digested."""

from __future__ import annotations

from backstory.domain.conversation import Message, Role
from backstory.domain.digest import under_parent
from backstory.domain.digest_plan import Listed, current_turn, past_messages, replacement, undigested
from backstory.domain.ids import MessageId
from tests.unit.domain.test_digest import NOW, SESSION, digest, leaf, parent


def listed(*words: str) -> list[Listed]:
    """``u:id`` is a user's message, ``a:id`` the assistant's, ``t:id`` a tool's result, ``s:id`` a program's."""
    kinds = {"u": "user", "a": "assistant", "t": "tool", "s": "user"}
    return [Listed(id=MessageId(word[2:]), role=kinds[word[0]], synthetic=word[0] == "s") for word in words]


def message(name: str) -> Message:
    return Message(id=MessageId(name), session=SESSION, role=Role.USER, created_at=NOW)


def test_the_current_turn_begins_at_the_newest_message_that_was_typed() -> None:
    assert current_turn(listed("u:1", "a:2", "u:3", "a:4", "s:5", "a:6")) == 2


def test_without_a_typed_message_the_turn_begins_at_the_newest_that_a_program_wrote() -> None:
    assert current_turn(listed("s:1", "a:2", "s:3", "a:4")) == 2


def test_nothing_is_past_where_no_user_speaks() -> None:
    assert current_turn(listed("a:1", "a:2")) == 0


def test_a_piece_replaces_the_messages_it_stands_for() -> None:
    whole = digest(leaf(1, "1", "2"))
    found = replacement(listed("u:1", "a:2", "u:3"), whole.active(), whole)
    assert found is not None
    assert (found.count, [piece.id for piece in found.pieces]) == (2, ["node0_001"])


def test_a_parent_replaces_what_its_leaves_stand_for() -> None:
    leaves = [leaf(1, "1", "2"), leaf(2, "3", "4", start=2)]
    top = parent(1, 1, leaves)
    whole = digest(*under_parent(top, leaves), top)
    found = replacement(listed("u:1", "a:2", "u:3", "a:4", "u:5"), whole.active(), whole)
    assert found is not None
    assert found.count == 4


def test_the_current_turn_is_never_replaced() -> None:
    whole = digest(leaf(1, "1", "2", "3"))
    assert replacement(listed("u:1", "a:2", "u:3"), whole.active(), whole) is None


def test_a_piece_behind_a_message_nothing_stands_for_is_not_shown() -> None:
    whole = digest(leaf(1, "1"), leaf(2, "3", start=2))
    found = replacement(listed("u:1", "a:2", "u:3", "u:4"), whole.active(), whole)
    assert found is not None
    assert (found.count, len(found.pieces)) == (1, 1)


def test_a_piece_whose_newest_message_was_undone_is_not_shown() -> None:
    whole = digest(leaf(1, "1", "2", "3"))
    assert replacement(listed("u:1", "a:2", "u:9"), whole.active(), whole) is None


def test_pieces_for_what_the_host_dropped_are_not_shown_again() -> None:
    whole = digest(leaf(1, "1", "2"), leaf(2, "3", "4", start=2))
    found = replacement(listed("u:3", "a:4", "u:5"), whole.active(), whole)
    assert found is not None
    assert [piece.id for piece in found.pieces] == ["node0_002"]


def test_a_piece_of_which_the_host_dropped_the_beginning_stands_for_the_rest() -> None:
    whole = digest(leaf(1, "1", "2", "3"))
    found = replacement(listed("u:2", "a:3", "u:4"), whole.active(), whole)
    assert found is not None
    assert found.count == 2


def test_what_the_host_put_in_front_stays_with_all_that_follows() -> None:
    whole = digest(leaf(1, "1", "2"))
    assert replacement(listed("u:summary", "a:1", "a:2", "u:3"), whole.active(), whole) is None


def test_a_tool_result_stays_with_its_call() -> None:
    whole = digest(leaf(1, "1"), leaf(2, "2", start=1))
    found = replacement(listed("u:1", "a:2", "t:3", "u:4"), whole.active(), whole)
    assert found is not None
    assert found.count == 1


def test_a_list_in_another_order_than_its_ids_is_taken_as_it_is() -> None:
    whole = digest(leaf(1, "9", "1"))
    found = replacement(listed("u:9", "a:1", "u:5"), whole.active(), whole)
    assert found is not None
    assert found.count == 2


def test_what_the_archive_was_not_told_is_not_passed_over() -> None:
    known = {MessageId(name): message(name) for name in ("1", "3", "4")}
    past = past_messages(listed("u:1", "a:2", "u:3", "a:4", "u:5"), known)
    assert [item.id for item in past] == ["1"]


def test_digested_messages_keep_their_places_without_their_parts() -> None:
    past = past_messages(
        listed("u:1", "a:2", "u:3", "u:4"), {MessageId("3"): message("3")}, digested=[MessageId("1"), MessageId("2")]
    )
    assert [(item.id, item.parts) for item in past[:2]] == [("1", ()), ("2", ())]
    assert [item.id for item in past] == ["1", "2", "3"]


def test_what_is_not_told_yet_is_waited_for() -> None:
    assert past_messages(listed("u:1", "a:2", "u:3"), {}) == []


def test_the_oldest_run_nothing_stands_for_comes_first() -> None:
    messages = [message(name) for name in "abcde"]
    run = undigested(messages, frozenset({MessageId("a"), MessageId("d")}))
    assert run is not None
    assert (run.start, [item.id for item in run.messages], run.closed) == (1, ["b", "c"], True)


def test_a_run_at_the_end_may_grow() -> None:
    run = undigested([message("a"), message("b")], frozenset({MessageId("a")}))
    assert run is not None
    assert (run.start, run.closed) == (1, False)


def test_nothing_is_left_once_all_is_digested() -> None:
    assert undigested([message("a")], frozenset({MessageId("a")})) is None
