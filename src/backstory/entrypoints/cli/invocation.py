"""One run of the command line: what its global options say, and how a command gets at settings, store and output."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from backstory.entrypoints.cli.output import Output
from backstory.entrypoints.drive import drive

if TYPE_CHECKING:
    from backstory.bootstrap import App
    from backstory.config import Resolved
    from backstory.domain.history import Author
    from backstory.domain.ids import ProjectId
    from backstory.domain.project import Project
    from backstory.domain.provenance import Origin
    from backstory.domain.scope import Viewer
    from backstory.ports.store import Capabilities

NO_BACKGROUND = "BACKSTORY_NO_BACKGROUND"
"""The variable that switches off what a command leaves running behind it."""
CALLER = "BACKSTORY_CALLER"
"""The variable by which a coding agent's shell says that no person runs the command."""


class Desk:
    """An opened store, and who looks at it: a person, or an agent in its shell.

    ``store`` is the one that the settings name. ``missing`` tells that it is not there yet, and that an empty one
    stands in for it.
    """

    def __init__(self, app: App, viewer: Viewer, project: Project, *, store: Capabilities, missing: bool) -> None:
        self.app = app
        self.viewer = viewer
        self.project = project
        self.store = store
        self.missing = missing

    @property
    def author(self) -> Author:
        """Who decides what the command changes."""
        from backstory.domain.history import Author

        return Author.AGENT if _is_agent() else Author.USER

    @property
    def origin(self) -> Origin:
        """Whose words the command stores."""
        from backstory.domain.provenance import Origin

        return Origin.AGENT if _is_agent() else Origin.USER

    def projects(self) -> Mapping[ProjectId, Project]:
        """All projects, to name those that memories belong to."""
        return drive(self.app.backend.projects.projects())


class Invocation:
    """What the global options say. They are filled in while the command line is parsed, and read after that."""

    def __init__(self) -> None:
        self.as_json = False
        self.verbose = False
        self.project_folder: Path | None = None
        self.store_url: str | None = None

    @cached_property
    def out(self) -> Output:
        """Where results go."""
        return Output(as_json=self.as_json)

    @cached_property
    def folder(self) -> Path:
        """The folder acted in. Raises InputError when the current one was removed."""
        if self.project_folder is not None:
            return self.project_folder
        try:
            return Path.cwd()
        except FileNotFoundError:
            from backstory.errors import InputError

            raise InputError(
                "the current folder does not exist any more", field="project", hint="name one with --project"
            ) from None

    @cached_property
    def resolved(self) -> Resolved:
        """The settings in force here."""
        return self.settings_with()

    def settings_with(self, flags: dict[str, object] | None = None) -> Resolved:
        """The settings in force here, with more flags than were given on the command line."""
        from backstory.adapters.project_folder import project_root
        from backstory.config import load

        given: dict[str, object] = {"store.url": self.store_url} | (flags or {})
        return load(env=os.environ, project_root=project_root(self.folder), flags=given)

    def person_only(self, what: str) -> None:
        """Raise OutOfScope in an agent's shell: what moves borders, or replaces a store, is a person's to decide."""
        if _is_agent():
            from backstory.errors import ASK_A_PERSON, OutOfScope

            raise OutOfScope(
                f"only a person {what}, in a terminal of their own, not an agent in its shell", hint=ASK_A_PERSON
            )

    @contextmanager
    def opened(
        self,
        *,
        create: bool = False,
        writing: bool = False,
        lexical: bool = False,
        all_projects: bool = False,
        one_shot: bool = True,
    ) -> Iterator[Desk]:
        """The store, for as long as the command uses it.

        Without ``create``, a store that is not there is not made: an empty one that keeps nothing stands in for it, so
        that a newcomer hears "nothing here yet" instead of an error. A command that is not ``writing`` writes nothing,
        not even that it has seen the folder. ``lexical`` spares the embedder; ``one_shot`` says that it is used once.
        """
        from backstory.bootstrap import open_app
        from backstory.domain.scope import Audience, Viewer

        mode: dict[str, object] = {"recall.mode": "lexical"} if lexical else {}
        resolved = self.settings_with(mode) if lexical else self.resolved
        self._log(resolved.settings.log.level)
        if self.verbose:
            self.out.warn(resolved.warnings)
        app = open_app(resolved.settings, folder=self.folder, one_shot=one_shot, create=create)
        store = app.backend.memories.capabilities
        try:
            project = self._project(app, resolved, create=create, register=create or writing)
            missing = project is None
            if project is None:
                drive(app.close())
                instead = self.settings_with(mode | {"store.url": "memory"}).settings
                app = open_app(instead, folder=self.folder, one_shot=one_shot)
                project = drive(app.project(self.folder, register=False))
            audience = Audience.MODEL if _is_agent() else Audience.PERSON  # an agent's shell is read by its model
            viewer = Viewer(project=project.id, audience=audience, all_projects=all_projects)
            yield Desk(app, viewer, project, store=store, missing=missing)
        finally:
            drive(app.close())

    def _project(self, app: App, resolved: Resolved, *, create: bool, register: bool) -> Project | None:
        """This folder's project; None where there is no store, and none is to be made. Whether a store that is no file
        is there is only asked when it could not be used: asking costs a connection."""
        from backstory.errors import StoreUnavailable

        path = resolved.settings.database_file
        if path is not None and not create and _is_absent(path):
            return None
        try:
            return drive(app.project(self.folder, register=register))
        except StoreUnavailable:
            if create or app.backend.upkeep is None or drive(app.backend.upkeep.exists()):
                raise
            return None

    def _log(self, level: str) -> None:
        """Logging is imported only where more than warnings is asked for; those reach standard error by themselves."""
        if self.verbose or level != "warning":
            import logging

            logging.basicConfig(
                level="DEBUG" if self.verbose else level.upper(),
                format="time=%(asctime)s level=%(levelname)s logger=%(name)s %(message)s",
            )


def _is_agent() -> bool:
    return os.environ.get(CALLER) == "agent"


def _is_absent(path: Path) -> bool:
    """Whether there is no file; one that may not be looked at is there, and opening it says what is wrong."""
    try:
        os.stat(path)  # noqa: PTH116 - Path.exists hides or raises other errors, depending on the version of Python
    except (FileNotFoundError, NotADirectoryError):
        return True
    except OSError:
        return False
    return False
