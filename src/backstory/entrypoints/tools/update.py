"""memory_update: the agent rewords a memory or changes its labels."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from pydantic import Field

from backstory.domain.context_block import quote
from backstory.domain.history import Author
from backstory.domain.lifecycle import Revision
from backstory.domain.memory import Conflicted
from backstory.domain.vocabulary import classify
from backstory.entrypoints.aftermath import aftermath
from backstory.entrypoints.tools.tool import Answer, Arguments, Call, Tool
from backstory.errors import InputError


class UpdateArguments(Arguments):
    """Arguments of memory_update."""

    older_names: ClassVar[Mapping[str, str]] = {"type": "kind", "match": "id"}

    id: int | str = Field(description="#number of the memory, or a piece of its text that fits only this one.")
    content: str | None = Field(default=None, description="The new text, whole.")
    kind: str | None = Field(default=None, description="The new kind.")
    scope: str | None = Field(default=None, description="project, global, session, or a topic path.")
    tags: list[str] | None = Field(default=None, description="The new labels, all of them.")
    issue: str | None = Field(default=None, description="The new issue.")
    reason: str | None = Field(default=None, description="Why, for the history.")


async def update(arguments: UpdateArguments, call: Call) -> Answer:
    """Apply what was given; the rest stays."""
    place = classify(arguments.kind, arguments.scope)
    revision = Revision(
        content=arguments.content,
        kind=place.kind,
        visibility=place.visibility,
        area=place.area,
        tags=None if arguments.tags is None else tuple(arguments.tags),
        issue=arguments.issue,
    )
    if revision == Revision():
        raise InputError(
            "nothing to change was given", field="content", hint="give content, kind, scope, tags or issue"
        )
    change = await call.app.remember.update(
        str(arguments.id), revision, viewer=call.viewer, author=Author.AGENT, reason=arguments.reason
    )
    if change is None:
        return Answer(text="The memory says so already; nothing was changed.", title="nothing to change")
    memory = change.edits[0].after
    said = f"Updated #{memory.n}. The former text is kept in its history."
    if isinstance(memory.status, Conflicted):
        said += f" It is in conflict now: {quote(memory.status.evidence)}."
    followed = [f"{quote(sentence)}." for sentence in aftermath(change.edits[1:])]
    return Answer(text=" ".join([said, *followed]), title=f"#{memory.n}")


UPDATE = Tool(
    name="memory_update",
    description=(
        "Correct the wording or the labels of one memory in place, when it is the same fact said better or completed."
        " When the fact itself has changed, use memory_remember with supersedes instead: the change then stays visible."
    ),
    arguments=UpdateArguments,
    handler=update,
)
