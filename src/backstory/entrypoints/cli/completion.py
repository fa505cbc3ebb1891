"""``completion``: the script that makes a shell complete our commands and options."""

from __future__ import annotations

import click

from backstory.entrypoints.cli.command import command
from backstory.entrypoints.cli.invocation import Invocation


@command("completion")
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]), metavar="SHELL")
def completion(here: Invocation, shell: str) -> None:
    """Print the completion script for SHELL: bash, zsh or fish.

    \b
    bash: backstory completion bash > ~/.local/share/bash-completion/completions/backstory
    zsh:  backstory completion zsh > a file _backstory in a folder of your $fpath
    fish: backstory completion fish > ~/.config/fish/completions/backstory.fish
    """
    from click.shell_completion import get_completion_class

    from backstory.entrypoints.cli.main import COMPLETION_VARIABLE, PROGRAM, cli

    maker = get_completion_class(shell)
    assert maker is not None
    click.echo(maker(cli, {}, PROGRAM, COMPLETION_VARIABLE).source())
