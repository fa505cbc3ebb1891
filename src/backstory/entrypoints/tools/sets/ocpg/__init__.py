"""The tools of ocpg: facts of the stack, facts of the project, and episodes, by number."""

from __future__ import annotations

from backstory.entrypoints.tools.sets.ocpg.cleaning import CONSOLIDATE, RETAG, TAGS
from backstory.entrypoints.tools.sets.ocpg.recall import RECALL
from backstory.entrypoints.tools.sets.ocpg.writing import FORGET, REMEMBER, UPDATE
from backstory.entrypoints.tools.tool import Tool

TOOLS: tuple[Tool, ...] = (REMEMBER, RECALL, FORGET, UPDATE, CONSOLIDATE, TAGS, RETAG)
