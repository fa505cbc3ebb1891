"""``sync``: exchange memories with a remote of the repository, where the store is a git ref."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from backstory.entrypoints.cli.command import command
from backstory.entrypoints.cli.invocation import Invocation
from backstory.entrypoints.drive import drive

if TYPE_CHECKING:
    from collections.abc import Iterator

    from backstory.entrypoints.render import Line
    from backstory.ports.synchronisation import Synchronised

_SHOWN_CHARS = 80


@command("sync")
@click.argument("remote", required=False, metavar="[REMOTE]")
@click.option("--dry-run", is_flag=True, help="Show what would come and go, and change nothing.")
@click.option("--trust", is_flag=True, help="Believe what others say about whose words a memory is.")
def sync(here: Invocation, remote: str | None, dry_run: bool, trust: bool) -> None:
    """Exchange memories with REMOTE.

    For a git store: takes in what the remote's memory ref has, and pushes what it has not. REMOTE is the name of a
    remote or an address; without it, origin or the only one. Nothing is pushed otherwise, ever. Where two clones
    changed one memory, the newer change stands, and both are in the history. Hooks do not run.
    """
    from backstory.services.synchronise import Synchronise

    with here.opened(create=True) as desk:  # a new clone has to be made searchable before it can be compared
        service = Synchronise(desk.app.backend)
        report = drive(service.with_remote(remote, dry_run=dry_run, trusted=trust))
        if here.out.as_json:
            here.out.json(_shape(report, dry_run=dry_run))
        else:
            here.out.lines(_lines(report, dry_run=dry_run))
        if report.received and not dry_run:
            from backstory.entrypoints.cli.background import embed_in_background

            embed_in_background(here, desk)


def _shape(report: Synchronised, *, dry_run: bool) -> dict[str, object]:
    return {
        "remote": report.remote,
        "ref": report.ref,
        "received": report.received,
        "sent": report.sent,
        "pushed": report.pushed,
        "dry_run": dry_run,
        "disagreements": [
            {"id": item.memory, "n": item.n, "kept": item.kept, "set_aside": item.set_aside}
            for item in report.disagreements
        ],
        "renumbered": [{"id": item.memory, "old": item.old, "new": item.new} for item in report.renumbered],
        "kept": [
            {"id": item.memory, "n": item.n, "said": item.said, "changed": item.changed, "now": item.now}
            for item in report.kept
        ],
        "problems": list(report.problems),
    }


def _lines(report: Synchronised, *, dry_run: bool) -> Iterator[Line]:
    came, went = ("Would receive", "send") if dry_run else ("Received", "sent")
    yield f"{came} {_changes(report.received)}, {went} {_changes(report.sent)} ({report.remote}, {report.ref})", "good"
    for item in report.disagreements:
        yield f"#{item.n} was changed on both sides; kept: {_short(item.kept)}", "bad"
        yield f"    in the history: {_short(item.set_aside)}", "faint"
    for moved in report.renumbered:
        yield f"#{moved.old} was given twice; the later one is #{moved.new} now", "plain"
    for kept in report.kept:
        made = "forgot it" if kept.now is None else f"says now: {_short(kept.now)}"
        yield f"#{kept.n} keeps what you said: {_short(kept.said)}", "bad"
        yield f"    another clone {made} (#{kept.changed}); with --trust its word would count as yours", "faint"
    for problem in report.problems:
        yield f"cannot be read, left as it is: {problem}", "bad"


def _changes(count: int) -> str:
    return f"{count} change" if count == 1 else f"{count} changes"


def _short(text: str) -> str:
    from backstory.domain.truncation import truncate_chars

    return truncate_chars(" ".join(text.split()), _SHOWN_CHARS)
