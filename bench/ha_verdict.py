"""What the store holds after all kills, against what clients were told. The clients are in ``ha_clients.py``."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from backstory.domain.ids import MemoryId, MessageId
from backstory.domain.memory import Memory
from backstory.ports.backend import Backend
from backstory.ports.upkeep import Severity
from bench.ha_clients import Told

_ALL = 1_000_000
_WISH = re.compile(r"crate (\d+) goes to dock \d+")


@dataclass(frozen=True, slots=True, kw_only=True)
class Kept:
    """What was found: ids of acknowledged writes that are ``lost``, prompts' wishes that are there, faults of a check.

    ``checked`` is whether the store can check its own invariants.
    """

    lost: list[str]
    wishes: int
    findings: list[str]
    checked: bool


async def look(backend: Backend, told: Sequence[Told], numbers: Sequence[int]) -> Kept:
    """Look for every acknowledged write, and for the memories whose ``numbers`` a prompt was told as stored."""
    history = await backend.memories.history(limit=_ALL)
    changes = {change.id: change for change in history}
    states = [(one, state) for one in told if "change" in one for state in one["memories"]]
    memories = await backend.memories.get([MemoryId(state["id"]) for _, state in states])
    messages = [MessageId(one["message"]) for one in told if "message" in one]
    found = {message.id for message in await backend.conversations.find_messages(messages)}
    lost = {one["change"] for one in told if "change" in one and one["change"] not in changes}
    lost |= {one["change"] for one, state in states if not _fits(memories.get(state["id"]), state)}
    lost |= {message for message in messages if message not in found}
    lost |= {f"#{number}" for number in numbers if await backend.memories.by_number(number) is None}
    wishes = {
        match[1]
        for change in history
        for edit in change.edits
        if (match := _WISH.search(edit.after.content)) is not None
    }
    return Kept(
        lost=sorted(lost),
        wishes=len(wishes),
        findings=await _findings(backend),
        checked=backend.upkeep is not None,
    )


def _fits(memory: Memory | None, state: Told) -> bool:
    """Whether a memory is as it was left, or was written again since."""
    if memory is None or memory.n != state["n"] or memory.revision < state["revision"]:
        return False
    if memory.revision > state["revision"]:
        return True
    return (memory.content, type(memory.status).__name__) == (state["content"], state["status"])


async def _findings(backend: Backend) -> list[str]:
    if backend.upkeep is None:
        return []
    found = await backend.upkeep.verify(full=True)
    return [f"{one.invariant.value}: {one.where}: {one.what}" for one in found if one.severity is not Severity.NOTE]
