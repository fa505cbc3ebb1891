"""Results that say the same become one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from backstory.domain.memory import Memory, Superseded
from backstory.domain.provenance import trust
from backstory.services.query import Result

_ALSO = "also said in "


def collapse_results(results: Sequence[Result]) -> list[Result]:
    """Keep one of those that say the same: what still holds, then the most trusted, then the best match; in order."""
    if len(results) < 2:
        return list(results)
    from backstory.domain.near_duplicates import collapse

    kept: dict[int, Result] = {}
    for group in collapse([result.memory.content for result in results]):
        positions = (group.kept, *group.also)
        best = max(positions, key=lambda position: _standing(results[position].memory))
        others = [results[position].memory.n for position in positions if position != best]
        kept[best] = _also_said(results[best], others)
    return [kept[position] for position in sorted(kept)]


def stands_for(result: Result, number: int) -> bool:
    """Whether a result was kept in the place of the memory of that number, which says the same."""
    also = (reason.removeprefix(_ALSO) for reason in result.reasons if reason.startswith(_ALSO))
    return any(f"#{number}" in said.split(", ") for said in also)


def _standing(memory: Memory) -> tuple[bool, int]:
    return not isinstance(memory.status, Superseded), trust(memory.origin)


def _also_said(result: Result, numbers: Sequence[int]) -> Result:
    if not numbers:
        return result
    said = f"{_ALSO}{', '.join(f'#{number}' for number in sorted(numbers))}"
    return replace(result, reasons=(*result.reasons, said))
