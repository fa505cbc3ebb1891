"""Persistent memory for coding agents: it remembers what it was told, and says so only when it matters.

    from backstory import open_memory

    async with open_memory(store="sqlite:///tmp/notes.db", project=".") as memory:
        await memory.remember("We use jose, not jsonwebtoken.")
        for result in (await memory.recall("which JWT library?")).results:
            print(result.memory.content, result.reasons)

What is listed in ``__all__`` is public; everything else may change. Names are imported when they are first used, since
every command of ours passes through here.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from backstory.__about__ import __version__

if TYPE_CHECKING:
    from backstory.domain.history import Change
    from backstory.domain.memory import Kind, Memory, Sensitivity, Tier, Visibility
    from backstory.domain.provenance import Origin
    from backstory.domain.request_history import Shape
    from backstory.domain.request_history import prune as prune_messages
    from backstory.domain.request_history import repair as repair_messages
    from backstory.entrypoints.library import AgentMemory, SyncAgentMemory, open_memory
    from backstory.errors import (
        AmbiguousMatch,
        BackstoryError,
        ConfigError,
        Conflict,
        InputError,
        ModelError,
        NotFound,
        OutOfScope,
        StoreError,
    )
    from backstory.services.query import Recalled, Result

_HOMES = {
    "Change": "domain.history",
    "Kind": "domain.memory",
    "Memory": "domain.memory",
    "Sensitivity": "domain.memory",
    "Tier": "domain.memory",
    "Visibility": "domain.memory",
    "Origin": "domain.provenance",
    "Shape": "domain.request_history",
    "prune_messages": "domain.request_history:prune",
    "repair_messages": "domain.request_history:repair",
    "AgentMemory": "entrypoints.library",
    "SyncAgentMemory": "entrypoints.library",
    "open_memory": "entrypoints.library",
    "AmbiguousMatch": "errors",
    "BackstoryError": "errors",
    "ConfigError": "errors",
    "Conflict": "errors",
    "InputError": "errors",
    "ModelError": "errors",
    "NotFound": "errors",
    "OutOfScope": "errors",
    "StoreError": "errors",
    "Recalled": "services.recall",
    "Result": "services.recall",
}

__all__ = [
    "AgentMemory",
    "AmbiguousMatch",
    "BackstoryError",
    "Change",
    "ConfigError",
    "Conflict",
    "InputError",
    "Kind",
    "Memory",
    "ModelError",
    "NotFound",
    "Origin",
    "OutOfScope",
    "Recalled",
    "Result",
    "Sensitivity",
    "Shape",
    "StoreError",
    "SyncAgentMemory",
    "Tier",
    "Visibility",
    "__version__",
    "open_memory",
    "prune_messages",
    "repair_messages",
]


def __getattr__(name: str) -> object:
    if name in _HOMES:
        module, _, attribute = _HOMES[name].partition(":")
        return getattr(import_module(f"backstory.{module}"), attribute or name)
    raise AttributeError(f"module 'backstory' has no attribute {name!r}")
