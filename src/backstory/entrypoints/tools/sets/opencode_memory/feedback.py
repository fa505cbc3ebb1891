"""memory_useful and memory_irrelevant as opencode-memory has them."""

from __future__ import annotations

from pydantic import Field

from backstory.domain.history import Author
from backstory.entrypoints.tools.tool import Answer, Arguments, Call, Effect, Tool
from backstory.errors import NotFound
from backstory.services.feedback import Verdict

NOT_THERE = Answer(text="No memory entry with this id.", title="not found")


class IdArguments(Arguments):
    """Which memory."""

    id: int | str = Field(description="Number of the memory, as memory_read shows it.")


async def useful(arguments: IdArguments, call: Call) -> Answer:
    """Count that it helped."""
    return await _rate(arguments, Verdict.USEFUL, call)


async def irrelevant(arguments: IdArguments, call: Call) -> Answer:
    """Count that it did not."""
    return await _rate(arguments, Verdict.IRRELEVANT, call)


async def _rate(arguments: IdArguments, verdict: Verdict, call: Call) -> Answer:
    try:
        change = await call.app.truth.feedback.rate(
            [str(arguments.id)], verdict, viewer=call.viewer, author=Author.AGENT
        )
    except NotFound:
        return NOT_THERE
    return Answer(text=f"Noted as {verdict.value}.", title=f"#{change.edits[0].after.n}")


USEFUL = Tool(
    name="memory_useful",
    description="Say that a memory you were shown helped and held true. It counts as confirmed, and for more later on.",
    arguments=IdArguments,
    handler=useful,
    effect=Effect.ADDS,
)
IRRELEVANT = Tool(
    name="memory_irrelevant",
    description="Say that a memory you were shown had nothing to do with the task. Not for a wrong one: correct that.",
    arguments=IdArguments,
    handler=irrelevant,
    effect=Effect.ADDS,
)
