"""Changing one member of a JSON document, comments allowed, and nothing else: no other byte moves.

An edit is proved before it is given back: read again, the document is what it was but for that member.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass, field

from backstory.entrypoints.opencode import jsonc

MAX_DEPTH = 100

_BLANK = re.compile(r"(?>[ \t\r\n\ufeff]++|//[^\n]*+|/\*(?>.*?\*/))*+", re.DOTALL)
_STRING = re.compile(r'"(?>[^"\\\n]|\\.)*+"', re.DOTALL)
_PLAIN = re.compile(r"[^\s,:\[\]{}\"/]++")


class Unfit(Exception):
    """The document cannot be changed safely; the text says why, with line and column, quoting nothing of it."""


@dataclass(slots=True, kw_only=True)
class _Node:
    """A value and where it stands. ``members`` of an object or ``items`` of an array, in order."""

    start: int
    end: int = 0
    is_object: bool = False
    is_array: bool = False
    members: list[tuple[str, int, _Node]] = field(default_factory=list)
    items: list[_Node] = field(default_factory=list)

    def children(self) -> list[tuple[int, _Node]]:
        """Where each child begins, its key included, and the child."""
        if self.is_object:
            return [(start, node) for _, start, node in self.members]
        return [(item.start, item) for item in self.items]


def value_of(text: str) -> object:
    """What a document says; None for an empty one. Raises Unfit."""
    try:
        return jsonc.loads(text)
    except ValueError as error:
        raise Unfit(str(error)) from None


def put(text: str, path: Sequence[str], value: object) -> str:
    """Set the member at ``path``; objects on the way are made where they are missing. Raises Unfit."""
    wanted = _with(_object(value_of(text)), path, value)
    edited = _put(text, path, value)
    return _proved(edited, wanted)


def append(text: str, path: Sequence[str], item: object) -> str:
    """Add an item to the end of the array at ``path``, which is made where it is missing. Raises Unfit."""
    present = _at(_object(value_of(text)), path)
    if present is None:
        return put(text, path, [item])
    if not isinstance(present, list):
        raise Unfit(f"{'.'.join(path)} is not a list")
    wanted = _with(_object(value_of(text)), path, [*present, item])
    node = _found(_parsed(text), path)
    assert node is not None
    return _proved(_inserted(text, node, _written(item, text)), wanted)


def take(text: str, path: Sequence[str], item: int | None = None) -> str:
    """Remove the member at ``path``, or one item of the array there; what is empty after it goes too, as far up as
    ``path`` goes. Raises Unfit."""
    value = _object(value_of(text))
    present = _at(value, path)
    if item is not None and isinstance(present, list):
        rest = present[:item] + present[item + 1 :]
        if rest:
            node = _found(_parsed(text), path)
            assert node is not None
            return _proved(_removed(text, node, item), _with(value, path, rest))
    *parents, name = path
    siblings = _at(value, parents)
    if isinstance(siblings, dict) and len(siblings) == 1 and parents:
        return take(text, parents)
    node = _found(_parsed(text), parents)
    assert node is not None
    position = [key for key, _, _ in node.members].index(name)
    return _proved(_removed(text, node, position), _without(value, path))


def _proved(text: str, wanted: object) -> str:
    if json.dumps(value_of(text)) != json.dumps(wanted):  # order counts too
        raise Unfit("it is written in a way that cannot be changed without touching other entries")
    return text


# --- values -----------------------------------------------------------------------------------------------------------


def _object(value: object) -> dict[str, object]:
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise Unfit("it holds no JSON object")
    return value


def _at(value: object, path: Sequence[str]) -> object:
    for name in path:
        if not isinstance(value, dict):
            return None
        value = value.get(name)
    return value


def _with(value: dict[str, object], path: Sequence[str], new: object) -> dict[str, object]:
    name, *rest = path
    if not rest:
        return {**value, name: new}
    inner = value.get(name)
    if inner is not None and not isinstance(inner, dict):
        raise Unfit(f"{name} is not an object")
    if name in value and inner is None:
        raise Unfit(f"{name} is null, not an object")
    return {**value, name: _with(inner or {}, rest, new)}


def _without(value: dict[str, object], path: Sequence[str]) -> dict[str, object]:
    name, *rest = path
    if not rest:
        return {key: item for key, item in value.items() if key != name}
    return {**value, name: _without(_object(value[name]), rest)}


# --- texts ------------------------------------------------------------------------------------------------------------


def _put(text: str, path: Sequence[str], value: object) -> str:
    root = _parsed(text)
    if root is None:
        whole: object = value
        for name in reversed(path):
            whole = {name: whole}
        return _joined(text, _written(whole, text) + _line_end(text))
    node, depth = root, 0
    while depth < len(path):
        inner = _member(node, path[depth])
        if inner is None:
            break
        node, depth = inner, depth + 1
    if depth == len(path):
        return text[: node.start] + _indented(_written(value, text), _indent_at(text, node.start)) + text[node.end :]
    for name in reversed(path[depth + 1 :]):
        value = {name: value}
    return _inserted(text, node, f"{json.dumps(path[depth])}: {_written(value, text)}")


def _joined(blank: str, document: str) -> str:
    """A document put into a file that held comments and blanks at most."""
    if not blank.strip("\ufeff \t\r\n"):
        return ("\ufeff" if blank.startswith("\ufeff") else "") + document
    return blank + ("" if blank.endswith("\n") else "\n") + document


def _inserted(text: str, node: _Node, entry: str) -> str:
    """A new last child. It goes on a line of its own unless the others stand in one line."""
    close = node.end - 1
    children = [child for _, child in node.children()]
    line = _line_end(text)
    if not children:
        inside = text[node.start + 1 : close]
        outer = _indent_at(text, node.start)
        inner = outer + _unit(text)
        body = f"{line}{inner}{_indented(entry, inner)}{line}{outer}"
        return text[: node.start + 1] + inside.rstrip(" \t\r\n") + body + text[close:]
    last = children[-1].end
    between = text[last:close]
    comma = _comma_in(between)
    if comma is None:
        between = f",{between}"
    before = between.rstrip(" \t\r\n")
    after = between[len(before) :]
    end = "," if comma is not None else ""
    if "\n" in text[node.start : close]:
        inner = _child_indent(text, node)
        return f"{text[:last]}{before}{line}{inner}{_indented(entry, inner)}{end}{after or line}{text[close:]}"
    compact = json.dumps(value_of("{" + entry + "}" if node.is_object else entry), ensure_ascii=False)
    entry = compact[1:-1] if node.is_object else compact
    return f"{text[:last]}{before} {entry}{end}{after}{text[close:]}"


def _removed(text: str, node: _Node, position: int) -> str:
    """Without one child: with its comma, and with its line where nothing else stands there."""
    children = node.children()
    start, child = children[position]
    end = child.end
    following = text[end : children[position + 1][0] if position + 1 < len(children) else node.end - 1]
    comma = _comma_in(following)
    if comma is not None:
        end += comma + 1
    elif position:  # the comma before goes, unless others follow
        before = children[position - 1][1].end
        at = _comma_in(text[before:start])
        assert at is not None
        text = text[: before + at] + text[before + at + 1 :]
        start, end = start - 1, end - 1
    head = text[:start].rstrip(" \t")
    tail = text[end:].lstrip(" \t")
    if head.endswith("\n") and tail.startswith(("\n", "\r\n")):  # a line of its own
        return head + tail.removeprefix("\r").removeprefix("\n")
    if head.endswith("\n") or not tail.startswith(("}", "]")):
        return text[:start] + tail
    return head + tail


def _comma_in(between: str) -> int | None:
    """Where the comma stands among comments and blanks."""
    at = _BLANK.match(between)
    assert at is not None
    return at.end() if between[at.end() : at.end() + 1] == "," else None


def _written(value: object, text: str) -> str:
    return json.dumps(value, ensure_ascii=False, indent=_unit(text)).replace("\n", _line_end(text))


def _indented(entry: str, indent: str) -> str:
    return entry.replace("\n", "\n" + indent) if "\n" in entry else entry


def _unit(text: str) -> str:
    """How the document indents: by the first line that is indented; two blanks where none is."""
    found = re.search(r"^([ \t]+)\S", text, re.MULTILINE)
    if found is None:
        return "  "
    return "\t" if found[1].startswith("\t") else found[1][:8]


def _child_indent(text: str, node: _Node) -> str:
    return _indent_at(text, node.children()[-1][0])


def _indent_at(text: str, position: int) -> str:
    """The blanks at the beginning of the line."""
    begin = text.rfind("\n", 0, position) + 1
    found = re.compile(r"[ \t]*").match(text, begin)
    assert found is not None
    return found[0]


def _line_end(text: str) -> str:
    return "\r\n" if "\r\n" in text else "\n"


# --- reading ----------------------------------------------------------------------------------------------------------


def _found(node: _Node | None, path: Sequence[str]) -> _Node | None:
    for name in path:
        node = None if node is None else _member(node, name)
    return node


def _member(node: _Node, name: str) -> _Node | None:
    """The member of this name. Raises Unfit where there are two, of which programs take the one or the other."""
    found = [child for key, _, child in node.members if key == name]
    if len(found) > 1:
        raise Unfit(f"it names {name!r} twice in the same place")
    return found[0] if found else None


def _parsed(text: str) -> _Node | None:
    """The tree of a document that ``value_of`` can read; None for an empty one."""
    start = _skip(text, 0)
    return None if start >= len(text) else _value(text, start, 0)


def _value(text: str, at: int, depth: int) -> _Node:
    if depth > MAX_DEPTH:
        raise Unfit(f"it is nested more than {MAX_DEPTH} levels deep")
    node = _Node(start=at)
    if text[at] in "{[":
        node.is_object, node.is_array = text[at] == "{", text[at] == "["
        node.end = _children(text, node, depth)
        return node
    token = (_STRING if text[at] == '"' else _PLAIN).match(text, at)
    if token is None:
        raise _unreadable(text, at)
    node.end = token.end()
    return node


def _children(text: str, node: _Node, depth: int) -> int:
    at = _skip(text, node.start + 1)
    while at < len(text) and text[at] not in "}]":
        begin = at
        key = ""
        if node.is_object:
            token = _STRING.match(text, at)
            if token is None:
                raise _unreadable(text, at)
            key = str(json.loads(token[0]))
            at = _skip(text, token.end())
            if text[at : at + 1] != ":":
                raise _unreadable(text, at)
            at = _skip(text, at + 1)
        if at >= len(text):
            break
        child = _value(text, at, depth + 1)
        if node.is_object:
            node.members.append((key, begin, child))
        else:
            node.items.append(child)
        at = _skip(text, child.end)
        if text[at : at + 1] == ",":
            at = _skip(text, at + 1)
    if at >= len(text):
        raise _unreadable(text, at)
    return at + 1


def _skip(text: str, at: int) -> int:
    found = _BLANK.match(text, at)
    assert found is not None
    return found.end()


def _unreadable(text: str, at: int) -> Unfit:
    line = text.count("\n", 0, at) + 1
    return Unfit(f"line {line}, column {at - text.rfind(chr(10), 0, at)}: it cannot be read")
