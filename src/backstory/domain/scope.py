"""The only rule on borders between projects, sessions and audiences. Stores filter in their own language, but are
tested against ``visible``."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from backstory.domain.conversation import Session
from backstory.domain.ids import ProjectId, SessionId
from backstory.domain.memory import Memory, Sensitivity, Visibility


class Audience(StrEnum):
    """Who will read the answer: a person at their own terminal, or a model (and with it, a provider)."""

    PERSON = "person"
    MODEL = "model"


@dataclass(frozen=True, slots=True, kw_only=True)
class Viewer:
    """From where, and for whom, memories are read or changed.

    ``all_projects`` widens reading to other projects' memories; it never widens changing, and never opens a border of
    sensitivity. ``project`` None stands outside every project and sees global memories only.
    """

    project: ProjectId | None
    session: SessionId | None = None
    audience: Audience = Audience.MODEL
    all_projects: bool = False


def visible(memory: Memory, viewer: Viewer) -> bool:
    """Whether the viewer may read this memory; its status does not matter here.

    Local-only memories are for people alone. A session's memories are for that session, and for a person who stands in
    the same project.
    """
    if memory.sensitivity is Sensitivity.LOCAL_ONLY and viewer.audience is not Audience.PERSON:
        return False
    match memory.visibility:
        case Visibility.GLOBAL:
            return True
        case Visibility.PROJECT:
            return viewer.all_projects or _same_project(memory, viewer)
        case Visibility.SESSION:
            return _same_session(memory, viewer)


def circle(memory: Memory) -> str:
    """The readers a memory is for, coarsely: a project's id, or ``global`` or ``session``. For indexes that look only
    where a viewer may look at all: what is ``visible`` to a viewer is in one of its ``circles``, not the other way."""
    return memory.project or "" if memory.visibility is Visibility.PROJECT else memory.visibility.value


def circles(viewer: Viewer) -> frozenset[str] | None:
    """The circles outside which nothing is visible to a viewer; None for one who reads all projects."""
    if viewer.all_projects:
        return None
    return frozenset({Visibility.GLOBAL.value, Visibility.SESSION.value, viewer.project or ""})


def may_read(session: Session, viewer: Viewer) -> bool:
    """Whether the viewer may search what was said in a session: one of the same project, which the host still has.

    A session outside every project is read with ``all_projects`` alone.
    """
    if session.deleted_at is not None:
        return False
    return viewer.all_projects or (session.project is not None and session.project == viewer.project)


def may_change(memory: Memory, viewer: Viewer) -> bool:
    """Whether the viewer may update, supersede, retag or forget it: reading across projects never allows changing."""
    if memory.sensitivity is Sensitivity.LOCAL_ONLY and viewer.audience is not Audience.PERSON:
        return False
    match memory.visibility:
        case Visibility.GLOBAL:
            return True
        case Visibility.PROJECT:
            return _same_project(memory, viewer)
        case Visibility.SESSION:
            return _same_session(memory, viewer)


def _same_project(memory: Memory, viewer: Viewer) -> bool:
    return memory.project is not None and memory.project == viewer.project


def _same_session(memory: Memory, viewer: Viewer) -> bool:
    if memory.session is not None and memory.session == viewer.session:
        return True
    return viewer.audience is Audience.PERSON and _same_project(memory, viewer)
