"""States that opencode-observational-memory wrote: from the same input the same window, thresholds and log."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from backstory.adapters.tokens import ExactTokens
from backstory.domain.answers import Finish
from backstory.domain.conversation import Message
from backstory.domain.digest import Piece
from backstory.domain.ids import MessageId
from backstory.domain.observation import ObservationPolicy, due_reflection
from backstory.domain.observation_answers import read_notes
from backstory.domain.observation_cursor import IMPORTED, Cursor, CursorMode, after_cursor, waiting
from backstory.domain.observation_log import appended, render_log
from tests.observed import digest, message, piece

STATES = Path(__file__).parents[4] / "shared" / "seed-stores" / "observational" / ".opencode" / "om-state"
State = Mapping[str, Any]  # Any: JSON

# A state of our own, in that product's form.
OURS: State = {
    "sessionId": "ses_orchard",
    "observations": "Date: Mar 2, 2026\n* 🔴 (09:15) pears to store 2\n* ✅ (09:31) pears moved",
    "lastObservedMessageId": "msg_or_047",
    "lastObservedMessageAt": 1772444820000,
}


def state(number: int) -> State:
    """The sample with that number."""
    found = sorted(STATES.glob(f"*f00{number}*.json"))
    if not found:
        pytest.skip("the older product's samples are not here")
    known: State = json.loads(found[0].read_text(encoding="utf-8"))
    return known


def moment(state: State) -> datetime | None:
    ms = state.get("lastObservedMessageAt")
    return None if ms is None else datetime.fromtimestamp(ms / 1000, tz=UTC)


def cursor(state: State) -> Cursor:
    known = state.get("lastObservedMessageId")
    return Cursor(message=None if known is None else MessageId(known), at=moment(state))


def history(state: State, *, first: int, last: int) -> list[Message]:
    """Messages numbered as in the state, a minute apart, so that its last observed message has its time."""
    prefix, _, number = state["lastObservedMessageId"].rpartition("_")
    at = moment(state)
    assert at is not None
    return [
        replace(message(n), id=MessageId(f"{prefix}_{n:03d}"), created_at=at + timedelta(minutes=n - int(number)))
        for n in range(first, last + 1)
    ]


def taken_over(state: State) -> Piece:
    """The state as an observation of ours."""
    known = cursor(state)
    taken = piece(1, state["observations"], made_by=IMPORTED, created_at=known.at or datetime.fromtimestamp(0, tz=UTC))
    return replace(taken, sources=() if known.message is None else (known.message,))


def size(one: Piece) -> int:
    return ExactTokens().count(one.text)


@pytest.mark.parametrize("number", [0, 1, 4])
def test_with_its_message_listed_the_window_is_what_follows_and_the_rest_is_pruned(number: int) -> None:
    known = state(number) if number else OURS
    listed = history(known, first=24, last=53)
    found = after_cursor(listed, cursor(known))
    assert (found.mode, len(listed) - found.start) == (CursorMode.ID, 6)
    if number:
        assert len(listed) - found.start == known["tailMessagesAfterPrune"]
        assert found.start == known["prunedMessagesCount"]
    ours = waiting(listed, digest(taken_over(known)))
    assert ours is not None
    assert (ours.mode, list(ours.messages)) == (CursorMode.ID, listed[found.start :])


@pytest.mark.parametrize("number", [0, 1, 4])
def test_with_its_message_gone_the_window_goes_by_time(number: int) -> None:
    known = state(number) if number else OURS
    renamed = [replace(m, id=MessageId(f"new_{m.id}")) for m in history(known, first=24, last=53)]
    found = after_cursor(renamed, cursor(known))
    assert (found.mode, found.start) == (CursorMode.TIMESTAMP, 24)
    ours = waiting(renamed, digest(taken_over(known)))
    assert ours is not None
    assert (ours.mode, list(ours.messages)) == (CursorMode.TIMESTAMP, renamed[24:])
    assert waiting(renamed[:24], digest(taken_over(known))) is None


def test_a_new_session_is_observed_from_its_start() -> None:
    known = state(2)
    assert cursor(known) == Cursor()
    assert after_cursor([message(0), message(1)], cursor(known)).mode is CursorMode.NONE


def test_with_neither_message_nor_time_only_the_newest_is_observed() -> None:
    known = state(3)
    lost = Cursor(message=MessageId("msg_of_another_session"))
    listed = history(known, first=0, last=2)
    found = after_cursor(listed, lost)
    assert found.mode.value == known["lastCursorMode"]
    assert len(listed) - found.start == known["tailMessagesAfterPrune"]
    assert found.start == known["prunedMessagesCount"]


def test_a_state_that_knows_a_time_alone_goes_by_it() -> None:
    known = state(5)
    at = moment(known)
    assert at is not None
    listed = [replace(message(n), created_at=at + timedelta(minutes=n - 2)) for n in range(5)]
    found = after_cursor(listed, cursor(known))
    assert (found.mode.value, found.start) == (known["lastCursorMode"], 3)
    ours = waiting(listed, digest(taken_over(known)))
    assert ours is not None
    assert list(ours.messages) == listed[3:]


@pytest.mark.parametrize("number", [1, 2, 3, 4])
def test_its_logs_have_the_sizes_it_says(number: int) -> None:
    pytest.importorskip("splintr")
    known = state(number)
    assert ExactTokens().count(known["observations"]) == known["observationTokens"]


def test_reflection_is_due_at_its_threshold_as_it_was_there() -> None:
    pytest.importorskip("splintr")
    known = state(1)
    tokens = known["observationTokens"]
    for threshold, due in ((210, known["reflectTriggered"]), (tokens + 1, False), (tokens, True)):
        policy = ObservationPolicy(observation_tokens=threshold)
        assert (due_reflection(digest(taken_over(known)), policy, size) is not None) is due


@pytest.mark.parametrize("number", [0, 1, 3, 4, 5])
def test_its_logs_are_written_as_they_were_and_nothing_is_appended_twice(number: int) -> None:
    known = state(number) if number else OURS
    log = known["observations"].strip()
    assert render_log([taken_over(known)]) == log
    assert appended(log, log.replace("\n", "\r\n") + "\r\n") == log
    assert appended(log, log[: len(log) // 2]) == log
    assert appended(log, "* 🟢 (12:00) more") == f"{log}\n\n* 🟢 (12:00) more"


def test_an_answer_without_tags_is_read_as_it_was_there() -> None:
    known = state(3)
    raw = (
        f"{known['observations']}\nCurrent task: {known['currentTask']}\nSuggested response:"
        f" {known['suggestedResponse']}"
    )
    noted = read_notes(raw, finish=Finish.STOP, told="", fits=lambda text: True, may_be_empty=False)
    assert not isinstance(noted, str)
    assert (noted.observations, noted.current_task, noted.suggested_response) == (
        known["observations"],
        known["currentTask"],
        known["suggestedResponse"],
    )
