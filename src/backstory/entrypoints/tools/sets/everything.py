"""All tools of all sets, each name once: ours where we have it, then the older products'."""

from __future__ import annotations

from dataclasses import replace

from backstory.entrypoints.tools.feedback import FEEDBACK
from backstory.entrypoints.tools.inspect import INSPECT
from backstory.entrypoints.tools.search_memory_tree import SEARCH_MEMORY_TREE
from backstory.entrypoints.tools.session import SESSION_RECALL
from backstory.entrypoints.tools.sets import git_memory, observational, ocpg, opencode_memory
from backstory.entrypoints.tools.sets.opencode_memory.writing import ProjectWriteArguments
from backstory.entrypoints.tools.sets.unified import UNIFIED
from backstory.entrypoints.tools.tool import Tool

_OLDER = (
    *(
        replace(tool, arguments=ProjectWriteArguments) if tool.name == "memory_write" else tool
        for tool in opencode_memory.TOOLS
    ),
    *ocpg.TOOLS,
    *git_memory.TOOLS,
    SEARCH_MEMORY_TREE,
    *observational.TOOLS,
)


def _each_once() -> tuple[Tool, ...]:
    tools: dict[str, Tool] = {}
    for tool in (*UNIFIED, INSPECT, FEEDBACK, SESSION_RECALL, *_OLDER):
        tools.setdefault(tool.name, tool)
    return tuple(tools.values())


TOOLS: tuple[Tool, ...] = _each_once()
