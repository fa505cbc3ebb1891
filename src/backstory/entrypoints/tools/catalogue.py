"""The list of tools. Which of them a host offers is a setting."""

from __future__ import annotations

from backstory.config import Settings
from backstory.entrypoints.tools.forget import FORGET
from backstory.entrypoints.tools.inspect import INSPECT
from backstory.entrypoints.tools.recall import RECALL
from backstory.entrypoints.tools.remember import REMEMBER
from backstory.entrypoints.tools.tool import Tool
from backstory.entrypoints.tools.update import UPDATE

TOOLS: tuple[Tool, ...] = (REMEMBER, RECALL, UPDATE, FORGET, INSPECT)


def find_tool(name: str) -> Tool | None:
    """The tool of that name."""
    return next((tool for tool in TOOLS if tool.name == name), None)


def manifest(settings: Settings) -> list[dict[str, object]]:
    """The tools as a host registers them: name, description, JSON Schema of the arguments. Empty if switched off."""
    if not settings.opencode.tools:
        return []
    return [{"name": tool.name, "description": tool.description, "parameters": tool.schema()} for tool in TOOLS]
