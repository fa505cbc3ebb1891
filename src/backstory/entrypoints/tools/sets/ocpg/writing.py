"""memory_remember, memory_update and memory_forget as ocpg has them."""

from __future__ import annotations

from pydantic import Field

from backstory.domain.context_block import quote
from backstory.domain.history import Author
from backstory.domain.lifecycle import Revision
from backstory.domain.provenance import Origin
from backstory.domain.vocabulary import classify
from backstory.entrypoints.tools.sets.ocpg.form import Number, TypeName, check_length, number, project_name, refusing
from backstory.entrypoints.tools.tool import Answer, Arguments, Call, Effect, Tool
from backstory.errors import NotFound, OutOfScope
from backstory.services.remember import Draft

_TYPES = (
    "project_fact: only in this project. stack_fact: true in every project, such as tools and tastes. episodic: what"
    " happened, seen in every project."
)
_LONG_CHARS = 700


class RememberArguments(Arguments):
    """Arguments of memory_remember."""

    content: str = Field(description="One self-contained statement of 10 to 4000 characters.")
    type: TypeName = Field(default="project_fact", description=_TYPES)
    tags: list[str] | None = Field(default=None, description="Up to 10 labels of up to 64 characters.")
    supersedes: Number | None = Field(default=None, description="Number of the memory that this one replaces.")


async def remember(arguments: RememberArguments, call: Call) -> Answer:
    """Store it, also where the same is known."""
    check_length(arguments.content)
    place = classify(arguments.type, None)
    supersedes = None if arguments.supersedes is None else number(arguments.supersedes, "supersedes")
    draft = Draft(
        content=arguments.content,
        kind=place.kind,
        visibility=place.visibility,
        tags=tuple(arguments.tags or ()),
        supersedes=supersedes,
        origin=Origin.AGENT,
        provenance=call.provenance(),
        append=supersedes is None,
    )
    try:
        done = await call.app.remember.remember(draft, viewer=call.viewer, author=Author.AGENT)
    except NotFound:
        text = f"ERROR: no memory {supersedes}; nothing to supersede."
        return Answer(text=text, title="not done", failed=True)
    except OutOfScope as error:
        text = f"ERROR: {quote(str(error))}; cannot supersede it from here."
        return Answer(text=text, title="not done", failed=True)
    said = f"Stored memory #{done.memory.n} (project {await project_name(call, done.memory)})."
    return Answer(text=" ".join([said, *_notes(done.notes)]), title=f"#{done.memory.n}")


class UpdateArguments(Arguments):
    """Arguments of memory_update."""

    id: Number = Field(description="Number of the memory.")
    content: str = Field(description="The new text, whole: 10 to 4000 characters.")
    tags: list[str] | None = Field(default=None, description="New labels, all of them.")
    type: TypeName | None = Field(default=None, description="A new type.")


async def update(arguments: UpdateArguments, call: Call) -> Answer:
    """Reword one memory; what is not given stays."""
    check_length(arguments.content)
    ref = number(arguments.id, "id")
    place = classify(arguments.type, None)
    revision = Revision(
        content=arguments.content,
        kind=place.kind,
        visibility=place.visibility,
        tags=None if arguments.tags is None else tuple(arguments.tags),
    )
    try:
        await call.app.remember.update(ref, revision, viewer=call.viewer, author=Author.AGENT)
    except NotFound:
        return Answer(text=f"No memory {ref}; nothing updated.", title="not found")
    except OutOfScope as error:
        return Answer(text=f"{_sentence(error)}; not updated.", title="not done", failed=True)
    size = len(arguments.content)
    note = [f"Note: {size} characters are long; blocks show the first 600."] if size > _LONG_CHARS else []
    return Answer(text=" ".join([f"Updated memory {ref}.", *note]), title=ref)


class ForgetArguments(Arguments):
    """Arguments of memory_forget."""

    id: Number = Field(description="Number of the memory.")


async def forget(arguments: ForgetArguments, call: Call) -> Answer:
    """Hide one memory; what it had replaced is current again."""
    ref = number(arguments.id, "id")
    try:
        await call.app.remember.forget([ref], viewer=call.viewer, author=Author.AGENT)
    except NotFound:
        return Answer(text=f"No memory {ref}; nothing deleted.", title="not found")
    except OutOfScope as error:
        return Answer(text=f"{_sentence(error)}; not deleted.", title="not done", failed=True)
    return Answer(text=f"Deleted memory {ref}.", title=ref)


def _notes(notes: tuple[str, ...]) -> list[str]:
    return [f"Note: {quote(note)}." for note in notes]


def _sentence(error: OutOfScope) -> str:
    text = quote(str(error))
    return text[:1].upper() + text[1:]


REMEMBER = Tool(
    name="memory_remember",
    description=(
        "Keep a statement for later sessions. Use it for lasting preferences and decisions, for what cost effort to"
        " find, or when the user asks to remember. Not for what code or git already says, guesses, or secrets. If it"
        " replaces an older memory, give that one's number in supersedes."
    ),
    arguments=RememberArguments,
    handler=refusing(remember),
    effect=Effect.ADDS,
)
UPDATE = Tool(
    name="memory_update",
    description=(
        "Correct the text, labels or type of one memory in place, when it is the same fact said better or completed."
        " When the fact itself has changed, use memory_remember with supersedes."
    ),
    arguments=UpdateArguments,
    handler=refusing(update),
)
FORGET = Tool(
    name="memory_forget",
    description=(
        "Hide a memory that is wrong or no longer wanted, on the user's request or when you have proof against it. When"
        " something new takes its place, use memory_remember with supersedes."
    ),
    arguments=ForgetArguments,
    handler=refusing(forget),
)
