"""Stores that travel: bringing one together with a copy of itself elsewhere."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from backstory.domain.ids import MemoryId


@dataclass(frozen=True, slots=True, kw_only=True)
class Disagreement:
    """Two clones changed one memory: the newer decision stands, the other is in the history, as ``change``."""

    memory: MemoryId
    n: int
    kept: str
    set_aside: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Renumbered:
    """Two clones had given one number to two memories: the later memory has a new one."""

    memory: MemoryId
    old: int
    new: int


@dataclass(frozen=True, slots=True, kw_only=True)
class KeptWords:
    """Another clone changed what the user said here, and nobody vouched for it: what was ``said`` is the memory
    ``memory`` now, number ``n``. ``changed`` is the number of the memory that said so before, ``now`` what it says;
    None where it is forgotten."""

    memory: MemoryId
    n: int
    said: str
    changed: int
    now: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Synchronised:
    """What came and went. ``received`` and ``sent`` count changes; ``pushed`` says that the remote was written to."""

    remote: str
    ref: str
    received: int = 0
    sent: int = 0
    pushed: bool = False
    disagreements: Sequence[Disagreement] = ()
    renumbered: Sequence[Renumbered] = ()
    kept: Sequence[KeptWords] = ()
    problems: Sequence[str] = ()


@runtime_checkable
class Travelling(Protocol):
    """A store that can be brought together with a copy elsewhere."""

    async def synchronise(self, remote: str | None, *, dry_run: bool, trusted: bool) -> Synchronised:
        """Take in what the remote has, and give it what it has not; afterwards both hold the same.

        Nothing is dropped: where both sides changed a memory the newer decision stands, and the other stays in the
        history. Safe to run at once from several clones. With ``dry_run`` neither side's memories change. ``trusted``
        believes what others say about whose words a memory is, also of what came earlier; without it, what the user
        said here goes on to hold as a memory of its own where others changed it (``kept``). Raises InputError for an
        unknown remote, and StoreUnavailable where it cannot be reached or refuses.
        """
        ...
