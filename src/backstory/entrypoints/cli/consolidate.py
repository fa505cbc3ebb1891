"""``consolidate``: let one memory stand for those that say the same."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from backstory.entrypoints.cli.asking import agreed
from backstory.entrypoints.cli.command import command
from backstory.entrypoints.cli.output import counting
from backstory.entrypoints.drive import drive

if TYPE_CHECKING:
    from backstory.domain.history import Change
    from backstory.entrypoints.cli.invocation import Desk, Invocation
    from backstory.services.consolidate import Plan

_PASSES = ("exact", "wording", "meaning")


@command("consolidate")
@click.option("--dry-run", is_flag=True, help="Show what would go, and change nothing.")
@click.option(
    "--pass",
    "passes",
    multiple=True,
    type=click.Choice(_PASSES),
    help="Only this way of comparing; may be given several times.  [default: all three]",
)
@click.option("--yes", is_flag=True, help="Do it without asking.")
def consolidate(here: Invocation, dry_run: bool, passes: tuple[str, ...], yes: bool) -> None:
    """Find memories that say the same, and keep one of each.

    Of this project and of those that hold everywhere, in three passes: the same words, nearly the same wording, and
    near in meaning. What you said stays before what others said and before what was distilled, then what is pinned,
    then the newest. It takes over the tags and the pin of those that go. What differs in a number, a path or a name is
    shown and stays.

    First it is shown what would go, and asked. It is one change; `backstory undo` takes it back.
    """
    with here.opened(writing=not dry_run, one_shot=False) as desk:
        from backstory.domain.consolidation import Pass

        service = desk.app.truth.consolidate
        wanted = [Pass(name) for name in passes or _PASSES]
        with counting("Comparing", "memories", shown=not here.out.as_json) as advance:
            plan = drive(service.plan(desk.viewer, passes=wanted, progress=advance))
        if dry_run or not plan.groups:
            _tell(here, desk, plan, None, dry_run=dry_run)
            return
        if agreed(here, yes=yes, tell=lambda: _show(here, plan)):
            change = drive(service.carry_out(plan, viewer=desk.viewer, author=desk.author))
            _tell(here, desk, plan, change, dry_run=False)


def _show(here: Invocation, plan: Plan) -> None:
    from backstory.entrypoints.consolidation_views import plan_lines

    here.out.lines(plan_lines(plan, done=False))


def _tell(here: Invocation, desk: Desk, plan: Plan, change: Change | None, *, dry_run: bool) -> None:
    from backstory.entrypoints.consolidation_views import plan_lines, plan_shape

    if here.out.as_json:
        here.out.json(plan_shape(plan, change, desk.projects(), dry_run=dry_run))
        return
    here.out.lines(plan_lines(plan, done=not dry_run))
    if change is not None:
        here.out.lines([(f"Undo with: backstory undo {change.id}", "faint")])
    if dry_run:
        here.out.note("nothing was changed")
