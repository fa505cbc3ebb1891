"""Where a memory comes from and how far it may be trusted. Showing it to people is ``services/inspection.py``."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from types import MappingProxyType

from backstory.domain.ids import MemoryId, MessageId, SessionId


class Origin(StrEnum):
    """Who or what first said it. Stamped by the adapter that took it in, never read from the text itself."""

    USER = "user"
    AGENT = "agent"
    TOOL = "tool"
    FILE = "file"
    WEB = "web"
    IMPORTED = "imported"
    PEER = "peer"


_TRUST = {
    Origin.USER: 3,
    Origin.AGENT: 2,
    Origin.IMPORTED: 1,
    Origin.PEER: 1,
    Origin.TOOL: 0,
    Origin.FILE: 0,
    Origin.WEB: 0,
}


def trust(origin: Origin) -> int:
    """Rank of an origin, 0 (outside text) to 3 (the user's own words); only the order has meaning."""
    return _TRUST[origin]


def is_injectable(origin: Origin) -> bool:
    """Whether text of this origin may be put in front of a model unasked: ``agent`` and above."""
    return trust(origin) >= trust(Origin.AGENT)


def may_supersede(new: Origin, old: Origin) -> bool:
    """Whether a statement of origin ``new`` may replace one of origin ``old``.

    Text below ``agent`` never replaces what the user said; otherwise anyone the user works with may correct it.
    """
    return not (old is Origin.USER and trust(new) < trust(Origin.AGENT))


def lowest(origins: Iterable[Origin]) -> Origin:
    """The least trusted of several origins: what derived text inherits. Empty input counts as ``imported``."""
    return min(origins, key=lambda origin: (trust(origin), origin.value), default=Origin.IMPORTED)


def _nothing() -> Mapping[str, str]:
    return MappingProxyType({})


@dataclass(frozen=True, slots=True, kw_only=True)
class Provenance:
    """The evidence behind a memory. Everything is optional: old stores know little.

    ``origin_system`` and ``origin_id`` name the record in the store it was imported from; ``raw`` keeps that store's
    fields that have no place here, so that an export in its format loses nothing. ``derived_from`` are the memories it
    was made from, where it was: when one of them is replaced or goes, it has to be looked at again.
    """

    session: SessionId | None = None
    messages: tuple[MessageId, ...] = ()
    derived_from: tuple[MemoryId, ...] = ()
    tool: str | None = None
    agent: str | None = None
    extracted_at: datetime | None = None
    origin_system: str | None = None
    origin_id: str | None = None
    raw: Mapping[str, str] = field(default_factory=_nothing)
