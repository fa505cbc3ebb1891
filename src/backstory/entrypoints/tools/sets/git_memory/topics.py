"""The service behind these tools, over the store of a call."""

from __future__ import annotations

from typing import Literal

from backstory.adapters.blocking import run_blocking
from backstory.entrypoints.tools.tool import Call
from backstory.services.topics import Topics

TypeName = Literal["decision", "learning", "preference", "blocker", "context", "pattern"]


def topics(call: Call) -> Topics:
    """What may be read and changed by type and topic."""
    app = call.app
    return Topics(
        app.backend.memories,
        app.remember,
        app.truth.consolidate,
        clock=app.clock,
        ids=app.ids,
        limits=app.limits,
        aside=run_blocking,
    )
