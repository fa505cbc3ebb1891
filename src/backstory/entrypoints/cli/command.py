"""What all commands share: the global options before or after their name, and texts that must be text."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

import click

from backstory.entrypoints.cli.invocation import Invocation

MAX_SUGGESTIONS = 3
NEAR = 0.7
"""How much of a name must be right for it to be suggested: `recal` suggests recall, but not dream."""


_WHOLE = 1000
"""More characters than any first sentence has, so that none is cut."""


_UNBROKEN = "\u2011"
"""A hyphen at which no line is broken; it stands for one while lines are made."""


class _Formatter(click.HelpFormatter):
    """Breaks lines between words alone, so that an option or a value such as session-start stays in one piece."""

    def write(self, string: str) -> None:
        super().write(string.replace(_UNBROKEN, "-"))

    def write_text(self, text: str) -> None:
        super().write_text(text.replace("-", _UNBROKEN))

    def write_dl(self, rows: Iterable[tuple[str, str]], col_max: int = 30, col_spacing: int = 2) -> None:
        unbroken = [(first, second.replace("-", _UNBROKEN)) for first, second in rows]
        super().write_dl(unbroken, col_max, col_spacing)


class Plain(click.Command):
    """A command without the global options."""

    def get_help(self, ctx: click.Context) -> str:
        """The help, with no line broken within a word."""
        formatter = _Formatter(width=ctx.terminal_width, max_width=ctx.max_content_width)
        self.format_help(ctx, formatter)
        return formatter.getvalue().rstrip("\n")


class _Shared(Plain):
    """Adds the global options to a command, in a section of their own."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:  # Any: handed on to click as they are
        super().__init__(*args, **kwargs)
        self.params.extend(_global_options())

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Parse, and refuse arguments that are not text: they could be neither stored nor searched for."""
        rest = super().parse_args(ctx, args)
        for param in self.params:
            if param.expose_value and param.name is not None:
                ctx.params[param.name] = _as_text(ctx.params.get(param.name), ctx, param)
        return rest

    def format_help_text(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """What the command does, and how it is typed."""
        from backstory.entrypoints.cli.examples import examples_of

        super().format_help_text(ctx, formatter)
        if lines := examples_of(ctx.command_path):
            with formatter.section("Examples"):
                for line in lines:
                    formatter.write(f"{'':{formatter.current_indent}}{line}\n")

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """The command's own options, then the global ones."""
        own: list[tuple[str, str]] = []
        shared: list[tuple[str, str]] = []
        for param in self.get_params(ctx):
            record = param.get_help_record(ctx)
            if record is not None and isinstance(param, click.Option):
                (shared if is_global(param) else own).append(record)
        if own:
            with formatter.section("Options"):
                formatter.write_dl(own)
        with formatter.section("Global options"):
            formatter.write_dl(shared)


class Command(_Shared):
    """One command."""


class Group(_Shared, click.Group):
    """A command with subcommands."""

    command_class = Command

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Subcommands come first, since they are what one looks for."""
        self.format_commands(ctx, formatter)
        super().format_options(ctx, formatter)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """The subcommand that is meant; for an unknown one, the nearest is named."""
        name = args[0]
        if self.get_command(ctx, name) is None and not ctx.resilient_parsing and not name.startswith("-"):
            raise click.UsageError(f"there is no command {name!r}{_suggestion(name, self.known_names())}", ctx)
        return super().resolve_command(ctx, args)

    def known_names(self) -> Sequence[str]:
        """Names to suggest from."""
        return tuple(self.commands)

    def sections(self) -> Sequence[tuple[str, Sequence[str]]]:
        """The headings below which the help lists the commands, each with their names."""
        return [("Commands", self.known_names())]

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Each command with the whole first sentence of its help, the names all in one width."""
        found = {name: self.get_command(ctx, name) for name in self.list_commands(ctx)}
        width = max(map(len, found), default=0)
        for title, names in self.sections():
            rows = [
                (name.ljust(width), command.get_short_help_str(_WHOLE))
                for name in names
                if (command := found.get(name)) is not None
            ]
            if rows:
                with formatter.section(title):
                    formatter.write_dl(rows)


def command(name: str) -> Callable[[Callable[..., Any]], Command]:
    """Make a function a command; it takes the Invocation first. (``Any``: click fills in what the options say.)"""

    def decorate(function: Callable[..., Any]) -> Command:
        return click.command(name, cls=Command)(click.make_pass_decorator(Invocation, ensure=True)(function))

    return decorate


def is_global(param: click.Parameter) -> bool:
    """Whether an option is one of those that every command has."""
    return isinstance(param, _GlobalOption)


class _GlobalOption(click.Option):
    """An option kept in the Invocation instead of being passed to the command."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:  # Any: handed on to click as they are
        super().__init__(*args, expose_value=False, callback=_keep, **kwargs)


def _keep(ctx: click.Context, param: click.Parameter, value: object) -> None:
    invocation = ctx.ensure_object(Invocation)
    if value not in (None, False):
        assert param.name is not None
        setattr(invocation, param.name, value)


def _global_options() -> list[click.Parameter]:
    folder = click.Path(exists=True, file_okay=False, path_type=Path)
    return [
        _GlobalOption(["--json", "as_json"], is_flag=True, help="Print JSON, errors too."),
        _GlobalOption(
            ["--project", "project_folder"],
            type=folder,
            metavar="DIR",
            help="Act as in this folder.  [default: the current one]",
        ),
        _GlobalOption(
            ["--store", "store_url"],
            metavar="URL",
            help="Use this store: sqlite, sqlite:///PATH, postgresql://USER@HOST/DATABASE, git or memory.",
        ),
        _GlobalOption(["--verbose"], is_flag=True, help="Tell more, on standard error."),
    ]


def _as_text(value: object, ctx: click.Context, param: click.Parameter) -> object:
    """The value; text that the locale could not read is taken as UTF-8. Raises BadParameter where it is not."""
    if isinstance(value, tuple):
        return tuple(_as_text(item, ctx, param) for item in value)
    if not isinstance(value, str) or value.isascii() or not any("\ud800" <= char <= "\udfff" for char in value):
        return value
    try:
        return os.fsencode(value).decode("utf-8")
    except UnicodeError:
        raise click.BadParameter("it holds bytes that are not UTF-8 text", ctx=ctx, param=param) from None


def _suggestion(written: str, known: Sequence[str]) -> str:
    from difflib import get_close_matches  # only to report an error

    near = get_close_matches(written[:100], known, n=MAX_SUGGESTIONS, cutoff=NEAR)
    return f"; did you mean {' or '.join(near)}?" if near else ""
