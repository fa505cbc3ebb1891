"""Changing one table of a TOML document, and nothing else: no other byte moves.

An edit is proved before it is given back: read again, the document is what it was but for that table.
"""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Mapping, Sequence

from backstory.config.toml_text import headers
from backstory.entrypoints.agents.json_tree import Unfit

MAX_DOTS = 64
"""Dots in one line: for a dotted name tomllib takes quadratic time."""

Table = Mapping[str, object]

_BARE = re.compile(r"[A-Za-z0-9_-]+")


def value_of(text: str) -> dict[str, object]:
    """What a document says. Raises Unfit, quoting nothing of it."""
    if any(line.count(".") > MAX_DOTS for line in text.splitlines()):
        raise Unfit(f"a line has more than {MAX_DOTS} dots")
    try:
        return tomllib.loads(text.removeprefix("\ufeff").replace("\r\n", "\n"))
    except tomllib.TOMLDecodeError as error:
        where = re.search(r"\(at [^()]*\)$", str(error))
        raise Unfit(f"it is not TOML {where[0] if where else ''}".rstrip()) from None
    except (ValueError, RecursionError):
        raise Unfit("it is not usable TOML") from None


def put(text: str, path: Sequence[str], table: Table) -> str:
    """Set the table at ``path``: in its place where it has one, else at the end. Raises Unfit."""
    before = value_of(text)
    line = "\r\n" if "\r\n" in text else "\n"
    written = _written(path, table).replace("\n", line)
    spans = _spans(text, path)
    if spans:
        start, _ = spans[0]
        rest = _cut(text, spans)
        behind = rest[start:]
        edited = rest[:start] + written + (line if behind.strip() and not behind.startswith(("\n", "\r")) else "")
        edited += behind
    else:
        gap = "" if not text.strip("\ufeff \t\r\n") else line if text.endswith("\n") else line * 2
        edited = text + gap + written
    return _proved(edited, _with(before, path, dict(table)))


def take(text: str, path: Sequence[str]) -> str:
    """Remove the table at ``path`` and those in it. Raises Unfit."""
    before = value_of(text)
    spans = _spans(text, path)
    edited = _cut(text, spans)
    if spans and not edited[spans[0][0] :].strip():  # it stood at the end, after an empty line of ours
        edited = edited[: spans[0][0]].rstrip("\r\n") + ("\r\n" if "\r\n" in text else "\n")
        edited = edited if edited.strip("\ufeff \t\r\n") else ""
    return _proved(edited, _without(before, path))


def _spans(text: str, path: Sequence[str]) -> list[tuple[int, int]]:
    """From each header of the table or of one in it to the next header; comments right before that stay with it."""
    tables = headers(text)
    spans = []
    for number, header in enumerate(tables):
        if header.name[: len(path)] != tuple(path) or header.is_array:
            continue
        end = header.end
        lines = text[header.start : end].splitlines(keepends=True)
        while number + 1 < len(tables) and lines and (not lines[-1].strip() or lines[-1].lstrip().startswith("#")):
            end -= len(lines.pop())
        spans.append((header.start, end))
    return spans


def _cut(text: str, spans: Sequence[tuple[int, int]]) -> str:
    for start, end in reversed(spans):
        before, behind = text[:start], text[end:]
        if before.endswith(("\n\n", "\n\r\n")) and behind.startswith(("\n", "\r\n")):
            behind = behind.removeprefix("\r").removeprefix("\n")
        text = before + behind
    return text


def _written(path: Sequence[str], table: Table) -> str:
    name = ".".join(part if _BARE.fullmatch(part) else _text(part) for part in path)
    plain = {key: value for key, value in table.items() if not isinstance(value, Mapping)}
    lines = [f"[{name}]", *(f"{key} = {_literal(value)}" for key, value in plain.items())]
    for key, value in table.items():
        if isinstance(value, Mapping):
            lines += ["", f"[{name}.{key}]", *(f"{inner} = {_literal(item)}" for inner, item in value.items())]
    return "\n".join(lines) + "\n"


def _literal(value: object) -> str:
    if isinstance(value, str):
        return _text(value)
    if isinstance(value, list | tuple):
        return f"[{', '.join(_literal(item) for item in value)}]"
    return json.dumps(value)


def _text(value: str) -> str:
    """A basic string: JSON's escapes are TOML's, but for the delete character."""
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")


def _with(value: Table, path: Sequence[str], new: object) -> dict[str, object]:
    name, *rest = path
    inner = value.get(name, {})
    if rest and not isinstance(inner, dict):
        raise Unfit(f"{name} is not a table")
    return {**value, name: _with(inner, rest, new) if rest and isinstance(inner, dict) else new}


def _without(value: Table, path: Sequence[str]) -> dict[str, object]:
    """A table that is only there because of the one in it goes with it."""
    name, *rest = path
    inner = value.get(name)
    if rest and isinstance(inner, dict) and (left := _without(inner, rest)):
        return {**value, name: left}
    if rest and not isinstance(inner, dict):
        return dict(value)
    return {key: item for key, item in value.items() if key != name}


def _proved(text: str, wanted: Table) -> str:
    after = value_of(text)
    if _pruned(after) != _pruned(wanted):
        raise Unfit("it is written in a way that cannot be changed without touching other entries")
    return text


def _pruned(value: object) -> object:
    """Without tables that are empty: a header that names nothing may stay or go."""
    if not isinstance(value, dict):
        return repr(value)
    return {key: inner for key, item in value.items() if (inner := _pruned(item)) != {}}
