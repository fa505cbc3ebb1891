"""The sentence of a message that a memory comes from."""

from __future__ import annotations

import re

from backstory.domain.text import analyse_query

_SENTENCE_END = re.compile(r"(?<=[.!?。！？])\s+|\n+")
_READ_CHARS = 20_000
_MOST_CHARS = 400


def sentence_about(text: str, content: str) -> str | None:
    """The sentence that shares most of the telling words of ``content``, the first of several; None where none shares
    any. At most 400 characters, on one line."""
    wanted = {term.token for term in analyse_query(content)}
    best, most = None, 0
    for sentence in _SENTENCE_END.split(text[:_READ_CHARS]):
        shared = len(wanted & {term.token for term in analyse_query(sentence)})
        if shared > most:
            best, most = sentence, shared
    if best is None:
        return None
    line = " ".join(best.split())
    return line if len(line) <= _MOST_CHARS else line[: _MOST_CHARS - 1] + "…"
