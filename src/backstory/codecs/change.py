"""A change of the history as a JSON text and back: a header line, then one edit a line.

The form is docs/reference/git-format.md. Equal changes give equal bytes, so that two clones write the same file.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import datetime

from backstory.codecs.record import decode_memory, encode_memory, format_time
from backstory.domain.history import Action, Author, Change, Edit
from backstory.domain.ids import ChangeId, SessionId, is_ulid
from backstory.errors import InputError

FORMAT = "backstory-change"
VERSION = 1
_OPTIONAL = ("reason", "session", "undoes", "key")


def encode_change(change: Change) -> str:
    """The text of a change, each line ended by a line feed. A field that is not set is left out."""
    header: dict[str, object] = {
        "format": FORMAT,
        "version": VERSION,
        "id": change.id,
        "at": format_time(change.at),
        "author": change.author.value,
        "action": change.action.value,
    }
    header |= {name: value for name in _OPTIONAL if (value := getattr(change, name)) is not None}
    edits = (
        {"before": None if edit.before is None else encode_memory(edit.before), "after": encode_memory(edit.after)}
        for edit in change.edits
    )
    return "".join(json.dumps(line, ensure_ascii=False) + "\n" for line in (header, *edits))


def decode_change(text: str) -> Change:
    """Read what ``encode_change`` wrote. Raises InputError for anything else, a newer version too."""
    lines = [_object(line) for line in text.split("\n") if line]
    if not lines or lines[0].get("format") != FORMAT:
        raise InputError(f"this is not a change: its first line must name the format {FORMAT!r}", field="format")
    header = lines[0]
    if (version := header.get("version")) != VERSION:
        raise InputError(f"the change has format version {version!r}; known is {VERSION}", field="version")
    edits = tuple(_edit(line) for line in lines[1:])
    if not edits:
        raise InputError("the change names no memory", field="edits")
    try:
        at = datetime.fromisoformat(_text(header, "at"))
        author, action = Author(_text(header, "author")), Action(_text(header, "action"))
    except ValueError as error:
        raise InputError(f"the change cannot be read: {error}", field="at") from error
    session, undoes = (_text_or_none(header, name) for name in ("session", "undoes"))
    return Change(
        id=_id(header),
        at=at,
        author=author,
        action=action,
        edits=edits,
        reason=_text_or_none(header, "reason"),
        session=None if session is None else SessionId(session),
        undoes=None if undoes is None else ChangeId(undoes),
        key=_text_or_none(header, "key"),
    )


def _edit(line: Mapping[str, object]) -> Edit:
    before, after = line.get("before"), line.get("after")
    if not isinstance(after, dict) or not (before is None or isinstance(before, dict)):
        raise InputError("an edit needs a memory before, or null, and one after", field="edits")
    return Edit(before=None if before is None else decode_memory(before), after=decode_memory(after))


def _id(header: Mapping[str, object]) -> ChangeId:
    text = _text(header, "id")
    if not is_ulid(text):
        raise InputError(f"id is {text[:60]!r}; it must be a ULID of 26 characters", field="id")
    return ChangeId(text)


def _object(line: str) -> Mapping[str, object]:
    try:
        value = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise InputError(f"not JSON: {error}", field="line") from error
    if not isinstance(value, dict):
        raise InputError("not an object", field="line")
    return value


def _text(header: Mapping[str, object], name: str) -> str:
    value = header.get(name)
    if not isinstance(value, str):
        raise InputError(f"{name} is missing or no text", field=name)
    return value


def _text_or_none(header: Mapping[str, object], name: str) -> str | None:
    return None if header.get(name) is None else _text(header, name)
