"""memory_remember, memory_update and memory_forget as opencode-plugin-git-memory has them."""

from __future__ import annotations

from typing import ClassVar

from pydantic import Field

from backstory.domain.context_block import quote
from backstory.domain.memory import Memory
from backstory.entrypoints.tools.sets.git_memory.topics import TypeName, topics
from backstory.entrypoints.tools.tool import Answer, Arguments, Call, Effect, Tool
from backstory.errors import InputError
from backstory.services.topics import TopicRecord, Topics

_TOPIC = "Topic path, such as api or deploy/staging."
_SHOWN_CHARS = 2_000


class RememberArguments(Arguments):
    """Arguments of memory_remember."""

    type: TypeName = Field(description="What kind of statement it is.")
    scope: str = Field(description=_TOPIC)
    content: str = Field(description="One self-contained statement, with names, paths and the reason.")
    issue: str | None = Field(default=None, description="Issue or ticket it belongs to.")
    tags: list[str] | None = Field(default=None, description="Short labels.")


async def remember(arguments: RememberArguments, call: Call) -> Answer:
    """Store it, also where the same is known."""
    record = TopicRecord(
        type=arguments.type,
        topic=arguments.scope,
        content=arguments.content,
        issue=arguments.issue,
        tags=tuple(arguments.tags or ()),
    )
    done = await topics(call).remember(record, viewer=call.viewer, provenance=call.provenance())
    notes = [f"Note: {quote(note)}." for note in done.notes]
    said = f"Remembered: {arguments.type} in {_as_given(arguments.scope)}"
    return Answer(text="\n".join([said, *notes]), title=f"#{done.memory.n}")


class UpdateArguments(Arguments):
    """Arguments of memory_update."""

    scope: str = Field(description="Topic of the memory, exactly.")
    type: TypeName = Field(description="Its type.")
    content: str = Field(description="The new text, whole.")
    query: str | None = Field(default=None, description="Words of it, where several have this scope and type.")
    issue: str | None = Field(default=None, description="A new issue.")
    tags: list[str] | None = Field(default=None, description="New labels, all of them.")


async def update(arguments: UpdateArguments, call: Call) -> Answer:
    """Reword the one that is meant; where several may be, change nothing."""
    service = topics(call)
    found = await service.of(call.viewer, arguments.type, arguments.scope)
    scope = quote(arguments.scope)
    if not found:
        return Answer(text=f"No memories found for {arguments.type} in {scope}", title="not found")
    chosen: Memory | None = found[0]
    if len(found) > 1:
        many = f"Found {len(found)} memories for {arguments.type}/{scope}"
        if not (arguments.query or "").strip():
            text = f"{many}. Provide a query to select which one to update, or use recall to see all matches."
            return Answer(text=text, title="several")
        chosen = Topics.best(found, arguments.query or "")
        if chosen is None:
            asked = quote(arguments.query or "")
            text = f'{many}, but none matched query "{asked}". Use recall to see all matches.'
            return Answer(text=text, title="not found")
    assert chosen is not None
    change = await service.update(
        chosen, arguments.content, issue=arguments.issue, tags=arguments.tags, viewer=call.viewer
    )
    kept = chosen.content if change is None else change.edits[0].after.content
    shown = quote(kept[:_SHOWN_CHARS])
    return Answer(text=f'Updated {arguments.type} in {scope}: "{shown}"', title=f"#{chosen.n}")


class ForgetArguments(Arguments):
    """Arguments of memory_forget."""

    never_blank: ClassVar[frozenset[str]] = frozenset({"query"})

    scope: str = Field(description="Topic of the memories, exactly.")
    type: TypeName = Field(description="Their type.")
    reason: str = Field(description="Why, for the history.")
    query: str | None = Field(default=None, description="Words: only the one that fits best. Without it, all of them.")


async def forget(arguments: ForgetArguments, call: Call) -> Answer:
    """Hide all of a type and topic, or the one that fits best."""
    if not arguments.reason.strip():
        raise InputError("reason is blank", field="reason", hint="say why, for the history")
    service = topics(call)
    found = await service.of(call.viewer, arguments.type, arguments.scope)
    if (arguments.query or "").strip():
        best = Topics.best(found, arguments.query or "")
        found = [] if best is None else [best]
    scope = quote(arguments.scope)
    if not found:
        return Answer(text=f"No memories found for {arguments.type} in {scope}", title="not found")
    change = await service.forget(found, reason=arguments.reason, viewer=call.viewer)
    reason = "\n".join(map(quote, arguments.reason.splitlines()))
    said = f"Deleted {len(found)} {arguments.type} memory(s) from {scope}. Reason: {reason}"
    return Answer(text=f"{said}\n{_logged(call)}; `backstory undo {change.id}` takes it back", title=f"{len(found)}")


def _logged(call: Call) -> str:
    if call.app.backend.memories.capabilities.name == "git":
        return f"Deletions logged to .opencode/memory/deletions.logfmt on branch {call.app.settings.store.ref}"
    return "Deletions are kept in the history"


def _as_given(scope: str) -> str:
    """With the blanks around it, as the original says it back."""
    return scope if quote(scope) == scope.strip() else quote(scope)


REMEMBER = Tool(
    name="memory_remember",
    description=(
        "Keep something for later sessions under a type and a topic. Use it for decisions with their reasons, what was"
        " learnt with effort, the user's preferences, and what blocks the work, or when the user asks to remember. Not"
        " for what code or git already says, guesses, or secrets."
    ),
    arguments=RememberArguments,
    handler=remember,
    effect=Effect.ADDS,
)
UPDATE = Tool(
    name="memory_update",
    description=(
        "Replace the text of the memory with this scope and type. Where there are several, give a query with words of"
        " the one that is meant; else nothing is changed. For something new use memory_remember."
    ),
    arguments=UpdateArguments,
    handler=update,
)
FORGET = Tool(
    name="memory_forget",
    description=(
        "Hide the memories with this scope and type: all of them, or with a query only the one that fits best. Use it"
        " when the user asks, or when they are proven wrong; a reason is needed. To correct one use memory_update."
    ),
    arguments=ForgetArguments,
    handler=forget,
)
