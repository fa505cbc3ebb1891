"""What Postgres can hold of what a host tells. Memories with the same faults are refused, in ``texts.py``."""

from __future__ import annotations

import re
from typing import Any

_UNSTORABLE = re.compile("[\x00\ud800-\udfff]")


def storable(*values: Any) -> tuple[Any, ...]:
    """Parameters of a statement, with U+FFFD for what no text in Postgres can hold: NUL, and half a character.

    Evidence is never refused for one. It is asked for by the same rule, so that an id with a NUL is found again.
    """
    return tuple(_UNSTORABLE.sub("\ufffd", value) if isinstance(value, str) else value for value in values)
