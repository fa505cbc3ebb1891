"""The command ``backstory``: finds the subcommand, imports just that one, and turns every failure into an exit code."""

from __future__ import annotations

import contextlib
import io
import os
import sys
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path

import click

from backstory.entrypoints.cli.command import Group
from backstory.entrypoints.cli.output import ResultLost, flush

PROGRAM = "backstory"
COMPLETION_VARIABLE = "_BACKSTORY_COMPLETE"

_HERE = "backstory.entrypoints.cli"
COMMANDS = {
    "remember": f"{_HERE}.remember:remember",
    "recall": f"{_HERE}.recall:recall",
    "list": f"{_HERE}.listing:list_",
    "show": f"{_HERE}.inspection:show",
    "why": f"{_HERE}.inspection:why",
    "update": f"{_HERE}.remember:update",
    "forget": f"{_HERE}.change:forget",
    "erase": f"{_HERE}.erase:erase",
    "pin": f"{_HERE}.change:pin",
    "useful": f"{_HERE}.feedback:useful",
    "irrelevant": f"{_HERE}.feedback:irrelevant",
    "conflicts": f"{_HERE}.conflicts:conflicts",
    "resolve": f"{_HERE}.conflicts:resolve",
    "tags": f"{_HERE}.listing:tags",
    "retag": f"{_HERE}.change:retag",
    "history": f"{_HERE}.inspection:history",
    "undo": f"{_HERE}.change:undo",
    "inspect": f"{_HERE}.inspect:inspect",
    "shown": f"{_HERE}.inspect:shown",
    "prune": f"{_HERE}.prune:prune",
    "dream": f"{_HERE}.dream:dream",
    "consolidate": f"{_HERE}.consolidate:consolidate",
    "review": f"{_HERE}.review:review",
    "projects": f"{_HERE}.projects:projects",
    "sessions": f"{_HERE}.sessions:sessions",
    "session": f"{_HERE}.sessions:session",
    "export": f"{_HERE}.transfer:export",
    "import": f"{_HERE}.importing:import_",
    "sync": f"{_HERE}.sync:sync",
    "embed": f"{_HERE}.embed:embed",
    "backup": f"{_HERE}.upkeep:backup",
    "restore": f"{_HERE}.upkeep:restore",
    "check": f"{_HERE}.upkeep:check",
    "reindex": f"{_HERE}.upkeep:reindex",
    "scan": f"{_HERE}.scan:scan",
    "config": f"{_HERE}.config:config",
    "status": f"{_HERE}.status:status",
    "install": f"{_HERE}.install:install",
    "uninstall": f"{_HERE}.install:uninstall",
    "doctor": f"{_HERE}.doctor:doctor",
    "tools": f"{_HERE}.tools:tools",
    "bridge": f"{_HERE}.bridge:bridge",
    "serve": f"{_HERE}.serve:serve",
    "mcp": f"{_HERE}.mcp:mcp",
    "hook": f"{_HERE}.hook:hook",
    "completion": f"{_HERE}.completion:completion",
}
"""Where each command is; imported when it is used."""
SECTIONS = (
    ("Every day", ("remember", "recall", "list", "show", "why", "update", "forget", "undo")),
    ("Keep it true", ("pin", "useful", "irrelevant", "conflicts", "resolve", "review", "consolidate", "tags", "retag")),
    ("Look into it", ("status", "inspect", "shown", "history", "projects")),
    ("Sessions", ("sessions", "session", "dream")),
    ("Move and share", ("import", "export", "sync", "backup", "restore")),
    ("Agents", ("install", "uninstall", "mcp", "serve", "hook", "bridge", "tools")),
    ("Upkeep", ("doctor", "config", "check", "reindex", "embed", "prune", "scan", "erase", "completion")),
)
"""The commands as the help lists them: each once, what one needs first at the top."""


class LazyGroup(Group):
    """Commands by name, each imported when somebody uses it, so that one does not pay for the others."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """All commands that are installed here."""
        return [name for name in COMMANDS if self.get_command(ctx, name) is not None]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """The command; None if there is none of that name."""
        if cmd_name not in COMMANDS:
            return None
        module, _, attribute = COMMANDS[cmd_name].partition(":")
        try:
            command = getattr(import_module(module), attribute)
        except ModuleNotFoundError as error:
            if error.name != module:
                raise
            return None
        assert isinstance(command, click.Command)
        return command

    def known_names(self) -> Sequence[str]:
        """Names to suggest from, without importing anything."""
        return tuple(COMMANDS)

    def sections(self) -> Sequence[tuple[str, Sequence[str]]]:
        """By what they are for."""
        return SECTIONS


def _show_version(ctx: click.Context, param: click.Parameter, value: bool) -> None:
    if value and not ctx.resilient_parsing:
        from backstory.__about__ import __version__

        click.echo(f"{PROGRAM} {__version__}")
        ctx.exit()


@click.group(cls=LazyGroup, name=PROGRAM)
@click.option(
    "--version", is_flag=True, is_eager=True, expose_value=False, callback=_show_version, help="Show the version."
)
def cli() -> None:
    """Memory for coding agents: what you told them once, they know next time.

    \b
    backstory install opencode          put it into your agent
    backstory remember "TEXT"           store a memory
    backstory recall "QUESTION"         find it again
    backstory COMMAND --help            options and examples of a command

    Memories belong to the project of the current folder, unless they are stored with --global.
    """


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line and return its exit code; without arguments it shows the help.

    This is the outermost loop of the process: nothing escapes it, whatever goes wrong.
    """
    args = list(sys.argv[1:] if arguments is None else arguments)
    _print_anything()
    if args[:1] == ["hook"] and "--help" not in args:  # whatever else is said, this never ends with another code than 0
        from backstory.entrypoints.agents.hook import run_words

        run_words(args[1:], os.environ)
        return 0
    try:
        code = _run(args.copy() or ["--help"])
        flush()
    except click.exceptions.Exit as end:
        return end.exit_code
    except (click.Abort, KeyboardInterrupt):
        return _interrupted()
    except BrokenPipeError:
        _leave_output()
        return _broken_pipe()
    except ResultLost as error:
        _leave_output()
        return _fail(error, args)
    except Exception as error:
        return _fail(error, args)
    return code


def _run(args: list[str]) -> int:
    """Run a command, or answer a shell that asks for completions.

    Not ``cli.main``, which ends the process by itself when the reader of the output goes away.
    """
    instruction = os.environ.get(COMPLETION_VARIABLE)
    if instruction:
        from click.shell_completion import shell_complete

        return shell_complete(cli, {}, PROGRAM, COMPLETION_VARIABLE, instruction)
    with cli.make_context(PROGRAM, args) as context:
        code = cli.invoke(context)
    return code if isinstance(code, int) else 0


def _print_anything() -> None:
    """Never fail on a character that the terminal's encoding lacks (it is escaped), nor on a closed output."""
    sys.stdout = sys.stdout or _nowhere()
    sys.stderr = sys.stderr or _nowhere()
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


def _nowhere() -> io.TextIOWrapper:
    return Path(os.devnull).open("w", encoding="utf-8")


def _interrupted() -> int:
    from backstory.entrypoints.errors import INTERRUPTED

    return INTERRUPTED


def _broken_pipe() -> int:
    from backstory.entrypoints.errors import BROKEN_PIPE

    return BROKEN_PIPE


def _leave_output() -> None:
    """Standard output leads nowhere from now on, so that closing it at exit cannot fail again."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    with contextlib.suppress(OSError, ValueError):
        os.dup2(nowhere, sys.stdout.fileno())
    os.close(nowhere)


def _fail(error: Exception, args: Sequence[str]) -> int:
    from backstory.entrypoints.cli.failure import explain, tell

    options = args[: args.index("--")] if "--" in args else args
    failure = explain(error, verbose="--verbose" in options)
    with contextlib.suppress(OSError):  # nobody may be there to be told
        tell(failure, as_json="--json" in options)
    return failure.exit_code
