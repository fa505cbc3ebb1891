"""When memories are held against the code of an open folder: some time after it is opened, then by the hour.

No hook waits for it; what it finds is seen from the next prompt on.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable
from pathlib import Path

import anyio

from backstory.domain.ids import ProjectId
from backstory.entrypoints.places import Place
from backstory.errors import BackstoryError

log = logging.getLogger(__name__)

AGAIN_AFTER_S = 3600.0

GiveWay = Callable[[], Awaitable[None]]


class CodeChecks:
    """The folders that OpenCode has open, one for each project."""

    def __init__(self, *, give_way: GiveWay) -> None:
        self._give_way = give_way
        self._open: dict[ProjectId, Place] = {}
        self._arrived = anyio.Event()

    def opened(self, place: Place) -> None:
        """Have a folder looked at, soon and then by the hour."""
        self._open[place.project] = place
        self._arrived.set()

    async def keep_working(self) -> None:
        """Look at each open folder when it is due, for as long as the process lives."""
        while True:
            self._arrived = anyio.Event()
            for place in list(self._open.values()):
                await self._give_way()
                await self._look(place)
            with anyio.move_on_after(AGAIN_AFTER_S):
                await self._arrived.wait()

    async def _look(self, place: Place) -> None:
        """The outer loop of a job: whatever goes wrong, the next look makes up for it."""
        try:
            report = await place.app.truth.code_check.check_if_due(place.project, Path(place.directory))
        except BackstoryError as error:
            log.warning("event=code_check_skipped project=%s reason=%s", place.project, error)
        except Exception:
            log.exception("event=code_check_broke project=%s", place.project)
        else:
            if report is not None:
                log.info(
                    "event=code_checked project=%s doubted=%d undecided=%d cannot=%r",
                    place.project, len(report.doubted), report.undecided, report.cannot,
                )  # fmt: skip
