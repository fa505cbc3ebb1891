"""The tools of opencode-plugin-git-memory: memories by type and topic."""

from __future__ import annotations

from backstory.entrypoints.tools.sets.git_memory.moving import COMPACT, EXPORT, IMPORT
from backstory.entrypoints.tools.sets.git_memory.reading import CONTEXT, LIST, RECALL
from backstory.entrypoints.tools.sets.git_memory.writing import FORGET, REMEMBER, UPDATE
from backstory.entrypoints.tools.tool import Tool

TOOLS: tuple[Tool, ...] = (REMEMBER, RECALL, UPDATE, FORGET, LIST, EXPORT, IMPORT, COMPACT, CONTEXT)
