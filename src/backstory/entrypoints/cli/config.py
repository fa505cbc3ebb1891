"""``config``: the settings in force, where each comes from, and writing them into the user's own file."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import TYPE_CHECKING

import click

from backstory.entrypoints.cli.command import Group, command
from backstory.entrypoints.cli.invocation import Invocation

if TYPE_CHECKING:
    from backstory.config.own_file import Edit
    from backstory.config.reference import Row
    from backstory.entrypoints.render import Line

_EMPTY = "''"
_dry_run = click.option("--dry-run", is_flag=True, help="Show what would be written, and change nothing.")


def _names(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[str]:
    """The settings that begin so, for the shell's completion."""
    from backstory.config import options

    return [option.name for option in options() if option.name.startswith(incomplete)]


@click.group("config", cls=Group, invoke_without_command=True)
@click.pass_context
def config(ctx: click.Context) -> None:
    """Show the settings and where each comes from, or change one.

    They are found in this order: options of the command line, environment variables (BACKSTORY_...), the project's
    .backstory.toml, your own config.toml, defaults. In the files `recall.limit` stands as `limit = 3` below `[recall]`;
    `set` and `unset` write your own file. docs/reference/settings.md describes each setting.
    """
    if ctx.invoked_subcommand is not None:
        return
    from backstory.config import user_config_file
    from backstory.config.reference import describe
    from backstory.entrypoints.tables import setting_table

    here = ctx.ensure_object(Invocation)
    rows = describe(here.resolved)
    if here.out.as_json:
        shapes = [_shape(row) | {"help": row.help} for row in rows]
        file = str(user_config_file(os.environ))
        here.out.json({"settings": shapes, "user_file": file, "warnings": list(here.resolved.warnings)})
    else:
        here.out.table(setting_table(rows))
        if here.out.is_terminal:
            own = user_config_file(os.environ)
            state = "" if own.exists() else ", which is not there yet"
            here.out.lines([(f"`backstory config set NAME VALUE` writes into {own}{state}.", "faint")])
        here.out.warn(here.resolved.warnings)


@command("get")
@click.argument("key", shell_complete=_names)
def get(here: Invocation, key: str) -> None:
    """Print the value of one setting, such as recall.limit."""
    from backstory.config.names import unknown
    from backstory.config.reference import describe

    rows = {row.name: row for row in describe(here.resolved)}
    if key not in rows:
        raise unknown(key, rows, source=f"config get {key[:200]}")
    if here.out.as_json:
        here.out.json(_shape(rows[key]))
    else:
        here.out.lines([(rows[key].value, "plain")])


@command("set")
@click.argument("key", shell_complete=_names)
@click.argument("value")
@_dry_run
def set_(here: Invocation, key: str, value: str, dry_run: bool) -> None:
    """Set KEY to VALUE in your own settings file.

    Nothing else in the file changes: comments and order stay. The value is checked first, and it is told what stood
    there. What runs already, such as an agent, takes it up when it starts anew.
    """
    from backstory.config.own_file import plan_set

    here.person_only("changes settings")
    _write(here, plan_set(os.environ, key, value), dry_run=dry_run)


@command("unset")
@click.argument("key", shell_complete=_names)
@_dry_run
def unset(here: Invocation, key: str, dry_run: bool) -> None:
    """Take KEY out of your own settings file, so that its default holds again.

    Nothing else in the file changes: comments and order stay. A name that no setting has is taken out too.
    """
    from backstory.config.own_file import plan_unset

    here.person_only("changes settings")
    _write(here, plan_unset(os.environ, key), dry_run=dry_run)


for subcommand in (get, set_, unset):
    config.add_command(subcommand)


def _write(here: Invocation, edit: Edit, *, dry_run: bool) -> None:
    from backstory.config.own_file import apply, told

    if edit.changes and not dry_run:
        apply(edit)
    before, after = told(edit.name, edit.before), told(edit.name, edit.after)
    elsewhere = _what_counts_instead(here, edit)
    if here.out.as_json:
        shape = {"name": edit.name, "file": str(edit.file), "before": before, "after": after}
        here.out.json(shape | {"changed": edit.changes and not dry_run, "dry_run": dry_run, "overridden_by": elsewhere})
        return
    here.out.lines(_told(edit, before, after, dry_run=dry_run))
    if elsewhere:
        here.out.note(f"it makes no difference here: {elsewhere} counts first")


def _told(edit: Edit, before: str | None, after: str | None, *, dry_run: bool) -> Iterator[Line]:
    from backstory.config.own_file import way_back

    if not edit.changes:
        stands = "does not stand" if after is None else f"is {after or _EMPTY} already"
        yield f"{edit.name} {stands} in {edit.file}; nothing was changed.", "plain"
        return
    was = "was not set" if before is None else f"was {before or _EMPTY}"
    what = f"{edit.name} is not set" if after is None else f"{edit.name} = {after or _EMPTY}"
    yield f"{'Would write: ' if dry_run else ''}{what} ({was}) in {edit.file}", "plain" if dry_run else "good"
    if not dry_run and (back := way_back(edit)) is not None:
        yield f"Undo with: backstory config {back}", "faint"


def _what_counts_instead(here: Invocation, edit: Edit) -> str | None:
    """The variable or project file that decides in place of the user's file; None where none does, or where something
    else is wrong with the settings, which the next command says."""
    from backstory.errors import ConfigError

    try:
        source = here.resolved.sources.get(edit.name, "default")
    except ConfigError:
        return None
    return None if source == "default" or source.startswith("user file") else source


def _shape(row: Row) -> dict[str, object]:
    return {"name": row.name, "value": row.value, "source": row.source}
