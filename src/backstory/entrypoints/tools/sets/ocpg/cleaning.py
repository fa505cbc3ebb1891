"""memory_consolidate, memory_tags and memory_retag as ocpg has them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from pydantic import Field

from backstory.domain.consolidation import Doubtful, Group
from backstory.domain.context_block import quote
from backstory.domain.history import Author
from backstory.domain.memory import Memory
from backstory.domain.selection import Selection
from backstory.entrypoints.tools.sets.ocpg.form import GlobalArguments, refusing
from backstory.entrypoints.tools.sets.shown import text_of
from backstory.entrypoints.tools.tool import Answer, Arguments, Call, Effect, Tool
from backstory.services.consolidate import Plan

_TAG_CHARS = 64


class ConsolidateArguments(Arguments):
    """Arguments of memory_consolidate."""

    dryRun: bool = Field(default=False, description="true: only show what would go.")


async def consolidate(arguments: ConsolidateArguments, call: Call) -> Answer:
    """Let one memory stand for those that say the same; the texts that go come back whole."""
    service, done = call.app.truth.consolidate, not arguments.dryRun
    plan = await service.plan(call.viewer, quickly=True)
    change = await service.carry_out(plan, viewer=call.viewer, author=Author.AGENT) if done else None
    lines = list(_report(plan, done=done))
    if change is not None:
        lines.append(f"`backstory undo {change.id}` takes it back.")
    return Answer(text="\n".join(lines), title=f"{len(plan.removed)} {'removed' if done else 'to remove'}")


def _report(plan: Plan, *, done: bool) -> Iterator[str]:
    if not plan.groups and not plan.doubtful:
        yield "No duplicates found; nothing to consolidate."
        yield from _skipped(plan)
        return
    if not done:
        yield "DRY RUN: nothing was changed."
    removed, groups = len(plan.removed), len(plan.groups)
    verb = "Removed" if done else "Would remove"
    memories, of = "memory" if removed == 1 else "memories", "group" if groups == 1 else "groups"
    uncertain = f" {len(plan.doubtful)} uncertain pair(s) stay." if plan.doubtful else ""
    yield f"{verb} {removed} duplicate {memories} across {groups} {of}.{uncertain}"
    if removed:
        yield "If a text that went said more, add it to the kept one with memory_update."
    yield ""
    for group in plan.groups:
        yield from _group(group, done=done)
    for pair in plan.doubtful:
        yield from _uncertain(pair)
    yield from _skipped(plan)


def _group(group: Group, *, done: bool) -> Iterator[str]:
    # the words that are the same count as wording there
    found_by = "meaning" if group.found_by.value == "meaning" else "wording"
    yield f"[{found_by}] {'Kept' if done else 'Would keep'} {_named(group.kept)}"
    for memory in group.removed:
        yield f"  {'removed' if done else 'would remove'} {_named(memory)}"


def _uncertain(pair: Doubtful) -> Iterator[str]:
    reasons = quote("; ".join(pair.reasons))
    pass_name = f"{pair.found_by.value}-uncertain"
    yield f"[{pass_name}] #{pair.memory.n} vs #{pair.other.n}: {reasons}; not merged, look yourself."
    yield f"  {_named(pair.memory)}"
    yield f"  {_named(pair.other)}"


def _named(memory: Memory) -> str:
    return f"#{memory.n}: {text_of(memory)}"


def _skipped(plan: Plan) -> Iterator[str]:
    for skipped, reason in plan.skipped.items():
        yield f"Not compared by {skipped.value}: {reason}."


class TagsArguments(GlobalArguments):
    """Arguments of memory_tags."""

    limit: int = Field(default=200, ge=1, le=500, description="At most this many.")


async def tags(arguments: TagsArguments, call: Call) -> Answer:
    """The tags in use, the most used first."""
    viewer = replace(call.viewer, all_projects=arguments.all_projects)
    selection = Selection(viewer=viewer, now=call.app.clock.now())
    counts = await call.app.backend.memories.tag_counts(selection, limit=arguments.limit)
    text = "\n".join(f"{quote(tag)} ({uses})" for tag, uses in counts)
    return Answer(text=text or "No tags found.", title=f"{len(counts)} tags")


class RetagArguments(Arguments):
    """Arguments of memory_retag."""

    old: str = Field(min_length=1, description="The label as it is.")
    new: str = Field(min_length=1, max_length=_TAG_CHARS, description="The label as it should be.")


async def retag(arguments: RetagArguments, call: Call) -> Answer:
    """Rename a tag on every memory that may be changed from here."""
    change = await call.app.remember.retag(arguments.old, arguments.new, viewer=call.viewer, author=Author.AGENT)
    old, new = quote(arguments.old), quote(arguments.new)
    if change is None:
        return Answer(text=f'No memories tagged "{old}".', title="not found")
    count = len(change.edits)
    return Answer(
        text=f'Retagged {count} {"memory" if count == 1 else "memories"}: "{old}" → "{new}".', title=f"{count}"
    )


CONSOLIDATE = Tool(
    name="memory_consolidate",
    description=(
        "Remove memories that say the same and keep one of each. Use it when the user asks to clean up: look first with"
        " dryRun. Pairs that differ in a number, a path or a name are listed and stay; ask the user about them."
    ),
    arguments=ConsolidateArguments,
    handler=refusing(consolidate),
)
TAGS = Tool(
    name="memory_tags",
    description="List the labels in use with how many memories carry them. Look here before you make up a new label.",
    arguments=TagsArguments,
    handler=refusing(tags),
    effect=Effect.READS,
)
RETAG = Tool(
    name="memory_retag",
    description="Rename a label on all memories of this project, for instance to join two spellings of one label.",
    arguments=RetagArguments,
    handler=refusing(retag),
)
