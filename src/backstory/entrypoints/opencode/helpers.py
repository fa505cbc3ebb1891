"""Sessions of OpenCode that exist only to ask its model something for us: never conversations, and gone soon."""

from __future__ import annotations

import logging
import time
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

import anyio

log = logging.getLogger(__name__)

HELPER = "backstory-helper"
"""Begins the title of each, and names the agent that answers in them; both outlive the processes."""
STRAY_AFTER_S = 900.0
"""Since its last change. No question takes longer than 10 minutes, and the session may be another OpenCode's."""
SWEEP_AFTER_S = 1.0  # from a folder's opening: OpenCode is busy with its first prompt

Ask = Callable[[str, Mapping[str, Any]], Awaitable[Any]]


class HelperSessions:
    """Which sessions are helpers, and the removal of those that an OpenCode left when it was killed."""

    def __init__(self, ask: Ask) -> None:
        self._ask = ask
        self._known: set[str] = set()
        self._unswept: set[str] = set()  # directories
        self._wanted = anyio.Event()

    def note_session(self, info: Mapping[str, Any]) -> None:
        """A session's ``info``, whose title may mark it."""
        session = info.get("id")
        if isinstance(session, str) and _is_marked(info):
            self._known.add(session)

    def note_message(self, info: Mapping[str, Any]) -> None:
        """A message's ``info``, whose agent may mark its session."""
        session = info.get("sessionID")
        if isinstance(session, str) and HELPER in (info.get("agent"), info.get("mode")):
            self._known.add(session)

    def __contains__(self, session: object) -> bool:
        return session in self._known

    def sweep(self, directory: str) -> None:
        """Have the strays of a folder removed, soon."""
        self._unswept.add(directory)
        self._wanted.set()

    async def keep_sweeping(self) -> None:
        """Remove strays wherever ``sweep`` was called, for ever."""
        while True:
            await self._wanted.wait()
            self._wanted = anyio.Event()
            await anyio.sleep(SWEEP_AFTER_S)
            while self._unswept:
                await self._remove_strays(self._unswept.pop())

    async def _remove_strays(self, directory: str) -> None:
        sessions = await self._ask("host.sessions", {"directory": directory, "search": HELPER})
        for info in sessions if isinstance(sessions, list) else ():
            if isinstance(info, Mapping) and _is_marked(info) and _age_s(info) > STRAY_AFTER_S:
                await self._ask("host.discard", {"directory": directory, "session": info.get("id")})
                log.info("event=stray_helper_removed session=%s", info.get("id"))


def _is_marked(info: Mapping[str, Any]) -> bool:
    title = info.get("title")
    return isinstance(title, str) and title.startswith(HELPER)


def _age_s(info: Mapping[str, Any]) -> float:
    """How long ago a session changed; 0 where it does not say."""
    times = info.get("time")
    updated = times.get("updated") if isinstance(times, Mapping) else None
    if isinstance(updated, bool) or not isinstance(updated, int | float):
        return 0.0
    return time.time() - updated / 1000
