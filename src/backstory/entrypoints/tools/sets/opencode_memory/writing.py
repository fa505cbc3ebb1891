"""memory_write and memory_update as opencode-memory has them."""

from __future__ import annotations

from datetime import timedelta
from typing import Literal

from pydantic import Field

from backstory.domain.context_block import quote
from backstory.domain.history import Author, Change
from backstory.domain.lifecycle import Revision
from backstory.domain.memory import Active, Conflicted, Kind, Sensitivity, Tier, Visibility
from backstory.domain.provenance import Origin
from backstory.entrypoints.tools.sets.opencode_memory.categories import kind_of
from backstory.entrypoints.tools.sets.opencode_memory.matching import only_one_with_text
from backstory.entrypoints.tools.tool import Answer, Arguments, Call, Effect, Tool
from backstory.errors import NotFound
from backstory.services.remember import Draft

_SHOWN_CHARS = 2_000


class WriteArguments(Arguments):
    """Arguments of memory_write."""

    fact: str = Field(description="One self-contained statement.")
    category: str | None = Field(
        default=None, description="user, project, workflow, preferences, decisions, status, environment or other."
    )
    scope: Literal["global", "project"] = Field(
        default="global", description="global: true in every project. project: only here."
    )
    tier: Tier | None = Field(
        default=None, description="core: kept in sight. archival: found when it fits. temporary: until it expires."
    )
    ttlHours: float | None = Field(default=None, gt=0, le=24 * 366, description="Life of a temporary one; 24.")
    pinned: bool = Field(default=False, description="Ask the user to pin it: only people can.")
    sensitivity: Sensitivity = Field(
        default=Sensitivity.NORMAL, description="private: never offered unasked. local-only: no model sees it again."
    )


class ProjectWriteArguments(WriteArguments):
    """The same where memories are the project's unless told otherwise."""

    scope: Literal["global", "project"] = Field(
        default="project", description="project: only here. global: true in every project."
    )


async def write(arguments: WriteArguments, call: Call) -> Answer:
    """Store the statement, or refresh it where the same is known at that scope."""
    if not arguments.fact.strip():
        return Answer(text="No fact provided.", title="not done", failed=True)
    kind = kind_of(arguments.category)
    tier = arguments.tier or _tier_of(kind, arguments.ttlHours)
    draft = Draft(
        content=arguments.fact,
        kind=kind,
        visibility=Visibility(arguments.scope),
        tier=tier,
        expires_in=timedelta(hours=arguments.ttlHours or 24) if tier is Tier.TEMPORARY else None,
        sensitivity=arguments.sensitivity,
        origin=Origin.AGENT,
        provenance=call.provenance(),
    )
    done = await call.app.remember.remember(draft, viewer=call.viewer, author=Author.AGENT)
    memory = done.memory
    resolved = " (conflict resolved)" if _settled(done.change) else ""
    text = "local-only text" if memory.sensitivity is Sensitivity.LOCAL_ONLY else quote(memory.content[:_SHOWN_CHARS])
    pin = f" Not pinned: the user can, with `backstory pin {memory.n}`." if arguments.pinned else ""
    notes = [f" Note: {quote(note)}." for note in done.notes if done.fresh]
    title = "local-only" if memory.sensitivity is Sensitivity.LOCAL_ONLY else f"#{memory.n}"
    return Answer(text=f"Remembered ({arguments.scope}){resolved}: {text}{pin}{''.join(notes)}", title=title)


def _tier_of(kind: Kind, ttl_hours: float | None) -> Tier:
    """The tier of a fact for which none is named. A lifetime is for temporary ones alone, so it names that."""
    if ttl_hours is not None:
        return Tier.TEMPORARY
    return Tier.ARCHIVAL if kind is Kind.OTHER else Tier.CORE


class UpdateArguments(Arguments):
    """Arguments of memory_update."""

    id: int | str | None = Field(default=None, description="Number of the memory, as memory_read shows it.")
    match: str | None = Field(default=None, description="Instead: a piece of its text that fits only this one.")
    fact: str = Field(description="The new text, whole.")


async def update(arguments: UpdateArguments, call: Call) -> Answer:
    """Reword one memory; the rest of it stays."""
    try:
        ref = await _meant(arguments, call)
        change = await call.app.remember.update(
            ref, Revision(content=arguments.fact), viewer=call.viewer, author=Author.AGENT
        )
    except NotFound:
        return Answer(text="No matching entry found.", title="not found")
    if change is None:
        return Answer(text=f"Updated: {quote(arguments.fact[:_SHOWN_CHARS])}", title="nothing to change")
    memory = change.edits[0].after
    resolved = " (conflict resolved)" if _settled(change) else ""
    return Answer(text=f"Updated: {quote(memory.content[:_SHOWN_CHARS])}{resolved}", title=f"#{memory.n}")


async def _meant(arguments: UpdateArguments, call: Call) -> str:
    if arguments.id is not None:
        return str(arguments.id)
    if arguments.match is None:
        raise NotFound("no memory is named")
    return (await only_one_with_text(arguments.match, call)).id


def _settled(change: Change) -> bool:
    edit = change.edits[0]
    was = None if edit.before is None else edit.before.status
    return isinstance(was, Conflicted) and isinstance(edit.after.status, Active)


WRITE = Tool(
    name="memory_write",
    description=(
        "Keep a fact for later sessions. Use it for lasting preferences and decisions, for what cost effort to find, or"
        " when the user asks to remember. The same text again refreshes it. Not for what code or git already says,"
        " guesses, or secrets; to correct one use memory_update."
    ),
    arguments=WriteArguments,
    handler=write,
    effect=Effect.ADDS,
)
UPDATE = Tool(
    name="memory_update",
    description=(
        "Replace the text of one memory, by its number or by a piece of its text; category, scope and tier stay. Where"
        " a piece of text fits several, they are listed and nothing is changed."
    ),
    arguments=UpdateArguments,
    handler=update,
)
