"""``check``, ``reindex``, ``backup`` and ``restore``: keeping a store whole."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import click

from backstory.entrypoints.cli.command import command
from backstory.entrypoints.cli.invocation import Invocation
from backstory.entrypoints.cli.output import counting
from backstory.entrypoints.counted import counted, memories_counted
from backstory.entrypoints.drive import drive
from backstory.entrypoints.errors import RULES
from backstory.errors import StoreDamaged
from backstory.ports.upkeep import Finding, Severity

if TYPE_CHECKING:
    from backstory.bootstrap import App
    from backstory.entrypoints.render import Tone
    from backstory.services.upkeep import Upkeep

OUT_OF_STEP = 1
DAMAGED = next(rule.exit_code for rule in RULES if rule.error is StoreDamaged)
SESSIONS_SUFFIX = ".sessions.jsonl"

_TONES: dict[Severity, Tone] = {Severity.DAMAGE: "bad", Severity.OUT_OF_STEP: "strong", Severity.NOTE: "plain"}
_FILE = click.Path(dir_okay=False, path_type=Path)


@command("check")
@click.option("--full", is_flag=True, help="Look at every row, not at a sample of a large store.")
@click.option(
    "--salvage",
    type=_FILE,
    metavar="FILE",
    help="Also write all that can still be read to this new file, as an export.",
)
@click.option("--code", is_flag=True, help="Hold this project's memories against its code instead.")
@click.option("--dry-run", is_flag=True, help="With --code: mark nothing.")
def check(here: Invocation, full: bool, salvage: Path | None, code: bool, dry_run: bool) -> int:
    """Check that the store is whole.

    Its file, every memory and its history, and all that is derived from them.

    Nothing is changed. The exit code is 0 if all is well, 1 if only something derived is out of step, which `backstory
    reindex` mends, and 8 if something is damaged. What is checked is listed in docs/explanation/what-is-never-lost.md.

    --salvage writes the memories that can be read, forgotten and local-only ones too, for `backstory import
    --keep-projects`; and what was said in sessions to a second file whose name ends in .sessions.jsonl.

    --code looks up in the git repository here what the memories of this project name: files, names in the code, flags,
    commits. Those that name something that is gone or has moved are listed and marked "check" until the reason is gone.
    The exit code is 1 if there are any.
    """
    _refuse_to_mix(code=code, dry_run=dry_run, store=full or salvage is not None)
    if code:
        from backstory.entrypoints.cli.code_check import check_code

        return check_code(here, dry_run=dry_run)
    with _upkeep(here) as (app, upkeep):
        is_there = drive(upkeep.exists())
        findings = drive(upkeep.check(full=full)) if is_there else []
        saved = _save(upkeep, salvage) if is_there and salvage is not None else None
        location = app.backend.memories.capabilities.location
    severities = {finding.severity for finding in findings}
    if here.out.as_json:
        is_whole = not severities - {Severity.NOTE}
        shape = {"store": location, "full": full, "ok": is_whole, "findings": [_shape(found) for found in findings]}
        here.out.json(shape | ({"salvaged": saved} if saved else {}))
    else:
        if is_there:
            _tell_findings(here, findings, location)
        else:
            here.out.lines([(f"There is no store yet at {location}.", "faint")])
        if saved:
            _tell_saved(here, saved)
    if Severity.DAMAGE in severities:
        return DAMAGED
    return OUT_OF_STEP if Severity.OUT_OF_STEP in severities else 0


def _refuse_to_mix(*, code: bool, dry_run: bool, store: bool) -> None:
    from backstory.errors import InputError

    if code and store:
        raise InputError("--code looks at the code, --full and --salvage at the store; give one of them", field="code")
    if dry_run and not code:
        raise InputError("without --code nothing is marked, so --dry-run has no meaning", field="dry_run")


@command("reindex")
@click.option("--vectors", is_flag=True, help="Embed everything anew too.")
@click.option("--create", is_flag=True, help="Make the store first where there is none, with nothing in it.")
def reindex(here: Invocation, vectors: bool, create: bool) -> None:
    """Rebuild the search indexes, and all else that is derived.

    The words by which memories and sessions are found, their sums, and missing vectors. Nothing that was said or
    decided is changed. Others may use the store meanwhile; safe to stop at any moment. With --create the tables of a
    new Postgres store are made without a memory in them.
    """
    from backstory.services.upkeep import Upkeep

    made = create and _make(here)
    with here.opened(writing=not create, one_shot=False) as desk:
        upkeep = Upkeep(desk.app.backend, clock=desk.app.clock)
        with counting("Indexing", "memories and sessions", shown=not here.out.as_json) as advance:
            rebuilt = drive(upkeep.reindex(vectors=vectors, progress=advance))
        with counting("Embedding", "memories and passages", shown=not here.out.as_json) as advance:
            report = drive(desk.app.maintenance.embed_missing(progress=advance))
        location = desk.store.location
    if here.out.as_json:
        here.out.json(
            {
                "made": made,
                "memories": rebuilt.memories,
                "passages": rebuilt.passages,
                "corrected": rebuilt.corrected,
                "embedded": report.embedded + report.passages,
                "not_embedded_because": report.stopped_because,
            }
        )
        return
    if made:
        here.out.lines([(f"Made a new store at {location}", "good")])
    put_right = f"{rebuilt.corrected} were wrong and are put right" if rebuilt.corrected else "nothing was wrong"
    indexed = f"{memories_counted(rebuilt.memories)} and {counted(rebuilt.passages, 'passage')} of sessions"
    here.out.lines([(f"Indexed {indexed}: {put_right}.", "good")])
    if report.stopped_because:
        here.out.lines([(f"Vectors were left alone: {report.stopped_because}.", "plain")])
    elif report.embedded + report.passages:
        here.out.lines(
            [(f"Embedded {memories_counted(report.embedded)} and {counted(report.passages, 'passage')}.", "plain")]
        )


@command("backup")
@click.argument("file", metavar="FILE", type=_FILE)
@click.option("--force", is_flag=True, help="Replace FILE if it is there.")
def backup(here: Invocation, file: Path, force: bool) -> None:
    """Copy the whole store into FILE.

    Others may be writing to it meanwhile. The copy is as of one moment, readable by you alone, and checked before it
    gets its name. It holds everything: private and local-only memories, what was forgotten, the history, and what was
    said in sessions. It is an SQLite store, whatever kind it is a copy of, and `backstory restore` brings it into any
    kind. A folder that FILE names and that is not there is made, and told.
    """
    made = _missing_folder(file)
    with _upkeep(here) as (_, upkeep):
        size = drive(upkeep.backup(file.absolute(), overwrite=force))
    if here.out.as_json:
        here.out.json({"file": str(file), "bytes": size, "made_folder": None if made is None else str(made)})
        return
    if made is not None:
        here.out.lines([(f"Made the folder {made}", "plain")])
    here.out.lines([(f"Backed up to {file} ({size / 1e6:.1f} MB)", "good")])


def _missing_folder(file: Path) -> Path | None:
    """The folder of ``file``, as it was written, where it is not there yet."""
    return None if file.absolute().parent.exists() else file.parent


@command("restore")
@click.argument("file", metavar="FILE", type=click.Path(exists=True, dir_okay=False, readable=True, path_type=Path))
def restore(here: Invocation, file: Path) -> None:
    """Replace the store by what `backstory backup` wrote to FILE.

    The backup may be of another kind of store. It is checked first; a damaged one, or one of a newer Backstory, changes
    nothing. The store as it was is kept in a file whose name is told: beside the new one, or beside FILE if that is on
    a server. Running processes need not be stopped: each goes on with the restored store. Numbers that were given
    since the backup are not given again.
    """
    here.person_only("replaces a store")
    with _upkeep(here) as (_, upkeep):
        restored = drive(upkeep.restore(file.absolute()))
    if here.out.as_json:
        kept = None if restored.kept is None else str(restored.kept)
        counts = {"memories": restored.memories, "messages": restored.messages, "unshared": restored.unshared}
        here.out.json({**counts, "kept": kept})
        return
    held = f"{memories_counted(restored.memories)} and {counted(restored.messages, 'message')}"
    here.out.lines([(f"Restored {held} from {file}", "good")])
    if restored.unshared:
        alone = "1 of them stands" if restored.unshared == 1 else f"{restored.unshared} of them stand"
        here.out.lines([(f"{alone} here alone, not on the ref: private, local-only or of other projects", "plain")])
    if restored.kept is not None:
        here.out.lines([(f"The store as it was is kept as {restored.kept}", "plain")])


@contextmanager
def _upkeep(here: Invocation) -> Iterator[tuple[App, Upkeep]]:
    """The store unopened: it may be damaged, newer, or not there."""
    from backstory.bootstrap import open_app
    from backstory.services.upkeep import Upkeep

    app = open_app(here.resolved.settings, folder=here.folder, one_shot=True, create=False)
    try:
        yield app, Upkeep(app.backend, clock=app.clock)
    finally:
        drive(app.close())


def _make(here: Invocation) -> bool:
    """Make the store, with nothing in it; False where there is one already."""
    from backstory.bootstrap import open_app

    app = open_app(here.resolved.settings, folder=here.folder, one_shot=True, create=True)
    try:
        if app.backend.upkeep is None or drive(app.backend.upkeep.exists()):
            return False
        drive(app.backend.projects.projects())  # the first use makes it
        return True
    finally:
        drive(app.close())


def _shape(finding: Finding) -> dict[str, object]:
    return {
        "invariant": finding.invariant.value,
        "number": finding.invariant.number,
        "severity": finding.severity.value,
        "what": finding.what,
        "where": finding.where,
        "way_out": finding.way_out,
    }


def _tell_findings(here: Invocation, findings: Sequence[Finding], location: str) -> None:
    for found in findings:
        place = f"{found.invariant.number} {found.invariant.value}"
        here.out.lines([(f"{found.severity.value:<11} {place}: {found.where}: {found.what}", _TONES[found.severity])])
    for way_out in dict.fromkeys(found.way_out for found in findings):
        here.out.lines([(f"            way out: {way_out}", "plain")])
    bad = sum(found.severity is not Severity.NOTE for found in findings)
    if bad:
        here.out.lines([(f"{counted(bad, 'fault')} in {location}", "bad")])
    else:
        here.out.lines([(f"{location} is whole", "good")])


def _save(upkeep: Upkeep, file: Path) -> dict[str, object]:
    saved = drive(upkeep.salvage())
    memories = max(0, len(saved.memories) - 1)  # the first line is the header
    _write_new(file, saved.memories)
    sessions = file.with_name(file.name + SESSIONS_SUFFIX) if saved.messages else None
    if sessions is not None:
        _write_new(sessions, saved.sessions)
    return {
        "file": str(file),
        "memories": memories,
        "sessions_file": None if sessions is None else str(sessions),
        "messages": saved.messages,
        "blobs": saved.blobs,
        "lost": list(saved.lost),
    }


def _write_new(file: Path, lines: Iterable[str]) -> None:
    """Write a file that must not be there yet, readable by its owner only."""
    from backstory.errors import InputError

    try:
        handle = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    except FileExistsError:
        raise InputError(f"{file} is there already", field="salvage", hint="name another file") from None
    with os.fdopen(handle, "wb") as sink:
        sink.writelines(line.encode("utf-8", "surrogatepass") + b"\n" for line in lines)
        sink.flush()
        os.fsync(handle)


def _tell_saved(here: Invocation, saved: dict[str, object]) -> None:
    here.out.lines([(f"Saved {saved['memories']} memories to {saved['file']}", "good")])
    if saved["sessions_file"]:
        here.out.lines([(f"Saved {saved['messages']} messages to {saved['sessions_file']}", "good")])
    lost = saved["lost"]
    assert isinstance(lost, list)
    here.out.lines([(f"lost: {text}", "bad") for text in lost])
