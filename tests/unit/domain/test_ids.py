"""Ids and the numbers people type."""

from __future__ import annotations

import pytest

from backstory.domain.ids import is_ulid, make_ulid, parse_number


def test_a_ulid_is_its_time_and_its_randomness() -> None:
    assert make_ulid(time_ms=0, randomness=bytes(10)) == "0" * 26
    assert make_ulid(time_ms=(1 << 48) - 1, randomness=b"\xff" * 10) == "7" + "Z" * 25
    assert make_ulid(time_ms=1469918176385, randomness=bytes(10)).startswith("01ARYZ6S41")  # the specification's own


def test_later_ids_sort_later() -> None:
    ids = [
        make_ulid(time_ms=ms, randomness=bytes(9) + bytes([low])) for ms in (0, 1, 40, 10**12) for low in (0, 31, 255)
    ]
    assert ids == sorted(ids)
    assert all(map(is_ulid, ids))


@pytest.mark.parametrize(("time_ms", "size"), [(-1, 10), (1 << 48, 10), (0, 9), (0, 11)])
def test_impossible_parts_are_refused(time_ms: int, size: int) -> None:
    with pytest.raises(ValueError, match=r"time_ms|random bytes"):
        make_ulid(time_ms=time_ms, randomness=bytes(size))


@pytest.mark.parametrize("text", ["", "0" * 25, "0" * 27, "8" + "0" * 25, "I" * 26, "0" * 25 + "u", "0" * 26 + "\n"])
def test_other_texts_are_no_ulid(text: str) -> None:
    assert not is_ulid(text)


@pytest.mark.parametrize(
    ("text", "number"),
    [("#12", 12), (" 7 ", 7), ("9" * 18, 10**18 - 1), ("9" * 19, None), ("0", None), ("#0", None), ("-1", None),
     ("##1", None), ("1.0", None), ("٣", None), ("", None), ("#", None), ("1e3", None)],
)  # fmt: skip
def test_numbers_are_read_as_people_type_them(text: str, number: int | None) -> None:
    assert parse_number(text) == number
