"""Rows of ocpg as memories, and memories in its words: what each type and column means. No driver, no SQL."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from types import MappingProxyType

from backstory.domain.admission import MAX_TAG_CHARS, admit_label
from backstory.domain.ids import MemoryId, ProjectId, SessionId
from backstory.domain.memory import (
    Active,
    Counters,
    Deleted,
    Kind,
    Memory,
    Sensitivity,
    Source,
    Status,
    Superseded,
    Times,
    Visibility,
)
from backstory.domain.provenance import Origin, Provenance
from backstory.domain.vocabulary import classify
from backstory.errors import InputError

SYSTEM = "ocpg"
EVERYWHERE = "global"
"""Stands in the column of the project where there is none: an empty one keeps ocpg from showing anything."""

STACK, PROJECT, EPISODIC, PREFERENCE = "stack_fact", "project_fact", "episodic", "preference"
"""The words that its layouts know as types. A project's facts are for its folder, all others for everybody."""

_USER = re.compile("user:.*", re.DOTALL)  # the scope of the middle layout that held in all projects of a user
_LABEL_MAX_CHARS = 200
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True, kw_only=True)
class OcpgRow:
    """One row. Times are microseconds since 1970, None where they are not known or no calendar has them;
    ``by_created`` is when what took its place was made."""

    id: int
    content: str
    tags: tuple[str, ...]
    session: str | None
    project: str | None
    type: str | None
    created: int | None
    updated: int | None
    accessed: int | None
    access_count: int
    by: int | None
    by_created: int | None
    host: str | None

    @property
    def path(self) -> str | None:
        """The folder whose project it belongs to."""
        return None if self.project in (None, "", EVERYWHERE) or self.is_users else self.project

    @property
    def is_users(self) -> bool:
        """Whether it belongs to a user rather than to a project."""
        return self.project is not None and _USER.fullmatch(self.project) is not None


def memory_of(
    row: OcpgRow,
    project: ProjectId | None,
    *,
    id: MemoryId,
    content: str,
    by: MemoryId | None,
    sessions: int,
    raw: Mapping[str, str],
    now: datetime,
) -> Memory:
    """The memory that a row becomes, with these words. ``by`` took its place; ``now`` stands for times not known."""
    kind, visibility = place_of(row)
    learned = now if row.created is None else moment(row.created)
    updated = learned if row.updated is None else moment(row.updated)
    session = label(row.session)
    return Memory(
        id=id,
        content=content,
        kind=kind,
        visibility=visibility,
        project=project,
        session=None if session is None else SessionId(session),
        tags=tags_of(row.tags),
        status=status_of(row, by, now=now),
        origin=Origin.IMPORTED,
        source=Source.IMPORTED,
        provenance=Provenance(
            session=None if session is None else SessionId(session),
            origin_system=SYSTEM,
            origin_id=str(row.id),
            raw=MappingProxyType(dict(raw)),
        ),
        times=Times(
            learned=learned,
            updated=updated,
            confirmed=updated,
            used=None if row.accessed is None else moment(row.accessed),
        ),
        counters=Counters(recalled=row.access_count, sessions=sessions),
    )


def tags_of(tags: Collection[str]) -> tuple[str, ...]:
    """The tags of a row that are fit to be kept, in their order, each once."""
    admitted = (label(tag, max_chars=MAX_TAG_CHARS) for tag in tags)
    return tuple(dict.fromkeys(tag for tag in admitted if tag is not None))


def place_of(row: OcpgRow) -> tuple[Kind, Visibility]:
    """What sort of statement a row is, and who may see it.

    As in ocpg only a project's facts are for their project. What its oldest layout kept without a project, and its
    middle one for a user, holds everywhere.
    """
    try:
        kind = classify(row.type, None).kind or Kind.FACT
    except InputError:  # a word that somebody added to the constraint
        kind = Kind.OTHER
    if row.is_users:
        return (Kind.USER if row.type == PROJECT else kind), Visibility.GLOBAL
    if row.type is None:
        return kind, Visibility.PROJECT if row.path is not None else Visibility.GLOBAL
    return kind, Visibility.PROJECT if row.type == PROJECT else Visibility.GLOBAL


def status_of(row: OcpgRow, by: MemoryId | None, *, now: datetime) -> Status:
    """Whether it is current, or what took its place."""
    if by is None:
        return Active()
    return Superseded(by=by, since=now if row.by_created is None else moment(row.by_created))


def type_of(memory: Memory, types: Collection[str]) -> str | None:
    """ocpg's word for a memory among those that its constraint lets through; None where there is none that fits.

    Its episodes are everybody's, so a project's episode becomes a fact of the project.
    """
    if memory.visibility is not Visibility.GLOBAL:
        return PROJECT if PROJECT in types else None
    own = {Kind.EPISODIC: EPISODIC, Kind.PREFERENCE: PREFERENCE}.get(memory.kind)
    return next((word for word in (own, STACK, PREFERENCE, EPISODIC) if word in types), None)


def unfit_for(memory: Memory) -> str | None:
    """Why ocpg must not have a memory; None where it may.

    It puts all it has before its model, and knows neither expiry nor circles narrower than a project: what it must not
    show so stays here.
    """
    if memory.sensitivity is not Sensitivity.NORMAL:
        return f"it is {memory.sensitivity.value}"
    if memory.visibility is Visibility.SESSION:
        return "it is for one session only"
    if isinstance(memory.status, Deleted):
        return "it is forgotten"
    if memory.expires_at is not None:
        return "it expires, which ocpg does not know"
    return None


def label(text: str | None, *, max_chars: int = _LABEL_MAX_CHARS) -> str | None:
    """A name of a session or a tag, if it can be kept as it is; else None."""
    return None if text is None or len(text) > 2 * max_chars else _label(text, max_chars)


@lru_cache(maxsize=4096)  # thousands of rows share their tags and sessions, and looking for secrets takes its time
def _label(text: str, max_chars: int) -> str | None:
    try:
        return admit_label(text, field="label", max_chars=max_chars)
    except InputError:
        return None


def moment(microseconds: int) -> datetime:
    """The time that microseconds since 1970 tell, exactly."""
    return _EPOCH + timedelta(microseconds=microseconds)


def microseconds(time: datetime) -> int:
    """Microseconds since 1970, exactly."""
    return (time - _EPOCH) // timedelta(microseconds=1)
