"""memory_remember: the agent stores a statement."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from typing import ClassVar

from pydantic import Field

from backstory.domain.context_block import quote
from backstory.domain.history import Author
from backstory.domain.memory import Visibility
from backstory.domain.provenance import Origin
from backstory.domain.vocabulary import classify
from backstory.entrypoints.render import shortened
from backstory.entrypoints.tools.tool import Answer, Arguments, Call, Effect, Tool
from backstory.services.remember import Draft, Remembered
from backstory.services.repercussions import Contradicted

_SHOWN_CHARS = 300


class RememberArguments(Arguments):
    """Arguments of memory_remember."""

    older_names: ClassVar[Mapping[str, str]] = {
        "fact": "content",
        "text": "content",
        "type": "kind",
        "category": "kind",
        "ttlHours": "expires_in_hours",
    }

    content: str = Field(
        description="One self-contained statement, understandable without this conversation: names, paths and numbers"
        " spelled out, with the reason if there is one."
    )
    kind: str | None = Field(
        default=None,
        description="fact, decision, preference, learning, blocker, context, pattern, status, environment, workflow,"
        " user, episodic or other. Guessed from the wording if left out.",
    )
    scope: str | None = Field(
        default=None,
        description="project (default): only here. global: true in every project, such as the user's tools and tastes."
        " session: only in this conversation. Anything else is a topic path in the project, such as deploy/staging.",
    )
    tags: list[str] | None = Field(default=None, description="Up to 10 short labels.")
    issue: str | None = Field(default=None, description="Issue or ticket this belongs to.")
    supersedes: int | str | None = Field(
        default=None, description="#number of the memory that this one corrects or replaces; it is kept, but hidden."
    )
    expires_in_hours: float | None = Field(
        default=None, gt=0, le=24 * 366, description="For what is true only for a while."
    )


async def remember(arguments: RememberArguments, call: Call) -> Answer:
    """Store the statement as the agent's own."""
    return await store(draft_of(arguments, call), call)


def draft_of(arguments: RememberArguments, call: Call) -> Draft:
    """What the arguments want remembered, as the agent's own words."""
    place = classify(arguments.kind, arguments.scope)
    return Draft(
        content=arguments.content,
        kind=place.kind,
        visibility=place.visibility,
        area=place.area,
        tags=tuple(arguments.tags or ()),
        issue=arguments.issue,
        expires_in=None if arguments.expires_in_hours is None else timedelta(hours=arguments.expires_in_hours),
        supersedes=None if arguments.supersedes is None else str(arguments.supersedes),
        origin=Origin.AGENT,
        provenance=call.provenance(),
    )


async def store(draft: Draft, call: Call) -> Answer:
    """Store a draft, and say under which number."""
    done = await call.app.remember.remember(draft, viewer=call.viewer, author=Author.AGENT)
    return Answer(text=_say(done), title=f"#{done.memory.n}")


def _say(done: Remembered) -> str:
    where = "everywhere" if done.memory.visibility is Visibility.GLOBAL else f"for this {done.memory.visibility.value}"
    said = f"Stored as #{done.memory.n} ({done.memory.kind.value}, {where})."
    if not done.fresh:
        said = f"Known already as #{done.memory.n}; confirmed."
    if done.superseded is not None:
        said += f" It replaces #{done.superseded.n}, which is kept but hidden."
    notes = [f"Note: {quote(note)}." for note in done.notes if done.fresh]
    return " ".join([said, *notes, *map(_conflict, done.against)])


def _conflict(against: Contradicted) -> str:
    n = against.memory.n
    return (
        f"#{n} says: {quote(shortened(against.memory.content, _SHOWN_CHARS))} If this corrects it, store it again with"
        f" supersedes {n}; otherwise ask the user which holds."
    )


REMEMBER = Tool(
    name="memory_remember",
    description=(
        "Keep something for later sessions, when this conversation is gone. Use it when the user states a lasting"
        " preference or decision, when you learn something about this project that cost effort to find (a cause, a"
        " convention, a command that works, a dead end), or when the user asks to remember. Do not store what the code"
        " or git already says, progress of the present task, guesses, or secrets. If it corrects an older memory, give"
        " that one's number in supersedes. A message that begins with a note saying it is stored already needs no call."
    ),
    arguments=RememberArguments,
    handler=remember,
    effect=Effect.ADDS,
)
