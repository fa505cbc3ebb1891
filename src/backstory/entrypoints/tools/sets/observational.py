"""The tools of opencode-observational-memory."""

from __future__ import annotations

from backstory.entrypoints.tools.om_observations import OM_OBSERVATIONS
from backstory.entrypoints.tools.om_status import OM_STATUS
from backstory.entrypoints.tools.tool import Tool

TOOLS: tuple[Tool, ...] = (OM_STATUS, OM_OBSERVATIONS)
