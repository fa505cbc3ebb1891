"""memory_consolidate: the agent looks for memories that say the same, and lets one stand for them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import ClassVar

from pydantic import Field

from backstory.domain.consolidation import Pass
from backstory.domain.context_block import quote
from backstory.domain.history import Author
from backstory.domain.memory import Memory
from backstory.entrypoints.consolidation_views import summary
from backstory.entrypoints.tools.tool import Answer, Arguments, Call, Tool
from backstory.services.consolidate import EVERY_PASS, Plan


class ConsolidateArguments(Arguments):
    """Arguments of memory_consolidate."""

    older_names: ClassVar[Mapping[str, str]] = {"dryRun": "dry_run"}

    dry_run: bool = Field(default=True, description="false: do it. true: only show what would go.")


async def consolidate(arguments: ConsolidateArguments, call: Call, *, passes: Sequence[Pass] = EVERY_PASS) -> Answer:
    """Show the plan, or carry it out; the texts that went come back whole."""
    service = call.app.truth.consolidate
    plan = await service.plan(call.viewer, passes=passes, quickly=True)
    done = not arguments.dry_run
    change = await service.carry_out(plan, viewer=call.viewer, author=Author.AGENT) if done else None
    lines = [*summary(plan, done=done), *_lines(plan, done=done)]
    if change is not None:
        lines.append(f"`backstory undo {change.id}` takes it back.")
    return Answer(text="\n".join(lines), title=f"{len(plan.removed)} {'removed' if done else 'to remove'}")


def _lines(plan: Plan, *, done: bool) -> Iterator[str]:
    for group in plan.groups:
        yield f"{'kept' if done else 'would keep'} {_short(group.kept)}"
        for memory in group.removed:
            yield f"  {'removed' if done else 'would remove'} {_short(memory)}"
    for pair in plan.doubtful:
        yield f"both stay ({quote('; '.join(pair.reasons))}):"
        yield f"  {_short(pair.memory)}"
        yield f"  {_short(pair.other)}"


def _short(memory: Memory) -> str:
    """A memory on one line, whole: what a run removes has to be readable in its answer."""
    return f"#{memory.n} ({memory.origin.value}): {quote(' '.join(memory.content.split()))}"


CONSOLIDATE = Tool(
    name="memory_consolidate",
    description=(
        "Find memories that say the same, and keep one of each. Use it when the user asks to clean up the memory: look"
        " first, show what would go, and do it when the user agrees. Pairs that differ in a number, a path or a name"
        " are listed and stay; ask the user about them."
    ),
    arguments=ConsolidateArguments,
    handler=consolidate,
)
