"""The tools of opencode-memory: facts of everywhere and of the project, with categories and tiers."""

from __future__ import annotations

from backstory.entrypoints.tools.sets.opencode_memory.feedback import IRRELEVANT, USEFUL
from backstory.entrypoints.tools.sets.opencode_memory.forgetting import CLEAR, FORGET
from backstory.entrypoints.tools.sets.opencode_memory.inspection import INSPECT, WHY
from backstory.entrypoints.tools.sets.opencode_memory.read import READ
from backstory.entrypoints.tools.sets.opencode_memory.writing import UPDATE, WRITE
from backstory.entrypoints.tools.tool import Tool

TOOLS: tuple[Tool, ...] = (READ, WRITE, UPDATE, FORGET, CLEAR, WHY, INSPECT, USEFUL, IRRELEVANT)
