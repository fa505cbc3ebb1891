"""memory_forget and memory_clear as opencode-memory has them."""

from __future__ import annotations

from typing import ClassVar, Literal

from pydantic import Field

from backstory.domain.history import Author
from backstory.domain.memory import Deleted, Memory, Visibility
from backstory.domain.selection import WITH_SUPERSEDED
from backstory.entrypoints.tools.sets.opencode_memory.matching import with_text
from backstory.entrypoints.tools.tool import Answer, Arguments, Call, Tool
from backstory.errors import NotFound
from backstory.services.clearing import Clearing

NONE = Answer(text="No matching entry found.", title="not found")


class ForgetArguments(Arguments):
    """Arguments of memory_forget."""

    id: int | str | None = Field(default=None, description="Number of the memory, as memory_read shows it.")
    match: str | None = Field(
        default=None, description="A piece of text of more than 3 characters: every memory that has it."
    )


async def forget(arguments: ForgetArguments, call: Call) -> Answer:
    """Hide the one with the number, and all that have the piece of text."""
    chosen: dict[str, Memory] = {}
    if arguments.id is not None:
        try:
            named = await call.app.reference.find_changeable(str(arguments.id), call.viewer)
        except NotFound:
            return NONE
        chosen[named.id] = named
    if arguments.match is not None:
        found = await with_text(arguments.match, call, states=WITH_SUPERSEDED)
        chosen |= {memory.id: memory for memory in found}
    if not chosen:
        return NONE
    change = await call.app.remember.forget(list(chosen), viewer=call.viewer, author=Author.AGENT)
    gone = sum(isinstance(edit.after.status, Deleted) for edit in change.edits)
    text = f"Forgot {gone} {'entry' if gone == 1 else 'entries'}. `backstory undo {change.id}` takes it back."
    return Answer(text=text, title=f"{gone} forgotten")


class ClearArguments(Arguments):
    """Arguments of memory_clear."""

    never_blank: ClassVar[frozenset[str]] = frozenset({"scope"})

    scope: Literal["global", "project"] | None = Field(
        default=None, description="Only this scope. Without it, everything of this project and of everywhere."
    )
    summaryOnly: bool = Field(default=False, description="true: only the summary; all facts stay.")


async def clear(arguments: ClearArguments, call: Call) -> Answer:
    """Hide everything, or let go of the summary; other projects keep what they have."""
    app = call.app
    clearing = Clearing(app.backend.memories, app.backend.dreams, app.remember, clock=app.clock)
    if arguments.summaryOnly:
        if arguments.scope is not None:
            return Answer(text="The summary has no scope; leave scope out.", title="not done", failed=True)
        await clearing.summaries(call.viewer)
        return Answer(text="Cleared memory summary; retained all facts.", title="summary")
    visibility = None if arguments.scope is None else Visibility(arguments.scope)
    change = await clearing.memories(call.viewer, visibility, author=Author.AGENT)
    if change is None and visibility is not None:  # a scope that is empty says nothing about the summary
        return Answer(text="Memory already empty.", title="empty")
    dropped = await clearing.summaries(call.viewer)
    if change is None:
        text = "Cleared memory summary; there were no facts." if dropped else "Memory already empty."
        return Answer(text=text, title="empty")
    gone = sum(isinstance(edit.after.status, Deleted) for edit in change.edits)
    entries = f"{gone} memory {'entry' if gone == 1 else 'entries'}"
    return Answer(text=f"Cleared {entries}. `backstory undo {change.id}` takes it back.", title=entries)


FORGET = Tool(
    name="memory_forget",
    description=(
        "Hide memories that are wrong or no longer wanted: one by its number, or all that have a piece of text. On the"
        " user's request, or when you have proof against them. To correct one use memory_update."
    ),
    arguments=ForgetArguments,
    handler=forget,
)
CLEAR = Tool(
    name="memory_clear",
    description=(
        "Hide everything that is known in this project and everywhere, or only one scope, or only the summary. Only"
        " when the user asks to clear the memory; for single facts use memory_forget."
    ),
    arguments=ClearArguments,
    handler=clear,
)
