"""When a memory says what another says already, to the same readers, and what becomes of one that is said again."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime

from backstory.domain.admission import MAX_TAGS, admit_tags
from backstory.domain.lifecycle import confirm
from backstory.domain.memory import Memory, Tier, Visibility, status_at, status_name
from backstory.domain.provenance import Origin, is_injectable, trust
from backstory.domain.scope import Audience, Viewer
from backstory.domain.selection import CURRENT, Selection
from backstory.domain.statement_form import statement_form
from backstory.domain.worth import STATED


def is_current(memory: Memory, now: datetime) -> bool:
    """Whether a memory is believed: active or in conflict, and not expired."""
    return status_name(status_at(memory, now)) in CURRENT


def readers(memory: Memory) -> tuple[object, ...]:
    """Equal for memories that are for the same readers: everybody, a project or a session, at one sensitivity."""
    project = memory.project if memory.visibility is Visibility.PROJECT else None
    session = memory.session if memory.visibility is Visibility.SESSION else None
    return memory.visibility, project, session, memory.sensitivity


def for_same_readers(memory: Memory, now: datetime) -> Selection:
    """The current memories for just the readers of this one."""
    project = memory.project if memory.visibility is Visibility.PROJECT else None
    session = memory.session if memory.visibility is Visibility.SESSION else None
    return Selection(
        viewer=Viewer(project=project, session=session, audience=Audience.PERSON),
        now=now,
        visibility=memory.visibility,
        sensitivity=memory.sensitivity,
    )


def same_for_same_readers(memory: Memory, now: datetime) -> Selection:
    """The current memories with the text of this one for just its readers."""
    return replace(for_same_readers(memory, now), same_text=memory.content)


def but_for_its_full_stop(text: str) -> str | None:
    """The text without the full stop at its end, or with one; None where it ends in any other sign, which may count
    (`ruff check .`, `cd ..`, "is it?")."""
    said = text.rstrip()
    if said[-1:].isalnum():
        return f"{said}."
    return said[:-1] if said[-1:] == "." and said[-2:-1].isalnum() else None


def says_anew(before: Memory, after: Memory, now: datetime) -> bool:
    """Whether a change makes a memory say something current that it did not say to these readers before."""
    return is_current(after, now) and not (is_current(before, now) and _statement(before) == _statement(after))


def says_the_same(memory: Memory, updated: Memory) -> bool:
    """Whether an update changes nothing but when it was made, and how much the memory weighs."""
    return replace(updated, times=memory.times, weight=memory.weight) == memory


def said_again(known: Memory, new: Memory, *, now: datetime) -> Memory:
    """A known memory, confirmed: it gains the new labels and pin, the better origin and the longer life of the two, and
    counts as stated once somebody states it. Where the user says what was known from outside alone, labels, pin and
    lifetime are the user's, whatever a file had claimed of them."""
    confirmed = confirm(known, now=now)
    # only the user's own words raise an origin: an agent that repeats a web page does not make it trusted
    better = new.origin is Origin.USER and trust(new.origin) > trust(known.origin)
    origin = new.origin if better else known.origin
    if better and not is_injectable(known.origin):
        return replace(
            confirmed, origin=origin, source=new.source, tags=new.tags, area=new.area, issue=new.issue,
            pinned=new.pinned, tier=new.tier, expires_at=new.expires_at,
        )  # fmt: skip
    stays = known.expires_at is None or new.expires_at is None
    expires = None if stays else max(filter(None, (confirmed.expires_at, new.expires_at)))
    return replace(
        confirmed,
        origin=origin,
        source=new.source if new.source in STATED else known.source,
        tags=admit_tags(tuple(dict.fromkeys((*known.tags, *new.tags)))[:MAX_TAGS]),
        area=known.area or new.area,
        issue=known.issue or new.issue,
        pinned=known.pinned or new.pinned,
        tier=_tier_of_both(known, new, origin),
        expires_at=expires,
    )


def _tier_of_both(known: Memory, new: Memory, origin: Origin) -> Tier:
    """The stronger tier; what nobody here vouches for does not become core by being repeated."""
    if new.tier is Tier.CORE and not is_injectable(origin):
        return Tier.ARCHIVAL if known.tier is Tier.TEMPORARY else known.tier
    return new.tier if known.tier is Tier.TEMPORARY or new.tier is Tier.CORE else known.tier


def _statement(memory: Memory) -> tuple[object, ...]:
    return statement_form(memory.content), *readers(memory)
