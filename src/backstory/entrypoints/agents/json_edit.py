"""Changing one member of a JSON document, comments allowed, and nothing else: no other byte moves.

An edit is proved before it is given back: read again, the document is what it was but for that member.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence

from backstory.entrypoints.agents.json_tree import BLANK, Node, Unfit, find_node, member_of, parse_tree
from backstory.entrypoints.opencode import jsonc


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
    node = find_node(parse_tree(text), path)
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
            node = find_node(parse_tree(text), path)
            assert node is not None
            return _proved(_removed(text, node, item), _with(value, path, rest))
    *parents, name = path
    siblings = _at(value, parents)
    if isinstance(siblings, dict) and len(siblings) == 1 and parents:
        return take(text, parents)
    node = find_node(parse_tree(text), parents)
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
    root = parse_tree(text)
    if root is None:
        whole: object = value
        for name in reversed(path):
            whole = {name: whole}
        return _joined(text, _written(whole, text) + _line_end(text))
    node, depth = root, 0
    while depth < len(path):
        inner = member_of(node, path[depth])
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


def _inserted(text: str, node: Node, entry: str) -> str:
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


def _removed(text: str, node: Node, position: int) -> str:
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
    at = BLANK.match(between)
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


def _child_indent(text: str, node: Node) -> str:
    return _indent_at(text, node.children()[-1][0])


def _indent_at(text: str, position: int) -> str:
    """The blanks at the beginning of the line."""
    begin = text.rfind("\n", 0, position) + 1
    found = re.compile(r"[ \t]*").match(text, begin)
    assert found is not None
    return found[0]


def _line_end(text: str) -> str:
    return "\r\n" if "\r\n" in text else "\n"
