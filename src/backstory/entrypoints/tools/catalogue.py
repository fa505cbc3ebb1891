"""The list of tools. Which of them a host offers is a setting."""

from __future__ import annotations

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


def find_tool(name: str) -> Tool | None:
    """The tool of that name."""
    return next((tool for tool in TOOLS if tool.name == name), None)


def offered(settings: Settings) -> tuple[Tool, ...]:
    """The tools that the settings ask for; none if they are switched off."""
    return (*DEFAULT, *OF_STRATEGY[settings.session.strategy]) if settings.opencode.tools else ()


def manifest(settings: Settings) -> list[dict[str, object]]:
    """The tools as a host registers them: name, description, JSON Schema of the arguments."""
    return [
        {"name": tool.name, "description": tool.description, "parameters": tool.schema()} for tool in offered(settings)
    ]
