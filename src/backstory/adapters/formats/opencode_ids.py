"""What OpenCode's ids tell: when a session or a message was made. Stores that keep its ids keep no other times."""

from __future__ import annotations

import re
from datetime import UTC, datetime

_ID = re.compile(r"(ses|msg|prt)_([0-9a-f]{12})[0-9A-Za-z]{4,20}", re.ASCII)
_COUNTED = 0x1000  # ids of one millisecond
_ROUND_MS = (1 << 48) // _COUNTED  # 12 digits hold no more: about 2.2 years, then they begin anew


def is_opencode_id(text: str, kind: str) -> bool:
    """Whether a text has the form of an id of that kind (``ses``, ``msg``, ``prt``)."""
    found = _ID.fullmatch(text)
    return found is not None and found[1] == kind


def time_of_id(text: str, *, before: datetime) -> datetime | None:
    """When what has this id was made, if the id tells: the last moment before ``before`` at which it can have been.

    Sessions count down, so that the newest stands first in a list; everything else counts up.
    """
    found = _ID.fullmatch(text)
    if found is None:
        return None
    counted = int(found[2], 16)
    if found[1] == "ses":
        counted = (1 << 48) - 1 - counted
    latest = int(before.timestamp() * 1000)
    moment = latest - (latest - counted // _COUNTED) % _ROUND_MS
    return datetime.fromtimestamp(moment / 1000, UTC) if moment > 0 else None
