"""What tools cost: the tokens that each adds to every request to the model."""

from __future__ import annotations

import json
from collections.abc import Callable

from backstory.entrypoints.tools.tool import Tool


def tokens_of(tool: Tool, count: Callable[[str], int]) -> int:
    """Tokens of a tool as a host sends it: name, description and schema."""
    return count(json.dumps({"name": tool.name, "description": tool.description, "parameters": tool.schema()}))
