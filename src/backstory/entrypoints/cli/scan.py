"""``scan``: secrets that got in before today's rules knew them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from backstory.entrypoints.cli.command import command
from backstory.entrypoints.cli.output import counting
from backstory.entrypoints.drive import drive

if TYPE_CHECKING:
    from backstory.entrypoints.cli.invocation import Invocation
    from backstory.services.secrets_sweep import Swept

FOUND = 1


@command("scan")
@click.option("--fix", is_flag=True, help="Mask them where they stand, and look again.")
@click.option("--dry-run", is_flag=True, help="Only list them, also with --fix.")
@click.option("--backups", is_flag=True, help="With --fix: remove the copies beside the store too.")
def scan(here: Invocation, fix: bool, dry_run: bool, backups: bool) -> int:
    """Look for secrets in everything that is stored.

    By the rules of today. In memories and their history, what was said in sessions, titles, digests, blocks, summaries,
    and the commits of a git store. With --fix they are masked where they stand and leave the bytes of the store's
    files; that cannot be undone. Revoke a secret that is found: whoever could read the store had it. The exit code is 1
    where secrets are left.
    """
    fixing = fix and not dry_run
    with here.opened(writing=fixing) as desk:
        sweep = desk.app.truth.secrets_sweep
        with counting("Looked at", "texts", shown=not here.out.as_json) as advance:
            if fixing:
                swept = drive(sweep.fix(desk.viewer, copies=backups, progress=advance))
            else:
                from backstory.services.secrets_sweep import Swept

                swept = Swept(found=tuple(drive(sweep.look(desk.viewer, progress=advance))))
    _tell(here, swept, fixed=fixing)
    left = swept.left if fixing else swept.found
    return FOUND if left or _is_in_bytes(swept) else 0


def _is_in_bytes(swept: Swept) -> bool:
    from backstory.services.erasure import clean_of_traces

    return swept.receipt is not None and not clean_of_traces(swept.receipt)


def _tell(here: Invocation, swept: Swept, *, fixed: bool) -> None:
    from backstory.entrypoints.erasure_views import finding_lines, receipt_lines, swept_shape
    from backstory.services.secrets_sweep import by_kind

    if here.out.as_json:
        here.out.json(swept_shape(swept, by_kind(swept.found), fixed=fixed))
        return
    here.out.lines(finding_lines(swept.found))
    if not swept.found:
        here.out.lines([("No secret was found.", "good")])
    elif not fixed:
        here.out.note(f"{len(swept.found)} texts hold secrets; `backstory scan --fix` masks them")
    elif swept.left:
        here.out.lines([(f"{len(swept.left)} texts still hold secrets:", "bad"), *finding_lines(swept.left)])
    if swept.receipt is not None:
        here.out.lines(receipt_lines(swept.receipt))
        here.out.lines([("Revoke them: whoever could read the store had them.", "strong")])
