"""``export`` and ``import``: memories as JSON lines, out and in."""

from __future__ import annotations

import os
import stat
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

import click

from backstory.entrypoints.cli.background import embed_in_background
from backstory.entrypoints.cli.command import command
from backstory.entrypoints.cli.invocation import Invocation
from backstory.entrypoints.cli.output import counting
from backstory.entrypoints.cli.standard_input import STANDARD_INPUT, input_stream
from backstory.entrypoints.drive import drive
from backstory.entrypoints.errors import USAGE

_UNREADABLE = "(not UTF-8)"


@command("export")
@click.argument(
    "file",
    required=False,
    default="-",
    metavar="[FILE]",
    type=click.Path(dir_okay=False, allow_dash=True, path_type=Path),
)
@click.option("--forgotten", is_flag=True, help="With what was forgotten.")
@click.option("--private", is_flag=True, help="With private memories.")
@click.option("--all-projects", is_flag=True, help="With other projects' memories.")
def export(here: Invocation, file: Path, forgotten: bool, private: bool, all_projects: bool) -> None:
    """Write memories to FILE as JSON lines.

    Oldest first, without FILE to standard output. The format is in docs/reference/jsonl-format.md. Local-only memories
    are left out, private ones unless asked for. An existing file is replaced once the new one is complete.
    """
    if forgotten:
        here.person_only("exports what was forgotten")
    with here.opened(all_projects=all_projects) as desk:
        lines = drive(desk.app.transfer.export(desk.viewer, with_forgotten=forgotten, with_private=private))
        if str(file) == STANDARD_INPUT:
            count = _write(sys.stdout.buffer, lines)
            sys.stdout.buffer.flush()
            return
        with _replacing(file) as sink:
            count = _write(sink, lines)
    exported = max(count - 1, 0)  # the first line is the header
    if here.out.as_json:
        here.out.json({"exported": exported, "file": str(file)})
    else:
        here.out.lines([(f"Exported {exported} memories to {file}", "good")])


@command("import")
@click.argument(
    "file", metavar="FILE", type=click.Path(exists=True, dir_okay=False, readable=True, allow_dash=True, path_type=Path)
)
@click.option("--dry-run", is_flag=True, help="Show what would be imported, and change nothing.")
@click.option("--trust", is_flag=True, help="Believe the file that its memories are your own words.")
@click.option("--keep-projects", is_flag=True, help="Leave memories in their projects, not in this one.")
def import_(here: Invocation, file: Path, dry_run: bool, trust: bool, keep_projects: bool) -> int:
    """Import memories from FILE.

    As `backstory export` writes them; with - from standard input. Importing twice changes nothing more, and a memory
    that was changed here since is left alone. Lines that cannot be imported are listed, do not stop the others, and
    make the exit code 2.
    """
    with here.opened(create=not dry_run) as desk, _reading(file) as source:
        with counting("Importing", "lines", shown=not here.out.as_json) as advance:
            report = drive(
                desk.app.transfer.load(
                    _texts(source, advance),
                    desk.viewer,
                    dry_run=dry_run,
                    keep_projects=keep_projects,
                    trusted=trust,
                )
            )
        if here.out.as_json:
            from backstory.entrypoints.shapes import import_shape

            here.out.json(import_shape(report, dry_run=dry_run))
        else:
            from backstory.entrypoints.render import import_lines

            here.out.lines(import_lines(report, dry_run=dry_run))
        if report.changes:
            embed_in_background(here, desk)
    return USAGE if report.refused else 0


@contextmanager
def _reading(file: Path) -> Iterator[BinaryIO]:
    if str(file) == STANDARD_INPUT:
        yield input_stream()
        return
    with file.open("rb") as source:
        yield source


def _texts(source: BinaryIO, advance: Callable[[int], None]) -> Iterator[str]:
    """The lines of a file; one that is not UTF-8 becomes one that cannot be imported, so that it is reported."""
    for number, line in enumerate(source):
        try:
            yield line.decode("utf-8-sig" if number == 0 else "utf-8")
        except UnicodeDecodeError:
            yield _UNREADABLE
        advance(1)


def _write(sink: BinaryIO, lines: Iterable[str]) -> int:
    count = 0
    for count, line in enumerate(lines, start=1):  # noqa: B007 - the count is the result
        sink.write(line.encode("utf-8", "surrogatepass") + b"\n")
    return count


@contextmanager
def _replacing(file: Path) -> Iterator[BinaryIO]:
    """A file that takes the place of ``file`` once it is complete; whatever is no regular file is written directly.

    Memories are personal: a new file is readable by its owner only.
    """
    if file.exists() and not stat.S_ISREG(file.stat().st_mode):
        with file.open("wb") as sink:
            yield sink
        return
    target = file.resolve()
    partial = target.with_name(f".{target.name}.{os.getpid()}.part")
    try:
        with os.fdopen(os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as sink:
            yield sink
            sink.flush()
            os.fsync(sink.fileno())
        partial.replace(target)
    finally:
        partial.unlink(missing_ok=True)
