"""The text of an observation log."""

from __future__ import annotations

import random
import time
from datetime import UTC, datetime

import pytest

from backstory.domain.observation_log import (
    LINE_MAX_CHARS,
    added_by,
    appended,
    capped_lines,
    day_heading,
    extract_notes,
    is_degenerate,
    render_log,
    repeats,
    tail,
)
from tests.observed import WordTokens, piece

COUNT = WordTokens().count
FIRST = "Date: Mar 2, 2026\n* 🔴 (09:15) The pears go to the cold store"
SECOND = "* 🟡 (09:40) Cold store 2 holds 4 °C"


@pytest.mark.parametrize(
    ("log", "new", "expected"),
    [
        ("", FIRST, FIRST),
        (FIRST, SECOND, f"{FIRST}\n\n{SECOND}"),
        (FIRST, FIRST, FIRST),
        (FIRST, f"  {FIRST.replace(chr(10), chr(13) + chr(10))}\r\n\r\n", FIRST),
        (FIRST, "* 🔴 (09:15) The pears go to the cold store", FIRST),
        (FIRST, f"{FIRST}\n{SECOND}", f"{FIRST}\n{SECOND}"),
        (FIRST, "", FIRST),
    ],
)
def test_what_a_log_has_already_is_kept_once(log: str, new: str, expected: str) -> None:
    assert appended(log, new) == expected


@pytest.mark.parametrize(
    ("log", "new", "expected"),
    [
        ("", FIRST, FIRST),
        (FIRST, SECOND, SECOND),
        (FIRST, FIRST, ""),
        (FIRST, f"{FIRST}\r\n{SECOND}", SECOND),
        ("pear", "pears and pear trees", "pears and pear trees"),
        (FIRST, f"{SECOND}\n{FIRST}", SECOND),
    ],
)
def test_only_what_is_new_is_added(log: str, new: str, expected: str) -> None:
    assert added_by(log, new) == expected


def test_a_log_is_written_in_the_order_of_the_session_with_what_was_condensed_first() -> None:
    pieces = [
        piece(3, "* third", 4, 5),
        piece(1, "* condensed", level=1, start=0, end=3),
        piece(4, ""),
        piece(4, "* fourth", 6),
    ]
    assert render_log(pieces) == "* condensed\n\n* third\n\n* fourth"
    assert render_log([]) == ""


def test_long_lines_are_cut_and_say_so() -> None:
    text = capped_lines(f"* short\r\n{'x' * (LINE_MAX_CHARS + 5)}\n")
    assert text.splitlines()[0] == "* short"
    assert len(text.splitlines()[1]) == LINE_MAX_CHARS
    assert text.endswith("x…")


SENTENCES = "\n".join(
    f"* 🟡 (10:{n:02d}) Row {n} of orchard {n * 7 % 13} bears {n * 31 % 97} crates" for n in range(60)
)


@pytest.mark.parametrize(
    "text",
    [
        "* the valve is open and the pump runs, as before\n" * 60,
        "the pump runs and " * 200,
        "ab" * 5_000,
        "x" * 50_001,
        SENTENCES + "\n" + "* so the pump runs again and again, day and night\n" * 80,
        "水泵一直在运行。" * 400,
    ],
)
def test_a_text_that_goes_round_in_circles_is_told(text: str) -> None:
    assert is_degenerate(text)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "* the pump runs\n" * 20,
        SENTENCES,
        f"{SENTENCES}\n" + "\n".join("* ✅ done" for _ in range(30)),
        "".join(random.Random(4).choices("abcdefghij klmn\n", k=30_000)),
    ],
)
def test_short_or_varied_texts_do_not_go_round_in_circles(text: str) -> None:
    assert not is_degenerate(text)


@pytest.mark.parametrize("period", [51, 199, 201, 997, 1_201])
def test_a_circle_of_any_length_is_told(period: int) -> None:
    circle = "".join(random.Random(period).choices("abcdefghij klm", k=period))
    assert is_degenerate(circle * max(6, 2_400 // period))
    assert not is_degenerate(circle + "".join(random.Random(1).choices("nopqrst uv", k=5 * period + 2_000)))


@pytest.mark.parametrize("share", [0.3, 0.5])
def test_what_was_there_before_counts_by_its_share(share: float) -> None:
    fresh = "".join(random.Random(5).choices("abcdefghij klm", k=20_000))
    before = fresh[: int(share / (1 - share) * len(fresh))]
    assert is_degenerate(fresh + before) == (share > 0.4)


@pytest.mark.parametrize("unit", ["a", "ab", "水泵", "* 🔴 {n}\n", "{n:07d}" + "a" * 193])
def test_going_round_in_circles_is_told_quickly(unit: str) -> None:
    text = "".join(unit.format(n=n) for n in range(300_000 // len(unit)))
    started = time.process_time()
    is_degenerate(text)
    assert time.process_time() - started < 5


def test_repeating_a_source_is_told_by_its_lines() -> None:
    source = "user: water the pears\nassistant: done\nuser: and the plums"
    assert repeats("water\nassistant: done\nuser: and the plums", source, share=0.6)
    assert not repeats("Date: Mar 2, 2026\n* The user wants the plums watered\nassistant: done", source, share=0.6)
    assert not repeats("", source, share=0.6)


LOG = "\n".join(
    [
        "Date: Mar 2, 2026",
        "* 🔴 (09:00) No machine may enter orchard 3",
        *(f"* 🟢 (09:{n:02d}) row {n} looked at" for n in range(1, 40)),
        "Date: Mar 3, 2026",
        *(f"* 🟡 (10:{n:02d}) row {n} pruned" for n in range(1, 10)),
    ]
)


def test_the_tail_holds_the_newest_notes_and_older_ones_that_weigh_most() -> None:
    shown = tail(LOG, max_tokens=50, count=COUNT)
    assert shown.splitlines()[:3] == ["Date: Mar 2, 2026", "* 🔴 (09:00) No machine may enter orchard 3", "…"]
    assert shown.endswith("* 🟡 (10:09) row 9 pruned")
    assert "row 12" not in shown


@pytest.mark.parametrize("most", [0, 1, 5, 12, 30, 80, 200, 400])
def test_a_tail_is_never_larger_than_asked(most: int) -> None:
    assert COUNT(tail(LOG, max_tokens=most, count=COUNT)) <= most


def test_a_log_that_fits_is_its_own_tail() -> None:
    assert tail(LOG, max_tokens=1_000, count=COUNT) == LOG
    assert tail("", max_tokens=10, count=COUNT) == ""


def test_an_extract_becomes_notes_that_say_so() -> None:
    at = datetime(2026, 3, 2, 9, 5, tzinfo=UTC)
    assert day_heading(at) == "Date: Mar 2, 2026"
    assert extract_notes("[extract of 3 messages]\nUser: water the pears\n\nAssistant: done", at) == (
        "Date: Mar 2, 2026\n* 🟡 (09:05) [extract of 3 messages]\n  * User: water the pears\n  * Assistant: done"
    )
    assert extract_notes("water the pears", at).splitlines()[1:] == ["* 🟡 (09:05) [extract]", "  * water the pears"]
    assert extract_notes(" \n", at) == ""
