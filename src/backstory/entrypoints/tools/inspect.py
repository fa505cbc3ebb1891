"""memory_inspect: why a memory is known or was shown, and what is there."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import ClassVar

from pydantic import Field

from backstory.domain.context_block import quote
from backstory.domain.conversation import FrozenBlock
from backstory.domain.ids import MemoryId
from backstory.domain.memory import Deleted, Memory, Visibility
from backstory.domain.selection import Selection
from backstory.domain.truncation import truncate_chars
from backstory.entrypoints.overview_views import listed, summary_size
from backstory.entrypoints.tools.say import memory_lines, project_names
from backstory.entrypoints.tools.tool import Answer, Arguments, Call, Effect, Tool
from backstory.entrypoints.tools.why import QUOTE_CHARS, added, why
from backstory.errors import InputError
from backstory.services.conflicts import Side


class View(StrEnum):
    """What to look at."""

    WHY = "why"
    RECENT = "recent"
    PROJECT = "project"
    CONFLICTS = "conflicts"
    TAGS = "tags"
    SHOWN = "shown"
    SILENT = "silent"
    STATS = "stats"

    @classmethod
    def _missing_(cls, value: object) -> View | None:
        """What other products call a view."""
        return cls.SHOWN if value == "surfaced" else None


class InspectArguments(Arguments):
    """Arguments of memory_inspect."""

    older_names: ClassVar[Mapping[str, str]] = {"show": "view"}

    view: View = Field(
        default=View.STATS,
        description="why: one memory's source, history, worth and showings (needs id). recent: newest memories."
        " project: this project's, and its summary. conflicts: memories that disagree. tags: labels in use. shown:"
        " what came with the last messages of this session, and why or why not. silent: what was near the last"
        " message and kept back, and why. stats: counts.",
    )
    id: int | str | None = Field(default=None, description="#number or text of the memory, for why.")
    query: str | None = Field(default=None, description="For why: explain the score for this text.")
    limit: int = Field(default=10, ge=1, le=100, description="At most this many lines.")


async def inspect(arguments: InspectArguments, call: Call) -> Answer:
    """Look without changing anything."""
    limit = arguments.limit
    match arguments.view:
        case View.WHY:
            if arguments.id is None:
                raise InputError("view why needs the id of a memory", field="id")
            return await why(str(arguments.id), arguments.query, call)
        case View.RECENT:
            return await _recent(call, limit)
        case View.PROJECT:
            return await _project(call, limit)
        case View.CONFLICTS:
            return await _conflicts(call, limit)
        case View.TAGS:
            return await _tags(call, limit)
        case View.SHOWN:
            return await _shown(call, limit)
        case View.SILENT:
            return await _silent(call, limit)
        case View.STATS:
            return await _stats(call)


async def _recent(call: Call, limit: int) -> Answer:
    text, found = await _memories(Selection(viewer=call.viewer, now=call.app.clock.now()), call, limit)
    return Answer(text=text or "There is no memory here yet.", title=f"{found} newest")


async def _project(call: Call, limit: int) -> Answer:
    selection = Selection(viewer=call.viewer, now=call.app.clock.now(), visibility=Visibility.PROJECT)
    text, _ = await _memories(selection, call, limit)
    summaries = call.app.truth.summaries
    told = [] if summaries is None else await summaries.offered(call.viewer.project)
    lines = [f"Summary{'' if item.project else ' of everywhere'}: {quote(item.text)}" for item in told]
    return Answer(text="\n".join([*lines, text or "This project has no memory yet."]), title="project")


async def _memories(selection: Selection, call: Call, limit: int) -> tuple[str, int]:
    memories = await call.app.backend.memories.select(selection, limit=limit)
    names = await project_names(call.app)
    return "\n".join(memory_lines(memory, here=call.viewer.project, names=names) for memory in memories), len(memories)


async def _conflicts(call: Call, limit: int) -> Answer:
    found = await call.app.truth.conflicts.conflicts(call.viewer, limit=limit)
    lines = []
    for conflict in found:
        sides = " against ".join(_side(side) for side in (conflict.one, conflict.other) if side is not None)
        evidence = quote(truncate_chars(conflict.evidence, QUOTE_CHARS)) or "no evidence was given"
        lines.append(f"- {sides}; {evidence} (since {conflict.since:%Y-%m-%d})")
    return Answer(text="\n".join(lines) or "No memories here are in conflict.", title=f"{len(found)} conflicts")


def _side(side: Side) -> str:
    memory = side.memory
    text = quote(truncate_chars(memory.content, QUOTE_CHARS))
    return f"#{memory.n} ({memory.times.learned:%Y-%m-%d}, from {memory.origin.value}) “{text}”"


async def _tags(call: Call, limit: int) -> Answer:
    selection = Selection(viewer=call.viewer, now=call.app.clock.now())
    counts = await call.app.backend.memories.tag_counts(selection, limit=limit)
    return Answer(text="\n".join(f"{quote(tag)} ({uses})" for tag, uses in counts) or "No tags found.", title="tags")


async def _shown(call: Call, limit: int) -> Answer:
    blocks = await call.app.inspection.recent_blocks(call.viewer, limit=limit)
    ids = [item.memory for block in blocks for item in block.shown]
    known = await call.app.inspection.in_sight(ids, call.viewer)
    lines = [f"- {block.created_at:%Y-%m-%d %H:%M}: {_block(block, known)}" for block in blocks]
    return Answer(text="\n".join(lines) or "Nothing was looked up in this session yet.", title="shown")


def _block(block: FrozenBlock, known: Mapping[MemoryId, Memory]) -> str:
    """What a block shows, but for memories that a model may not see any more."""
    shown = []
    for item in block.shown:
        memory = known.get(item.memory)
        if memory is not None:
            gone = ", forgotten since" if isinstance(memory.status, Deleted) else ""
            parts = f"; {added(item.parts)}" if item.parts else ""
            shown.append(f"#{item.n}{gone} ({quote(item.reason)}; score {item.score:.2f}{parts})")
    return "; ".join(shown) or f"nothing, {quote(block.silent_because or 'what was shown is not to be seen any more')}"


async def _silent(call: Call, limit: int) -> Answer:
    weighing = await call.app.truth.explanation.weighing(call.viewer, limit=limit)
    block = weighing.block
    lines = [
        f"The message of {block.created_at:%Y-%m-%d %H:%M}: {quote(block.silent_because or 'memories were shown')}"
    ]
    if weighing.prompt is None:
        lines.append("Its text is not kept, so what was near it cannot be worked out.")
    elif not weighing.candidates:
        lines.append("Nothing is near it.")
    for item in weighing.candidates:
        text = quote(truncate_chars(item.memory.content, QUOTE_CHARS))
        said = "shown" if item.shown else "not shown"
        lines.append(f"- #{item.memory.n} “{text}” {said}, {quote(item.because)} (score now {item.score.total:.2f})")
    return Answer(text="\n".join(lines), title="silent")


async def _stats(call: Call) -> Answer:
    told = await call.app.inspection.overview(call.viewer)
    by_state = (await call.app.inspection.statistics(call.viewer)).by_state
    summaries = call.app.truth.summaries
    kept = None if summaries is None else await summaries.offered(call.viewer.project)
    states = listed({state: count for state, count in by_state.items() if count})
    lines = [f"{told.memories} memories in sight ({states or 'none'}), about {told.tokens} tokens."]
    if told.memories:
        lines += [
            f"by source: {listed(told.by_source)}",
            f"by scope: {listed(told.by_visibility)}",
            f"by tier: {listed(told.by_tier)}; {told.pinned} pinned",
            f"by kind: {listed(told.by_kind)}",
            f"{told.private} private; {told.surfaced} were shown at least once",
        ]
    return Answer(text="\n".join([*lines, f"summary: {summary_size(kept)}"]), title="stats")


INSPECT = Tool(
    name="memory_inspect",
    description=(
        "Explain memory: why something is known or came up (source sentence, session, date, history), what is stored,"
        " what disagrees, and what came with the last messages or was kept back. Use it when the user asks why you said"
        " something or what you remember."
    ),
    arguments=InspectArguments,
    handler=inspect,
    effect=Effect.READS,
)
