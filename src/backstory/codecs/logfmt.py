"""Memories as lines of ``key=value`` fields, the format of opencode-plugin-git-memory, byte for byte.

One record a line. What a memory's fields become in a record is decided where the lines are kept; here is only the
form. Nothing is lost: a line that is no record is handed back as it was, with what is wrong with it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from backstory.errors import InputError

TYPES = frozenset({"decision", "learning", "preference", "blocker", "context", "pattern"})
"""The types a record can have; a line with another one is kept, and is no record."""
DELETED = "deleted"

_ESCAPES = {"\\": "\\\\", "\n": "\\n", "\r": "\\r", '"': '\\"'}
_UNESCAPES = {escaped: plain for plain, escaped in _ESCAPES.items()}
_ESCAPED = re.compile(r'\\[nr"\\]')
_NEEDS_QUOTES = re.compile(r'[\s"\\]')
_FIELD = re.compile(r' *([^ =]+)=(?:"((?:[^"\\]|\\.)*\\?)("|$)|([^ ]*))', re.DOTALL)
_ANCESTOR_START = re.compile(r"ts=\S+ (?:type|action)=")
_ANCESTOR_TEXT = re.compile(
    r'^(?P<head>[^"]*?)content="(?P<content>.*?)"(?: reason="(?P<reason>.*)")?(?P<tail>(?: (?:issue|tags)=\S+)*)\s*$',
    re.DOTALL,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Record:
    """One memory as its line says it. ``ts`` is the text of a time, in whatever form it was written."""

    ts: str
    type: str
    scope: str
    content: str
    issue: str | None = None
    tags: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Deletion:
    """A line of the audit file: what was taken away, when and why. ``record.ts`` is the original time."""

    ts: str
    record: Record
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """One line as it stands in a file, without its end: a record, a deletion, or neither.

    ``problem`` says what is wrong with a line that looks like a record but is none; None for comments and blank lines.
    """

    text: str
    record: Record | None = None
    deletion: Deletion | None = None
    problem: str | None = None


def encode_record(record: Record) -> str:
    """The line of a record, without a line end.

    Raises InputError for what no reader would get back: an unknown type, an empty time or scope, NUL, half a character,
    a tag that is empty or holds a comma.
    """
    _check(record)
    return " ".join([f"ts={_value(record.ts)}", *_fields(record), *_labels(record)])


def encode_deletion(deletion: Deletion) -> str:
    """The line of the audit file. Raises InputError like ``encode_record``."""
    _check(deletion.record)
    _check_text(deletion.reason, "reason")
    return " ".join(
        [
            f"ts={_value(deletion.ts)}",
            f"action={DELETED}",
            f"original_ts={_value(deletion.record.ts)}",
            *_fields(deletion.record),
            f"reason={_quote(deletion.reason)}",
            *_labels(deletion.record),
        ]
    )


def parse_line(text: str) -> Line:
    """Read one line. A closing quote that is missing is taken to be at the end; unknown fields do not matter."""
    line = text.rstrip("\r\n")
    return _line_of(line, _read(line)[0])


def parse_lines(text: str) -> list[Line]:
    """Read a file. Lines end with LF, or CRLF; a mark at the start (U+FEFF) does not matter.

    Two records in one line, where a line end was lost between them, are two.
    """
    lines: list[Line] = []
    for physical in text.removeprefix("\ufeff").split("\n"):
        rest = physical.removesuffix("\r")
        while rest:
            values, end = _read(rest)
            lines.append(_line_of(rest[:end], values))
            rest = rest[end:]
    return lines


def parse_ancestor(text: str) -> list[Line]:
    """Read a file of opencode-plugin-simple-memory: only quotes are escaped, so that a record may take several lines,
    and a backslash is a backslash."""
    groups: list[list[str]] = []
    for line in text.removeprefix("\ufeff").split("\n"):
        if groups and not _ANCESTOR_START.match(line):
            groups[-1].append(line)
        else:
            groups.append([line])
    joined = ("\n".join(group).rstrip("\n") for group in groups)
    return [_ancestor_line(line) for line in joined if line]


def render_lines(lines: Iterable[str]) -> str:
    """A file of these lines; a single line end where there are none."""
    return "".join(f"{line}\n" for line in lines) or "\n"


def without_duplicates(lines: Sequence[Line]) -> list[Line]:
    """The lines, of equal records only the first; whatever is no record stays."""
    seen: set[Record] = set()
    kept = []
    for line in lines:
        if line.record is None or line.record not in seen:
            kept.append(line)
        if line.record is not None:
            seen.add(line.record)
    return kept


def _read(line: str) -> tuple[dict[str, str], int]:
    """The fields of the first record of a line, and where it ends."""
    values: dict[str, str] = {}
    position, quoted = 0, False
    while match := _FIELD.match(line, position):
        if quoted and match[1] == "ts" and line[position] != " ":
            return values, position
        quoted = match[3] is not None
        values[match[1]] = _unescape(match[2]) if quoted else match[4]
        position = match.end()
    return values, len(line)


def _line_of(text: str, values: dict[str, str]) -> Line:
    if "ts" not in values:
        return Line(text=text)
    wrong = next((f"{name} is missing" for name in ("ts", "type", "scope") if not values.get(name)), None)
    if wrong is None and values["type"] not in TYPES:
        wrong = f"the type is {values['type'][:40]!r}"
    if wrong is not None:
        return Line(text=text, problem=wrong)
    record = Record(
        ts=values["ts"],
        type=values["type"],
        scope=values["scope"],
        content=values.get("content", ""),
        issue=values.get("issue"),
        tags=tuple(tag for tag in values.get("tags", "").split(",") if tag),
    )
    if "action" not in values:
        return Line(text=text, record=record)
    return _deletion_line(text, record, values)


def _deletion_line(text: str, record: Record, values: dict[str, str]) -> Line:
    if values["action"] != DELETED:
        return Line(text=text, problem=f"the action is {values['action'][:40]!r}")
    original = Record(
        ts=values.get("original_ts", ""),
        type=record.type,
        scope=record.scope,
        content=record.content,
        issue=record.issue,
        tags=record.tags,
    )
    return Line(text=text, deletion=Deletion(ts=record.ts, record=original, reason=values.get("reason", "")))


def _ancestor_line(text: str) -> Line:
    match = _ANCESTOR_TEXT.match(text)
    if match is None:
        return parse_line(text)
    values, _ = _read(match["head"] + match["tail"])
    values["content"] = match["content"].replace('\\"', '"')
    if match["reason"] is not None:
        values["reason"] = match["reason"].replace('\\"', '"')
    return _line_of(text, values)


def _fields(record: Record) -> list[str]:
    return [f"type={record.type}", f"scope={_value(record.scope)}", f"content={_quote(record.content)}"]


def _labels(record: Record) -> list[str]:
    issue = [] if record.issue is None else [f"issue={_value(record.issue)}"]
    return [*issue, *([f"tags={_value(','.join(record.tags))}"] if record.tags else [])]


def _value(text: str) -> str:
    return _quote(text) if not text or _NEEDS_QUOTES.search(text) else text


def _quote(text: str) -> str:
    return '"' + re.sub(r'[\\\n\r"]', lambda match: _ESCAPES[match[0]], text) + '"'


def _unescape(text: str) -> str:
    return _ESCAPED.sub(lambda match: _UNESCAPES[match[0]], text)


def _check(record: Record) -> None:
    if record.type not in TYPES:
        raise InputError(f"the type is {record.type[:40]!r}; known are {', '.join(sorted(TYPES))}", field="type")
    for name, value in (("ts", record.ts), ("scope", record.scope)):
        if not value:
            raise InputError(f"{name} is empty", field=name)
    for name, value in (("ts", record.ts), ("scope", record.scope), ("content", record.content)):
        _check_text(value, name)
    if record.issue is not None:
        _check_text(record.issue, "issue")
    for tag in record.tags:
        _check_text(tag, "tags")
        if not tag or "," in tag:
            raise InputError(f"the tag {tag[:40]!r} is empty or holds a comma, which separates tags", field="tags")


def _check_text(text: str, name: str) -> None:
    if "\0" in text:
        raise InputError(f"{name} contains NUL, which a line cannot hold", field=name)
    try:
        text.encode()
    except UnicodeEncodeError:
        raise InputError(f"{name} contains half a character, which a file in UTF-8 cannot hold", field=name) from None
