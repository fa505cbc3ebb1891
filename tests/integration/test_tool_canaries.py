"""Which kinds of text each agent tool may show, ours and those of older products: with every argument it has.

Whoever adds a tool has to say here what it may show.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from backstory.entrypoints.tools.catalogue import TOOLS, TOOLSETS, tools_of
from backstory.entrypoints.tools.tool import Effect
from tests.canaries import ELSEWHERE, KEYS, LOCAL, NIGHT, OPEN, PRIVATE, TALK, Boathouse, digested, heard

# What each may show. Whatever is not named there is shown by none of them; what is in NOWHERE, by nothing at all.

IN_TOOLS: Mapping[str, set[str]] = {
    "memory_remember": {OPEN, PRIVATE},  # it answers a number with what stands there
    "memory_recall": {OPEN, PRIVATE},  # and ELSEWHERE where all projects are asked for
    "memory_update": {OPEN, PRIVATE},
    "memory_forget": {OPEN, PRIVATE},
    "memory_inspect": {OPEN, PRIVATE},
    "memory_feedback": {OPEN, PRIVATE},
    "memory_consolidate": {OPEN},
    "session_recall": set(),
    "search_memory_tree": set(),
    "om_status": set(),
    "om_observations": set(),
}

READ = {OPEN, PRIVATE}
"""What is shown to a model that asks: never what is local-only, forgotten or of another project."""

IN_OLDER_TOOLS: Mapping[str, Mapping[str, set[str]]] = {
    "memory-tree": {"search_memory_tree": set()},
    "observational": {"om_status": set(), "om_observations": set()},
    "ocpg": {
        "memory_remember": set(),
        "memory_recall": READ,
        "memory_forget": set(),
        "memory_update": set(),
        "memory_consolidate": {OPEN},
        "memory_tags": set(),
        "memory_retag": set(),
    },
    "opencode-memory": {
        "memory_read": READ,
        "memory_write": set(),
        "memory_update": set(),
        "memory_forget": set(),
        "memory_clear": set(),
        "memory_why": READ,
        "memory_inspect": READ,
        "memory_useful": set(),
        "memory_irrelevant": set(),
    },
    "git-memory": {
        "memory_remember": set(),
        "memory_recall": READ,
        "memory_update": set(),
        "memory_forget": set(),
        "memory_list": set(),
        "memory_export": {OPEN},  # as text that may leave
        "memory_import": set(),
        "memory_compact": set(),
        "memory_context": READ,
    },
}
"""The tools of older products, by their set. Those of ``all`` are ours or theirs, each once."""
ALL_WIDENED = {name: IN_TOOLS[name] for name in (
    "memory_remember", "memory_recall", "memory_update", "memory_forget", "memory_consolidate",
)} | {"memory_clear": set()}  # fmt: skip
"""Ours that take more arguments in ``all``."""


def test_every_tool_stands_in_the_table() -> None:
    assert {tool.name for tool in TOOLS} == set(IN_TOOLS)


@pytest.mark.parametrize("tool", TOOLS, ids=lambda tool: tool.name)
def test_a_tool_shows_no_more_than_it_may(house: Boathouse, tool: Any, tmp_path: Path) -> None:
    """With every value for each of its arguments, and with every switch beside every value."""
    own = house.copied(tmp_path)
    digested(own)
    shown: set[str] = set()
    for arguments in _calls(tool.schema(), own):
        said = heard(own.call(tool.name, arguments))
        may = IN_TOOLS[tool.name] | ({ELSEWHERE} if arguments.get("all_projects") else set())
        assert said <= may, (arguments, said - may)
        shown |= said
    own.close()
    if OPEN in IN_TOOLS[tool.name] and tool.name in ("memory_recall", "memory_inspect"):
        assert OPEN in shown  # else this would prove nothing


OLDER = [(toolset, name) for toolset, tools in (*IN_OLDER_TOOLS.items(), ("all", ALL_WIDENED)) for name in tools]


def test_every_tool_of_every_set_stands_in_the_table() -> None:
    named = {toolset: {tool.name for tool in tools_of(toolset)} for toolset in IN_OLDER_TOOLS}
    assert named == {toolset: set(tools) for toolset, tools in IN_OLDER_TOOLS.items()}
    assert set(TOOLSETS) == {"default", "all", *IN_OLDER_TOOLS}
    ours = {id(tool.handler) for tool in TOOLS}
    older = {id(tool.handler) for toolset in IN_OLDER_TOOLS for tool in tools_of(toolset)}
    assert {tool.name for tool in tools_of("all") if id(tool.handler) not in ours | older} == set(ALL_WIDENED)


@pytest.mark.parametrize(("toolset", "name"), OLDER)
def test_a_tool_of_another_set_shows_no_more_than_it_may(
    house: Boathouse, toolset: str, name: str, tmp_path: Path
) -> None:
    own = house.copied(tmp_path, tools__toolset=toolset)
    digested(own)
    may_ever = ALL_WIDENED[name] if toolset == "all" else IN_OLDER_TOOLS[toolset][name]
    tool = next(tool for tool in tools_of(toolset) if tool.name == name)
    shown: set[str] = set()
    for arguments in _calls(tool.schema(), own, beside=3):
        widened = arguments.get("all_projects") or arguments.get("global")
        said = heard(own.call(name, arguments))
        may = may_ever | ({ELSEWHERE} if widened else set())
        assert said <= may, (arguments, said - may)
        shown |= said
    own.close()
    if may_ever == READ and tool.effect is Effect.READS:
        assert OPEN in shown  # else this would prove nothing


def _calls(schema: Any, house: Boathouse, *, beside: int = 8) -> Iterator[dict[str, Any]]:
    """Arguments for a tool, made from its schema alone: so a new tool, or argument, is covered by itself.

    ``beside`` is how many values are tried with every switch; the first eight are all the words by which a memory is
    asked for.
    """
    properties = schema["properties"]
    values = {name: list(_values(name, kind, house)) for name, kind in properties.items()}
    needed = schema.get("required", [])
    switches = [name for name, kind in properties.items() if kind.get("type") == "boolean" or "enum" in kind]
    yield {}
    for chosen in _chosen([values[name] for name in needed]):
        base = dict(zip(needed, chosen, strict=True))
        yield base
        for name in properties.keys() - set(needed):
            plain = base if base == dict(zip(needed, [values[each][0] for each in needed], strict=True)) else None
            if name in switches or plain is not None:
                yield from (base | {name: value} for value in values[name])
    for switch, name in itertools.product(switches, properties.keys()):
        for one, two in itertools.product(values[switch], values[name][:beside]):
            rest = {each: values[each][0] for each in needed}
            yield rest | {name: two, switch: one}
    for one, two in itertools.combinations(switches, 2):
        for first, second, third in itertools.product(values[one], values[two], values.get("query", [""])[:beside]):
            yield {each: values[each][0] for each in needed} | {"query": third, one: first, two: second}


def _chosen(values: Sequence[Sequence[Any]]) -> Iterator[tuple[Any, ...]]:
    """Every combination; where there are very many, each value once beside the first ones of the others."""
    if math.prod(map(len, values)) <= _COMBINATIONS:
        yield from itertools.product(*values)
        return
    first = tuple(choices[0] for choices in values)
    yield first
    for place, choices in enumerate(values):
        yield from ((*first[:place], choice, *first[place + 1 :]) for choice in choices[1:])


_COMBINATIONS = 600


def _values(name: str, kind: Any, house: Boathouse) -> Iterator[Any]:
    if "enum" in kind:
        yield from kind["enum"]
    elif kind.get("type") == "boolean":
        yield from (True, False)
    elif kind.get("type") == "array":
        yield from (["lamp"], [LOCAL[:3]], [])
    elif kind.get("type") in ("integer", "number"):
        yield min(kind.get("maximum", 100), 100)
    else:
        yield from ("lamp oil", "", *KEYS.values())
        yield from (f"#{number}" for number in range(1, 8))
        yield from (memory.id for memory in house.memories.values())
        yield from (str(TALK), str(NIGHT), f"msg_{NIGHT}_01", "msg_prompt_6", "node0_001", "obs0_001", "2026-03-02")
        if name in ("content", "fact", "scope", "kind", "category"):
            yield from ("The lamp at the slipway is filled with other oil.", "global", "session", "project", "decision")
