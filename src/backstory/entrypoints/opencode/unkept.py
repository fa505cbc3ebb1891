"""Prompts whose wish the store could not take when it was made: tried again until it can, and told either way."""

from __future__ import annotations

import logging
import time
from collections import defaultdict
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field

import anyio

from backstory.errors import BackstoryError, StoreBusy, StoreUnavailable
from backstory.services.conversation import Captured, Prompt

log = logging.getLogger(__name__)

GIVE_UP_AFTER_S = 600.0
_PAUSES_S = (1.0, 2.0, 5.0, 10.0)  # between tries; the last one repeats
_MOST_SESSIONS = 500  # with notes that nobody has fetched

Capture = Callable[[str, Prompt], Awaitable[Captured]]
"""Stores what a prompt in a directory asks for; the same prompt again stores nothing more."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Wish:
    directory: str
    prompt: Prompt
    made: float = field(default_factory=time.monotonic)


class Unkept:
    """What still has to be captured, by message, and what to tell each session about it."""

    def __init__(self, capture: Capture) -> None:
        self._capture = capture
        self._wishes: dict[str, _Wish] = {}
        self._notes: defaultdict[str, list[str]] = defaultdict(list)
        self._wanted = anyio.Event()
        self._was_busy = False

    def add(self, directory: str, prompt: Prompt) -> None:
        """The store could not take this prompt's wish; a prompt that waits already keeps its place."""
        self._wishes.setdefault(prompt.message, _Wish(directory=directory, prompt=prompt))
        self._wanted.set()

    def notes(self, session: str) -> tuple[str, ...]:
        """What became of the session's wishes since it was last told."""
        return tuple(self._notes.pop(session, ()))

    async def keep_trying(self) -> None:
        """Try all that waits, now and again, for ever."""
        while True:
            await self._wanted.wait()
            self._wanted = anyio.Event()
            pauses = iter(_PAUSES_S)
            pause = 0.0
            while self._wishes:
                pause = next(pauses, pause)
                await anyio.sleep(pause)
                await self.try_all()

    async def finish(self) -> None:
        """Try all that waits, and again as long as a store is only busy: one that is not there will not come now."""
        self._was_busy = True
        while self._wishes and self._was_busy:
            self._was_busy = False
            await self.try_all()
            if self._was_busy:
                await anyio.sleep(_PAUSES_S[0])

    async def try_all(self) -> None:
        """Try each wish once, in the order in which they were made."""
        for message, wish in list(self._wishes.items()):
            note = await self._try(wish)
            if note is not None and self._wishes.pop(message, None) is not None:
                self._tell(wish.prompt.session, note)

    async def _try(self, wish: _Wish) -> str | None:
        """What to tell about a wish that is settled; None while it is not."""
        try:
            captured = await self._capture(wish.directory, wish.prompt)
        except StoreUnavailable as error:
            self._was_busy |= isinstance(error, StoreBusy)
            if time.monotonic() - wish.made < GIVE_UP_AFTER_S:
                return None
            return _given_up(wish, error)
        except BackstoryError as error:
            return _given_up(wish, error)
        numbers = ", ".join(f"#{item.memory.n}" for item in captured.remembered) or "nothing"
        return "; ".join(
            [f"What an earlier message asked to be remembered is stored after all, as {numbers}", *captured.refused]
        )

    def _tell(self, session: str, note: str) -> None:
        self._notes[session].append(note)
        if len(self._notes) > _MOST_SESSIONS:
            del self._notes[next(iter(self._notes))]


def _given_up(wish: _Wish, error: BackstoryError) -> str:
    log.error("event=capture_given_up session=%s message=%s reason=%s", wish.prompt.session, wish.prompt.message, error)
    return "What an earlier message asked to be remembered could NOT be stored, and is not tried any more. Say so."
