"""What of a store of opencode-memory has no place among memories, as keepsakes: its head, summary and state, and the
order of its entries."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from datetime import datetime

from backstory.adapters.formats.opencode_memory.entries import NAME, moment
from backstory.adapters.formats.opencode_memory.json_text import Json
from backstory.domain.interchange import Keepsake

STORE, STATE, SUMMARY = "store.json", "state.json", "SUMMARY.md"
VERSIONS = (1, 2)
_ORDER, _QUIET, _STATE_KEY, _PAGE_KEY, _HEAD = "order", "quiet", "state", "summary-page", "head"
_NO_SUMMARY = "_No summary yet — it is generated after the first consolidation._"


@dataclass(slots=True)
class Kept:
    """What was kept of a store. ``head`` is all of ``store.json`` but its entries, in its order; ``order`` the ids
    of its entries; ``quiet`` those whose absence does not mean that they were forgotten: an export may leave them out.
    ``state`` is the text of ``state.json``. ``page`` is that of ``SUMMARY.md`` where somebody wrote into it; empty
    where there was none, None where it says what the store says."""

    head: dict[str, Json] = field(default_factory=lambda: {"version": 2, "summary": "", "updatedAt": 0, "entries": []})
    order: list[str] = field(default_factory=list)
    quiet: list[str] = field(default_factory=list)
    state: str | None = None
    page: str | None = None
    is_new: bool = True

    @property
    def version(self) -> int:
        """The version of its layout."""
        version = self.head.get("version")
        return version if version in VERSIONS and isinstance(version, int) else 2


def kept_records(kept: Kept, store: str) -> Iterator[Keepsake]:
    """The keepsakes of a store."""
    values = {_HEAD: kept.head, _ORDER: kept.order, _QUIET: kept.quiet, _STATE_KEY: kept.state, _PAGE_KEY: kept.page}
    for key, value in values.items():
        if value is not None:
            yield Keepsake(format=NAME, store=store, key=key, text=json.dumps(value, ensure_ascii=False))


def kept_of(keepsakes: Iterable[Keepsake]) -> Kept:
    """What the keepsakes of a store say. One that is no longer what it was counts as not there."""
    values = {keepsake.key: json.loads(keepsake.text) for keepsake in keepsakes}
    kept = Kept(is_new=not values)
    head = values.get(_HEAD)
    if isinstance(head, dict):
        kept.head = head | {"entries": []}
    for name in (_ORDER, _QUIET):
        if isinstance(values.get(name), list):
            setattr(kept, name, [id_ for id_ in values[name] if isinstance(id_, str)])
    kept.state = values[_STATE_KEY] if isinstance(values.get(_STATE_KEY), str) else None
    kept.page = values[_PAGE_KEY] if isinstance(values.get(_PAGE_KEY), str) else None
    return kept


def page_of(head: dict[str, Json]) -> str:
    """The text of ``SUMMARY.md`` for a store."""
    summary = head.get("summary")
    told = summary if isinstance(summary, str) and summary else _NO_SUMMARY
    return f"# opencode memory summary\n\nUpdated: {_iso(moment(head.get('updatedAt')))}\n\n{told}\n"


def _iso(time: datetime | None) -> str:
    if time is None:
        return "1970-01-01T00:00:00.000Z"
    return f"{time:%Y-%m-%dT%H:%M:%S}.{time.microsecond // 1000:03}Z"
