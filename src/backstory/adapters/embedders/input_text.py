"""What every embedder does to a text before a model sees it. Tokenising is the model's own matter."""

from __future__ import annotations

import re

_UNSENDABLE = re.compile("[\x00\ud800-\udfff]")


def clean(text: str, *, max_chars: int) -> str | None:
    """The text without NUL and lone surrogates, without space around it, and cut to ``max_chars``.

    None if nothing remains: such a text has no meaning to embed. Surrogates cannot be written as UTF-8, and NUL ends
    a string in too many servers.
    """
    return _UNSENDABLE.sub("", text).strip()[:max_chars].rstrip() or None
