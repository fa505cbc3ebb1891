"""Options that cannot go together: said before anything is done, since to follow one of them is to ignore the other."""

from __future__ import annotations

import click

from backstory.entrypoints.cli.command import is_global


def refuse_both(one: str, is_one: bool, other: str, is_other: bool) -> None:
    """Raise UsageError where both are given. Each comes as the person knows it, such as ``--core``."""
    if is_one and is_other:
        raise click.UsageError(f"{one} and {other} contradict each other; give one of them", _context())


def refuse_alone(option: str, is_given: bool, needed: str, is_needed_given: bool) -> None:
    """Raise UsageError where ``option`` is given without what it belongs to, and so would do nothing."""
    if is_given and not is_needed_given:
        raise click.UsageError(f"{option} does nothing without {needed}", _context())


def refuse_beside_subcommand(ctx: click.Context) -> None:
    """Raise UsageError where options of a group itself, such as those of its list, stand before a subcommand."""
    if ctx.invoked_subcommand is None:
        return
    for param in ctx.command.params:
        given = param.name is not None and ctx.get_parameter_source(param.name) is _TYPED
        if given and not is_global(param):
            whole = f"{ctx.command_path} {ctx.invoked_subcommand}"
            raise click.UsageError(f"{param.opts[0]} is for `{ctx.command_path}` alone, not for `{whole}`", ctx)


_TYPED = click.core.ParameterSource.COMMANDLINE


def _context() -> click.Context:
    return click.get_current_context()
