"""``useful`` and ``irrelevant``: how a memory served."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from backstory.entrypoints.cli.change import tell_change
from backstory.entrypoints.cli.command import command
from backstory.entrypoints.drive import drive

if TYPE_CHECKING:
    from backstory.entrypoints.cli.invocation import Invocation


@command("useful")
@click.argument("refs", nargs=-1, required=True, metavar="REF...")
def useful(here: Invocation, refs: tuple[str, ...]) -> None:
    """Say that memories helped: they are confirmed, and fade later.

    Each REF is a number, an id, or a piece of the text that only one memory holds.
    """
    _rate(here, refs, "useful")


@command("irrelevant")
@click.argument("refs", nargs=-1, required=True, metavar="REF...")
def irrelevant(here: Invocation, refs: tuple[str, ...]) -> None:
    """Say that memories did not help: they fade sooner.

    Each REF is a number, an id, or a piece of the text that only one memory holds. For a wrong one, use `backstory
    forget`, or `backstory remember --supersedes`.
    """
    _rate(here, refs, "irrelevant")


def _rate(here: Invocation, refs: tuple[str, ...], verdict: str) -> None:
    with here.opened(writing=True) as desk:
        from backstory.services.feedback import Verdict

        change = drive(desk.app.truth.feedback.rate(refs, Verdict(verdict), viewer=desk.viewer, author=desk.author))
        tell_change(here, desk, f"Noted as {verdict}", change)
