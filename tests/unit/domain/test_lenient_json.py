"""JSON as models write it."""

from __future__ import annotations

import time

import pytest

from backstory.domain.lenient_json import MAX_DEPTH, Cut, find_json


def only(text: str) -> object:
    (found,) = find_json(text)
    assert found.cut is Cut.NO
    return found.value


def seconds(text: str) -> float:
    """The shortest time of three readings."""
    taken = []
    for _ in range(3):
        started = time.process_time()
        find_json(text)
        taken.append(time.process_time() - started)
    return min(taken)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ('{"a": [1, 2.5, true, null]}', {"a": [1, 2.5, True, None]}),
        ("{'a': 'it''s'}", {"a": "it''s"}),
        ("{'a': 'don't stop'}", {"a": "don't stop"}),
        ('{"a": "he said "go" and went"}', {"a": 'he said "go" and went'}),
        ('{"say": "the flag "-v": verbose"}', {"say": 'the flag "-v": verbose'}),
        ("[1, 2,]", [1, 2]),
        ("{a: 1, b-c: 2,}", {"a": 1, "b-c": 2}),
        ('["x" "y"\n"z"]', ["x", "y", "z"]),
        ('{"a": 1 "b": 2}', {"a": 1, "b": 2}),
        ("[True, False, None, undefined, NaN]", [True, False, None, None, None]),
        ("[1, // one\n 2 /* two */, ]", [1, 2]),
        ("[“curly”, „low”, «pointed», ‘single’]", ["curly", "low", "pointed", "single"]),
        (r'["C:\dev \q \u12"]', [r"C:\dev \q \u12"]),
        (r"['\u00e9 \n \' \/']", ["é \n ' /"]),
        ('["line\nbreak"]', ["line\nbreak"]),
        ('{"a": [1], "a": [2], "b": 1, "b": 2}', {"a": [1, 2], "b": 2}),
        ("{'a': ['x'], 'a': ['y'], }", {"a": ["x", "y"]}),
        (r'{"k\u0000": ["a\ud800b", "\ud83d\ude80"]}', {"k": ["a�b", "🚀"]}),
        ("[-1.5e3, +2, .5, ]", [-1500.0, 2, 0.5]),
        ('["http://a.example//b", ]', ["http://a.example//b"]),
    ],
)
def test_what_was_meant_is_read(text: str, value: object) -> None:
    assert only(text) == value


@pytest.mark.parametrize(
    "text", ["", "null", "7", '"a"', "a [draft] of {this}", "f(x) { return x; }", "[1 2]", "{:}", "[,]"]
)
def test_what_is_no_object_and_no_list_is_not_found(text: str) -> None:
    assert find_json(text) == []


def test_values_are_found_in_prose_in_their_order() -> None:
    found = find_json('See [1] and {name}: {"a": {"b": [2]}} then [[3], 4] and ] or }.')
    assert [one.value for one in found] == [[1], {"a": {"b": [2]}}, [[3], 4]]


@pytest.mark.parametrize(
    ("text", "value", "cut"),
    [
        ('{"a": ["x"', {"a": ["x"]}, Cut.BRACKETS),
        ('{"a": ["x"]', {"a": ["x"]}, Cut.BRACKETS),
        ('{"a": ["x", ', {"a": ["x"]}, Cut.MIDDLE),
        ('{"a": ["x", "y', {"a": ["x"]}, Cut.MIDDLE),
        ('{"a": 1, "b": 12', {"a": 1}, Cut.MIDDLE),
        ('{"a": 1, "b"', {"a": 1}, Cut.MIDDLE),
        ('{"a": 1, "b":', {"a": 1}, Cut.MIDDLE),
        ("[tru", [], Cut.MIDDLE),
        ("{", {}, Cut.BRACKETS),
    ],
)
def test_a_value_that_was_cut_says_where_and_keeps_no_halves(text: str, value: object, cut: Cut) -> None:
    (found,) = find_json(text)
    assert (found.value, found.cut) == (value, cut)


def test_nesting_beyond_the_limit_makes_a_text_unreadable() -> None:
    assert only("[" * MAX_DEPTH + "]" * MAX_DEPTH)
    assert find_json("[1] " + "[" * (MAX_DEPTH + 2) + "]" * (MAX_DEPTH + 2)) == []
    assert find_json("[1] " + "[" * 50_000) == []


@pytest.mark.parametrize("piece", ["{", "[1,", '{"a":', '["', '["a" ', "['", "[/*", "[1],", '[" \\', "[“"])
def test_time_grows_with_the_text_and_no_faster(piece: str) -> None:
    assert seconds(piece * 16_000 + "@") < 40 * max(seconds(piece * 2_000 + "@"), 0.001)


def test_a_key_that_is_given_again_and_again_costs_no_more_than_others() -> None:
    assert find_json('{"a": [1], "a": [2], "a": 3, "a": [4]}')[0].value == {"a": [4]}
    assert find_json('{"a": [1], "a": [2]}')[0].value == {"a": [1, 2]}
    again = '"a": [1], '
    assert seconds("{" + again * 32_000 + "}") < 40 * max(seconds("{" + again * 4_000 + "}"), 0.001)
