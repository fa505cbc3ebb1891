"""Each tool an agent can call, once: name, description, arguments, handler. Every host uses this list."""

from __future__ import annotations

from backstory.entrypoints.tools.catalogue import TOOLS, TOOLSETS, find_tool, manifest, offered, tools_of
from backstory.entrypoints.tools.tool import Answer, Call, Tool, run_tool

__all__ = ["TOOLS", "TOOLSETS", "Answer", "Call", "Tool", "find_tool", "manifest", "offered", "run_tool", "tools_of"]
