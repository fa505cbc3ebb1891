"""Where a prompt shows code or pasted output: fences, block quotes, logs, patches, comments, code spans.

What stands in elements and quotation marks, and what becomes of all of it, is ``markup.py``.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache

Span = tuple[int, int]


def fences(text: str) -> Iterator[Span]:
    """Fenced blocks; one that is never closed runs to the end."""
    start, opening = 0, ""
    for match in _fence_line().finditer(text):
        marks, rest = match.group("marks"), match.group("rest")
        if not opening:
            if not (marks[0] == "`" and "`" in rest):  # a code span of three backticks on one line
                start, opening = match.start(), marks
        elif marks.startswith(opening) and not rest.strip() and not match.group("item"):
            yield start, match.end()
            opening = ""
    if opening:
        yield start, len(text)


@cache
def _fence_line() -> re.Pattern[str]:
    return re.compile(
        r"^(?>[^\S\n]*)(?=[-*+\d`~])(?P<item>(?:[-*+]|\d{1,4}[.)])[^\S\n]+)?(?P<marks>`{3,}|~{3,})(?P<rest>[^\n]*)",
        re.MULTILINE,
    )


@cache
def shown_lines() -> re.Pattern[str]:
    """Runs of lines that were pasted: block quotes, patches, log lines, compiler and grep output, shell, comments."""
    blanks = r"(?>[^\S\n]*)"
    patch_line = r"(?:\n(?:[ +\-\\@]|(?:diff|index|new|deleted|old|similarity|rename|copy|Binary) )[^\n]*)*"
    levels = "TRACE|DEBUG|INFO|NOTICE|WARN|WARNING|ERROR|SEVERE|FATAL|CRITICAL"
    months = "Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec"
    starts = (
        rf">[^\n]*(?:\n{blanks}>[^\n]*)*",
        rf"(?:diff --git |@@ [-+\d, ]+ @@|--- \S[^\n]*\n\+\+\+ \S|index [0-9a-f]{{6,40}}\.\.)[^\n]*{patch_line}",
        r"\[?\d{4}-\d\d-\d\d[T ]\d\d:\d\d[^\n]*",
        r"\[?\d\d:\d\d:\d\d\b[^\n]*",
        rf"(?:{months}) {{1,2}}\d{{1,2}} \d\d:\d\d:\d\d[^\n]*",
        rf"\[?(?:{levels})[\]: \t][^\n]*",
        r"(?:E {1,8})?(?:[\w.]{1,100}(?:Error|Exception|Warning):|Traceback )[^\n]*",
        r"(?=[^\s:`]{0,200}[./])[^\s:`]{1,200}:\d+(?::\d+)?:[^\n]*",
        r"\$ [^\n]*",
        r"//[^\n]*",
    )
    return re.compile(rf"^{blanks}(?=\S)(?:" + "|".join(starts) + ")", re.MULTILINE)


def block_comments(text: str) -> Iterator[Span]:
    """Comments of C-like languages that begin a line; one that is never closed hides nothing."""
    done = 0
    for match in re.finditer(r"^(?>[^\S\n]*)/\*", text, re.MULTILINE):
        if match.start() < done:
            continue
        end = text.find("*/", match.end())
        if end < 0:
            return
        done = end + 2
        yield match.start(), done


def code_spans(text: str) -> Iterator[Span]:
    """Inline code as CommonMark reads it: a run of backticks up to the next run as long, inside one paragraph."""
    if "`" not in text:
        return
    runs: list[Span] = []
    for match in _backticks_or_gap().finditer(text):
        if match.group()[0] == "`":
            runs.append(match.span())
        elif runs:
            yield from _pair_runs(runs)
            runs = []
    yield from _pair_runs(runs)


@cache
def _backticks_or_gap() -> re.Pattern[str]:
    return re.compile(r"`+|\n(?>(?:[^\S\n]*\n)+)")


def _pair_runs(runs: list[Span]) -> Iterator[Span]:
    partner: dict[int, int] = {}
    latest: dict[int, int] = {}
    for index in range(len(runs) - 1, -1, -1):
        length = runs[index][1] - runs[index][0]
        if length in latest:
            partner[index] = latest[length]
        latest[length] = index
    index = 0
    while index < len(runs):
        closing = partner.get(index)
        if closing is not None:
            yield runs[index][0], runs[closing][1]
            index = closing
        index += 1
