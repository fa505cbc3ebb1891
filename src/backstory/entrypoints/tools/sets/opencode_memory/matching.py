"""Which memories a piece of text means: those that have it, also where it could be the number of another one."""

from __future__ import annotations

from backstory.domain.memory import Memory
from backstory.domain.scope import may_change
from backstory.domain.selection import CURRENT, Selection
from backstory.entrypoints.tools.tool import Call
from backstory.errors import AmbiguousMatch, InputError, NotFound

_SHORTEST = 4
_ALL = 100_000
_NAMED = 10  # candidates in an answer


async def with_text(match: str, call: Call, *, states: frozenset[str] = CURRENT) -> list[Memory]:
    """All that have the text and may be changed from here. Raises InputError for 3 characters and fewer, which would
    mean nearly everything."""
    if len(match.strip()) < _SHORTEST:
        raise InputError(f"match is {match.strip()!r}; it must have more than 3 characters", field="match")
    return await _having(match, call, states)


async def _having(match: str, call: Call, states: frozenset[str]) -> list[Memory]:
    selection = Selection(viewer=call.viewer, now=call.app.clock.now(), contains=match, states=states)
    found = await call.app.backend.memories.select(selection, limit=_ALL)
    return [memory for memory in found if may_change(memory, call.viewer)]


async def only_one_with_text(match: str, call: Call) -> Memory:
    """The one current memory that has the text. Raises NotFound, and AmbiguousMatch where several have it."""
    found = await _having(match, call, CURRENT) if match.strip() else []
    if not found:
        raise NotFound("no memory here has this text")
    if len(found) > 1:
        raise several(found)
    return found[0]


def several(found: list[Memory]) -> AmbiguousMatch:
    """That more than one memory is meant, and which."""
    numbers = ", ".join(f"#{memory.n}" for memory in found[:_NAMED])
    return AmbiguousMatch(
        f"{len(found)} memories fit ({numbers}{' …' if len(found) > _NAMED else ''}); nothing was changed",
        field="id",
        candidates=[memory.id for memory in found],
    )
