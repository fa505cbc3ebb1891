"""The echo guard: what was put into a conversation by us, or by tools like us, is never taken for a person's words."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable

# Our own blocks by prefix, then those of the five systems whose data we take over, and the host's reminders.
_BLOCKS = (
    r"backstory-[a-z][a-z-]*|persistent-project-memory|memory|observations|current-task|suggested-response"
    r"|system-reminder"
)
_TAG = re.compile(rf"<(?P<close>/?)(?P<name>{_BLOCKS})(?:\s[^<>]*)?>", re.IGNORECASE)
_BULLET = re.compile(r"(?:[-*+•>]|\d{1,4}[.)])\s+")
_LINE_GAPS = re.compile(r"\n(?:[ \t]*+\n){2,}+")
_END_MARKS = ".,;:!。！，；"


def strip_injected(text: str) -> str:
    """Remove every injected block, tags and all; a block left open reaches to the end of the text.

    A block nested in another goes with it. A tag alone in inline code (`` `<memory>` ``) is a mention and stays, and so
    does a closing tag without an opening one. Text without blocks comes back unchanged; otherwise the blank lines
    around a removed block are folded and the ends trimmed. One pass, linear.
    """
    kept: list[str] = []
    start, depth, name = 0, 0, ""
    for tag in _TAG.finditer(text):
        if depth == 0:
            if tag["close"] or _is_mention(text, tag):
                continue
            kept.append(text[start : tag.start()])
            depth, name = 1, tag["name"].lower()
        elif tag["name"].lower() == name:
            depth += -1 if tag["close"] else 1
            start = tag.end()
    if not kept:
        return text
    if depth == 0:
        kept.append(text[start:])
    return _LINE_GAPS.sub("\n\n", _join(kept)).strip()


def _is_mention(text: str, tag: re.Match[str]) -> bool:
    return text[tag.start() - 1 : tag.start()] == "`" and text[tag.end() : tag.end() + 1] == "`"


def _join(pieces: list[str]) -> str:
    """Join what is left; a blank keeps two halves of a word, or of a tag, from growing together."""
    joined: list[str] = []
    for piece in filter(None, pieces):
        if joined and not (joined[-1][-1].isspace() or piece[0].isspace()):
            joined.append(" ")
        joined.append(piece)
    return "".join(joined)


def is_echo(text: str, injected: Iterable[str]) -> bool:
    """Whether ``text`` says just what one of the ``injected`` entries, or one line of them, says.

    Letter case, blanks, a list mark in front, punctuation at the end and Unicode form do not matter. A text without
    letters or digits echoes nothing.
    """
    wanted = _normal(text)
    if not any(char.isalnum() for char in wanted):
        return False
    return any(wanted == _normal(form) for entry in injected for form in (entry, *entry.splitlines()))


def _normal(text: str) -> str:
    folded = " ".join(unicodedata.normalize("NFKC", text).casefold().split())
    return _BULLET.sub("", folded, count=1).rstrip(_END_MARKS) if _BULLET.match(folded) else folded.rstrip(_END_MARKS)
