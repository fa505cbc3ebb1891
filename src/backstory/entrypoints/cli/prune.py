"""``prune``: let derived facts go that have faded."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from backstory.entrypoints.cli.change import tell_change
from backstory.entrypoints.cli.command import command
from backstory.entrypoints.counted import counted
from backstory.entrypoints.drive import drive

if TYPE_CHECKING:
    from collections.abc import Sequence

    from backstory.domain.pruning import Removal
    from backstory.entrypoints.cli.invocation import Desk, Invocation


@command("prune")
@click.option("--dry-run", is_flag=True, help="Show what would go and why, and change nothing.")
def prune(here: Invocation, dry_run: bool) -> None:
    """Forget distilled facts that have faded.

    Of this project and of those that hold everywhere: what was distilled from sessions and is worth too little by now,
    has expired, was replaced more than 30 days ago, or is beyond the best that `dream.max_facts` keeps. What somebody
    stated, pinned or disputes stays. It happens by itself after distilling; `backstory undo` takes it back.
    """
    with here.opened(writing=not dry_run) as desk:
        if dry_run:
            _plan(here, desk, drive(desk.app.truth.pruning.plan(desk.viewer)))
            return
        change = drive(desk.app.truth.pruning.prune(desk.viewer, author=desk.author))
        if change is None:
            here.out.nothing("Nothing has faded; nothing was changed.")
            return
        tell_change(here, desk, "Pruned", change)


def _plan(here: Invocation, desk: Desk, removals: Sequence[Removal]) -> None:
    from backstory.entrypoints.pruning_views import removal_lines, removals_shape

    if here.out.as_json:
        here.out.json(removals_shape(removals, desk.projects()))
        return
    if not removals:
        here.out.lines([("Nothing has faded; nothing would go.", "plain")])
        return
    here.out.lines(removal_lines(removals))
    here.out.note(f"{counted(len(removals), 'distilled fact')} would go; nothing was changed")
