"""The files of lines that opencode-plugin-git-memory and its ancestor keep, and the JSON that the plugin exports."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from enum import StrEnum
from typing import Any

from backstory.adapters.formats.js_json import stringify
from backstory.adapters.formats.kept_json import bounded_json
from backstory.adapters.formats.outside_files import Unfit
from backstory.codecs.logfmt import (
    TYPES,
    Deletion,
    Line,
    Record,
    encode_deletion,
    encode_record,
    parse_ancestor,
    parse_lines,
)
from backstory.errors import InputError


class Form(StrEnum):
    """How records stand in a file: lines of the plugin, lines of its ancestor, one JSON object a line, or one list."""

    PLUGIN = "logfmt"
    ANCESTOR = "ancestor"
    JSONL = "jsonl"
    JSON = "json"


_NEEDS_QUOTES = re.compile(r'[\s"]')


def read_lines(text: str, *, ancestor_first: bool) -> tuple[Form, list[Line]]:
    """The lines of a file, and whose they are: whoever would have written them so. Where both would, the first.

    The two escape differently, and a file does not say by whom it is.
    """
    order = (Form.ANCESTOR, Form.PLUGIN) if ancestor_first else (Form.PLUGIN, Form.ANCESTOR)
    read = {form: parse_ancestor(text) if form is Form.ANCESTOR else parse_lines(text) for form in order}
    for form in order:
        if "\n".join(_written(line, form) for line in read[form]) == text.rstrip():
            return form, read[form]
    broken = any(line.record is None and line.problem is None for line in read[Form.PLUGIN])
    form = Form.ANCESTOR if ancestor_first and broken else Form.PLUGIN
    return form, read[form]


def read_json(text: str, form: Form) -> list[Line]:
    """The records of an export as lines: a line without a record tells its problem. Raises Unfit for what is no list of
    JSON."""
    if form is Form.JSON:
        listed = bounded_json(text)
        if not isinstance(listed, list):
            raise Unfit("it is no list of memories")
        return [_json_line(stringify(item), item) for item in listed]
    return [_parsed(line) for line in text.split("\n") if line.strip()]


def written_line(record: Record, form: Form) -> str:
    """A record as a line of a file. Raises InputError for what no reader would get back."""
    match form:
        case Form.PLUGIN:
            return encode_record(record)
        case Form.ANCESTOR:
            return " ".join([f"ts={record.ts}", *_ancestor_fields(record), *_ancestor_labels(record)])
        case Form.JSON | Form.JSONL:
            return stringify(json_record(record))


def written_deletion(deletion: Deletion, form: Form) -> str:
    """A deletion as a line of a file. Raises InputError like ``written_line``."""
    if form is not Form.ANCESTOR:
        return encode_deletion(deletion)
    head = [f"ts={deletion.ts}", "action=deleted", f"original_ts={deletion.record.ts}"]
    reason = f"reason={_ancestor_quoted(deletion.reason)}"
    return " ".join([*head, *_ancestor_fields(deletion.record), reason, *_ancestor_labels(deletion.record)])


def json_record(record: Record) -> dict[str, Any]:
    """A record as the plugin's exports have it."""
    told: dict[str, Any] = {
        "ts": record.ts, "type": record.type, "scope": record.scope, "content": record.content,
    }  # fmt: skip
    if record.issue is not None:
        told["issue"] = record.issue
    if record.tags:
        told["tags"] = list(record.tags)
    return told


def record_of_json(told: Mapping[str, Any]) -> Record | str:
    """A record of an export, or what is wrong with it."""
    ts, type_, scope, content = (told.get(name) for name in ("ts", "type", "scope", "content"))
    issue, tags = told.get("issue"), told.get("tags")
    if not (isinstance(ts, str) and isinstance(scope, str) and isinstance(content, str) and ts and scope):
        return "ts, scope or content is missing, or is no text"
    if not isinstance(type_, str) or type_ not in TYPES:
        return "its type is none of the six"
    listed = tags if isinstance(tags, list) else []
    return Record(
        ts=ts,
        type=type_,
        scope=scope,
        content=content,
        issue=issue if isinstance(issue, str) else None,
        tags=tuple(tag for tag in listed if isinstance(tag, str) and tag),
    )


def joined(lines: Sequence[str], form: Form, ends: str) -> str:
    """A file of these lines. ``ends`` is what stands behind the last one; a file of lines is never empty."""
    if form is Form.JSON:
        return stringify([bounded_json(line) for line in lines], indent=2) + ends
    text = "\n".join(lines)
    return text + ends if text or form is Form.JSONL else "\n"


def _written(line: Line, form: Form) -> str:
    try:
        if line.record is not None:
            return written_line(line.record, form)
        return line.text if line.deletion is None else written_deletion(line.deletion, form)
    except InputError:
        return line.text


def _parsed(line: str) -> Line:
    try:
        return _json_line(line, bounded_json(line))
    except Unfit as error:
        return Line(text=line, problem=str(error))


def _json_line(text: str, told: object) -> Line:
    record = record_of_json(told) if isinstance(told, Mapping) else "it is no object"
    return Line(text=text, problem=record) if isinstance(record, str) else Line(text=text, record=record)


def _ancestor_fields(record: Record) -> list[str]:
    scope = f'"{record.scope}"' if _NEEDS_QUOTES.search(record.scope) else record.scope
    return [f"type={record.type}", f"scope={scope}", f"content={_ancestor_quoted(record.content)}"]


def _ancestor_labels(record: Record) -> list[str]:
    issue = [] if record.issue is None else [f"issue={record.issue}"]
    return [*issue, *([f"tags={','.join(record.tags)}"] if record.tags else [])]


def _ancestor_quoted(text: str) -> str:
    return '"' + text.replace('"', '\\"') + '"'
