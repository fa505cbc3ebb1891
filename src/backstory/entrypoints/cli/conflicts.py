"""``conflicts`` and ``resolve``: memories that disagree, and which of them holds."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from backstory.entrypoints.cli.background import embed_in_background
from backstory.entrypoints.cli.command import command
from backstory.entrypoints.cli.parameters import WholeNumber
from backstory.entrypoints.drive import drive

if TYPE_CHECKING:
    from backstory.domain.settlement import Settlement
    from backstory.entrypoints.cli.invocation import Invocation

DEFAULT_LIMIT = 50


@command("conflicts")
@click.option(
    "--limit", type=WholeNumber(1, 1000), metavar="N", default=DEFAULT_LIMIT,
    help=f"At most this many.  [default: {DEFAULT_LIMIT}]",
)  # fmt: skip
@click.option("--all-projects", is_flag=True, help="Other projects' conflicts too.")
def conflicts(here: Invocation, limit: int, all_projects: bool) -> None:
    """List memories that disagree, the latest first.

    Both sides of each, with the sentence that each comes from, its session and date, and the words in which they
    differ. A memory that was made from one that was replaced or forgotten stands alone. `backstory resolve` settles
    them.
    """
    with here.opened(lexical=True, all_projects=all_projects) as desk:
        found = drive(desk.app.truth.conflicts.conflicts(desk.viewer, limit=limit))
        if here.out.as_json:
            from backstory.entrypoints.conflict_views import conflicts_shape

            here.out.json(conflicts_shape(found, desk.projects()))
        else:
            from backstory.entrypoints.conflict_views import conflict_lines

            here.out.lines(conflict_lines(found, desk.projects(), desk.viewer.project))


@command("resolve")
@click.argument("ref")
@click.option("--keep", is_flag=True, help="REF holds; what disagrees with it is replaced by it.")
@click.option("--both", is_flag=True, help="Both hold; they are not flagged again while they say the same.")
@click.option("--with", "text", metavar="TEXT", help="Neither holds: TEXT takes the place of both.")
@click.option("--reason", metavar="TEXT", help="Why; kept in the history.")
@click.option("--dry-run", is_flag=True, help="Show what would be changed, and change nothing.")
def resolve(
    here: Invocation, ref: str, keep: bool, both: bool, text: str | None, reason: str | None, dry_run: bool
) -> None:
    """Settle the conflict of memory REF.

    REF is a number, an id, or a piece of the text that only one memory holds. What is replaced is kept, but hidden;
    `backstory undo` takes the whole decision back.
    """
    settlement = _settlement(keep=keep, both=both, text=text)
    with here.opened(writing=not dry_run) as desk:
        settled = drive(
            desk.app.truth.conflicts.resolve(
                ref, settlement, viewer=desk.viewer, author=desk.author, reason=reason, dry_run=dry_run
            )
        )
        if here.out.as_json:
            from backstory.entrypoints.shapes import change_shape, planned_shape

            here.out.json(
                planned_shape([edit.after for edit in settled.edits], desk.projects())
                if settled.change is None
                else change_shape(settled.change, desk.projects())
            )
            return
        from backstory.entrypoints.conflict_views import settled_lines

        here.out.lines(settled_lines(settled.edits, done=settled.change is not None))
        if settled.change is None:
            here.out.note("nothing was changed")
            return
        here.out.lines([(f"Undo with: backstory undo {settled.change.id}", "faint")])
        embed_in_background(here, desk)


def _settlement(*, keep: bool, both: bool, text: str | None) -> Settlement:
    if sum((keep, both, text is not None)) != 1:
        raise click.UsageError("say one of --keep, --both and --with TEXT", click.get_current_context())
    from backstory.domain.settlement import KeepBoth, KeepThis, SayInstead

    if text is not None:
        return SayInstead(text=text)
    return KeepThis() if keep else KeepBoth()
