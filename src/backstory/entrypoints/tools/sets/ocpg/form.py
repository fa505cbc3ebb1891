"""In which form ocpg tells types and refusals."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Mapping
from typing import Annotated, ClassVar, Literal, TypeVar

from pydantic import BeforeValidator, ConfigDict, Field

from backstory.domain.context_block import quote
from backstory.domain.memory import Kind, Memory, Visibility
from backstory.entrypoints.tools.say import project_names
from backstory.entrypoints.tools.tool import Answer, Arguments, Call
from backstory.errors import AmbiguousMatch, Conflict, InputError

TypeName = Literal["stack_fact", "project_fact", "episodic"]
MIN_CHARS = 10

A = TypeVar("A", bound=Arguments)


_WRITTEN = re.compile(r"\s*#?(-?[0-9]{1,18})(?:\.0*)?\s*")


def _bare(value: object) -> object:
    """Nothing is rounded: a number a little off would be another memory's."""
    if not isinstance(value, str):
        return value
    written = _WRITTEN.fullmatch(value)
    if written is None:
        raise ValueError("it is not the number of a memory")
    return int(written[1])


Number = Annotated[int, BeforeValidator(_bare)]
"""The number of a memory; ``#12`` is understood, too."""


class GlobalArguments(Arguments):
    """Arguments with the one that widens a search, whose name is no name in Python."""

    model_config = ConfigDict(populate_by_name=True)

    older_names: ClassVar[Mapping[str, str]] = {"global": "all_projects"}

    all_projects: bool = Field(default=False, alias="global", description="Other projects' memories too.")


def type_of(memory: Memory) -> TypeName:
    """One of the three types."""
    if memory.visibility is not Visibility.GLOBAL:
        return "project_fact"
    return "episodic" if memory.kind is Kind.EPISODIC else "stack_fact"


def check_length(content: str) -> None:
    """Raise InputError for a text that ocpg finds too short; the longest is a setting."""
    size = len(content.strip())
    if size < MIN_CHARS:
        raise InputError(f"content is {size} characters; the minimum is {MIN_CHARS}", field="content")


def number(value: int, field: str) -> str:
    """A memory's number as a reference. Raises InputError unless it is a positive integer."""
    if value < 1:
        raise InputError(f"{field} is {value}; it must be a positive integer", field=field)
    return f"#{value}"


async def project_name(call: Call, memory: Memory) -> str:
    """The name of a memory's project."""
    names = await project_names(call.app)
    return quote(names.get(memory.project, "none")) if memory.project is not None else "none"


def refusing(handler: Callable[[A, Call], Awaitable[Answer]]) -> Callable[[A, Call], Awaitable[Answer]]:
    """A handler that says what is wrong with an argument after the word ``ERROR:``."""

    async def guarded(arguments: A, call: Call) -> Answer:
        try:
            return await handler(arguments, call)
        except AmbiguousMatch:
            raise
        except (InputError, Conflict) as error:
            return Answer(text=f"ERROR: {quote(str(error))}.", title="not done", failed=True)

    return guarded
