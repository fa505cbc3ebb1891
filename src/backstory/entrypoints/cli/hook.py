"""The command that agents run from their hooks."""

from __future__ import annotations

import os

import click

from backstory.entrypoints.cli.command import Plain


@click.command(cls=Plain, context_settings={"ignore_unknown_options": True, "allow_extra_args": True})
@click.argument("event")
@click.option(
    "--agent", default="generic", metavar="NAME", show_default=True, help="Whose JSON it is: claude-code or generic."
)
@click.option("--wait", is_flag=True, help="End only when all is stored, instead of storing it in the background.")
def hook(event: str, agent: str, wait: bool) -> None:
    """Answer a coding agent's hook.

    JSON on standard input, JSON on standard output. EVENT is prompt, session-start, stop, pre-compact or session-end. A
    prompt gets the memories that belong beside it, and what it asks to remember is stored; the start of a session gets
    what is always shown; what was said is kept at the end of each turn. It answers within context.deadline_ms and never
    stops the agent: whatever goes wrong, it exits with 0 and says why on standard error. `backstory install
    claude-code` sets it up.
    """
    from backstory.entrypoints.agents.hook import HookProcess

    HookProcess(event, agent, os.environ).run(is_waiting=wait)
