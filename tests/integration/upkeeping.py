"""What the tests of every backend's upkeep do with one: run something in it, look for faults, fill it for everybody."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import anyio

from backstory.domain.memory import Memory, Visibility
from backstory.domain.scope import Audience, Viewer
from backstory.domain.selection import EVERY_STATE, Selection
from backstory.ports.backend import Backend
from backstory.ports.upkeep import Finding, Severity, StoreUpkeep
from backstory.testing.fakes import START, sample_memory

EVERYTHING = Selection(
    viewer=Viewer(project=None, audience=Audience.PERSON, all_projects=True), now=START, states=EVERY_STATE
)


def upkeep_of(backend: Backend) -> StoreUpkeep:
    assert backend.upkeep is not None
    return backend.upkeep


def run(backend: Backend, work: Callable[[Backend], Any]) -> Any:  # Any: whatever the work gives
    """Do something with a backend and close it."""

    async def all_of_it() -> Any:
        try:
            return await work(backend)
        finally:
            await backend.memories.close()

    return anyio.run(all_of_it)


def verify(backend: Backend, *, full: bool = True) -> list[Finding]:
    found: list[Finding] = run(backend, lambda opened: upkeep_of(opened).verify(full=full))
    return found


def faults(backend: Backend, *, full: bool = True) -> list[Finding]:
    """What ``verify`` finds but for notes."""
    return [finding for finding in verify(backend, full=full) if finding.severity is not Severity.NOTE]


def everywhere(content: str, **values: Any) -> Memory:
    return sample_memory(content, visibility=Visibility.GLOBAL, project=None, **values)
