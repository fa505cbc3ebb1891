"""``export``: memories out, as JSON lines or as stores of another product."""

from __future__ import annotations

import errno
import os
import stat
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

import click

from backstory.entrypoints.cli.command import command
from backstory.entrypoints.cli.invocation import Desk, Invocation
from backstory.entrypoints.cli.output import counting
from backstory.entrypoints.cli.standard_input import STANDARD_INPUT
from backstory.entrypoints.counted import counted, memories_counted
from backstory.entrypoints.drive import drive

if TYPE_CHECKING:
    from backstory.entrypoints.export_views import StoreWritten
    from backstory.services.exporting import ExportPolicy

_LINES = "backstory"


@command("export")
@click.argument("place", required=False, default=STANDARD_INPUT, metavar="[PLACE]")
@click.option("--format", "format_name", default=_LINES, metavar="NAME", help="The format.  [default: backstory]")
@click.option(
    "--with",
    "holds",
    metavar="LIST",
    default="",
    help="Also history, sessions or keepsakes (what another product's store said beside them); several with commas.",
)
@click.option("--everything", is_flag=True, help="With all three of them.")
@click.option("--forgotten", is_flag=True, help="With what was forgotten.")
@click.option("--private", is_flag=True, help="With private memories.")
@click.option("--all-projects", is_flag=True, help="With other projects' memories.")
@click.option("--force", is_flag=True, help="Also into a folder that holds something else.")
def export(
    here: Invocation, place: str, format_name: str, holds: str, everything: bool, forgotten: bool, private: bool,
    all_projects: bool, force: bool,
) -> None:  # fmt: skip
    """Write memories to PLACE.

    As JSON lines, or in the format of another product. Without PLACE to standard output; oldest first. The lines are
    described in docs/reference/jsonl-format.md. Local-only memories are left out, private ones unless asked for. An
    existing file is replaced once the new one is complete. In another format, what came from a store of it goes back to
    that store's place below PLACE, whatever project it belongs to, and the rest to the main one; `backstory import
    --list` lists the formats.
    """
    from backstory.services.exporting import ExportPolicy

    if forgotten:
        here.person_only("exports what was forgotten")
    parts = _parts(holds, everything=everything)
    with here.opened(all_projects=all_projects) as desk:
        policy = ExportPolicy(forgotten=forgotten, private=private, whole_stores=all_projects or _is_person(desk))
        if format_name != _LINES:
            _refuse_parts(parts)
            _export_stores(here, desk, place, format_name, policy, force=force)
            return
        lines = _lines(desk, policy, parts)
        if place == STANDARD_INPUT:
            _write(sys.stdout.buffer, lines)
            sys.stdout.buffer.flush()
            if held := _held_back(desk, policy):
                here.out.note(held)
            return
        with _replacing(_file(place)) as sink, counting("Exporting", "lines", shown=not here.out.as_json) as advance:
            exported = max(_write(sink, _told(lines, advance)) - 1, 0)  # the first line is the header
        held = _held_back(desk, policy)
    if here.out.as_json:
        here.out.json({"exported": exported, "file": place})
    else:
        things = counted(exported, "record") if parts else memories_counted(exported)
        here.out.lines([(f"Exported {things} to {place}", "good")])
        if held:
            here.out.note(held)


def _held_back(desk: Desk, policy: ExportPolicy) -> str | None:
    """What was left out for being local-only or private; None where there is nothing of the kind."""
    from backstory.domain.memory import Sensitivity
    from backstory.domain.selection import EVERY_STATE, WITH_SUPERSEDED, Selection

    states = EVERY_STATE if policy.forgotten else WITH_SUPERSEDED | {"expired"}
    told = []
    for sensitivity in (Sensitivity.LOCAL_ONLY, *(() if policy.private else (Sensitivity.PRIVATE,))):
        chosen = Selection(viewer=desk.viewer, now=desk.app.clock.now(), states=states, sensitivity=sensitivity)
        if count := drive(desk.app.backend.memories.count(chosen)):
            how = " (--private takes them along)" if sensitivity is Sensitivity.PRIVATE else ""
            told.append(f"{count:,} {sensitivity.value}{how}")
    return f"left out: {', '.join(told)}" if told else None


def _is_person(desk: Desk) -> bool:
    from backstory.domain.scope import Audience

    return desk.viewer.audience is Audience.PERSON


def _parts(holds: str, *, everything: bool) -> tuple[str, ...]:
    from backstory.services.exporting_lines import HOLDS, MEMORIES

    known = [name for name in HOLDS if name != MEMORIES]
    wanted = [name.strip() for name in holds.split(",") if name.strip()]
    if unknown := [name for name in wanted if name not in known]:
        raise click.BadParameter(f"{unknown[0]!r} is not known; known are {', '.join(known)}", param_hint="--with")
    return tuple(known if everything else wanted)


def _refuse_parts(parts: Sequence[str]) -> None:
    if parts:
        raise click.UsageError("--with and --everything are for the format backstory; others hold what they can")


def _lines(desk: Desk, policy: ExportPolicy, parts: Sequence[str]) -> Iterator[str]:
    if not parts:
        return drive(
            desk.app.transfer.export(desk.viewer, with_forgotten=policy.forgotten, with_private=policy.private)
        )
    from backstory.bootstrap.exchange import READERS
    from backstory.bootstrap.transfers import exporting_lines

    return exporting_lines(desk.app, drive).lines(desk.viewer, policy, holds=parts, formats=READERS)


def _file(place: str) -> Path:
    path = Path(place)
    if path.is_dir():
        raise click.UsageError(f"{place} is a folder; name a file")
    if not path.parent.is_dir():
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), str(path.parent))
    return path


def _export_stores(
    here: Invocation, desk: Desk, place: str, format_name: str, policy: ExportPolicy, *, force: bool
) -> None:
    from backstory.bootstrap.exchange import check_target, writer
    from backstory.entrypoints.export_views import StoreWritten, export_lines, export_shape

    if place == STANDARD_INPUT:
        raise click.UsageError(f"name a PLACE: {format_name} is no format for standard output")
    writing = writer(format_name)
    stores = drive(desk.app.exporting.stores(format_name, desk.viewer, policy, run=drive))
    target = Path(place).resolve()
    check_target(target, format_name, [store.label for store in stores], force=force)
    done: list[StoreWritten] = []
    with counting("Exporting", "stores", shown=not here.out.as_json) as advance:
        for store in stores:
            into = target / store.label
            into.parent.mkdir(parents=True, exist_ok=True)
            written = writing.write(store, into)
            written.left_out += store.kept_back
            done.append(StoreWritten(label=store.label, place=str(into), written=written))
            advance(1)
    if here.out.as_json:
        here.out.json(export_shape(done, format_name=format_name, place=place))
    else:
        here.out.lines(export_lines(done, format_name=format_name))


def _told(lines: Iterable[str], advance: Callable[[int], None]) -> Iterator[str]:
    for line in lines:
        yield line
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
