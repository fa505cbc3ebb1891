"""JSON as JavaScript's ``JSON.stringify`` writes it, for files that are to be the same byte for byte."""

from __future__ import annotations

import json
import re

_HALF = re.compile("[\ud800-\udfff]")


def stringify(value: object, *, indent: int | None = None) -> str:
    """The text of a value. ``indent`` is the width of a step; None writes it on one line without blanks."""
    separators = (",", ":") if indent is None else None
    text = json.dumps(value, indent=indent, separators=separators, ensure_ascii=False)
    return _HALF.sub(lambda half: f"\\u{ord(half[0]):04x}", text)
