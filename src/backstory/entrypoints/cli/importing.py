"""``import``: stores of this product and of others, in."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

import click

from backstory.entrypoints.bulk import rarely_collecting
from backstory.entrypoints.cli.background import embed_in_background
from backstory.entrypoints.cli.command import command
from backstory.entrypoints.cli.contradictions import refuse_both
from backstory.entrypoints.cli.invocation import Desk, Invocation
from backstory.entrypoints.cli.output import counting
from backstory.entrypoints.cli.standard_input import STANDARD_INPUT, input_stream
from backstory.entrypoints.drive import drive
from backstory.entrypoints.errors import USAGE

if TYPE_CHECKING:
    from backstory.domain.interchange import ForeignRecord
    from backstory.entrypoints.import_views import StoreReport
    from backstory.ports.formats import FoundStore
    from backstory.services.import_report import ImportReport
    from backstory.services.imported_memories import ImportPolicy

_CHUNK_BYTES = 1 << 20


@command("import")
@click.argument("places", nargs=-1, metavar="[PLACE]...")
@click.option("--format", "format_name", metavar="NAME", help="Read it as this format; else it is found out.")
@click.option("--dry-run", is_flag=True, help="Show what would be imported, and change nothing.")
@click.option("--trust", is_flag=True, help="Believe the file that its memories are your own words.")
@click.option("--here", "all_here", is_flag=True, help="Everything into this project.")
@click.option("--keep-projects", is_flag=True, help="Leave memories in their projects, not in this one.")
@click.option("--list", "list_formats", is_flag=True, help="List the formats, and import nothing.")
def import_(
    here: Invocation, places: tuple[str, ...], format_name: str | None, dry_run: bool, trust: bool, all_here: bool,
    keep_projects: bool, list_formats: bool,
) -> int:  # fmt: skip
    """Import memories and sessions from PLACE.

    A file, a folder with any number of stores, the address of a database, `-` for standard input, or the name of a
    format for where it usually is, such as `opencode`. Importing twice changes nothing more, and what was changed here
    since is left alone. Memories of other products stay in the projects of their folders; those of a
    `backstory export` come into this one, unless its file names the projects. Records that cannot be imported are
    listed, do not stop the others, and make the exit code 2.
    """
    refuse_both("--list", list_formats, "a PLACE", bool(places))
    refuse_both("--here", all_here, "--keep-projects", keep_projects)
    if list_formats:
        return _list_formats(here)
    if not places:
        raise click.UsageError("name a PLACE to import from, or --list")
    if trust:
        here.person_only("vouches for a file")
    with ExitStack() as stack:
        readable = {stack.enter_context(_readable(place)): place for place in places}
        found = _found(readable, format_name)
        desk = stack.enter_context(here.opened(create=not dry_run))
        reports = _import_all(here, desk, found, dry_run=dry_run, trust=trust, here_or_kept=(all_here, keep_projects))
        stores = [replace(store, place=readable.get(store.place, store.place)) for store in reports]
        total = _total(stores)
        _show(here, total, stores, dry_run=dry_run, trust=trust)
        if not dry_run and (total.changes or total.new.messages):
            embed_in_background(here, desk)
    return USAGE if total.refused.count else 0


def _found(readable: Mapping[str, str], format_name: str | None) -> list[FoundStore]:
    """All stores at all places, each once. ``readable`` are the paths with the places that people named."""
    from backstory.bootstrap.exchange import find_stores

    found: list[FoundStore] = []
    for path, place in readable.items():
        shown = "standard input" if place == STANDARD_INPUT else place
        found += find_stores(path, format_name=format_name, shown=shown)
    return list({(store.format, store.place): store for store in found}.values())


def _import_all(
    here: Invocation, desk: Desk, found: Sequence[FoundStore], *, dry_run: bool, trust: bool,
    here_or_kept: tuple[bool, bool],
) -> list[StoreReport]:  # fmt: skip
    from backstory.bootstrap.exchange import keeps_projects, reader, shown_place
    from backstory.entrypoints.import_views import StoreReport
    from backstory.ports.formats import ReadLimits
    from backstory.services.imported_memories import ImportPolicy

    all_here, keep = here_or_kept
    reports: list[StoreReport] = []
    with counting("Importing", "records", shown=not here.out.as_json) as advance:
        for store in found:
            here_alone = all_here or not (keep or keeps_projects(store))
            policy = ImportPolicy(dry_run=dry_run, trusted=trust, all_here=here_alone)
            records = reader(store.format).read(store, limits=ReadLimits())
            report = _bring_in(desk, records, policy, store.label, advance)
            place = shown_place(store.place)
            reports.append(StoreReport(format=store.format, place=place, label=store.label, report=report))
    return reports


def _bring_in(
    desk: Desk, records: Iterator[ForeignRecord], policy: ImportPolicy, label: str, advance: Callable[[int], None]
) -> ImportReport:
    with rarely_collecting():
        return drive(desk.app.importing.bring_in(records, desk.viewer, policy, label=label, advance=advance))


def _total(stores: Sequence[StoreReport]) -> ImportReport:
    from backstory.services.import_report import ImportReport

    total = ImportReport()
    for store in stores:
        total.add(store.report)
    return total


def _show(here: Invocation, total: ImportReport, stores: Sequence[StoreReport], *, dry_run: bool, trust: bool) -> None:
    from backstory.entrypoints.import_views import import_lines, import_shape, store_table

    if here.out.as_json:
        here.out.json(import_shape(total, stores, dry_run=dry_run))
        return
    here.out.table(store_table(stores))
    here.out.lines(import_lines(total, dry_run=dry_run, trusted=trust))


def _list_formats(here: Invocation) -> int:
    from backstory.bootstrap.exchange import formats
    from backstory.entrypoints.import_views import format_table

    known = formats()
    if here.out.as_json:
        here.out.json(
            {
                "formats": [
                    {"name": name, "import": is_read, "export": is_written, "what": what}
                    for name, is_read, is_written, what in known
                ]
            }
        )
    else:
        here.out.table(format_table(known))
    return 0


@contextmanager
def _readable(place: str) -> Iterator[str]:
    """A place that can be read more than once. Standard input, or a pipe, is written to a file of its own first, which
    is readable by its owner only, and removed afterwards."""
    if place == STANDARD_INPUT:
        with _kept_aside(input_stream()) as path:
            yield path
    elif "://" not in place and _is_pipe(place):
        with Path(place).open("rb") as stream, _kept_aside(stream) as path:
            yield path
    else:
        yield place


def _is_pipe(place: str) -> bool:
    try:
        return Path(place).is_fifo() or Path(place).is_char_device()
    except (OSError, ValueError):
        return False


@contextmanager
def _kept_aside(stream: BinaryIO) -> Iterator[str]:
    start = stream.read(_CHUNK_BYTES)
    with tempfile.TemporaryDirectory(prefix="backstory-import-") as folder:  # for its owner alone
        file = Path(folder, f"standard-input{_ending(start)}")  # always the same: some formats keep the name
        with file.open("wb") as sink:
            sink.write(start)
            while chunk := stream.read(_CHUNK_BYTES):
                sink.write(chunk)
        yield str(file)


def _ending(start: bytes) -> str:
    """How the name of a file would end that begins so: some formats are known by it."""
    if start.startswith(b"# v") and b" git bundle\n" in start[:100]:
        return ".bundle"
    if start.startswith(b"SQLite format 3"):
        return ".db"
    text = start.lstrip(b"\xef\xbb\xbf \t\r\n")
    if text.startswith(b"["):
        return ".json"
    if text.startswith(b"{"):
        return ".json" if text[1:].lstrip(b" \t").startswith((b"\n", b"\r")) else ".jsonl"
    return ".sql" if b"CREATE TABLE" in start else ".logfmt" if text.startswith(b"ts=") else ""
