"""Changing one setting in the text of a settings file, and nothing else: comments, order and all other bytes stay.

An edit is proved before it is given back: read again, the document says what it said but for that setting.
"""

from __future__ import annotations

import json
from collections.abc import Mapping

from backstory.config.files import NotToml, Unreadable, parse_document
from backstory.config.options import Value
from backstory.config.toml_text import Entry, Header, entries_in, headers

Document = Mapping[str, object]

_BY_HAND = "is written in a way that cannot be changed without touching other settings; edit it by hand"


def with_setting(text: str, name: str, value: Value) -> str:
    """The document with ``group.name`` set: in its place, else behind its group's last, else in a group at the end.

    Raises Unreadable where the document is no usable TOML, or cannot be changed without touching something else.
    """
    before = parse_document(text.encode())
    group, _, key = name.partition(".")
    new_line = "\r\n" if "\r\n" in text else "\n"
    written = literal(value)
    found = _entry(text, name)
    if found is not None:
        start, end = found.value
        edited = text[:start] + written + text[end:]
    elif (place := _last_in_group(text, group)) is not None:
        at, prefix = place
        lead = "" if text[:at].endswith("\n") else new_line
        edited = f"{text[:at]}{lead}{prefix}{key} = {written}{new_line}{text[at:]}"
    else:
        gap = "" if not text.strip("\ufeff \t\r\n") else new_line if text.endswith("\n") else new_line * 2
        edited = f"{text}{gap}[{group}]{new_line}{key} = {written}{new_line}"
    return _proved(edited, _with(before, name, json.loads(written)))


def without_setting(text: str, name: str, *, is_group_known: bool = True) -> str:
    """The document without the setting; a group goes with its last setting unless it holds a comment. Raises as above.

    The comment in the same line goes too; lines of comment above it stay. The header of a group that nobody knows goes
    even if it holds a comment, since such a header is an error of its own.
    """
    before = parse_document(text.encode())
    found = _entry(text, name)
    if found is None:
        return _proved(text, _with(before, name, None))
    start, end = found.line
    edited = _without_bare_header(text[:start] + text[end:], name.partition(".")[0], may_keep=is_group_known)
    return _proved(edited, _with(before, name, None))


def value_in(document: Document, name: str) -> object:
    """What a document says of a setting; None where it says nothing (TOML has no such value). A group is no setting."""
    group, _, key = name.partition(".")
    body = document.get(group)
    if not key:
        return None if isinstance(body, dict) else body
    return body.get(key) if isinstance(body, dict) else None


def literal(value: Value) -> str:
    """A value as TOML: a basic string has JSON's escapes, but for the delete character."""
    plain = value if isinstance(value, bool | int) else str(value)
    return json.dumps(plain, ensure_ascii=False).replace("\x7f", "\\u007f")


def _entry(text: str, name: str) -> Entry | None:
    wanted = tuple(name.split(".", 1))
    return next((entry for entry in entries_in(text) if entry.name == wanted), None)


def _last_in_group(text: str, group: str) -> tuple[int, str] | None:
    """Where one more setting of the group goes, and what is written before its name; None where there is no group."""
    header = _header(text, group)
    inside = [entry for entry in entries_in(text) if entry.name[:1] == (group,)]
    if header is not None:
        own = [entry.line[1] for entry in inside if header.start < entry.line[0] < header.end]
        return (own[-1] if own else _line_end(text, header.start)), ""
    first_header = next((found.start for found in headers(text)), len(text))
    dotted = [entry.line[1] for entry in inside if len(entry.name) > 1 and entry.line[0] < first_header]
    return (dotted[-1], f"{group}.") if dotted else None


def _header(text: str, group: str) -> Header | None:
    return next((header for header in headers(text) if header.name == (group,) and not header.is_array), None)


def _line_end(text: str, start: int) -> int:
    end = text.find("\n", start)
    return len(text) if end < 0 else end + 1


def _without_bare_header(text: str, group: str, *, may_keep: bool) -> str:
    """The text without the group's header where nothing but blanks follows it, or, unless it may stay, comments."""
    header = _header(text, group)
    if header is None:
        return text
    begin = _line_end(text, header.start)
    lines = [line.strip() for line in text[begin : header.end].split("\n") if line.strip()]
    if lines and (may_keep or not all(line.startswith("#") for line in lines)):
        return text
    before, behind = text[: header.start], text[begin if lines else header.end :]
    return before + behind if behind else before.rstrip("\r\n") + _last_line_end(before)


def _last_line_end(text: str) -> str:
    if not text.strip("\ufeff \t\r\n"):
        return ""
    return "\r\n" if text.endswith("\r\n") else "\n" if text.endswith("\n") else ""


def _with(document: Document, name: str, value: object) -> dict[str, object]:
    """The document with the setting; with None, without it."""
    group, _, key = name.partition(".")
    changed = dict(document)
    if key:
        body = changed.get(group, {})
        if not isinstance(body, dict):
            raise Unreadable(f"gives {group} a value, so it cannot hold settings")
        value = {entry: item for entry, item in {**body, key: value}.items() if item is not None}
    return {entry: item for entry, item in {**changed, group: value}.items() if item is not None}


def _proved(text: str, wanted: Document) -> str:
    try:
        after = _said(parse_document(text.encode()))
    except NotToml:  # what was there is; what the edit made of it is not
        raise Unreadable(_BY_HAND) from None
    if after != _said(wanted):
        raise Unreadable(_BY_HAND)
    return text


def _said(document: Document) -> list[tuple[str, str]]:
    """What is set, whatever the order; types count too. An empty group sets nothing."""
    flat = {group: body if isinstance(body, dict) else {"": body} for group, body in document.items()}
    return sorted((f"{group}.{key}", repr(value)) for group, body in flat.items() for key, value in body.items())
