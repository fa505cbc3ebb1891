"""What every kind of OpenCode's history is read as: sessions, and a session's messages with their parts."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Protocol

from backstory.adapters.formats.outside_files import Json
from backstory.domain.interchange import Unreadable


@dataclass(frozen=True, slots=True, kw_only=True)
class ToldMessage:
    """A message as OpenCode's API tells it: its ``info``, and its parts in the order of their ids. ``problems`` are
    parts that cannot be read."""

    info: Json
    parts: list[Json]
    problems: tuple[Unreadable, ...] = ()


class History(Protocol):
    """One store of OpenCode's. Everything is read in pieces, and nothing is kept open between two sessions."""

    def sessions(self) -> Iterator[Json | Unreadable]:
        """The ``info`` of every session, the oldest first, so that a sub-agent's comes after the one that called it.
        Raises InputError where nothing can be read."""
        ...

    def infos(self, session: str) -> Iterator[Json]:
        """The ``info`` of a session's messages without their parts; what cannot be read left out."""
        ...

    def messages(self, session: str) -> Iterator[ToldMessage | Unreadable]:
        """A session's messages, oldest first."""
        ...

    def remarks(self) -> Iterator[str]:
        """What people should know once everything was read, in sentences."""
        ...

    def close(self) -> None:
        """Let go of everything."""
        ...
