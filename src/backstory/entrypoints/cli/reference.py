"""The pages ``docs/reference/cli.md`` and ``docs/reference/exit-codes.md``, made from the commands and the table."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import click

from backstory.entrypoints.cli.command import is_global
from backstory.entrypoints.cli.examples import examples_of
from backstory.entrypoints.cli.main import PROGRAM, cli
from backstory.entrypoints.errors import BROKEN_PIPE, INTERRUPTED, RULES, UNEXPECTED, USAGE

HELP_WIDTH = 80


def commands() -> Iterator[tuple[str, click.Context]]:
    """The name of every command, subcommands included, in the order of the help, each with its context."""
    top = click.Context(cli, info_name=PROGRAM, terminal_width=HELP_WIDTH, max_content_width=HELP_WIDTH)
    yield PROGRAM, top
    yield from _below(cli, top, PROGRAM)


def render_commands() -> str:
    """The page of the command line, ending in one newline."""
    parts = [_INTRODUCTION.strip(), _options(cli.params, shared=True)]
    parts += [_command(name, context) for name, context in commands() if context.command is not cli]
    return "\n\n".join(parts) + "\n"


def render_exit_codes() -> str:
    """The page of exit codes, ending in one newline."""
    rows = [(0, "", "Done. A recall that found nothing good enough is done too, and says why.")]
    rows.append((UNEXPECTED, "", "Something unexpected failed, a file could not be written, or a check found a fault."))
    rows.append((USAGE, "`UsageError`", "The command line cannot be understood, or an import refused some lines."))
    rows += [(rule.exit_code, f"`{rule.error.__name__}`", rule.meaning) for rule in RULES]
    rows.append((INTERRUPTED, "", "Interrupted with Ctrl-C."))
    rows.append((BROKEN_PIPE, "", "The reader of the output went away, as in `backstory list | head -1`."))
    table = [f"| {code} | {name} | {_cell(meaning)} |" for code, name, meaning in sorted(rows, key=lambda row: row[0])]
    return "\n".join([_EXIT_CODES.strip(), "", "| Code | Error | Meaning |", "| --- | --- | --- |", *table]) + "\n"


def _below(group: click.Group, context: click.Context, path: str) -> Iterator[tuple[str, click.Context]]:
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        assert command is not None
        inner = click.Context(command, info_name=name, parent=context)
        yield f"{path} {name}", inner
        if isinstance(command, click.Group):
            yield from _below(command, inner, f"{path} {name}")


def _command(name: str, context: click.Context) -> str:
    usage = " ".join([name, *context.command.collect_usage_pieces(context)])
    parts = [f"## {name}", f"```text\n{usage}\n```", _text(context.command.help or "")]
    if lines := examples_of(name):
        parts.append("\n".join(["```sh", *lines, "```"]))
    if options := _options(context.command.params, shared=False):
        parts.append(options)
    return "\n\n".join(parts)


def _text(help_text: str) -> str:
    """The help as paragraphs; what is marked as preformatted stays so."""
    paragraphs = [paragraph.strip("\n") for paragraph in help_text.split("\n\n")]
    return "\n\n".join(
        "```text\n" + paragraph.replace("\b\n", "") + "\n```" if "\b" in paragraph else _escaped(paragraph)
        for paragraph in paragraphs
    )


def _options(params: Sequence[click.Parameter], *, shared: bool) -> str:
    context = click.Context(cli)
    wanted = [param for param in params if isinstance(param, click.Option) and is_global(param) is shared]
    records = [param.get_help_record(context) for param in wanted]
    rows = [(f"`{name}`", _cell(text)) for name, text in filter(None, records)]
    if not rows:
        return ""
    return "\n".join(["| Option | What it does |", "| --- | --- |", *(f"| {name} | {text} |" for name, text in rows)])


def _cell(text: str) -> str:
    return _escaped(text).replace("|", "\\|")


def _escaped(text: str) -> str:
    return " ".join(text.split()).replace("<", "&lt;")


_INTRODUCTION = """
# Command line

This page is made from the commands themselves; `backstory COMMAND --help` shows the same.

Memories belong to the project of the current folder, unless they are global. A memory is named by its number (`12` or
`#12`; most shells want the second in quotes), by its id, or by a piece of text that only one memory holds.

On a terminal, results come with colour and tables. In a pipe they are plain: one line a row, tabs between the columns
of tables, no colour. `NO_COLOR` switches colour off. `--json` gives [JSON](json-output.md), and errors as JSON on
standard error. How a command ended is told by its [exit code](exit-codes.md). Settings have a [page](settings.md) of
their own; each can be set by an environment variable.

After `remember`, `update`, `undo` and `import`, a process is started in the background that embeds what is new, if
there is an embedder; it ends by itself. `BACKSTORY_NO_BACKGROUND=1` prevents it; `backstory embed` does the same work
in the foreground. Until then, new memories are found by their words.

Reading commands make nothing: where there is no store yet, they answer as from an empty one.

These options can stand before or after the name of every command:
"""

_EXIT_CODES = """
# Exit codes

With `--json`, the error stands on standard error as an object under `error`, with its `type`, `message`, `field` (the
argument or setting at fault, or null), `hint` (what to do, or null) and `exit_code`; an `AmbiguousMatch` also has
`candidates`, the ids of the memories that fit. Standard output is empty then. A line of text says the same without
`--json`.
"""
