"""What a project is to the memory: one id with many aliases (folders, git directories), so that it keeps its memory.

Values only; which project a folder belongs to is decided in ``project_identity.py``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from types import MappingProxyType

from backstory.domain.ids import ProjectId

GIT, FOLDER, CLONE, PAST = "git", "dir", "clone", "past"
"""Kinds of aliases: a git directory, a folder, a root commit with a remote, a place that another project has now."""

ROOT, REMOTE = "root:", "remote:"
"""Kinds of traits: a root commit, and the remote it is pushed to."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Project:
    """``name`` is what people read: the folder's last part. ``root`` is the folder in which it was last seen."""

    id: ProjectId
    name: str
    root: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Alias:
    """One way by which a project is known; each alias is one project's.

    ``name`` is ``git:/repo/.git``, ``dir:/repo``, ``clone:ROOT-COMMIT REMOTE``, or ``past:`` and a place where the
    project stood before another one took it. ``stamp`` tells one thing at a path from the next (device, inode, and for
    git the time it was made); ``looked`` says as of which state of a git directory ``traits`` were read. Both are empty
    where they are not known. ``traits`` are what several projects may have in common: ``root:COMMIT``, ``remote:URL``.
    """

    name: str
    project: ProjectId
    first_seen: datetime
    last_seen: datetime
    stamp: str = ""
    looked: str = ""
    traits: tuple[str, ...] = ()

    @property
    def kind(self) -> str:
        """The word before the colon."""
        return self.name.partition(":")[0]

    @property
    def place(self) -> str:
        """The alias of the place, for one that is past; else its name."""
        return self.name.removeprefix(f"{PAST}:").rpartition("@")[0] if self.kind == PAST else self.name

    @property
    def path(self) -> str | None:
        """The path of a git directory or folder; None for a clone."""
        kind, _, path = self.place.partition(":")
        return path if kind in (GIT, FOLDER) else None


def _no_stamps() -> Mapping[str, str]:
    return MappingProxyType({})


@dataclass(frozen=True, slots=True, kw_only=True)
class ProjectSighting:
    """How a working folder identifies its project right now.

    ``aliases`` are the strongest first (``git:/repo/.git`` before ``dir:/repo``). Two folders with an alias in common
    are one project, except by those in ``taken``: there stands something else now than what was known there, so they
    are known only with the same stamp, and otherwise pass to this project. ``joins`` names a project that is known by
    other evidence. ``inner`` are the folders from here up to the checkout's root, the nearest first and the root left
    out. ``traits`` are None until somebody has looked.
    """

    name: str
    root: str
    aliases: tuple[str, ...]
    stamps: Mapping[str, str] = field(default_factory=_no_stamps, compare=False)
    looked: str = field(default="", compare=False)
    inner: tuple[str, ...] = field(default=(), compare=False)
    traits: tuple[str, ...] | None = None
    taken: tuple[str, ...] = ()
    joins: ProjectId | None = None

    @property
    def git(self) -> str | None:
        """The alias of the git directory; None outside git."""
        return self.aliases[0] if self.aliases[0].startswith(f"{GIT}:") else None

    def stamp(self, alias: str) -> str:
        """What stands at an alias now; empty where it is not known."""
        return self.stamps.get(alias, "")


def past(alias: Alias) -> str:
    """The name under which a project keeps an alias whose place another project has taken."""
    return f"{PAST}:{alias.name}@{alias.stamp}"


def roots(traits: tuple[str, ...] | None) -> frozenset[str]:
    """The root commits among traits."""
    return frozenset(trait for trait in traits or () if trait.startswith(ROOT))


def remotes(traits: tuple[str, ...] | None) -> frozenset[str]:
    """The remotes among traits."""
    return frozenset(trait for trait in traits or () if trait.startswith(REMOTE))
