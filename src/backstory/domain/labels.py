"""In which form tags and areas are kept and looked for. What a label may hold is in ``admission.py``."""

from __future__ import annotations

import unicodedata


def canonical_tag(text: str) -> str:
    """A tag as it is kept: composed (NFC), without blanks around it."""
    return unicodedata.normalize("NFC", text).strip()


def canonical_area(text: str) -> str:
    """An area as it is kept: composed, its steps joined by single slashes, none at the ends. Empty without any step."""
    steps = (step.strip() for step in unicodedata.normalize("NFC", text).split("/"))
    return "/".join(step for step in steps if step)
