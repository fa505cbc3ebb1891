"""``check --code``: which memories the code has left behind."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from backstory.entrypoints.cli.output import counting
from backstory.entrypoints.drive import drive

if TYPE_CHECKING:
    from backstory.domain.scope import Viewer
    from backstory.entrypoints.cli.invocation import Invocation
    from backstory.services.code_check import CodeReport

DOUBTED = 1


def check_code(here: Invocation, *, dry_run: bool) -> int:
    """Look, keep what is doubted unless it is a dry run, and tell it. The exit code."""
    with here.opened(writing=not dry_run) as desk:
        with counting("Reading", "files", shown=not here.out.as_json) as advance:
            service = desk.app.truth.code_check
            found = drive(service.check(desk.project.id, here.folder, dry_run=dry_run, progress=advance))
        report = _in_sight(found, desk.viewer)
        if here.out.as_json:
            here.out.json(_shape(report, dry_run=dry_run))
        else:
            _tell(here, report, dry_run=dry_run)
    return DOUBTED if report.doubted else 0


def _in_sight(report: CodeReport, viewer: Viewer) -> CodeReport:
    """A report without the memories that the viewer may not read: an agent's shell is read by its model."""
    from backstory.domain.scope import visible

    return replace(report, doubted=tuple(each for each in report.doubted if visible(each.memory, viewer)))


def _shape(report: CodeReport, *, dry_run: bool) -> dict[str, object]:
    from backstory.entrypoints.shapes import doubt_shape

    return {
        "dry_run": dry_run,
        "ok": not report.doubted,
        "doubted": [
            {
                "id": each.memory.id,
                "n": each.memory.n,
                "content": each.memory.content,
                **doubt_shape(each.doubt),
            }
            for each in report.doubted
        ],
        "memories": report.memories,
        "anchored": report.anchored,
        "anchors": report.anchors,
        "undecided": report.undecided,
        "settled": report.settled,
        "cannot_look": report.cannot,
        "notes": list(report.notes),
    }


def _tell(here: Invocation, report: CodeReport, *, dry_run: bool) -> None:
    from backstory.entrypoints.tables import doubt_table

    if report.doubted:
        here.out.table(doubt_table([(each.memory, each.doubt) for each in report.doubted]))
    for note in report.notes:
        here.out.note(note)
    if report.cannot is not None and report.anchored:
        here.out.note(f"the code was not looked at: {report.cannot}")
    elif report.undecided:
        here.out.note(f"{report.undecided} memories were not decided on in time; what was known of them stays")
    if not here.out.is_terminal and report.doubted:
        return
    kept = ", not marked" if dry_run and report.doubted else ""
    settled = f"; {report.settled} had been doubted and are not any more" if report.settled else ""
    here.out.lines([(f"{_summary(report)}{kept}{settled}", "bad" if report.doubted else "good")])


def _summary(report: CodeReport) -> str:
    named = f"{report.anchored} of {report.memories} memories name something in the code"
    if not report.doubted:
        return f"{named}; none of it is gone" if report.cannot is None else named
    return f"{named}; {len(report.doubted)} of them should be checked"
