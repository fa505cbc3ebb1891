"""Where results go: colour and tables for a person at a terminal, plain text into a pipe, JSON when asked for."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from backstory.entrypoints.render import Line, Table, Tone

_CODES: dict[Tone, str] = {"strong": "1", "plain": "", "faint": "2", "good": "32", "bad": "31"}
_CONTROL = r"[\x00-\x08\x0b-\x1f\x7f-\x9f]"


class Output:
    """Standard output and standard error of one command."""

    def __init__(self, *, as_json: bool) -> None:
        self.as_json = as_json
        self.is_terminal = sys.stdout.isatty()
        self.is_coloured = self.is_terminal and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"

    def json(self, value: object) -> None:
        """Print a value as JSON; in escapes where the output cannot take every character."""
        import json

        text = json.dumps(value, indent=2, ensure_ascii=not _takes_everything(sys.stdout.encoding))
        sys.stdout.write(text + "\n")

    def lines(self, lines: Iterable[Line]) -> None:
        """Print lines, each in its tone."""
        for text, tone in lines:
            sys.stdout.write(self._styled(text, tone) + "\n")

    def table(self, table: Table) -> None:
        """Print a table: for a person with a head, cut to the width of the terminal; in a pipe, cells between tabs."""
        if not table.rows:
            self.lines([(table.empty, "faint")] if self.is_terminal else [])
        elif self.is_terminal:
            _print_rich(table, coloured=self.is_coloured)
        else:
            for row in table.rows:
                sys.stdout.write("\t".join(map(_one_line, row)) + "\n")

    def note(self, text: str) -> None:
        """Tell something beside the result, on standard error."""
        sys.stdout.flush()
        sys.stderr.write(f"backstory: {_without_controls(text)}\n")

    def warn(self, warnings: Sequence[str]) -> None:
        """Tell what is wrong with the settings."""
        for warning in warnings:
            self.note(f"warning: {warning}")

    def _styled(self, text: str, tone: Tone) -> str:
        if not self.is_terminal:
            return text
        text = _without_controls(text)
        code = _CODES[tone]
        return f"\x1b[{code}m{text}\x1b[0m" if code and text and self.is_coloured else text


def _print_rich(table: Table, *, coloured: bool) -> None:
    from rich.console import Console
    from rich.table import Table as RichTable
    from rich.text import Text

    grid = RichTable(box=None, pad_edge=False, header_style="bold" if coloured else None)
    for column in table.columns:
        grid.add_column(
            column.title,
            justify="right" if column.is_number else "left",
            overflow="ellipsis",
            no_wrap=not column.wraps,
            ratio=1 if column.is_wide else None,
        )
    for row in table.rows:
        grid.add_row(*(Text(_one_line(cell)) for cell in row))
    Console(highlight=False, no_color=not coloured).print(grid)


def _one_line(text: str) -> str:
    return " ".join(_without_controls(text).split())


def _without_controls(text: str) -> str:
    """Text without what could move the cursor or colour the terminal; line ends and tabs stay."""
    return re.sub(_CONTROL, "", text) if not text.isprintable() else text


def _takes_everything(encoding: str) -> bool:
    return encoding.lower().replace("-", "").replace("_", "").startswith("utf")
