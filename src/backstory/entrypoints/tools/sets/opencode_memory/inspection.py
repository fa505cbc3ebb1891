"""memory_why and memory_inspect as opencode-memory has them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

from pydantic import Field

from backstory.domain.context_block import quote
from backstory.domain.memory import Conflicted, Deleted, Sensitivity, status_name
from backstory.domain.truncation import truncate_chars
from backstory.domain.worth import STATED
from backstory.entrypoints.tools.inspect import InspectArguments, View, inspect
from backstory.entrypoints.tools.sets.opencode_memory.categories import category_of, scope_of
from backstory.entrypoints.tools.sets.opencode_memory.feedback import NOT_THERE, IdArguments
from backstory.entrypoints.tools.sets.shown import text_of
from backstory.entrypoints.tools.tool import Answer, Arguments, Call, Effect, Tool
from backstory.errors import NotFound, OutOfScope
from backstory.services.inspection import Showing, Story

_EVIDENCE_CHARS = 500


async def why(arguments: IdArguments, call: Call) -> Answer:
    """Where one memory comes from, how it stands, and what it is worth now."""
    try:
        story = await call.app.inspection.why(str(arguments.id), call.viewer)
    except (NotFound, OutOfScope):
        return NOT_THERE
    if isinstance(story.memory.status, Deleted):
        return NOT_THERE
    lines = [*_source(story), *_state(story), *_worth(story), *_showings(story)]
    if story.memory.sensitivity is not Sensitivity.NORMAL:
        lines.append(f"Sensitivity: {story.memory.sensitivity.value}")
    return Answer(text="\n".join(lines), title=f"#{story.memory.n}")


def _source(story: Story) -> Iterator[str]:
    memory = story.memory
    via = quote(memory.provenance.tool or memory.origin.value)
    yield f"Text: {text_of(memory)}"
    yield f"Source: {memory.source.value} (via {via}, from {memory.origin.value})"
    yield f"Category: {category_of(memory)} | Scope: {scope_of(memory)}"
    if story.project is not None:
        yield f"Project: {quote(story.project.name)}"
    if memory.source in STATED:
        yield f"Stated directly on {memory.times.learned:%Y-%m-%d}"
        return
    yield f"Extracted: {memory.provenance.extracted_at or memory.times.learned:%Y-%m-%d %H:%M}"
    if story.session is not None:
        yield f"From session: {quote(story.session.id)}"
    if story.messages:
        yield f"From messages: {', '.join(quote(message.id) for message in story.messages)}"
    yield f"Confidence: {memory.confidence:.0%}"


def _state(story: Story) -> Iterator[str]:
    memory = story.memory
    parts = [status_name(story.status).upper()]
    parts += ["pinned (no decay)"] if memory.pinned else []
    parts.append(f"tier {memory.tier.value}")
    parts += [f"expires {memory.expires_at:%Y-%m-%d %H:%M}"] if memory.expires_at is not None else []
    yield f"Lifecycle: {' | '.join(parts)}"
    if isinstance(memory.status, Conflicted):
        evidence = quote(truncate_chars(memory.status.evidence, _EVIDENCE_CHARS))
        yield f"Conflict since {memory.status.since:%Y-%m-%d}: {evidence}"


def _worth(story: Story) -> Iterator[str]:
    worth, counters = story.worth, story.memory.counters
    yield f"Weight: {worth.base:.2f}"
    yield (
        f"Usage: surfaced {counters.surfaced}, recalled {counters.recalled}, helpful {counters.helpful}, irrelevant"
        f" {counters.irrelevant}"
    )
    yield (
        f"Score (now): {worth.total:.3f} = ({worth.base:.2f} + {worth.stated:.2f} source {worth.usefulness:+.2f}"
        f" utilization) × decay {worth.decay:.3f} (age {worth.age.days} days)"
    )


def _showings(story: Story) -> Iterator[str]:
    latest: Showing | None = next(iter(story.showings), None)
    if latest is not None:
        at = f"{latest.block.created_at:%Y-%m-%d %H:%M}"
        yield f"Last surfacing: {at}, score {latest.score:.2f}: {quote(latest.reason)}"


class ShowArguments(Arguments):
    """Arguments of memory_inspect."""

    show: Literal["stats", "recent", "conflicts", "project", "surfaced"] = Field(
        default="stats",
        description="stats: counts. recent: newest memories. conflicts: memories that disagree. project: this"
        " project's. surfaced: what came with the last messages, and why.",
    )
    limit: int = Field(default=10, ge=1, le=50, description="At most this many lines.")


async def show(arguments: ShowArguments, call: Call) -> Answer:
    """The view of that name."""
    return await inspect(InspectArguments(view=View(arguments.show), limit=arguments.limit), call)


WHY = Tool(
    name="memory_why",
    description=(
        "Explain one memory: its source, state, use, and what it is worth now with the parts of that. Use it when the"
        " user asks why you know or said something."
    ),
    arguments=IdArguments,
    handler=why,
    effect=Effect.READS,
)
INSPECT = Tool(
    name="memory_inspect",
    description=(
        "Look at the memory as a whole: counts, the newest, what disagrees, this project's, or what came with the last"
        " messages. Use it when the user asks what you remember; for one memory use memory_why."
    ),
    arguments=ShowArguments,
    handler=show,
    effect=Effect.READS,
)
