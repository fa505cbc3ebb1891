"""The folders that requests name: which project, under which settings. They are read anew from time to time."""

from __future__ import annotations

import time
from dataclasses import dataclass
from pathlib import Path

from backstory.bootstrap import App
from backstory.domain.ids import SessionId
from backstory.domain.scope import Audience, Viewer
from backstory.entrypoints.http.problems import Problem
from backstory.entrypoints.places import Places

READ_AGAIN_AFTER_S = 30.0
MOST = 200
"""Folders that are kept in mind; more are forgotten, the one read longest ago first."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Desk:
    """Where a request looks from: the application, and the viewer, who is a model."""

    app: App
    viewer: Viewer


class Folders:
    """Whoever holds the token may name any folder of the user's: they are the user's own agents. What they see there is
    what an agent in that folder sees, never another project's."""

    def __init__(self, app: App, places: Places) -> None:
        self._app = app
        self._places = places
        self._read: dict[str, float] = {}

    async def desk(self, folder: str | None, session: str | None) -> Desk:
        """The desk in a folder, or outside every project. Raises Problem for what is no folder, StoreError."""
        if folder is None:
            session_id = None if session is None else SessionId(session)
            return Desk(app=self._app, viewer=Viewer(project=None, session=session_id, audience=Audience.MODEL))
        directory = str(Path(folder))
        _check(directory)
        self._renew(directory)
        place = await self._places.place(directory)
        return Desk(app=place.app, viewer=place.viewer(session))

    def _renew(self, directory: str) -> None:
        now = time.monotonic()
        if now - self._read.get(directory, now) > READ_AGAIN_AFTER_S:
            self._leave(directory)
        while len(self._read) >= MOST and directory not in self._read:
            self._leave(next(iter(self._read)))
        self._read.setdefault(directory, now)

    def _leave(self, directory: str) -> None:
        self._read.pop(directory, None)
        self._places.leave(directory)


def _check(directory: str) -> None:
    try:
        is_folder = Path(directory).is_dir()
    except (OSError, ValueError):
        is_folder = False
    if not is_folder:
        raise Problem(kind="not-found", detail="There is no such folder", name="project", value=directory[:200])
