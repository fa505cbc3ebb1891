"""``config``: the settings in force, and where each comes from."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import click

from backstory.entrypoints.cli.command import Group, command
from backstory.entrypoints.cli.invocation import Invocation

if TYPE_CHECKING:
    from backstory.config.reference import Row


@click.group("config", cls=Group, invoke_without_command=True)
@click.pass_context
def config(ctx: click.Context) -> None:
    """Show the settings and where each comes from.

    They are found in this order: options of the command line, environment variables (BACKSTORY_...), the project's
    .backstory.toml, your own config.toml, defaults. In the files `recall.limit` stands as `limit = 3` below `[recall]`.
    docs/reference/settings.md describes each.
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
            state = "" if own.exists() else " (not there yet; make it)"
            here.out.lines([(f"To change one for good, write it into {own}{state}.", "faint")])
        here.out.warn(here.resolved.warnings)


@command("get")
@click.argument("key")
def get(here: Invocation, key: str) -> None:
    """Print the value of one setting, such as recall.limit."""
    from backstory.config.names import unknown
    from backstory.config.reference import describe

    rows = {row.name: row for row in describe(here.resolved)}
    if key not in rows:
        raise unknown(key, rows, source="config get")
    if here.out.as_json:
        here.out.json(_shape(rows[key]))
    else:
        here.out.lines([(rows[key].value, "plain")])


config.add_command(get)


def _shape(row: Row) -> dict[str, object]:
    return {"name": row.name, "value": row.value, "source": row.source}
