"""memory_forget: the agent hides memories."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from pydantic import Field

from backstory.domain.context_block import quote
from backstory.domain.history import Author
from backstory.domain.memory import Deleted
from backstory.entrypoints.aftermath import aftermath
from backstory.entrypoints.tools.tool import Answer, Arguments, Call, Tool


class ForgetArguments(Arguments):
    """Arguments of memory_forget."""

    older_names: ClassVar[Mapping[str, str]] = {"match": "id"}

    id: int | str | list[int | str] = Field(
        description="#number of the memory, several numbers, or a piece of text that fits only one."
    )
    reason: str | None = Field(default=None, description="Why, for the history.")


async def forget(arguments: ForgetArguments, call: Call) -> Answer:
    """Hide them; the history keeps them and undo brings them back."""
    wanted = arguments.id if isinstance(arguments.id, list) else [arguments.id]
    change = await call.app.remember.forget(
        [str(ref) for ref in wanted], viewer=call.viewer, author=Author.AGENT, reason=arguments.reason
    )
    gone = [f"#{edit.after.n}" for edit in change.edits if isinstance(edit.after.status, Deleted)]
    it = "it" if len(gone) == 1 else "them"
    said = f"Forgot {', '.join(gone)}; `backstory undo {change.id}` brings {it} back."
    followed = [f"{quote(sentence)}." for sentence in aftermath(change.edits)]
    return Answer(text=" ".join([said, *followed]), title=", ".join(gone))


FORGET = Tool(
    name="memory_forget",
    description=(
        "Hide a memory that is wrong or no longer wanted, on the user's request or when you have proof against it. When"
        " something new takes its place, use memory_remember with supersedes instead."
    ),
    arguments=ForgetArguments,
    handler=forget,
)
