"""memory_inspect: why a memory is known or was shown, and what is there."""

from __future__ import annotations

from enum import StrEnum

from pydantic import Field

from backstory.domain.context_block import quote
from backstory.domain.conversation import typed_text
from backstory.domain.memory import status_name
from backstory.domain.selection import Selection
from backstory.domain.truncation import truncate_chars
from backstory.entrypoints.tools.say import memory_lines, project_names
from backstory.entrypoints.tools.tool import Answer, Arguments, Call, Tool
from backstory.errors import InputError
from backstory.services.inspection import Story

QUOTE_CHARS = 300


class View(StrEnum):
    """What to look at."""

    WHY = "why"
    RECENT = "recent"
    TAGS = "tags"
    SHOWN = "shown"
    STATS = "stats"


class InspectArguments(Arguments):
    """Arguments of memory_inspect."""

    view: View = Field(
        default=View.STATS,
        description="why: one memory's source, history and showings (needs id). recent: newest memories. tags: labels"
        " in use. shown: what came with the last messages of this session, and why or why not. stats: counts.",
    )
    id: int | str | None = Field(default=None, description="#number or text of the memory, for why.")
    limit: int = Field(default=10, ge=1, le=100, description="At most this many lines.")


async def inspect(arguments: InspectArguments, call: Call) -> Answer:
    """Look without changing anything."""
    match arguments.view:
        case View.WHY:
            if arguments.id is None:
                raise InputError("view why needs the id of a memory", field="id")
            return await _why(str(arguments.id), call)
        case View.RECENT:
            return await _recent(call, arguments.limit)
        case View.TAGS:
            return await _tags(call, arguments.limit)
        case View.SHOWN:
            return await _shown(call, arguments.limit)
        case View.STATS:
            return await _stats(call)


async def _why(ref: str, call: Call) -> Answer:
    story = await call.app.inspection.why(ref, call.viewer)
    names = await project_names(call.app)
    lines = [memory_lines(story.memory, here=call.viewer.project, names=names), *_source(story, call)]
    for change in story.changes:
        reason = f", because {quote(change.reason)}" if change.reason else ""
        lines.append(f"- {change.at:%Y-%m-%d %H:%M} {change.action.value} by {change.author.value}{reason}")
    for showing in story.showings[:5]:
        lines.append(f"- shown {showing.block.created_at:%Y-%m-%d %H:%M} in session {quote(showing.block.session)}: "
                     f"{quote(showing.reason)} (score {showing.score:.2f})")  # fmt: skip
    if not story.showings and story.memory.counters.surfaced:
        lines.append(f"- shown {story.memory.counters.surfaced} times, not beside messages of this project's sessions")
    return Answer(text="\n".join(lines), title=f"#{story.memory.n}")


def _source(story: Story, call: Call) -> list[str]:
    memory = story.memory
    lines = [f"status {status_name(story.status)}; {memory.source.value}, from {memory.origin.value}"]
    source = memory.provenance.session
    if source is not None and (story.session is not None or source == call.viewer.session):
        lines.append(f"learned in session {quote(source)}")
    for message in story.messages:
        text = truncate_chars(typed_text(message), QUOTE_CHARS)
        lines.append(f"source, {message.role.value} on {message.created_at:%Y-%m-%d %H:%M}: “{quote(text)}”")
    return lines


async def _recent(call: Call, limit: int) -> Answer:
    selection = Selection(viewer=call.viewer, now=call.app.clock.now())
    memories = await call.app.backend.memories.select(selection, limit=limit)
    names = await project_names(call.app)
    entries = [memory_lines(memory, here=call.viewer.project, names=names) for memory in memories]
    return Answer(text="\n".join(entries) or "There is no memory here yet.", title=f"{len(memories)} newest")


async def _tags(call: Call, limit: int) -> Answer:
    selection = Selection(viewer=call.viewer, now=call.app.clock.now())
    counts = await call.app.backend.memories.tag_counts(selection, limit=limit)
    return Answer(text="\n".join(f"{quote(tag)} ({uses})" for tag, uses in counts) or "No tags found.", title="tags")


async def _shown(call: Call, limit: int) -> Answer:
    blocks = await call.app.inspection.recent_blocks(call.viewer, limit=limit)
    lines = []
    for block in blocks:
        shown = "; ".join(f"#{item.n} ({quote(item.reason)})" for item in block.shown)
        lines.append(f"- {block.created_at:%Y-%m-%d %H:%M}: {shown or 'nothing, ' + quote(block.silent_because or '')}")
    return Answer(text="\n".join(lines) or "Nothing was looked up in this session yet.", title="shown")


async def _stats(call: Call) -> Answer:
    statistics = await call.app.inspection.statistics(call.viewer)
    states = ", ".join(f"{count} {state}" for state, count in statistics.by_state.items() if count)
    return Answer(text=f"{statistics.current} memories in sight ({states or 'none'}).", title="stats")


INSPECT = Tool(
    name="memory_inspect",
    description=(
        "Explain memory: why something is known or came up (source sentence, session, date, history), what is stored,"
        " and what came with the last messages. Use it when the user asks why you said something or what you remember."
    ),
    arguments=InspectArguments,
    handler=inspect,
)
