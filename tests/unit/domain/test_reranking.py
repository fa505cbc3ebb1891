"""How candidates are shown to a model, and how its choice is read."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from backstory.domain.answers import Finish, Reason, Unusable
from backstory.domain.reranking import ANSWER_MAX_CHARS, CANDIDATE_MAX_CHARS, Choice, numbered, quoted, read_choice


def choose(raw: str | None, finish: Finish = Finish.STOP) -> Choice | Unusable:
    return read_choice(raw, count=4, finish=finish)


@pytest.mark.parametrize(
    ("raw", "positions"),
    [
        ('{"order": [3, 1]}', (2, 0)),
        ('```json\n{"order": [3, 1],}\n```', (2, 0)),
        ("Notes [2] and [4] are off topic.\n{'order': [3, 1]}", (2, 0)),
        ('{"order": ["3", "#1", "[2]"]}', (2, 0, 1)),
        ('{"order": [3, 3, 99, 0, -1, 1, null, true, 1.5]}', (2, 0)),
        ("[4]", (3,)),
        ('{"order": []}', ()),
        ("[]", ()),
        ('{"order": "none"}', ()),
        ('{"order": ["none"]}', ()),
        ('{"order": [], "none": true}', ()),
        ('{"none": true}', ()),
        ("None of them.", ()),
        ("<think>[1]?</think>none", ()),
        ('{"order": [2]} That is: {"order": [2]}', (1,)),
    ],
)
def test_a_choice_is_read(raw: str, positions: tuple[int, ...]) -> None:
    assert choose(raw) == Choice(positions=positions)


@pytest.mark.parametrize(
    "raw",
    [
        None,
        "",
        "Notes 3 and 1 help.",
        '{"order": [99, 0]}',
        '{"order": ["first"]}',
        '{"order": [true]}',
        '{"order": 3}',
        '{"order": null}',
        '{"order": [1], "none": true}',
        '{"order": [1]} or rather {"order": [2]}',
        '{"ranking": [1]}',
        '{"order": [1, 2',
        "I'm sorry, I cannot help with that.",
        '{"error": "overloaded"}',
        "[1] and then [2]",
    ],
)
def test_what_is_no_single_choice_is_refused_rather_than_taken_for_none(raw: str | None) -> None:
    assert isinstance(choose(raw), Unusable)


def test_a_choice_that_ran_out_of_room_is_refused() -> None:
    assert choose('{"order": [1, 2]', Finish.LENGTH) == Unusable(reason=Reason.TRUNCATED)


def test_candidates_are_numbered_from_one() -> None:
    assert numbered(["Tea at four", "Bread"]) == '1. "Tea at four"\n2. "Bread"'


def test_a_long_candidate_is_cut_and_says_so() -> None:
    shown = json.loads(quoted("ab " * 400, max_chars=CANDIDATE_MAX_CHARS))
    assert len(shown) <= CANDIDATE_MAX_CHARS + 1
    assert shown.endswith("…")


HOSTILE = st.text() | st.lists(
    st.sampled_from(['"', "\\", "\n", "\u2028", "</notes>", "< /notes>", "<notes>", "[INST]", "1. ", "<|im_end|>", "x"])
).map("".join)


@given(HOSTILE)
def test_no_text_leaves_its_quotation_marks_its_line_or_the_list(text: str) -> None:
    shown = quoted(text, max_chars=CANDIDATE_MAX_CHARS)
    assert len(shown.splitlines()) == 1
    assert isinstance(json.loads(shown), str)
    assert "</notes" not in shown
    assert "<|" not in shown
    assert "[INST]" not in shown


@given(st.text() | st.binary().map(repr))
def test_no_answer_raises_and_every_position_is_one_that_was_given(raw: str) -> None:
    read = choose(raw)
    assert isinstance(read, Unusable) or all(0 <= position < 4 for position in read.positions)


def test_an_answer_without_end_is_not_read() -> None:
    assert choose('{"order": [1]}' + " " * ANSWER_MAX_CHARS) == Unusable(reason=Reason.TOO_LONG)
