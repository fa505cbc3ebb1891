"""Records of a CSV file as Postgres writes it: what is quoted is a text, nothing at all is NULL."""

from __future__ import annotations

import re
from collections.abc import Generator, Iterator

_RECORD = re.compile(r'(?:[^"\n]*+(?:"[^"]*+")*+)*+\n')
_FIELD = re.compile(r'(?:"((?:[^"]++|"")*+)"|([^",]*+))(,|\Z)')
_SIGN = re.compile(r'["\n]')

Record = list[str | None]


def records(pieces: Iterator[str], *, at_most: int) -> Iterator[Record | None]:
    """The records of a file; None for one that is no CSV, or has more than ``at_most`` characters."""
    for text in _texts(pieces, at_most=at_most):
        if text is None:
            yield None
        elif text:
            yield _fields(text)


def _texts(pieces: Iterator[str], *, at_most: int) -> Iterator[str | None]:
    buffer, wanted = "", 1
    for piece in pieces:
        buffer += piece
        if len(buffer) < wanted:
            continue
        buffer = yield from _whole(buffer, at_most=at_most)
        wanted = 2 * len(buffer)  # so that a long record is looked at a few times only
        if len(buffer) > at_most:
            yield None
            buffer, wanted = _after_this_record(buffer, pieces), 1
    buffer = yield from _whole(buffer + "\n", at_most=at_most)
    if buffer:
        yield None  # cut inside a text


def _whole(buffer: str, *, at_most: int) -> Generator[str | None, None, str]:
    """The records that end in a buffer. Returns what is left of it."""
    position = 0
    while (match := _RECORD.match(buffer, position)) is not None:
        position = match.end()
        yield None if len(match[0]) > at_most else match[0][:-1].removesuffix("\r")
    return buffer[position:]


def _after_this_record(buffer: str, pieces: Iterator[str]) -> str:
    """Pass over the rest of a record; what follows it."""
    is_quoted = False
    while True:
        for sign in _SIGN.finditer(buffer):
            if sign[0] == '"':
                is_quoted = not is_quoted
            elif not is_quoted:
                return buffer[sign.end() :]
        following = next(pieces, None)
        if following is None:
            return ""
        buffer = following


def _fields(text: str) -> Record | None:
    fields: Record = []
    position, has_more = 0, True
    while has_more:
        match = _FIELD.match(text, position)
        if match is None:
            return None
        quoted, bare, end = match.groups()
        fields.append(quoted.replace('""', '"') if quoted is not None else bare or None)
        position, has_more = match.end(), end == ","
    return fields if position == len(text) else None
