"""Memories as JSON lines: a header line, then one memory a line. The format is docs/reference/jsonl-format.md."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime

from backstory.codecs.record import decode_memory, encode_memory, format_time
from backstory.domain.ids import ProjectId
from backstory.domain.memory import Memory
from backstory.domain.project import Project
from backstory.errors import InputError

FORMAT = "backstory-memories"
VERSION = 1
MAX_LINE_CHARS = 4_000_000

# Signs that other readers take for the end of a line, and halves of characters, which no file in UTF-8 can hold.
_ESCAPED = "[\u0085\u2028\u2029\ud800-\udfff]"

_GLUED = re.compile(r"\}\s*+\{")


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """One memory read from a file, with the name of its project there, or what is wrong with the line."""

    number: int
    memory: Memory | None = None
    project_name: str | None = None
    error: str | None = None


def encode_lines(
    memories: Iterable[Memory], *, projects: Mapping[ProjectId, Project], exported_at: datetime
) -> Iterator[str]:
    """The lines of an export, without line ends."""
    yield json.dumps({"format": FORMAT, "version": VERSION, "exported_at": format_time(exported_at)})
    for memory in memories:
        owner = projects.get(memory.project) if memory.project else None
        record = encode_memory(memory) | ({"project_name": owner.name} if owner else {})
        yield re.sub(_ESCAPED, _escape, json.dumps(record, ensure_ascii=False))


def _escape(char: re.Match[str]) -> str:
    return f"\\u{ord(char.group()):04x}"


def decode_lines(lines: Iterable[str]) -> Iterator[Line]:
    """Read an export line by line; a bad line is reported as such and does not stop the others.

    Empty lines, and the mark some editors put at the start of a file (U+FEFF), do not matter. A line that holds half a
    character (a lone surrogate) is bad: no store could keep it. Of records that stand glued together on one line, each
    is read, and the line is reported as well.

    Raises InputError when the first line is not the header of a version known here.
    """
    numbered = ((number, line.strip()) for number, line in enumerate(lines, start=1))
    content = ((number, line) for number, line in numbered if line)
    _check_header(next(content, (1, "")))
    for number, line in content:
        records = list(_separated(line))
        yield from (_decode_line(number, record) for record in records)
        if len(records) > 1:
            yield Line(number=number, error=f"{len(records)} records stand on one line; each was read")


def _separated(line: str) -> Iterator[str]:
    """The records of a line: one, except where a line end was lost between two. What is no record stays in one piece
    with all that comes after it."""
    if len(line) > MAX_LINE_CHARS or not _GLUED.search(line):
        yield line
        return
    decoder, start = json.JSONDecoder(), 0
    while start < len(line):
        try:
            _, end = decoder.raw_decode(line, start)
        except (ValueError, RecursionError):
            break
        yield line[start:end]
        start = _blanks_end(line, end)
    if start < len(line):
        yield line[start:]


def _blanks_end(line: str, start: int) -> int:
    while start < len(line) and line[start].isspace():
        start += 1
    return start


def _check_header(first: tuple[int, str]) -> None:
    try:
        header = json.loads(first[1].removeprefix("\ufeff"))
    except (ValueError, RecursionError):
        header = None
    if not isinstance(header, dict) or header.get("format") != FORMAT:
        raise InputError(f"this is not an export of Backstory: its first line must name the format {FORMAT!r}",
                         field="file")  # fmt: skip
    if header.get("version") != VERSION:
        raise InputError(f"the file has format version {header.get('version')!r}; known is {VERSION}", field="file")


def _decode_line(number: int, line: str) -> Line:
    if len(line) > MAX_LINE_CHARS:
        return Line(number=number, error=f"{len(line)} characters; a line has at most {MAX_LINE_CHARS}")
    try:
        record = json.loads(line)
    except (ValueError, RecursionError) as error:
        return Line(number=number, error=f"not JSON: {error}")
    if not isinstance(record, dict):
        return Line(number=number, error="not an object")
    name = record.pop("project_name", None)
    if _is_unfit(record):
        return Line(number=number, error="holds half a character (a lone surrogate), or is nested too deeply")
    try:
        memory = decode_memory(record)
    except InputError as error:
        return Line(number=number, error=str(error))
    return Line(number=number, memory=memory, project_name=name if isinstance(name, str) else None)


def _is_unfit(record: object) -> bool:
    try:
        json.dumps(record, ensure_ascii=False).encode()
    except (UnicodeEncodeError, RecursionError):
        return True
    return False
