"""The tools as the protocol lists and calls them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import mcp.types as protocol

from backstory.config import Settings
from backstory.domain.context_block import quote
from backstory.entrypoints.mcp.clients import Clients, Context
from backstory.entrypoints.tools import Answer, Tool, run_tool
from backstory.entrypoints.tools.catalogue import offered
from backstory.entrypoints.tools.tool import Effect, failed_answer
from backstory.errors import BackstoryError


class Tools:
    """What ``tools/list`` and ``tools/call`` answer. ``changed`` is told after calls that may have stored something."""

    def __init__(self, clients: Clients, changed: Callable[[], None]) -> None:
        self._clients = clients
        self._changed = changed

    async def listed(self, ctx: Context, params: protocol.PaginatedRequestParams | None) -> protocol.ListToolsResult:
        """All tools on one page; they are there without a store, too."""
        settings = await self._clients.settings(ctx)
        return protocol.ListToolsResult(tools=[_entry(tool) for tool in offered_here(settings)])

    async def called(
        self, ctx: Context, params: protocol.CallToolRequestParams
    ) -> protocol.CallToolResult | protocol.InputRequiredResult:
        """What a tool answers. Whatever fails is told as the tool's answer, so that the model hears of it."""
        try:
            point = await self._clients.asked(ctx, params.input_responses)
        except BackstoryError as error:
            return _result(failed_answer(error, tool=params.name))
        if isinstance(point, protocol.InputRequiredResult):
            return point
        tool = next((tool for tool in offered_here(point.app.settings) if tool.name == params.name), None)
        if tool is None:
            return _result(Answer(text=f"There is no tool {quote(params.name[:60])} here.", failed=True))
        answer = await run_tool(tool, params.arguments, point.call(tool.name))
        if tool.effect is not Effect.READS:
            self._changed()
        return _result(answer, notes=point.notes)


def offered_here(settings: Settings) -> Sequence[Tool]:
    """The tools that the user chose. ``opencode.tools`` is about the plugin: who connects a client here wants some."""
    return offered(replace(settings, opencode=replace(settings.opencode, tools=True)))


def _entry(tool: Tool) -> protocol.Tool:
    return protocol.Tool(
        name=tool.name,
        description=tool.description,
        input_schema=tool.schema(),
        annotations=protocol.ToolAnnotations(
            read_only_hint=tool.effect is Effect.READS,
            destructive_hint=tool.effect is Effect.CHANGES,
            idempotent_hint=tool.effect is not Effect.ADDS,
            open_world_hint=False,
        ),
    )


def _result(answer: Answer, *, notes: Sequence[str] = ()) -> protocol.CallToolResult:
    text = "\n".join([answer.text, *(f"({quote(note)})" for note in notes)])
    return protocol.CallToolResult(content=[protocol.TextContent(text=text)], is_error=answer.failed)
