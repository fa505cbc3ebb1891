"""``embed``: give every memory that lacks one its vector, so that recall finds it by meaning."""

from __future__ import annotations

import click

from backstory.entrypoints.cli.background import embedding_lock
from backstory.entrypoints.cli.command import command
from backstory.entrypoints.cli.contradictions import refuse_both
from backstory.entrypoints.cli.invocation import Desk, Invocation
from backstory.entrypoints.cli.output import counting
from backstory.entrypoints.counted import counted, memories_counted
from backstory.entrypoints.drive import drive
from backstory.services.maintenance import EmbeddingReport


@command("embed")
@click.option("--quiet", is_flag=True, help="Print nothing, and leave the work to another process that is at it.")
def embed(here: Invocation, quiet: bool) -> None:
    """Make what is stored findable by meaning.

    Memories and what was said in sessions get their vectors. Run this after you changed the embedder or imported
    memories; after `backstory remember`, and in OpenCode, it is done in the background. Safe to stop at any moment.
    """
    refuse_both("--quiet", quiet, "--json", here.as_json)
    with here.opened(one_shot=False) as desk:
        if quiet:
            _embed_unless_another_does(desk)
            return
        with counting("Embedding", "memories", shown=not here.out.as_json) as advance:
            report = drive(desk.app.maintenance.embed_missing(progress=advance))
        _tell(here, report)


def _embed_unless_another_does(desk: Desk) -> None:
    with embedding_lock(desk.app.settings.cache_dir) as is_ours:
        if not is_ours:
            return
        drive(desk.app.maintenance.embed_missing())
    # once more without the lock: whoever stored something while it was held left the work to us
    drive(desk.app.maintenance.embed_missing())


def _tell(here: Invocation, report: EmbeddingReport) -> None:
    if report.stopped_because is not None:
        from backstory.errors import ModelUnavailable

        raise ModelUnavailable(
            f"{memories_counted(report.embedded)} and {counted(report.passages, 'passage')} of sessions were embedded, "
            f"then it stopped: {report.stopped_because}"
        )
    if here.out.as_json:
        here.out.json(
            {"model": report.model, "embedded": report.embedded, "passages": report.passages, "dropped": report.dropped}
        )
        return
    dropped = f"; dropped {report.dropped} vectors of former models" if report.dropped else ""
    second = f", {report.second} by the second model" if report.second else ""
    said = f" and {counted(report.passages, 'passage')} of sessions" if report.passages else ""
    if not report.embedded + report.passages + report.second + report.dropped:
        here.out.lines([(f"Everything has its vectors already, by {report.model}.", "plain")])
        return
    here.out.lines(
        [(f"Embedded {memories_counted(report.embedded)}{said} with {report.model}{second}{dropped}.", "plain")]
    )
