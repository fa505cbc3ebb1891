"""Ask a person before something goes for good."""

from __future__ import annotations

import sys
from collections.abc import Callable

import click

from backstory.entrypoints.cli.invocation import Invocation


def agreed(here: Invocation, *, yes: bool, tell: Callable[[], None]) -> bool:
    """Whether a person wants it: by ``--yes``, or asked after ``tell`` has shown what would go. Raises InputError where
    nobody can be asked."""
    if yes:
        return True
    if here.out.as_json or not (here.out.is_terminal and sys.stdin.isatty()):
        from backstory.errors import InputError

        raise InputError("nobody is there to be asked; nothing was removed", field="yes", hint="repeat it with --yes")
    tell()
    is_wanted = click.confirm("Do it?", default=False)
    if not is_wanted:
        here.out.note("nothing was removed")
    return is_wanted
