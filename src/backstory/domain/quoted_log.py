"""An observation log as lines that a model is shown: quoted and off the margin, where only our own words begin."""

from __future__ import annotations

from backstory.domain.context_block import quote

MARGIN = "  "
_DAY = "Date:"
_DEEPEST = 8  # blanks


def quoted_log(log: str) -> list[str]:
    """The lines of a log; a day is named once for all notes of it that follow one another."""
    written: list[str] = []
    day = ""
    for line in log.splitlines():
        if line.startswith(_DAY):
            if line == day:
                continue
            day = line
        if line.strip():
            written.append(quoted_note(line))
    return written


def quoted_note(line: str) -> str:
    """A line of a log off the margin, where a deeper one tells more about the one above it."""
    depth = min(len(line) - len(line.lstrip(" ")), _DEEPEST)
    return MARGIN + " " * depth + quote(line)
