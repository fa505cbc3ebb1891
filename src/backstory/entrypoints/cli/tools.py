"""``tools``: which tools agents get, and what they cost in every request."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, get_args

import click

from backstory.config.serving import Toolset
from backstory.entrypoints.cli.command import command
from backstory.entrypoints.cli.invocation import Invocation
from backstory.entrypoints.tables import Column, Table

if TYPE_CHECKING:
    from backstory.adapters.tokens import NamedTokenCounter
    from backstory.entrypoints.tools import Tool


@command("tools")
@click.option(
    "--toolset",
    type=click.Choice(get_args(Toolset)),
    metavar="NAME",
    help=f"The tools of this set: {', '.join(get_args(Toolset))}.  [default: those of the settings]",
)
@click.option("--cost", is_flag=True, help="Count their tokens, without --toolset those of every set.")
def tools(here: Invocation, toolset: Toolset | None, cost: bool) -> None:
    """Show which tools agents get.

    The setting tools.toolset chooses the set: Backstory's own, or those of an older product under their own names.
    Each tool costs tokens in every request; --cost counts them with the vocabulary of o200k where splintr-rs is
    installed, and estimates them otherwise.
    """
    from backstory.adapters.tokens import token_counter
    from backstory.entrypoints.tools import TOOLSETS

    in_use = here.resolved.settings.tools.toolset
    counter = token_counter(exact=True) if cost else None
    shown = (toolset,) if toolset is not None else TOOLSETS if cost else (in_use,)
    sets = {name: _tools(here, name, is_chosen=toolset is None and name == in_use) for name in shown}
    if here.out.as_json:
        here.out.json(
            {
                "in_use": in_use,
                "counter": None if counter is None else counter.name,
                "toolsets": [_set_shape(name, of_set, counter) for name, of_set in sets.items()],
            }
        )
    elif counter is not None:
        here.out.table(_cost_table(sets, counter, in_use))
        here.out.note(_how_counted(counter))
    else:
        here.out.table(_tool_table([tool for of_set in sets.values() for tool in of_set]))


def _tools(here: Invocation, toolset: str, *, is_chosen: bool) -> Sequence[Tool]:
    """A set; of the chosen one what is really offered, with what the strategy for long sessions adds."""
    from backstory.entrypoints.tools import offered, tools_of

    return offered(here.resolved.settings) if is_chosen else tools_of(toolset)


def _tool_table(of_set: Sequence[Tool]) -> Table:
    return Table(
        columns=(Column("tool"), Column("what it is for", is_wide=True)),
        rows=[(tool.name, _first_sentence(tool.description)) for tool in of_set],
        empty="No tools are offered (opencode.tools is off).",
    )


def _cost_table(sets: dict[str, Sequence[Tool]], counter: NamedTokenCounter, in_use: str) -> Table:
    return Table(
        columns=(Column("toolset"), Column("tool", is_wide=True), Column("tokens", is_number=True)),
        rows=[row for name, of_set in sets.items() for row in _cost_rows(name, of_set, counter, name == in_use)],
        empty="No tools are offered.",
    )


def _cost_rows(
    name: str, of_set: Sequence[Tool], counter: NamedTokenCounter, is_in_use: bool
) -> Iterator[tuple[str, str, str]]:
    costs = _costs(of_set, counter)
    together = "1 tool" if len(of_set) == 1 else f"{len(of_set)} tools"
    yield f"{name} (in use)" if is_in_use else name, together, f"{sum(costs)}"
    for tool, tokens in zip(of_set, costs, strict=True):
        yield "", tool.name, f"{tokens}"


def _set_shape(name: str, of_set: Sequence[Tool], counter: NamedTokenCounter | None) -> dict[str, object]:
    costs = [None] * len(of_set) if counter is None else _costs(of_set, counter)
    told = [
        {"name": tool.name, "description": tool.description, "effect": tool.effect.value, "tokens": tokens}
        for tool, tokens in zip(of_set, costs, strict=True)
    ]
    return {"name": name, "tokens": None if counter is None else sum(_costs(of_set, counter)), "tools": told}


def _costs(of_set: Sequence[Tool], counter: NamedTokenCounter) -> list[int]:
    from backstory.entrypoints.tools.costs import tokens_of

    return [tokens_of(tool, counter.count) for tool in of_set]


def _how_counted(counter: NamedTokenCounter) -> str:
    if counter.name == "estimate":
        return "Tokens in every request, estimated; install splintr-rs to have them counted."
    return f"Tokens in every request, counted with {counter.name}."


def _first_sentence(text: str) -> str:
    return text.partition(". ")[0].rstrip(".") + "."
