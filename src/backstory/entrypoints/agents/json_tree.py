"""Where each value of a JSON document stands in its text, comments allowed.

Changing one of them is ``json_edit.py``.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass, field

MAX_DEPTH = 100

BLANK = re.compile(r"(?>[ \t\r\n\ufeff]++|//[^\n]*+|/\*(?>.*?\*/))*+", re.DOTALL)
_STRING = re.compile(r'"(?>[^"\\\n]|\\.)*+"', re.DOTALL)
_PLAIN = re.compile(r"[^\s,:\[\]{}\"/]++")


class Unfit(Exception):
    """The document cannot be changed safely; the text says why, with line and column, quoting nothing of it."""


@dataclass(slots=True, kw_only=True)
class Node:
    """A value and where it stands. ``members`` of an object or ``items`` of an array, in order."""

    start: int
    end: int = 0
    is_object: bool = False
    is_array: bool = False
    members: list[tuple[str, int, Node]] = field(default_factory=list)
    items: list[Node] = field(default_factory=list)

    def children(self) -> list[tuple[int, Node]]:
        """Where each child begins, its key included, and the child."""
        if self.is_object:
            return [(start, node) for _, start, node in self.members]
        return [(item.start, item) for item in self.items]


def find_node(node: Node | None, path: Sequence[str]) -> Node | None:
    """What stands at the end of a path of names; None where nothing does. Raises Unfit."""
    for name in path:
        node = None if node is None else member_of(node, name)
    return node


def member_of(node: Node, name: str) -> Node | None:
    """The member of this name. Raises Unfit where there are two, of which programs take the one or the other."""
    found = [child for key, _, child in node.members if key == name]
    if len(found) > 1:
        raise Unfit(f"it names {name!r} twice in the same place")
    return found[0] if found else None


def parse_tree(text: str) -> Node | None:
    """The tree of a document that ``value_of`` can read; None for an empty one."""
    start = _skip(text, 0)
    return None if start >= len(text) else _value(text, start, 0)


def _value(text: str, at: int, depth: int) -> Node:
    if depth > MAX_DEPTH:
        raise Unfit(f"it is nested more than {MAX_DEPTH} levels deep")
    node = Node(start=at)
    if text[at] in "{[":
        node.is_object, node.is_array = text[at] == "{", text[at] == "["
        node.end = _children(text, node, depth)
        return node
    token = (_STRING if text[at] == '"' else _PLAIN).match(text, at)
    if token is None:
        raise _unreadable(text, at)
    node.end = token.end()
    return node


def _children(text: str, node: Node, depth: int) -> int:
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
    found = BLANK.match(text, at)
    assert found is not None
    return found.end()


def _unreadable(text: str, at: int) -> Unfit:
    line = text.count("\n", 0, at) + 1
    return Unfit(f"line {line}, column {at - text.rfind(chr(10), 0, at)}: it cannot be read")
