"""The observation log as text: how notes are joined, cut to a tail, checked for going round in circles, written down.

Notes are lines (``* 🔴 (09:15) …``) under headings with their day (``Date: Mar 2, 2026``). Whoever wrote them, they are
text like any other: nothing here relies on their form.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from datetime import datetime

from backstory.domain.digest import Piece
from backstory.domain.truncation import truncate_chars

LINE_MAX_CHARS = 10_000
DEGENERATE_MIN_CHARS = 2_000
DEGENERATE_LINE_CHARS = 50_000
"""These sizes, and the shares below, are those of Mastra's observational memory."""
_WINDOW_CHARS = 200
_WINDOWS_LOOKED_AT = 200  # of any text: enough for a share, and a look takes a search
_WINDOWS_REPEATED = 0.4
_LONG_LINE_CHARS = 20
_LINES_REPEATED = 0.5
_TAIL_SHARE = 0.7  # of the room, for the newest notes whatever they say; the rest is for older ones that weigh most

URGENT = "🔴"
LESSER = ("🟡", "🟢")
DONE = "✅"
"""What a note begins with, by its weight, or that it is settled."""
_MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")
_EXTRACT_HEAD = "[extract"
_HEADING = re.compile(r"\s*Date:\s*\S")


def normal(text: str) -> str:
    """The text with plain line breaks, trimmed."""
    return text.replace("\r\n", "\n").replace("\r", "\n").strip()


def appended(log: str, new: str) -> str:
    """The log with new notes behind it; of two that are equal, or of which one holds the other, the longer alone."""
    log, new = normal(log), normal(new)
    if new in log:
        return log
    return new if log in new else f"{log}\n\n{new}"


def added_by(log: str, new: str) -> str:
    """What of new notes the log does not have yet: nothing if it holds them; the rest if they repeat it as a whole."""
    log, new = normal(log), normal(new)
    if new in log:
        return ""
    return normal(f"\n{new}\n".replace(f"\n{log}\n", "\n", 1)) if log else new


def render_log(pieces: Iterable[Piece]) -> str:
    """What pieces say, by the place of what they stand for: what was condensed comes before what is newer."""
    log = ""
    for piece in sorted(pieces, key=lambda piece: (piece.start, piece.end, -piece.level)):
        log = appended(log, piece.text)
    return log


def capped_lines(text: str) -> str:
    """The text with lines of at most ``LINE_MAX_CHARS``, and no blanks at their ends."""
    lines = (line.rstrip() for line in normal(text).split("\n"))
    return "\n".join(
        line if len(line) <= LINE_MAX_CHARS else truncate_chars(line, LINE_MAX_CHARS - 1) + "…" for line in lines
    )


def is_degenerate(text: str) -> bool:
    """Whether a text goes round in circles, as a model does that has lost itself; short texts never do."""
    if len(text) < DEGENERATE_MIN_CHARS:
        return False
    lines = [line.strip() for line in text.splitlines()]
    if any(len(line) > DEGENERATE_LINE_CHARS for line in lines):
        return True
    long = [line for line in lines if len(line) >= _LONG_LINE_CHARS]
    return _repeated(long) > _LINES_REPEATED or _windows_repeated(text) > _WINDOWS_REPEATED


def repeats(text: str, source: str, *, share: float) -> bool:
    """Whether more than ``share`` of a text's lines stand in ``source`` word for word; headings do not count."""
    said = {line.strip() for line in source.splitlines()}
    lines = [line.strip() for line in text.splitlines() if line.strip() and not _HEADING.match(line)]
    return sum(line in said for line in lines) > share * len(lines)


def tail(log: str, *, max_tokens: int, count: Callable[[str], int]) -> str:
    """The end of a log in at most ``max_tokens``: its newest notes, and of the older ones those marked 🔴, newest
    first, each day's heading with them while there is room. ``…`` stands where something was left out."""
    lines = [line for line in normal(log).split("\n") if line.strip()]
    costs = [count(line + "\n") for line in lines]
    if sum(costs) <= max_tokens:
        return "\n".join(lines)
    kept: set[int] = set()
    gap = count("…\n")
    left = max_tokens - gap
    at = len(lines) - 1
    while at >= 0 and costs[at] <= left - (1 - _TAIL_SHARE) * max_tokens:
        kept.add(at)
        left -= costs[at]
        at -= 1
    for older in range(at, -1, -1):
        wanted = {older, *_heading_of(lines, older)} - kept
        cost = sum(costs[line] for line in wanted) + gap
        if URGENT in lines[older] and cost <= left:
            kept |= wanted
            left -= cost
    return "\n".join(_with_gaps(lines, kept))


def _heading_of(lines: Sequence[str], at: int) -> list[int]:
    found = next((above for above in range(at, -1, -1) if _HEADING.match(lines[above])), None)
    return [] if found is None else [found]


def _with_gaps(lines: Sequence[str], kept: set[int]) -> list[str]:
    shown: list[str] = []
    before = -1
    for at in sorted(kept):
        if at != before + 1:
            shown.append("…")
        shown.append(lines[at])
        before = at
    return shown


def day_heading(moment: datetime) -> str:
    """``Date: Mar 2, 2026``, the day of a moment in its own zone."""
    return f"Date: {_MONTHS[moment.month - 1]} {moment.day}, {moment.year}"


def extract_notes(extract: str, at: datetime) -> str:
    """An extract (``extract.extract_digest``) as notes under the day and time of ``at``; empty for an empty one."""
    lines = [line.rstrip() for line in normal(extract).split("\n") if line.strip()]
    if not lines:
        return ""
    head, rest = (lines[0], lines[1:]) if lines[0].startswith(_EXTRACT_HEAD) else (f"{_EXTRACT_HEAD}]", lines)
    return "\n".join([day_heading(at), f"* 🟡 ({at:%H:%M}) {head}", *(f"  * {line}" for line in rest)])


def _windows_repeated(text: str) -> float:
    """The share of the stretches of ``_WINDOW_CHARS`` characters that were there before, wherever that was.

    Looked at are stretches all over the text; each is searched for at every place before its own, so that a circle of
    any length is found.
    """
    last = len(text) - _WINDOW_CHARS
    places = range(0, last + 1, max(last // _WINDOWS_LOOKED_AT, 1))
    before = (text.find(text[at : at + _WINDOW_CHARS], 0, at + _WINDOW_CHARS - 1) >= 0 for at in places)
    return sum(before) / len(places)


def _repeated(items: Sequence[object]) -> float:
    """The share of items that were there before."""
    return 1 - len(set(items)) / len(items) if items else 0.0
