"""Rows of ocpg as a source tells them, texts by column: read into ``OcpgRow``, and what had to be left out.

Where they come from is ``reader.py``; what a memory makes of them ``rows.py``.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import UTC, datetime

from backstory.adapters.formats.ocpg.rows import SYSTEM, OcpgRow, moment, tags_of
from backstory.adapters.formats.ocpg.values import array_of, array_text, exact_time_text, time_of
from backstory.domain.admission import MAX_TAGS
from backstory.domain.ids import MemoryId
from backstory.domain.interchange import foreign_id

NOT_DATED = datetime(1970, 1, 1, tzinfo=UTC)
"""Stands for the date of a row that has none: it is older than any that has one."""
_WHOLE = re.compile("-?[0-9]{1,18}", re.ASCII)
_OWN_PLACES = ("id", "content", "search_vector", "embedding", "superseded_by")
_MOST = 1 << 53

Values = Mapping[str, str | None]


def row_of(id_: int, content: str, values: Values) -> tuple[OcpgRow, list[str]]:
    """A row, and what had to be left out of it."""
    remarks = []
    tags: list[str] = []
    try:
        tags = [tag for tag in array_of(values.get("tags") or "{}") if tag is not None]
    except ValueError:
        remarks.append("its tags cannot be read, and are left out")
    if len(tags) > MAX_TAGS and len(kept := tags_of(tags)) > MAX_TAGS:
        remarks.append(f"it has {len(kept)} tags; the first {MAX_TAGS} are taken")
        tags = list(kept[:MAX_TAGS])
    created = time_of(values.get("created_at"))
    if created is None:
        remarks.append("it has no date that can be read, and counts as older than all that have one")
    count = integer(values.get("access_count"))
    row = OcpgRow(
        id=id_,
        content=content,
        tags=tuple(tags),
        session=values.get("session_id"),
        project=values.get("project"),
        type=values.get("memory_type"),
        created=created,
        updated=time_of(values.get("updated_at")),
        accessed=time_of(values.get("last_accessed_at")),
        access_count=min(max(count or 0, 0), _MOST),
        by=integer(values.get("superseded_by")),
        by_created=None,
        host=values.get("source_host"),
    )
    return row, remarks


def raw_of(row: OcpgRow, values: Values) -> dict[str, str]:
    """What a row says that the memory does not say in the same words; and when it was changed there last."""
    told = {
        "tags": array_text(tags_of(row.tags)),
        "session_id": row.session,
        "created_at": None if row.created is None else exact_time_text(row.created),
        "last_accessed_at": None if row.accessed is None else exact_time_text(row.accessed),
        "access_count": str(row.access_count),
    }
    return {
        name: value
        for name, value in values.items()
        if value is not None and name not in _OWN_PLACES and told.get(name) != value
    }


def memory_id(id_: int, created: int | None) -> MemoryId:
    learned = NOT_DATED if created is None else moment(created)
    return foreign_id(SYSTEM, (str(id_), "" if created is None else str(created)), learned=learned)


def integer(text: str | None) -> int | None:
    return int(text) if text is not None and _WHOLE.fullmatch(text.strip()) else None
