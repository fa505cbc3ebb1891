"""Values as Postgres writes them in text: times, arrays, and fields of COPY; and values as literals of SQL."""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta, timezone

from backstory.adapters.formats.ocpg.rows import microseconds, moment

_TIME = re.compile(
    r"(\d{4})-(\d\d)-(\d\d)(?:[ T](\d\d):(\d\d)(?::(\d\d)(?:\.(\d{1,6})\d*)?)?)?"
    r"\s?(?:(Z)|([+-])(\d\d)(?::?(\d\d))?(?::?(\d\d))?)?",
    re.ASCII,
)
_LAST_YEAR = 9997  # so that every zone of a time is within the calendar
_ELEMENT = re.compile(r'\s*(?:"((?:[^"\\]|\\.)*+)"|((?:[^",{}\\]|\\.)++))\s*(,|\}$)', re.DOTALL)
_ESCAPED = re.compile(r"\\(.)", re.DOTALL)
_NEEDS_QUOTES = re.compile(r'[\s"\\{},]')
_IN_COPY = re.compile(r"\\(?:([0-7]{1,3})|x([0-9A-Fa-f]{1,2})|(.))", re.DOTALL)
_COPY_LETTERS = {"b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v"}
_COPY_SIGNS = str.maketrans({sign: f"\\{letter}" for letter, sign in _COPY_LETTERS.items()} | {"\\": "\\\\"})


def time_of(text: str | None) -> int | None:
    """Microseconds since 1970; None for what is no time, before 1970, or past every calendar. No zone is UTC."""
    match = None if text is None else _TIME.fullmatch(text.strip())
    if match is None:
        return None
    year, month, day, hour, minute, second, fraction, _, sign, *offset = match.groups()
    hours, minutes, seconds = (int(part or 0) for part in offset)
    zone = timedelta(hours=hours, minutes=minutes, seconds=seconds) * (-1 if sign == "-" else 1)
    try:
        written = datetime(
            int(year), int(month), int(day), int(hour or 0), int(minute or 0), int(second or 0),
            int((fraction or "").ljust(6, "0")), tzinfo=timezone(zone) if zone else UTC,
        )  # fmt: skip
    except ValueError:
        return None
    return microseconds(written) if 1970 <= written.year <= _LAST_YEAR and microseconds(written) >= 0 else None


def time_text(time: datetime) -> str:
    """A time as Postgres shows it where the zone is UTC: ``2026-01-05 09:00:00.5+00``."""
    plain = time.astimezone(UTC).replace(tzinfo=None)
    fraction = f".{plain.microsecond:06}".rstrip("0") if plain.microsecond else ""
    return f"{plain.replace(microsecond=0).isoformat(sep=' ')}{fraction}+00"


def exact_time_text(time: int) -> str:
    """The same, of microseconds since 1970."""
    return time_text(moment(time))


def array_of(text: str) -> list[str | None]:
    """The elements of a one-dimensional array of text. Raises ValueError for anything else."""
    body = text.strip()
    if not body.startswith("{") or not body.endswith("}"):
        raise ValueError("no array")
    if not body[1:-1].strip():
        return []
    elements: list[str | None] = []
    position = 1
    while True:
        match = _ELEMENT.match(body, position)
        if match is None:
            raise ValueError("no array of texts")
        quoted, bare, following = match.groups()
        elements.append(_element(quoted, bare))
        if following != ",":
            return elements
        position = match.end()


def _element(quoted: str | None, bare: str | None) -> str | None:
    if quoted is not None:
        return _ESCAPED.sub(r"\1", quoted)
    assert bare is not None
    word = bare.rstrip()
    return None if word.upper() == "NULL" else _ESCAPED.sub(r"\1", word)


def array_text(elements: Sequence[str]) -> str:
    """An array of text as Postgres shows it."""
    return "{" + ",".join(map(_quoted_element, elements)) + "}"


def _quoted_element(element: str) -> str:
    if element and element.upper() != "NULL" and not _NEEDS_QUOTES.search(element):
        return element
    escaped = element.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


def copy_value(field: str) -> str | None:
    """What a field of COPY's text format says. Bytes that it names by number count as UTF-8."""
    if field == r"\N":
        return None
    if "\\" not in field:
        return field
    value = _IN_COPY.sub(_unescaped, field)
    return value.encode("utf-8", "surrogateescape").decode("utf-8", "surrogateescape") if "\\" in field else value


def _unescaped(match: re.Match[str]) -> str:
    octal, hexadecimal, letter = match.groups()
    if letter is not None:
        return _COPY_LETTERS.get(letter, letter)
    code = int(octal, 8) & 0xFF if octal is not None else int(hexadecimal, 16)
    return chr(code) if code < 0x80 else chr(0xDC00 + code)


def copy_text(value: str | None) -> str:
    """A field of COPY's text format."""
    return r"\N" if value is None else value.translate(_COPY_SIGNS)


def literal(value: str | None) -> str:
    """A literal of SQL, for a server with standard strings."""
    if value is None:
        return "NULL"
    doubled = value.replace("'", "''")
    return f"'{doubled}'"


def csv_text(value: str | None) -> str:
    """A field of Postgres's CSV: nothing is NULL, an empty text is in quotes."""
    if value is None:
        return ""
    if value and not re.search('[",\r\n]', value) and value != r"\.":
        return value
    doubled = value.replace('"', '""')
    return f'"{doubled}"'
