"""Where results go: colour and tables for a person at a terminal, plain text into a pipe, JSON when asked for."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from backstory.entrypoints.render import Line, Tone
    from backstory.entrypoints.tables import Table

_CODES: dict[Tone, str] = {"strong": "1", "plain": "", "faint": "2", "good": "32", "bad": "31"}
_CONTROL = r"[\x00-\x08\x0b-\x1f\x7f-\x9f]"
_HIDDEN = re.compile(
    "[\x7f-\x9f\xad\u061c\u180e\u200b\u200e\u200f\u202a-\u202e\u2060-\u206f\ufeff\U000e0000-\U000e007f]"
    "|(?<![^\x00-\x7f])[\u200c\u200d]|[\u200c\u200d](?![^\x00-\x7f])"
)
"""Signs that show nothing or turn the reading direction, and joiners beside a plain letter or nothing."""


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
        if self.is_terminal:
            text = _HIDDEN.sub(_json_escape, text)
        write(text + "\n")

    def lines(self, lines: Iterable[Line]) -> None:
        """Print lines, each in its tone."""
        for text, tone in lines:
            write(self._styled(text, tone) + "\n")

    def table(self, table: Table) -> None:
        """Print a table: for a person with a head, cut to the width of the terminal; in a pipe, cells between tabs."""
        if not table.rows:
            self.lines([(table.empty, "faint")] if self.is_terminal else [])
        elif self.is_terminal:
            import shutil

            from backstory.entrypoints.cli.layout import laid_out

            head, *rows = laid_out(_for_terminal(table), terminal_cells=shutil.get_terminal_size().columns)
            self.lines([(head, "strong"), *((row, "plain") for row in rows)])
        else:
            for row in table.rows:
                write("\t".join(map(_one_line, row)) + "\n")

    def nothing(self, text: str) -> None:
        """Say that there was nothing to do; as JSON, a change that is null."""
        if self.as_json:
            self.json({"change": None, "message": text})
        else:
            self.lines([(text, "plain")])

    def note(self, text: str) -> None:
        """Tell something beside the result, on standard error."""
        flush()
        sys.stderr.write(f"backstory: {for_terminal(text)}\n")

    def warn(self, warnings: Sequence[str]) -> None:
        """Tell what is wrong with the settings."""
        for warning in warnings:
            self.note(f"warning: {warning}")

    def _styled(self, text: str, tone: Tone) -> str:
        if not self.is_terminal:
            return text
        text = for_terminal(text)
        code = _CODES[tone]
        return f"\x1b[{code}m{text}\x1b[0m" if code and text and self.is_coloured else text


def write(text: str) -> None:
    """Write to standard output. Raises ResultLost where it takes no more."""
    with _or_lost():
        sys.stdout.write(text)


def flush() -> None:
    """Write out what is held back. Raises ResultLost where standard output takes no more."""
    with _or_lost():
        sys.stdout.flush()


class ResultLost(Exception):
    """Standard output did not take the result. What the command had to do is done."""


@contextmanager
def _or_lost() -> Iterator[None]:
    try:
        yield
    except BrokenPipeError:
        raise
    except OSError as error:
        raise ResultLost(error.strerror or str(error)) from error


@contextmanager
def counting(doing: str, things: str, *, shown: bool) -> Iterator[Callable[[int], None]]:
    """Count up while something runs; a person at a terminal sees how far it is, on standard error."""
    if not (shown and sys.stderr.isatty()):
        yield lambda count: None
        return
    from rich.console import Console
    from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

    columns = (SpinnerColumn(), TextColumn(f"{doing} {{task.completed:,}} {things}"), TimeElapsedColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as progress:
        task = progress.add_task(doing, total=None)
        yield lambda count: progress.advance(task, count)


def _for_terminal(table: Table) -> Table:
    return replace(table, rows=[[for_terminal(_one_line(cell)) for cell in row] for row in table.rows])


def for_terminal(text: str) -> str:
    """Text as a person can trust it on a terminal: nothing moves the cursor, turns the direction or stands unseen.

    Direction marks and signs without width are shown as escapes, such as ``\\u202e``; the two joiners only where they
    join nothing, since scripts and emoji need them.
    """
    text = _without_controls(text)
    return text if text.isascii() else _HIDDEN.sub(_escape, text)


def _escape(sign: re.Match[str]) -> str:
    code = ord(sign[0])
    return f"\\u{code:04x}" if code <= 0xFFFF else f"\\U{code:08x}"


def _json_escape(sign: re.Match[str]) -> str:
    units = sign[0].encode("utf-16-be")
    return "".join(f"\\u{units[at]:02x}{units[at + 1]:02x}" for at in range(0, len(units), 2))


def _one_line(text: str) -> str:
    return " ".join(_without_controls(text).split())


def _without_controls(text: str) -> str:
    """Text without what could move the cursor or colour the terminal; line ends and tabs stay."""
    return re.sub(_CONTROL, "", text) if not text.isprintable() else text


def _takes_everything(encoding: str) -> bool:
    return encoding.lower().replace("-", "").replace("_", "").startswith("utf")
