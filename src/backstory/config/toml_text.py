"""Where things stand in the text of a TOML document: headers, names, values. What the document says is tomllib's."""

from __future__ import annotations

import re
import tomllib
from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass

_TEXT_OR_COMMENT = re.compile(
    r""""{3}(?>\\.|"{0,2}(?!")[^"\\]|"{1,2}(?!"))*+"{3}|\'{3}.*?\'{3}|"(?>\\.|[^"\\\n])*+"|\'[^\'\n]*+\'|\#[^\n]*+""",
    re.DOTALL,
)
_HEADER = re.compile(r"^\ufeff?[ \t]*\[(?P<array>\[)?(?P<name>[^\[\]\n]*)\]", re.MULTILINE)
_ENTRY = re.compile(r"^(?P<name>\ufeff?[ \t]*+[A-Za-z0-9_.\-][A-Za-z0-9_.\- \t]*+)=(?P<value>[^\n#]*)", re.MULTILINE)


@dataclass(frozen=True, slots=True, kw_only=True)
class Header:
    """A line in brackets: the parts of its name, where the line begins, and where the next header does, or the end."""

    name: tuple[str, ...]
    is_array: bool
    start: int
    end: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """A line that gives a name a value: the name from the root of the document, and where line and value stand.

    The value is without the blanks around it and the comment behind it; the line is with both, and its end.
    """

    name: tuple[str, ...]
    line: tuple[int, int]
    value: tuple[int, int]


def blanked(text: str) -> str:
    """The text with ``x`` for what stands in quotes and ``#`` for comments, so that no sign in them misleads."""
    return _TEXT_OR_COMMENT.sub(lambda found: ("#" if found[0][0] == "#" else "x") * len(found[0]), text)


def headers(text: str) -> list[Header]:
    """The headers in order. A name that cannot be read has no parts."""
    found = list(_HEADER.finditer(blanked(text)))
    starts = [*(header.start() for header in found), len(text)]
    return [
        Header(
            name=parts(text[header.start("name") : header.end("name")]),
            is_array=header["array"] is not None,
            start=header.start(),
            end=end,
        )
        for header, end in zip(found, starts[1:], strict=True)
    ]


def entries_in(text: str) -> Iterator[Entry]:
    """The entries in order, but for those of lists of tables and in braces."""
    plain, tables = blanked(text), headers(text)
    for found in _ENTRY.finditer(plain):
        at = bisect_right(tables, found.start(), key=lambda header: header.start)
        table = tables[at - 1] if at else None
        name = parts(text[found.start("name") : found.end("name")].lstrip("\ufeff"))
        if not name or (table is not None and table.is_array):
            continue
        end = plain.find("\n", found.end())
        value = found["value"]
        start = found.start("value") + len(value) - len(value.lstrip())
        yield Entry(
            name=(*(table.name if table else ()), *name),
            line=(found.start(), len(text) if end < 0 else end + 1),
            value=(start, found.start("value") + len(value.rstrip())),
        )


def parts(name: str) -> tuple[str, ...]:
    """The parts of a dotted name; a part in quotes may hold anything. There are none in what is no name."""
    try:
        found: object = tomllib.loads(f"[{name}]")
    except tomllib.TOMLDecodeError:
        return ()
    path: list[str] = []
    while isinstance(found, dict) and found:
        part, found = next(iter(found.items()))
        path.append(part)
    return tuple(path)
