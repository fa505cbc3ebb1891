"""The folders that a host has open: the application under each one's settings, its project, and wrong settings."""

from __future__ import annotations

import logging
import os
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from datetime import timedelta
from pathlib import Path

from backstory.adapters.project_folder import project_root
from backstory.adapters.text_models.host import HostAsk, HostTextModel
from backstory.bootstrap import App
from backstory.config import Settings, load_leniently
from backstory.domain.ids import ProjectId, SessionId
from backstory.domain.scope import Audience, Viewer
from backstory.errors import ConfigError

log = logging.getLogger(__name__)

MAX_FAULTS = 3  # told of wrong settings; the log has all


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """A folder that a host has open: the application under its settings, and its project."""

    app: App
    directory: str
    project: ProjectId

    def viewer(self, session: str | None) -> Viewer:
        """A model in this folder."""
        session_id = None if session is None else SessionId(session)
        return Viewer(project=self.project, session=session_id, audience=Audience.MODEL)


class Places:
    """Each folder is read when it is first asked for, and again after ``leave``. All share the store of ``app``.

    ``generate`` asks the language model of the host, which each folder's application may use, where the host lends one.
    """

    def __init__(self, app: App, *, generate: HostAsk | None = None) -> None:
        self._app = app
        self._generate = generate
        self._apps: dict[str, App] = {}
        self._places: dict[str, Place] = {}
        self._faults: dict[str, list[str]] = {}  # directory -> what nobody was told yet about its settings

    def app_in(self, directory: str) -> App:
        """The application under the settings of a folder. A user's setting that is wrong is left out, and told."""
        if directory not in self._apps:
            resolved, faults = load_leniently(env=os.environ, project_root=project_root(Path(directory)))
            self._apps[directory], unfit = self._opened(directory, resolved.settings)
            self._faults[directory] = [*faults, *unfit]
            for warning in (*faults, *unfit, *resolved.warnings):
                log.warning("event=setting_ignored directory=%s reason=%s", directory, warning)
        return self._apps[directory]

    def _opened(self, directory: str, settings: Settings) -> tuple[App, list[str]]:
        """The application, and why long sessions stay as they are in it, although the settings ask for a strategy."""
        app = self._app.with_settings(settings, host_model=self._host_model(directory, settings))
        try:
            app.long_sessions  # noqa: B018 - made now, so that no request finds out that it cannot be
        except ConfigError as error:
            settings = replace(settings, session=replace(settings.session, strategy="off"))
            return self._app.with_settings(settings, host_model=app.host_model), [f"{error}; no session is digested"]
        return app, []

    def _host_model(self, directory: str, settings: Settings) -> HostTextModel | None:
        if self._generate is None:
            return None
        chosen = settings.models
        return HostTextModel(
            self._generate,
            directory=directory,
            model=chosen.model,
            timeout_s=chosen.timeout_ms / 1000,
            concurrency=chosen.concurrency,
        )

    def untold_faults(self, directory: str) -> list[str]:
        """Sentences about wrong settings, for the first prompt after they were read."""
        faults = self._faults.pop(directory, [])
        return [
            f"A setting of Backstory is wrong and left out, tell the user: {fault}" for fault in faults[:MAX_FAULTS]
        ]

    async def place(self, directory: str) -> Place:
        """The folder with its project, which the store has to tell. Raises StoreError."""
        app = self.app_in(directory)
        place = self._places.get(directory)
        if place is None or place.app is not app:
            project = await app.project(Path(directory))
            place = self._places[directory] = Place(app=app, directory=directory, project=project.id)
        return place

    def leave(self, directory: str) -> None:
        """Forget a folder; the next one who asks reads its settings anew."""
        self._apps.pop(directory, None)
        self._places.pop(directory, None)
        self._faults.pop(directory, None)

    def waiting(self, limit: timedelta) -> AbstractContextManager[None]:
        """See ``App.waiting``: all folders wait for the same store."""
        return self._app.waiting(limit)
