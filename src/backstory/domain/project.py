"""What a project is to the memory: one id with many aliases (folders, git directories), so that it keeps its memory."""

from __future__ import annotations

from dataclasses import dataclass

from backstory.domain.ids import ProjectId


@dataclass(frozen=True, slots=True, kw_only=True)
class Project:
    """``name`` is what people read: the folder's last part. ``root`` is the folder in which it was last seen."""

    id: ProjectId
    name: str
    root: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ProjectSighting:
    """How a working folder identifies its project right now.

    ``aliases`` are the strongest first (``git:/repo/.git`` before ``dir:/repo``). Two folders with an alias in common
    are one project.
    """

    name: str
    root: str
    aliases: tuple[str, ...]
