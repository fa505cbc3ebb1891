"""What capturing costs on huge and hostile prompts: CPU time in step with their length."""

from __future__ import annotations

import pytest

from backstory.domain.capture import MOST_CAPTURED, capture
from tests.captures import cpu_s, kept

MEGABYTE = 1_000_000
CPU_S_PER_MEGABYTE = 1.0
"""Five times the promise of 0.2 s: the clock counts CPU time, which doubles on a machine shared with others, and a slow
one needs twice as much to begin with."""


HUGE = {
    "remember": "remember " * (MEGABYTE // 9),
    "blanks after remember": "remember" + " " * MEGABYTE,
    "blanks, then that": "remember" + " " * MEGABYTE + "that a is b",
    "line breaks": "remember that" + "\n" * MEGABYTE,
    "quotes": "remember that a is b " + '"' * MEGABYTE,
    "open quotes": "'remember that " * (MEGABYTE // 15),
    "base64": "remember that a is b " + "q83vEjRWeJCrze8S" * (MEGABYTE // 16),
    "please": "please " * (MEGABYTE // 7) + "remember that a is b",
    "prose": "Remember that a is b. " + "Nothing to see in here, move along. " * (MEGABYTE // 36),
}


@pytest.mark.parametrize("name", HUGE)
def test_a_megabyte_of_anything_takes_a_fraction_of_a_second(name: str) -> None:
    assert cpu_s(lambda: capture(HUGE[name])) < CPU_S_PER_MEGABYTE


def test_of_thousands_of_requests_the_first_are_kept_and_the_rest_costs_little() -> None:
    text = "\n\n".join(f"remember that box {number} is full" for number in range(10_000))
    assert kept(text) == [f"box {number} is full" for number in range(MOST_CAPTURED)]
    assert cpu_s(lambda: capture(text)) < 2.5  # 6 s when each was read, and every line added to all before


UNITS = (
    *("remember ", "remember that\n", "remember that a is b. ", "remember that a: ", "(remember that a:) ", "please, "),
    *("please\n", "fix a and ", "remember this ", '"a ', "'a ", "'a'a ", "\u201c", "\u2018a", "`a", "``a` ", "```\n"),
    *("<a>", "</a><b ", "<!--", "/*\n", "<private>", "`<private>`", "(", ")", "- a\n", "  - a\n", "> a\n", "\n"),
    *(" \n", "1. ", "? can "),
    *("*", "ERROR: a\n", "a.b:1: c\n", "记住，", "\u0130"),
)


@pytest.mark.parametrize("unit", UNITS)
def test_time_grows_in_step_with_the_text(unit: str) -> None:
    small, large = ("Remember that a is b:\n" + unit * (size // len(unit)) for size in (25_000, 100_000))
    capture(small)
    assert cpu_s(lambda: capture(large)) < 10 * cpu_s(lambda: capture(small)) + 0.02
