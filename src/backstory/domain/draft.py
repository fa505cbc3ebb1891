"""What somebody wants remembered, before it is stored, and the memory that it becomes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta

from backstory.domain.admission import TextLimits, admit, admit_evidence, admit_label, admit_tags
from backstory.domain.capture import guess_kind
from backstory.domain.ids import MemoryId
from backstory.domain.labels import canonical_area
from backstory.domain.lifecycle import Revision
from backstory.domain.memory import Kind, Memory, Sensitivity, Source, Tier, Times, Visibility, starting_weight
from backstory.domain.provenance import Origin, Provenance
from backstory.domain.scope import Audience, Viewer
from backstory.domain.succession import succeed
from backstory.domain.truncation import truncate_chars
from backstory.errors import InputError

DEFAULT_TEMPORARY = timedelta(hours=24)
LONG_MEMORY_CHARS = 700  # above this, a memory is stored but the writer is told that blocks cut it
AREA_MAX_CHARS = 200
ISSUE_MAX_CHARS = 200
REASON_MAX_CHARS = 500


@dataclass(frozen=True, slots=True, kw_only=True)
class Draft:
    """What somebody wants remembered. ``key`` makes a repeated delivery of the same statement harmless.

    ``append`` stores it also where the same is known, as tools of older products do.
    """

    content: str
    kind: Kind | None = None
    visibility: Visibility | None = None
    area: str | None = None
    tags: Sequence[str] = ()
    issue: str | None = None
    tier: Tier | None = None
    expires_in: timedelta | None = None
    pinned: bool = False
    sensitivity: Sensitivity = Sensitivity.NORMAL
    supersedes: str | None = None
    origin: Origin
    source: Source = Source.EXPLICIT
    provenance: Provenance = field(default_factory=Provenance)
    key: str | None = None
    append: bool = False


def memory_from(draft: Draft, content: str, *, memory_id: MemoryId, viewer: Viewer, now: datetime) -> Memory:
    """The memory of a draft whose text was admitted as ``content``, with its place, labels and lifetime.

    Raises InputError for bad labels, a lifetime that is over, and a visibility that has no readers here.
    """
    tier = draft.tier or (Tier.TEMPORARY if draft.expires_in else Tier.ARCHIVAL)
    lifetime = draft.expires_in or (DEFAULT_TEMPORARY if tier is Tier.TEMPORARY else None)
    if lifetime is not None and lifetime <= timedelta(0):
        raise InputError(f"expires_in is {lifetime}; it must lie in the future", field="expires_in")
    visibility = draft.visibility or _default_visibility(viewer)
    _check_place(visibility, viewer)
    return Memory(
        id=memory_id,
        content=content,
        kind=draft.kind or guess_kind(content),
        visibility=visibility,
        project=viewer.project,
        session=viewer.session,
        area=_area(draft.area),
        tags=admit_tags(draft.tags),
        issue=_label(draft.issue, "issue", ISSUE_MAX_CHARS),
        tier=tier,
        pinned=draft.pinned,
        expires_at=now + lifetime if lifetime else None,
        sensitivity=draft.sensitivity,
        origin=draft.origin,
        source=draft.source,
        weight=starting_weight(draft.source),
        provenance=replace(draft.provenance, session=draft.provenance.session or viewer.session),
        times=Times(learned=now, updated=now, confirmed=now),
    )


def as_successor(memory: Memory, old: Memory, draft: Draft, *, now: datetime) -> Memory:
    """The memory of a draft that takes the place of ``old``, see ``succeed``."""
    return succeed(
        memory,
        old,
        visibility=draft.visibility,
        lifetime_named=draft.tier is not None or draft.expires_in is not None,
        otherwise_until=now + DEFAULT_TEMPORARY,
    )


def admitted_revision(revision: Revision, limits: TextLimits) -> Revision:
    """A revision fit to be stored. Raises InputError as ``admit`` does."""
    content = revision.content
    if content is not None:
        content = admit(content, field="content", limits=limits).text
    return replace(
        revision,
        content=content,
        area=_area(revision.area),
        issue=_label(revision.issue, "issue", ISSUE_MAX_CHARS),
        tags=None if revision.tags is None else admit_tags(revision.tags),
    )


def moved(memory: Memory, viewer: Viewer) -> Memory:
    """A memory whose visibility was changed from here: it belongs here now, or its readers would be nobody."""
    _check_place(memory.visibility, viewer)
    match memory.visibility:
        case Visibility.GLOBAL:
            return memory
        case Visibility.PROJECT:
            return replace(memory, project=viewer.project)
        case Visibility.SESSION:
            return replace(memory, project=viewer.project, session=viewer.session)


def notes_on(memory: Memory, secrets: Sequence[str], *, private_removed: bool) -> tuple[str, ...]:
    """What the writer should know: what was masked or left out, and that a text is long."""
    notes = []
    if secrets:
        notes.append(f"masked before storing: {', '.join(dict.fromkeys(secrets))}")
    if private_removed:
        notes.append("private text was left out")
    if len(memory.content) > LONG_MEMORY_CHARS:
        notes.append(
            f"{len(memory.content)} characters are long for one memory: blocks show the first 600; "
            "consider several shorter ones"
        )
    return tuple(notes)


def as_reason(text: str | None) -> str | None:
    """A reason on one line, its secrets masked, cut to its limit: no change fails because of how it is explained."""
    line = "" if text is None else " ".join(admit_evidence(text).split())
    return truncate_chars(line, REASON_MAX_CHARS) or None


def _default_visibility(viewer: Viewer) -> Visibility:
    """A model that knows no project may speak of any: that a fact holds in all of them, it has to say."""
    if viewer.project is not None:
        return Visibility.PROJECT
    if viewer.audience is Audience.MODEL:
        raise InputError(
            "no project is known here", field="visibility", hint="give scope global if it holds in every project"
        )
    return Visibility.GLOBAL


def _check_place(visibility: Visibility, viewer: Viewer) -> None:
    if visibility is Visibility.PROJECT and viewer.project is None:
        raise InputError("visibility is project, but there is no project here; use global", field="visibility")
    if visibility is Visibility.SESSION and viewer.session is None:
        raise InputError("visibility is session, but there is no session here; use project", field="visibility")


def _area(text: str | None) -> str | None:
    return None if text is None else admit_label(canonical_area(text), field="area", max_chars=AREA_MAX_CHARS)


def _label(text: str | None, field_name: str, max_chars: int) -> str | None:
    return None if text is None else admit_label(text, field=field_name, max_chars=max_chars)
