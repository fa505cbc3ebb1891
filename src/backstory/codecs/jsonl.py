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
"""Of a file that holds memories alone."""
WHOLE_VERSION = 2
"""Of a file that may hold everything: sessions, digests, history (``jsonl_records.py``)."""
MAX_LINE_CHARS = 4_000_000

# Signs that other readers take for the end of a line, and halves of characters, which no file in UTF-8 can hold.
_ESCAPED = "[\u0085\u2028\u2029\ud800-\udfff]"

_HALF = re.compile("[\ud800-\udfff]")
_HALF_ESCAPED = re.compile(r"\\u[dD][89a-fA-F]")
_NESTED = 200  # openings of lists and objects; fewer are nested no deeper than that

_GLUED = re.compile(r"\}\s*+\{")


@dataclass(frozen=True, slots=True, kw_only=True)
class Header:
    """The first line of a file. ``places`` says where its projects are: the folder, or the name."""

    version: int
    places: Mapping[ProjectId, str]


@dataclass(frozen=True, slots=True)
class BadLine:
    """A line that whoever reads the file could not make a text of, and why."""

    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """One object of a file, or what is wrong with a line."""

    number: int
    record: dict[str, object] | None = None
    error: str | None = None


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
        yield encode_line(record)


def encode_line(record: Mapping[str, object]) -> str:
    """One object as a line that every reader takes for one line."""
    return re.sub(_ESCAPED, _escape, json.dumps(record, ensure_ascii=False))


def _escape(char: re.Match[str]) -> str:
    return f"\\u{ord(char.group()):04x}"


def decode_lines(lines: Iterable[str | BadLine]) -> Iterator[Line]:
    """Read an export line by line; a bad line is reported as such and does not stop the others.

    Empty lines, and the mark some editors put at the start of a file (U+FEFF), do not matter. A line that holds half a
    character (a lone surrogate) is bad: no store could keep it. Of records that stand glued together on one line, each
    is read, and the line is reported as well.

    Raises InputError when the first line is not the header of a version known here.
    """
    _, entries = decode_entries(lines)
    for entry in entries:
        yield memory_line(entry)


def decode_entries(lines: Iterable[str | BadLine]) -> tuple[Header, Iterator[Entry]]:
    """The header of a file, and its objects one by one. Raises InputError as ``decode_lines``."""
    stripped = (line.strip() if isinstance(line, str) else line for line in lines)
    content = ((number, line) for number, line in enumerate(stripped, start=1) if line)
    first = next(content, (1, ""))[1]
    return decode_header(first if isinstance(first, str) else ""), _entries(content)


def _entries(content: Iterator[tuple[int, str | BadLine]]) -> Iterator[Entry]:
    for number, line in content:
        if isinstance(line, BadLine):
            yield Entry(number=number, error=line.reason)
            continue
        records = list(_separated(line))
        yield from (_decode_entry(number, record) for record in records)
        if len(records) > 1:
            yield Entry(number=number, error=f"{len(records)} records stand on one line; each was read")


def memory_line(entry: Entry) -> Line:
    """An entry read as a memory."""
    if entry.record is None:
        return Line(number=entry.number, error=entry.error)
    name = entry.record.pop("project_name", None)
    try:
        memory = decode_memory(entry.record)
    except InputError as error:
        return Line(number=entry.number, error=str(error))
    return Line(number=entry.number, memory=memory, project_name=name if isinstance(name, str) else None)


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


def decode_header(line: str) -> Header:
    """Read the first line of a file. Raises InputError when it is not the header of a version known here."""
    try:
        header = json.loads(line.removeprefix("\ufeff")) if len(line) <= MAX_LINE_CHARS else None
    except (ValueError, RecursionError):
        header = None
    if not isinstance(header, dict) or header.get("format") != FORMAT:
        raise InputError(f"this is not an export of Backstory: its first line must name the format {FORMAT!r}",
                         field="file")  # fmt: skip
    version = header.get("version")
    if version not in (VERSION, WHOLE_VERSION) or isinstance(version, bool):
        raise InputError(f"the file has format version {version!r}; known are {VERSION} and {WHOLE_VERSION}",
                         field="file")  # fmt: skip
    return Header(version=version, places=_places(header.get("projects")))


def _places(projects: object) -> Mapping[ProjectId, str]:
    """Where projects are, as far as a header says it in the right form."""
    found: dict[ProjectId, str] = {}
    for project in projects if isinstance(projects, list) else ():
        if isinstance(project, dict) and isinstance(project.get("id"), str):
            place = project.get("root") or project.get("name")
            if isinstance(place, str):
                found[ProjectId(project["id"])] = place
    return found


def _decode_entry(number: int, line: str) -> Entry:
    if len(line) > MAX_LINE_CHARS:
        return Entry(number=number, error=f"{len(line)} characters; a line has at most {MAX_LINE_CHARS}")
    try:
        record = json.loads(line)
    except (ValueError, RecursionError) as error:
        return Entry(number=number, error=f"not JSON: {error}")
    if not isinstance(record, dict):
        return Entry(number=number, error="not an object")
    if _may_be_unfit(line) and _is_unfit(record):
        return Entry(number=number, error="holds half a character (a lone surrogate), or is nested too deeply")
    return Entry(number=number, record=record)


def _may_be_unfit(line: str) -> bool:
    """Whether a line may hold half a character, as itself or as an escape, or is nested deeply. Cheap."""
    if not line.isascii() and _HALF.search(line):
        return True
    return _HALF_ESCAPED.search(line) is not None or line.count("[") + line.count("{") > _NESTED


def _is_unfit(record: object) -> bool:
    try:
        json.dumps(record, ensure_ascii=False).encode()
    except (UnicodeEncodeError, RecursionError):
        return True
    return False
