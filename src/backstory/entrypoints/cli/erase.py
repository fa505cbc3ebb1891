"""``erase``: gone for good, and proven."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import click

from backstory.entrypoints.cli.asking import agreed
from backstory.entrypoints.cli.command import command
from backstory.entrypoints.cli.contradictions import refuse_alone, refuse_both
from backstory.entrypoints.cli.output import counting
from backstory.entrypoints.drive import drive

if TYPE_CHECKING:
    from backstory.entrypoints.cli.invocation import Desk, Invocation
    from backstory.ports.erasing import Receipt
    from backstory.services.erasure import Plan

NOT_PROVEN = 1
NOTHING = "Nothing in the store holds it, and no byte of its files does."


@command("erase")
@click.argument("refs", nargs=-1, metavar="[REF]...")
@click.option("--text", metavar="TEXT", help="Take this text out of everything; - reads it from standard input.")
@click.option("--dry-run", is_flag=True, help="Show what would go, and change nothing.")
@click.option("--backups", is_flag=True, help="Remove the copies beside the store too.")
@click.option("--yes", is_flag=True, help="Do not ask.")
@click.option("--receipts", is_flag=True, help="Show what was erased so far.")
def erase(
    here: Invocation, refs: tuple[str, ...], text: str | None, dry_run: bool, backups: bool, yes: bool, receipts: bool
) -> int:
    """Erase memories for good, and prove that they are gone.

    Each REF is a number, an id, or a piece of the text that only one memory holds; a forgotten one is named by number
    or id. Every text that the memory ever had leaves the store: rows, indexes, vectors, history, what was said in
    sessions, blocks, digests, summaries, and the bytes of the file. Then every byte is searched for it. A receipt
    without a word of it is kept. This cannot be undone; `backstory forget` can.

    With neither REF nor --text, what an earlier run could not finish is finished. The exit code is 1 where something of
    it is still in the store.
    """
    named = bool(refs) or text is not None
    refuse_both("--receipts", receipts, "what is to be erased", named or backups)
    refuse_alone("--dry-run", dry_run, "a REF or --text", named)
    if receipts:
        return _show_receipts(here)
    with here.opened(writing=not dry_run) as desk:
        if not named:
            return _finish(here, desk, copies=backups)
        plan = _plan(here, desk, refs, _told(text))
        if dry_run:
            _tell_plan(here, plan, always=True)
            return 0
        if not plan.is_empty and not agreed(here, yes=yes, tell=lambda: _tell_plan(here, plan)):
            return 0

        with counting("Erasing, looked at", "texts", shown=not here.out.as_json) as advance:
            receipt = drive(
                desk.app.truth.erasing.erase(
                    plan, viewer=desk.viewer, author=desk.author, copies=backups, progress=advance
                )
            )
    return _tell(here, [] if receipt is None else [receipt])


def _plan(here: Invocation, desk: Desk, refs: Sequence[str], text: str | None) -> Plan:
    with counting("Looked at", "texts", shown=not here.out.as_json) as advance:
        return drive(desk.app.truth.erasing.plan(refs, text=text, viewer=desk.viewer, progress=advance))


def _told(text: str | None) -> str | None:
    """The text that is meant; one from standard input stands in no history of a shell."""
    if text is None:
        return None
    from backstory.entrypoints.cli.standard_input import text_of

    return text_of([text], field="text")


def _finish(here: Invocation, desk: Desk, *, copies: bool) -> int:
    finished = drive(desk.app.truth.erasing.finish(viewer=desk.viewer, copies=copies))
    return _tell(here, finished, nothing="Nothing is left to finish.")


def _show_receipts(here: Invocation) -> int:
    with here.opened() as desk:
        known = drive(desk.app.truth.erasing.receipts(viewer=desk.viewer))
    if here.out.as_json:
        from backstory.entrypoints.erasure_views import receipt_shape

        here.out.json({"receipts": list(map(receipt_shape, known))})
    elif not known:
        here.out.lines([("Nothing was erased here.", "faint")])
    else:
        _show(here, known)
    return 0


def _tell_plan(here: Invocation, plan: Plan, *, always: bool = False) -> None:
    from backstory.entrypoints.erasure_views import plan_lines, plan_shape

    if here.out.as_json:
        here.out.json(plan_shape(plan))
    elif plan.is_empty and always:
        here.out.lines([("Nothing in the store holds it.", "faint")])
    else:
        here.out.lines(plan_lines(plan))


def _tell(here: Invocation, receipts: Sequence[Receipt], *, nothing: str = NOTHING) -> int:
    from backstory.services.erasure import clean_of_traces

    if here.out.as_json:
        from backstory.entrypoints.erasure_views import receipt_shape

        here.out.json({"receipts": list(map(receipt_shape, receipts))})
    elif receipts:
        _show(here, receipts)
    else:
        here.out.lines([(nothing, "faint")])
    return 0 if all(map(clean_of_traces, receipts)) else NOT_PROVEN


def _show(here: Invocation, receipts: Sequence[Receipt]) -> None:
    from backstory.entrypoints.erasure_views import receipt_lines

    for receipt in receipts:
        here.out.lines(receipt_lines(receipt))
