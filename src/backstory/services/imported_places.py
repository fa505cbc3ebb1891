"""Which project a record of another store belongs to: the folder that it names, found here or made known for later."""

from __future__ import annotations

import contextlib
from dataclasses import dataclass
from pathlib import Path, PureWindowsPath

from backstory.domain.admission import admit_label
from backstory.domain.ids import ProjectId
from backstory.domain.project import Project, ProjectSighting
from backstory.errors import InputError
from backstory.ports.store import ProjectRegistry
from backstory.ports.system import Clock, IdSource
from backstory.services.project_identity import ProjectIdentity

MOST_PLACES = 10_000
"""Different projects in one import; a file that names more is not a store of anybody's."""
_PATH_MAX_CHARS = 4096
_NAME_MAX_CHARS = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class _Named:
    """What a record says of its project: its id in a store of our own, and a folder or a name."""

    id: ProjectId | None
    place: str | None


class ImportedPlaces:
    """The projects of one import. Each is looked up once.

    A folder's path is found as if somebody worked in it, also where it is not there: whoever opens it later finds its
    memories. Another word is a project's name. What names nothing belongs to ``here``.
    """

    def __init__(
        self, registry: ProjectRegistry, identity: ProjectIdentity, *, clock: Clock, ids: IdSource,
        here: ProjectId | None, all_here: bool, dry_run: bool,
    ) -> None:  # fmt: skip
        self._registry = registry
        self._identity = identity
        self._clock = clock
        self._ids = ids
        self._here = here
        self._all_here = all_here
        self._dry_run = dry_run
        self._found: dict[_Named, ProjectId] = {}
        self._known: dict[ProjectId, Project] | None = None
        self.new: list[Project] = []
        """Those that nobody knew before, in the order in which they were met."""

    async def project(self, place: str | None, *, named: ProjectId | None = None) -> ProjectId | None:
        """The project of a record. ``named`` is its id where the source is a store of our own. Raises InputError for a
        place that cannot be kept, and for one too many."""
        if self._all_here or (named is None and not (place or "").strip()):
            return self._here
        key = _Named(id=named, place=place)
        if key not in self._found:
            if len(self._found) >= MOST_PLACES:
                raise InputError(f"this import names more than {MOST_PLACES} projects", field="project")
            try:
                self._found[key] = await self._look_up(key)
            except OSError as error:
                raise InputError(f"its folder cannot be looked at: {error.strerror}", field="project") from error
        return self._found[key]

    async def _look_up(self, named: _Named) -> ProjectId:
        if self._known is None:
            self._known = dict(await self._registry.projects())
        if named.id is not None:
            admit_label(named.id, field="project", max_chars=_NAME_MAX_CHARS)
            if named.id in self._known:
                return named.id
            return await self._of_another_store(named.id, named.place)
        place = (named.place or "").strip()
        if is_path(place):
            return self._noted(await self._of_folder(_fit_path(place)))
        return self._noted(await self._of_name(admit_label(place, field="project", max_chars=_NAME_MAX_CHARS)))

    async def _of_another_store(self, project: ProjectId, place: str | None) -> ProjectId:
        """A project by its id elsewhere. A folder that it names is the surer sign: there it may have another id."""
        if place is not None and is_path(place):
            with contextlib.suppress(InputError):
                return self._noted(await self._of_folder(_fit_path(place)))
        name = _fit_name(place) or project
        sighting = ProjectSighting(name=name, root="", aliases=(f"id:{project}",))
        return self._noted(await self._identified(sighting, new_id=project))

    async def _of_folder(self, place: str) -> Project:
        if place.startswith("/") or not _is_windows_path(place):
            return await self._identity.of_folder(_from_home(place), register=not self._dry_run)
        path = PureWindowsPath(place)
        sighting = ProjectSighting(name=path.name or place, root=place, aliases=(f"dir:{place}",))
        return await self._identified(sighting)

    async def _of_name(self, name: str) -> Project:
        """The one project of that name; where there are several, or none, the one that imports made for it."""
        sighting = ProjectSighting(name=name, root="", aliases=(f"name:{name}",))
        known = await self._registry.find(sighting)
        same = [project for project in (self._known or {}).values() if project.name == name]
        if known is None and len(same) == 1:
            return same[0]
        return known or await self._identified(sighting)

    async def _identified(self, sighting: ProjectSighting, *, new_id: ProjectId | None = None) -> Project:
        new_id = new_id or ProjectId(self._ids.new_id())
        if self._dry_run:
            known = await self._registry.find(sighting)
            return known or Project(id=new_id, name=sighting.name, root=sighting.root)
        return await self._registry.identify(sighting, now=self._clock.now(), new_id=new_id)

    def _noted(self, project: Project) -> ProjectId:
        if self._known is not None and project.id not in self._known:
            self._known[project.id] = project
            self.new.append(project)
        return project.id


def is_path(place: str) -> bool:
    """Whether a place names a folder, and not just a project: an absolute path of any system, or one from a home."""
    return place.startswith(("/", "~/")) or _is_windows_path(place)


def _fit_path(place: str) -> str:
    return admit_label(place, field="project", max_chars=_PATH_MAX_CHARS)


def _from_home(place: str) -> Path:
    try:
        return Path(place).expanduser()
    except RuntimeError as error:
        raise InputError("nobody's home is known here", field="project") from error


def _is_windows_path(place: str) -> bool:
    return PureWindowsPath(place).is_absolute()


def _fit_name(name: str | None) -> str | None:
    with contextlib.suppress(InputError):
        return admit_label(" ".join((name or "").split()), field="project", max_chars=_NAME_MAX_CHARS)
    return None
