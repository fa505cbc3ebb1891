"""``review``: a person's word on what came from outside."""

from __future__ import annotations

import click

from backstory.entrypoints.cli.change import tell_change
from backstory.entrypoints.cli.command import Group, command
from backstory.entrypoints.cli.contradictions import refuse_beside_subcommand
from backstory.entrypoints.cli.invocation import Invocation
from backstory.entrypoints.cli.parameters import WholeNumber
from backstory.entrypoints.drive import drive

DEFAULT_LIMIT = 50
_limit = click.option(
    "--limit",
    type=WholeNumber(1, 1_000_000),
    metavar="N",
    default=DEFAULT_LIMIT,
    help=f"At most this many.  [default: {DEFAULT_LIMIT}]",
)


@click.group("review", cls=Group, invoke_without_command=True)
@_limit
@click.pass_context
def review(ctx: click.Context, limit: int) -> None:
    """List what waits for review, newest first.

    What comes from tools, files, web pages, imports and other people's stores is found by search and offered to no
    model unasked. `accept` makes it as trusted as what you said yourself, `reject` forgets it. No agent's tool can
    accept.
    """
    refuse_beside_subcommand(ctx)
    if ctx.invoked_subcommand is None:
        _list(ctx.ensure_object(Invocation), limit)


@command("list")
@_limit
def list_(here: Invocation, limit: int) -> None:
    """List what waits for review, newest first."""
    _list(here, limit)


@command("accept")
@click.argument("refs", nargs=-1, required=True, metavar="REF...")
def accept(here: Invocation, refs: tuple[str, ...]) -> None:
    """Vouch for memories: they count as said by you from now on.

    Each REF is a number, an id, or a piece of the text that only one memory holds. Read them whole before. Several are
    one change, and `backstory undo` takes it back. What was made from them keeps its origin.
    """
    with here.opened(writing=True) as desk:
        tell_change(here, desk, "Accepted", drive(desk.app.truth.review.accept(refs, viewer=desk.viewer)))


@command("reject")
@click.argument("refs", nargs=-1, required=True, metavar="REF...")
def reject(here: Invocation, refs: tuple[str, ...]) -> None:
    """Forget memories that wait for review.

    Each REF is a number, an id, or a piece of the text that only one memory holds. Several are one change, and
    `backstory undo` takes it back.
    """
    with here.opened(writing=True) as desk:
        change = drive(desk.app.truth.review.reject(refs, viewer=desk.viewer, author=desk.author))
        tell_change(here, desk, "Rejected", change)


for subcommand in (list_, accept, reject):
    review.add_command(subcommand)


def _list(here: Invocation, limit: int) -> None:
    with here.opened(lexical=True) as desk:
        memories = drive(desk.app.truth.review.queue(desk.viewer, limit=limit))
        total = drive(desk.app.truth.review.count(desk.viewer))
        projects = desk.projects()
    if here.out.as_json:
        from backstory.entrypoints.review_views import waiting_shape

        here.out.json(waiting_shape(memories, projects, total=total))
        return
    from backstory.entrypoints.review_views import waiting_lines

    here.out.lines(waiting_lines(memories, projects, desk.viewer.project))
    if total > len(memories):
        here.out.note(f"{len(memories)} of {total}; --limit shows more")
