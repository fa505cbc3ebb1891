"""Numbers of memories and ids of sessions, while a person types the address of a resource."""

from __future__ import annotations

from collections.abc import Sequence

import mcp.types as protocol

from backstory.entrypoints.mcp.clients import Clients, Context
from backstory.entrypoints.mcp.resources import MOST_LISTED, recent_memories, session_cards

MOST = 100  # the protocol allows no more


class Completions:
    """What ``completion/complete`` answers."""

    def __init__(self, clients: Clients) -> None:
        self._clients = clients

    async def completed(self, ctx: Context, params: protocol.CompleteRequestParams) -> protocol.CompleteResult:
        """What begins with what was typed; nothing for arguments that are free text."""
        known: Sequence[str] = ()
        if isinstance(params.ref, protocol.ResourceTemplateReference):
            point = await self._clients.standpoint(ctx)
            if params.argument.name == "number":
                known = [str(memory.n) for memory in await recent_memories(point, limit=MOST_LISTED)]
            elif params.argument.name == "session":
                known = [card.session.id for card in await session_cards(point)]
        values = [value for value in known if value.startswith(params.argument.value)]
        completion = protocol.Completion(values=values[:MOST], total=len(values), has_more=len(values) > MOST)
        return protocol.CompleteResult(completion=completion)
