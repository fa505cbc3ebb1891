"""The files of one tree read within bounds: what stands in them as JSON, and a sentence for each that is unfit."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from backstory.adapters.formats.kept_json import DOCUMENT_BYTES, bounded_json
from backstory.adapters.formats.memory_tree.layout import BUFFER, INDEX, META, NODES, TreeFolder
from backstory.adapters.formats.outside_files import Unfit, entries, is_plain, read_file, text_of
from backstory.domain.admission import admit_evidence
from backstory.domain.interchange import Unreadable
from backstory.domain.summary_tree import is_node_id
from backstory.ports.formats import ReadLimits

Json = Mapping[str, Any]


@dataclass(slots=True, kw_only=True)
class TreeFiles:
    """What one tree's folder says. ``nodes`` are by id, in the order of the index; ``aside`` are the texts of files
    that are no JSON of the kind, by path in the folder."""

    meta: Json | None = None
    index: Json | None = None
    nodes: dict[str, Json] = field(default_factory=dict)
    buffer: list[Json] = field(default_factory=list)
    problems: list[Unreadable] = field(default_factory=list)
    aside: dict[str, str] = field(default_factory=dict)
    written_at: datetime

    @property
    def is_empty(self) -> bool:
        """Whether nothing of a session stands in it."""
        return not self.nodes and not self.buffer


def read_tree(tree: TreeFolder, limits: ReadLimits) -> TreeFiles:
    """The files of a tree. Never raises for what stands in them."""
    found = TreeFiles(written_at=_written_at(tree.folder))
    found.meta = _object(tree, META, found, limits)
    found.index = _object(tree, INDEX, found, limits)
    found.buffer = _buffer(tree, found, limits)
    names = [path.name for path in entries(tree.folder / NODES, ends=".json") if is_plain(path)]
    if len(names) > limits.files:
        found.problems.append(_problem(tree, NODES, f"more than {limits.files:,} files"))
        names = []
    nodes = {name.removesuffix(".json"): told for name in names if (told := _node(tree, name, found, limits))}
    listed = [node for node in indexed(found.index) if node in nodes]
    found.nodes = {node: nodes[node] for node in dict.fromkeys([*listed, *sorted(nodes, key=_place)])}
    return found


def indexed(index: Json | None) -> list[str]:
    """The ids that an index lists, the lowest level first."""
    levels = index.get("nodes_by_level") if index is not None else None
    if not isinstance(levels, Mapping):
        return []
    known = sorted((level for level in levels if isinstance(level, str) and level.isdecimal()), key=int)
    return [node for level in known if isinstance(levels[level], list) for node in levels[level] if _is_node(node)]


def _node(tree: TreeFolder, name: str, found: TreeFiles, limits: ReadLimits) -> Json | None:
    path = f"{NODES}/{name}"
    if not is_node_id(name.removesuffix(".json")):
        found.problems.append(_problem(tree, path, "its name is no node's id"))
        return None
    told = _object(tree, path, found, limits, at_most=limits.record_bytes)
    if told is None:
        return None
    if told.get("id") != name.removesuffix(".json") or not isinstance(told.get("summary"), str):
        _set_aside(tree, path, found, "it is no node: its id is not its name, or it has no summary", limits)
        return None
    return told


def _buffer(tree: TreeFolder, found: TreeFiles, limits: ReadLimits) -> list[Json]:
    """The items of the buffer. Its value may be an object with JSON inside, or that JSON itself."""
    states = _object(tree, BUFFER, found, limits)
    if states is None or not states:
        return []
    state = states.get(tree.key, next(iter(states.values())) if len(states) == 1 else None)
    try:
        for _ in range(3):  # JSON in JSON in an object
            state = state.get("recent_buffer") if isinstance(state, dict) else state
            state = bounded_json(state) if isinstance(state, str) else state
    except Unfit as error:
        _set_aside(tree, BUFFER, found, f"the buffer in it is {error}", limits)
        return []
    if not isinstance(state, list):
        _set_aside(tree, BUFFER, found, "it holds no buffer of this session", limits)
        return []
    for number, item in enumerate(state):
        if not isinstance(item, dict):
            found.problems.append(_problem(tree, f"{BUFFER}, item {number}", "it is no message"))
    return [item for item in state if isinstance(item, dict)]


def _object(
    tree: TreeFolder, path: str, found: TreeFiles, limits: ReadLimits, *, at_most: int | None = None
) -> Json | None:
    """The JSON object in a file; None where there is no file, and, told of, where it is something else."""
    if not os.path.lexists(tree.folder / path):
        return None
    size = min(limits.file_bytes, DOCUMENT_BYTES if at_most is None else at_most)
    try:
        value = bounded_json(read_file(tree.folder / path, at_most=size))
    except Unfit as error:
        _set_aside(tree, path, found, str(error), limits)
        return None
    if not isinstance(value, dict):
        _set_aside(tree, path, found, "it is no JSON object", limits)
        return None
    return value


def _set_aside(tree: TreeFolder, path: str, found: TreeFiles, reason: str, limits: ReadLimits) -> None:
    """Tell of a file that cannot be read, and keep its text, cleaned, where it is one of a fit size."""
    found.problems.append(_problem(tree, path, reason))
    try:
        text = text_of(read_file(tree.folder / path, at_most=min(limits.record_bytes, limits.file_bytes)))
    except Unfit:
        return
    found.aside[path] = admit_evidence(text)


def _problem(tree: TreeFolder, path: str, reason: str) -> Unreadable:
    return Unreadable(where=f"{tree.where}/{path}", reason=reason)


def _is_node(value: object) -> bool:
    return isinstance(value, str) and is_node_id(value)


def _place(node: str) -> tuple[int, int]:
    level, _, number = node.removeprefix("node").partition("_")
    return int(level), int(number)


def _written_at(folder: Path) -> datetime:
    """When the newest of a tree's files was written: nothing in it is younger."""
    times = [path.lstat().st_mtime for path in entries(folder) if is_plain(path)]
    return datetime.fromtimestamp(max(times, default=folder.lstat().st_mtime), UTC)
