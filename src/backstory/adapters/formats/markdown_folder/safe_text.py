"""Text that cannot be anything but text in Markdown and in its front matter, whatever stands in it."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence

_SPECIAL = re.compile(r"([\\`*_{}\[\]()#+\-.!|~<>&$:@^=\"'])")
# One line that begins with a letter and has no sign that Markdown or HTML gives a meaning: it may stand as it is.
_PROSE = re.compile(r"[^\W\d_](?:[^\W_]|(?<=[^\W_])_(?=[^\W_])|[ .,;:!?'\"()/%+=-])*")
_TICKS = re.compile("`+")
_SLUG_CHARS = 60
_RESERVED = re.compile(r"con|prn|aux|nul|com\d|lpt\d", re.IGNORECASE)  # no file of these names on Windows


def block(text: str) -> str:
    """A text of somebody else's as a block of its own: a quotation where it is one plain line, otherwise as code, whose
    fence is longer than any in the text."""
    if _PROSE.fullmatch(text) and "://" not in text:
        return f"> {text}"
    fence = "`" * max(3, 1 + max((len(ticks) for ticks in _TICKS.findall(text)), default=0))
    return f"{fence}text\n{text}\n{fence}"


def inline(text: str) -> str:
    """A name or label within a line: every sign with a meaning escaped, line breaks as blanks."""
    line = " ".join("".join(char if char.isprintable() else " " for char in text).split())
    return _SPECIAL.sub(r"\\\1", line)


def quoted(text: str) -> str:
    """A text as a YAML value, in double quotes."""
    return '"' + "".join(_yaml(char) for char in text) + '"'


def listed(texts: Sequence[str]) -> str:
    """Texts as a YAML list on one line."""
    return "[" + ", ".join(quoted(text) for text in texts) + "]"


def slug(text: str, *, otherwise: str) -> str:
    """A text as a file's name: letters, digits and hyphens, at most 60 of them; ``otherwise`` where none is left."""
    composed = unicodedata.normalize("NFKC", text).casefold()
    name = "-".join(re.findall(r"[^\W_]+", composed))[:_SLUG_CHARS].strip("-")
    return f"{name}-" if _RESERVED.fullmatch(name) else name or otherwise


def _yaml(char: str) -> str:
    if char in '"\\':
        return f"\\{char}"
    if char.isprintable():
        return char
    return f"\\u{ord(char):04x}" if ord(char) < 0x10000 else f"\\U{ord(char):08x}"
