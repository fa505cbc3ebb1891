"""Which messages are not observed yet: by cursor, as the older product told them, and by what pieces stand for."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from backstory.domain.conversation import Role
from backstory.domain.ids import MessageId
from backstory.domain.observation_cursor import (
    IMPORTED,
    Cursor,
    CursorMode,
    Unobserved,
    after_cursor,
    cursor_of,
    settled_beginning,
    waiting,
)
from tests.observed import MORNING, digest, message, piece, running_tool

HISTORY = [message(number) for number in range(6)]
UNKNOWN = MessageId("gone")
NEVER = datetime.fromtimestamp(0, tz=UTC)


def at(number: int) -> datetime:
    return HISTORY[number].created_at


@pytest.mark.parametrize(
    ("cursor", "mode", "start"),
    [
        (Cursor(), CursorMode.NONE, 0),
        (Cursor(message=MessageId("m3"), at=at(3)), CursorMode.ID, 4),
        (Cursor(message=MessageId("m5")), CursorMode.ID, 6),
        (Cursor(message=UNKNOWN, at=at(2)), CursorMode.TIMESTAMP, 3),
        (Cursor(at=at(2)), CursorMode.TIMESTAMP, 3),
        (Cursor(message=UNKNOWN, at=at(5)), CursorMode.TIMESTAMP, 6),
        (Cursor(message=UNKNOWN, at=at(5) + timedelta(days=1)), CursorMode.TIMESTAMP, 6),
        (Cursor(message=UNKNOWN), CursorMode.FALLBACK_LATEST, 5),
    ],
)
def test_a_cursor_tells_what_is_new(cursor: Cursor, mode: CursorMode, start: int) -> None:
    assert after_cursor(HISTORY, cursor) == Unobserved(mode=mode, start=start)


@pytest.mark.parametrize("cursor", [Cursor(), Cursor(message=UNKNOWN), Cursor(at=MORNING)])
def test_an_empty_list_holds_nothing_new(cursor: Cursor) -> None:
    assert after_cursor([], cursor).start == 0


def test_by_time_everything_behind_the_first_later_message_is_new() -> None:
    shuffled = [HISTORY[4], HISTORY[1], HISTORY[5]]
    assert after_cursor(shuffled, Cursor(at=at(3))) == Unobserved(mode=CursorMode.TIMESTAMP, start=0)
    assert after_cursor([HISTORY[4], HISTORY[1]], Cursor(at=at(3))).start == 2


def ids(messages: object) -> list[str]:
    assert isinstance(messages, tuple)
    return [m.id for m in messages]


def test_without_pieces_everything_waits() -> None:
    found = waiting(HISTORY, digest())
    assert found is not None
    assert (found.mode, found.start, ids(found.messages), found.closed) == (
        CursorMode.NONE,
        0,
        [f"m{n}" for n in range(6)],
        False,
    )


def test_what_pieces_stand_for_waits_no_more() -> None:
    found = waiting(HISTORY, digest(piece(1, "* a", 0, 1), piece(2, "* b", 2)))
    assert found is not None
    assert (found.mode, found.start, ids(found.messages)) == (CursorMode.ID, 3, ["m3", "m4", "m5"])
    assert waiting(HISTORY, digest(piece(1, "* a", *range(6)))) is None
    assert waiting([], digest()) is None


def test_a_hole_between_observed_messages_is_filled_first() -> None:
    found = waiting(HISTORY, digest(piece(1, "* a", 0, 1), piece(2, "* c", 4)))
    assert found is not None
    assert (found.start, ids(found.messages), found.closed) == (2, ["m2", "m3"], True)


def test_a_list_that_lost_all_that_was_observed_is_read_by_time() -> None:
    known = digest(piece(1, "* a", 20, 21, created_at=at(2)))
    found = waiting(HISTORY, known)
    assert found is not None
    assert (found.mode, found.start, ids(found.messages)) == (CursorMode.TIMESTAMP, 3, ["m3", "m4", "m5"])
    assert (ids(found.skipped), found.place) == (["m0", "m1", "m2"], 0)
    assert waiting(HISTORY, digest(piece(1, "* a", 20, created_at=at(5)))) is None


def test_after_a_compaction_all_that_is_listed_and_newer_waits() -> None:
    listed = HISTORY[3:]
    found = waiting(listed, digest(piece(1, "* a", 0, 1, 2, created_at=at(2))))
    assert found is not None
    assert (found.start, ids(found.messages), ids(found.skipped)) == (0, ["m3", "m4", "m5"], [])


def test_without_id_and_time_only_the_newest_message_waits() -> None:
    found = waiting(HISTORY, digest(piece(1, "* a", 20, created_at=NEVER)))
    assert found is not None
    assert (found.mode, ids(found.messages)) == (CursorMode.FALLBACK_LATEST, ["m5"])
    assert len(found.skipped) == 5


def test_notes_taken_over_stand_for_everything_up_to_their_message() -> None:
    taken = digest(piece(1, "* a", 3, made_by=IMPORTED, created_at=at(3)))
    found = waiting(HISTORY, taken)
    assert found is not None
    assert (found.mode, ids(found.messages), found.closed) == (CursorMode.ID, ["m4", "m5"], False)


def test_the_cursor_is_the_last_message_of_the_last_piece() -> None:
    known = digest(piece(1, "* a", 0, 1), piece(2, "* b", 2, 3, created_at=at(4)), piece(1, "* r", level=1, end=3))
    assert cursor_of(known) == Cursor(message=MessageId("m3"), at=at(4))
    assert cursor_of(digest()) == Cursor()
    assert cursor_of(digest(piece(1, "* a", created_at=NEVER))) == Cursor()


def test_what_may_still_change_does_not_wait_yet() -> None:
    growing = [*HISTORY[:3], message(3, done=False), message(4)]
    assert ids(settled_beginning(growing)) == ["m0", "m1", "m2"]
    assert ids(settled_beginning([HISTORY[0], running_tool(1), HISTORY[2]])) == ["m0"]
    assert settled_beginning([message(1, done=False)]) == ()
    assert waiting([message(1, done=False)], digest()) is None


def test_what_a_crash_left_unfinished_does_not_hold_up_what_follows_an_answer() -> None:
    left = [message(0), message(1, done=False), message(2), running_tool(3), message(4), message(5)]
    assert len(settled_beginning(left)) == 6
    behind = replace(message(7, done=False), role=Role.ASSISTANT)
    assert len(settled_beginning([*left, behind])) == 6
