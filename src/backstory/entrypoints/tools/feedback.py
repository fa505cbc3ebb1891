"""memory_feedback: the agent says whether a memory helped."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from pydantic import Field

from backstory.domain.history import Author
from backstory.entrypoints.tools.tool import Answer, Arguments, Call, Effect, Tool
from backstory.services.feedback import Verdict


class FeedbackArguments(Arguments):
    """Arguments of memory_feedback."""

    older_names: ClassVar[Mapping[str, str]] = {"match": "id"}

    id: int | str | list[int | str] = Field(
        description="#number of the memory, several numbers, or a piece of text that fits only one."
    )
    verdict: Verdict = Field(
        description="useful: it helped and holds true. irrelevant: it had nothing to do with this."
    )


async def feedback(arguments: FeedbackArguments, call: Call) -> Answer:
    """Count the verdict."""
    rated = arguments.id if isinstance(arguments.id, list) else [arguments.id]
    change = await call.app.truth.feedback.rate(
        [str(ref) for ref in rated], arguments.verdict, viewer=call.viewer, author=Author.AGENT
    )
    numbers = ", ".join(f"#{edit.after.n}" for edit in change.edits)
    return Answer(text=f"Noted {numbers} as {arguments.verdict.value}.", title=numbers)


FEEDBACK = Tool(
    name="memory_feedback",
    description=(
        "Say whether a memory you were shown helped. useful once you relied on it and it held; irrelevant when it had"
        " nothing to do with the task. Not for a wrong one: correct it with memory_remember and supersedes, or with"
        " memory_forget."
    ),
    arguments=FeedbackArguments,
    handler=feedback,
    effect=Effect.ADDS,
)
