"""Reading JSON with comments and trailing commas, as OpenCode's settings are written. Nothing is ever written back."""

from __future__ import annotations

import json
import re

# Atomic throughout: a document made to be slow takes no longer than any other of its size.
_COMMENT = r"//[^\n]*+|/\*(?>.*?\*/|.*)"
_PIECE = re.compile(
    rf"""
      (?P<string> "(?>[^"\\\n]|\\.)*+" )
    | (?P<comment> {_COMMENT} )
    | (?P<comma> ,(?= (?>\s++|{_COMMENT})*+ [\]}}] ) )
    """,
    re.VERBOSE | re.DOTALL,
)


def loads(text: str) -> object:
    """The value of a JSONC document. A byte-order mark is ignored; an empty document is None.

    Raises ValueError, saying line and column but quoting nothing: configurations hold keys.
    """
    plain = _PIECE.sub(_without, text.removeprefix("\ufeff"))
    if not plain.strip():
        return None
    try:
        value: object = json.loads(plain)
    except json.JSONDecodeError as error:
        raise ValueError(f"line {error.lineno}, column {error.colno}: {error.msg}") from None
    except RecursionError:
        raise ValueError("nested too deeply") from None
    return value


def _without(match: re.Match[str]) -> str:
    """Strings stay; comments and trailing commas become blanks, so that lines and columns remain true."""
    if match.lastgroup == "string":
        return match.group()
    return re.sub(r"[^\n]", " ", match.group())
