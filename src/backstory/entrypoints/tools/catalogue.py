"""The list of tools. Which of them a host offers is a setting."""

from __future__ import annotations

from importlib import import_module

from backstory.config import Settings
from backstory.entrypoints.tools.consolidate import CONSOLIDATE
from backstory.entrypoints.tools.feedback import FEEDBACK
from backstory.entrypoints.tools.forget import FORGET
from backstory.entrypoints.tools.inspect import INSPECT
from backstory.entrypoints.tools.om_observations import OM_OBSERVATIONS
from backstory.entrypoints.tools.om_status import OM_STATUS
from backstory.entrypoints.tools.recall import RECALL
from backstory.entrypoints.tools.remember import REMEMBER
from backstory.entrypoints.tools.search_memory_tree import SEARCH_MEMORY_TREE
from backstory.entrypoints.tools.session import SESSION_RECALL
from backstory.entrypoints.tools.tool import Tool
from backstory.entrypoints.tools.update import UPDATE

DEFAULT: tuple[Tool, ...] = (REMEMBER, RECALL, UPDATE, FORGET, INSPECT, FEEDBACK, CONSOLIDATE, SESSION_RECALL)
"""Few, since each costs tokens in every request."""

OF_STRATEGY: dict[str, tuple[Tool, ...]] = {
    "off": (),
    "tree": (SEARCH_MEMORY_TREE,),
    "observations": (OM_STATUS, OM_OBSERVATIONS),
}
"""What opens the digest that requests show, under the names that the strategies' users know."""

TOOLS: tuple[Tool, ...] = (*DEFAULT, *(tool for tools in OF_STRATEGY.values() for tool in tools))
"""Backstory's own."""

_SETS = "backstory.entrypoints.tools.sets"
_OLDER: dict[str, str] = {
    "memory-tree": f"{_SETS}.memory_tree",
    "ocpg": f"{_SETS}.ocpg",
    "opencode-memory": f"{_SETS}.opencode_memory",
    "git-memory": f"{_SETS}.git_memory",
    "observational": f"{_SETS}.observational",
    "all": f"{_SETS}.everything",
}
"""Where the other sets are; imported when somebody asks for one."""
TOOLSETS: tuple[str, ...] = ("default", *_OLDER)


def tools_of(toolset: str) -> tuple[Tool, ...]:
    """The tools of a set. Raises KeyError for a name that is none."""
    if toolset == "default":
        return DEFAULT
    tools: tuple[Tool, ...] = import_module(_OLDER[toolset]).TOOLS
    return tools


def find_tool(name: str, settings: Settings | None = None) -> Tool | None:
    """The tool of that name: in the set that the settings choose, or without settings in Backstory's own. What opens a
    digest is found with every set, whatever the strategy is now."""
    toolset = "default" if settings is None else settings.tools.toolset
    return next((tool for tool in _with_strategies(tools_of(toolset)) if tool.name == name), None)


def offered(settings: Settings) -> tuple[Tool, ...]:
    """The tools that the settings ask for, with those that open what the strategy for long sessions shows; none if they
    are switched off."""
    if not settings.opencode.tools:
        return ()
    chosen = tools_of(settings.tools.toolset)
    names = {tool.name for tool in chosen}
    return (*chosen, *(tool for tool in OF_STRATEGY[settings.session.strategy] if tool.name not in names))


def _with_strategies(tools: tuple[Tool, ...]) -> tuple[Tool, ...]:
    names = {tool.name for tool in tools}
    return (*tools, *(tool for tool in TOOLS[len(DEFAULT) :] if tool.name not in names))


def manifest(settings: Settings) -> list[dict[str, object]]:
    """The tools as a host registers them: name, description, JSON Schema of the arguments."""
    return [
        {"name": tool.name, "description": tool.description, "parameters": tool.schema()} for tool in offered(settings)
    ]
