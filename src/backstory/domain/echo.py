"""The echo guard: what was put into a conversation by us, or by tools like us, is never taken for a person's words."""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Iterable, Iterator

_OURS = "backstory-"
# Ours by prefix, then those of the five systems whose data we take over, and the host's reminders.
_BLOCKS = (
    rf"{_OURS}[a-z][a-z-]*|persistent-project-memory|memory|observations|current-task|suggested-response"
    r"|system-reminder"
)
_TAG = re.compile(rf"<(?P<close>/?)(?P<name>{_BLOCKS})(?:\s[^<>]*)?>", re.IGNORECASE)
_BULLET = re.compile(r"(?:[-*+•>]|\d{1,4}[.)])\s+")
_LINE_GAPS = re.compile(r"\n(?:[ \t]*+\n){2,}+")
_END_MARKS = ".,;:!。！，；"


def strip_injected(text: str) -> str:
    """Remove every injected block, tags and all.

    A block nested in another goes with it. A block of ours left open reaches to the end of the text; another's tag left
    open is a word like others and stays, and so do a closing tag without an opening one, and a tag alone in inline code
    (`` `<memory>` ``). Text without blocks comes back unchanged; otherwise the blank lines around a removed block are
    folded and the ends trimmed. One pass, linear.
    """
    kept: list[str] = []
    done = 0
    for start, end in sorted(_blocks(text)):
        if start >= done:  # else it lies in the one before
            kept.append(text[done:start])
            done = end
    if not kept:
        return text
    kept.append(text[done:])
    return _LINE_GAPS.sub("\n\n", _join(kept)).strip()


def _blocks(text: str) -> Iterator[tuple[int, int]]:
    """Where blocks begin and end. A closing tag closes the nearest open one of its name, and all opened since."""
    opened: list[tuple[str, int]] = []
    depth: Counter[str] = Counter()
    for tag in _TAG.finditer(text):
        name = tag["name"].lower()
        if not tag["close"]:
            if not _is_mention(text, tag):
                opened.append((name, tag.start()))
                depth[name] += 1
            continue
        while depth[name]:
            inner, start = opened.pop()
            depth[inner] -= 1
            if inner == name:
                yield start, tag.end()
                break
    yield from ((start, len(text)) for name, start in opened if name.startswith(_OURS))


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
