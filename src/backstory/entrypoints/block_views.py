"""What was put in front of a model, why, and what was kept back: as lines for people and as JSON."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from backstory.codecs.record import format_time
from backstory.domain.memory import Deleted, Memory
from backstory.entrypoints.local_time import shown_time
from backstory.entrypoints.render import Line, shortened
from backstory.entrypoints.shapes import Shape, block_shape, memory_shape

if TYPE_CHECKING:
    from backstory.domain.considered import Considered
    from backstory.domain.conversation import FrozenBlock, FrozenSnapshot, Message, ShownMemory
    from backstory.domain.ids import MemoryId, MessageId, ProjectId
    from backstory.domain.project import Project
    from backstory.services.explanation import Weighing

_PROMPT_CHARS = 160


def blocks_lines(
    blocks: Sequence[FrozenBlock],
    prompts: Mapping[MessageId, Message],
    memories: Mapping[MemoryId, Memory],
    *,
    whole: bool,
) -> Iterator[Line]:
    """Blocks with their reasons; with ``whole``, each as the model read it."""
    if not blocks:
        yield "No prompt has come in yet, so nothing was shown.", "faint"
    for position, block in enumerate(blocks):
        if position:
            yield "", "plain"
        yield f"{shown_time(block.created_at)} · session {block.session} · message {block.message}", "strong"
        yield _prompt(prompts.get(block.message)), "plain"
        for item in block.shown:
            yield from _shown(item, memories.get(item.memory))
        if block.silent_because is not None:
            yield f"  {_silence(block)}: {block.silent_because}", "plain"
        if whole and block.text:
            yield "", "plain"
            yield block.text, "plain"


def snapshot_lines(snapshot: FrozenSnapshot, memories: Mapping[MemoryId, Memory]) -> Iterator[Line]:
    """What stands at the end of a session's system prompt."""
    yield "", "plain"
    numbers = [f"#{memories[item].n}" for item in snapshot.shown if item in memories]
    yield f"Snapshot of {shown_time(snapshot.created_at)}: {', '.join(numbers) or 'no memory'}", "strong"
    if snapshot.text:
        yield snapshot.text, "plain"


def blocks_shape(
    blocks: Sequence[FrozenBlock],
    prompts: Mapping[MessageId, Message],
    snapshot: FrozenSnapshot | None,
    memories: Mapping[MemoryId, Memory],
) -> Shape:
    """Blocks as they were sent, with their reasons; and the snapshot of the session, where one was asked for."""
    return {
        "blocks": [_block(block, prompts.get(block.message), memories) for block in blocks],
        "snapshot": None
        if snapshot is None
        else {
            "session": snapshot.session,
            "at": format_time(snapshot.created_at),
            "shown": list(snapshot.shown),
            "text": snapshot.text,
        },
    }


def weighing_lines(weighing: Weighing) -> Iterator[Line]:
    """What came near a prompt, best first, and what became of it."""
    block = weighing.block
    yield f"{shown_time(block.created_at)} · session {block.session} · message {block.message}", "strong"
    yield _quoted(weighing.prompt), "plain"
    if block.silent_because is not None:
        yield f"  {_silence(block)}: {block.silent_because}", "plain"
    if weighing.prompt is None:
        yield f"  Then shown: {', '.join(f'#{item.n}' for item in block.shown) or 'nothing'}.", "plain"
        return
    yield "Near it, by what is known now:" if weighing.candidates else "Nothing is near it.", "faint"
    for item in weighing.candidates:
        said = "shown" if item.shown else "not shown"
        yield f"  {item.score.total:.2f}  #{item.memory.n} {shortened(item.memory.content)}", "plain"
        yield f"        {said}: {item.because}", "good" if item.shown else "faint"
    for skipped in weighing.skipped:
        yield f"  left out, {skipped}", "bad"


def weighing_shape(weighing: Weighing, projects: Mapping[ProjectId, Project]) -> Shape:
    """What came near a prompt."""
    return {
        "block": _block(weighing.block, None, {}),
        "prompt": weighing.prompt,
        "candidates": [_candidate(item, projects) for item in weighing.candidates],
        "skipped": list(weighing.skipped),
    }


def _candidate(item: Considered, projects: Mapping[ProjectId, Project]) -> Shape:
    return {
        "memory": memory_shape(item.memory, projects),
        "score": round(item.score.total, 4),
        "shown": item.shown,
        "because": item.because,
    }


def _block(block: FrozenBlock, prompt: Message | None, memories: Mapping[MemoryId, Memory]) -> Shape:
    from backstory.domain.conversation import typed_text

    return block_shape(block) | {
        "shown": [
            {
                "id": item.memory,
                "n": item.n,
                "score": item.score,
                "reason": item.reason,
                "parts": [{"name": name, "value": value} for name, value in item.parts],
                "content": memories[item.memory].content if item.memory in memories else None,
            }
            for item in block.shown
        ],
        "prompt": None if prompt is None else typed_text(prompt),
        "text": block.text,
    }


def _shown(item: ShownMemory, memory: Memory | None) -> Iterator[Line]:
    text = "" if memory is None else f" {shortened(memory.content)}"
    gone = " (forgotten since)" if memory is not None and isinstance(memory.status, Deleted) else ""
    yield f"  {item.score:.2f}  #{item.n}{text}{gone}", "plain"
    yield f"        {item.reason}", "faint"
    if item.parts:
        yield f"        {', '.join(f'{name} {value:+.2f}' for name, value in item.parts)}", "faint"


def _silence(block: FrozenBlock) -> str:
    return "no memory shown" if "quoted instead" in (block.silent_because or "") else "silent"


def _prompt(message: Message | None) -> str:
    from backstory.domain.conversation import typed_text

    return _quoted(None if message is None else typed_text(message))


def _quoted(prompt: str | None) -> str:
    return "  the prompt's text is not kept" if prompt is None else f"  “{shortened(prompt, _PROMPT_CHARS)}”"
