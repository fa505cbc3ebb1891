"""Sessions of OpenCode that exist only to ask its model something for us: never conversations, and gone soon."""

from __future__ import annotations

import logging
import time
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

import anyio

from backstory.codecs.opencode import HELPER, is_helper_message, is_helper_titled

__all__ = ["HELPER", "HelperSessions"]

log = logging.getLogger(__name__)

STRAY_AFTER_S = 900.0
"""Since its last change. No question takes longer than 10 minutes, and the session may be another OpenCode's."""
SWEEP_AFTER_S = 1.0  # from a folder's opening: OpenCode is busy with its first prompt

Ask = Callable[[str, Mapping[str, Any]], Awaitable[Any]]


class HelperSessions:
    """Which sessions are helpers, and the removal of those that an OpenCode left when it was killed.

    A session is one by our title or our agent, until a prompt in it goes to another agent: then somebody talks there.
    """

    def __init__(self, ask: Ask) -> None:
        self._ask = ask
        self._titled: set[str] = set()
        self._asked: set[str] = set()
        self._talked: set[str] = set()
        self._unswept: set[str] = set()  # directories
        self._wanted = anyio.Event()

    def note_session(self, info: Mapping[str, Any]) -> None:
        """A session's ``info``, whose title may mark it, or no longer does."""
        session = info.get("id")
        if isinstance(session, str) and is_helper_titled(info):
            self._titled.add(session)
        elif isinstance(session, str):
            self._titled.discard(session)

    def note_message(self, info: Mapping[str, Any]) -> None:
        """A message's ``info``, whose agent may mark its session, or show that it is a person's."""
        session = info.get("sessionID")
        if not isinstance(session, str):
            return
        if is_helper_message(info):
            self._asked.add(session)
        elif info.get("role") == "user":
            self._talked.add(session)

    def __contains__(self, session: object) -> bool:
        return session not in self._talked and (session in self._titled or session in self._asked)

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
        """Have old sessions with our title discarded; the plugin first looks whether all that is in them is ours."""
        sessions = await self._ask("host.sessions", {"directory": directory, "search": HELPER})
        for info in sessions if isinstance(sessions, list) else ():
            if not isinstance(info, Mapping) or not is_helper_titled(info) or _age_s(info) <= STRAY_AFTER_S:
                continue
            if await self._ask("host.discard", {"directory": directory, "session": info.get("id")}):
                log.info("event=stray_helper_removed session=%s", info.get("id"))


def _age_s(info: Mapping[str, Any]) -> float:
    """How long ago a session changed; 0 where it does not say."""
    times = info.get("time")
    updated = times.get("updated") if isinstance(times, Mapping) else None
    if isinstance(updated, bool) or not isinstance(updated, int | float):
        return 0.0
    return time.time() - updated / 1000
