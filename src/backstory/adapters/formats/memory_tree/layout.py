"""Where opencode-memory-tree keeps what: the folders of a store, and the names of the files in them.

config.json
data/sessions/SESSION/index.json, buffer-states.json, meta.json, nodes/node0_001.json …
data/index.json, buffer-states.json, meta.json, nodes/…        before sessions were told apart: one tree for all
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from backstory.adapters.formats.outside_files import entries, is_folder, is_plain, read_start
from backstory.domain.summary_tree import is_node_id

FORMAT = "memory-tree"
INNER = (".opencode", "plugins", "memory-tree")
"""The folders between a project and its store."""
DATA, SESSIONS, NODES = "data", "sessions", "nodes"
CONFIG, META, INDEX, BUFFER = "config.json", "meta.json", "index.json", "buffer-states.json"
SINGLE = "default"
"""The key of the one tree of all sessions."""
SYNTHETIC = "synth_"
"""Begins the id of a message that stands for a node."""

_SESSION = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,199}", re.ASCII)
_INDEX_START = re.compile(rb'\s*\{\s*"(?:root_node_id|nodes_by_level)"')


@dataclass(frozen=True, slots=True, kw_only=True)
class TreeFolder:
    """The files of one tree. ``key`` is the session's id, or ``SINGLE``; ``where`` is its path in the store."""

    folder: Path
    key: str
    where: str


def data_of(place: Path) -> Path | None:
    """The data folder of a store that stands at a place; None where none does. The data folder alone is one, too."""
    return next((folder for folder in (place / DATA, place) if is_folder(folder) and _is_data(folder)), None)


def holds_others_data(place: Path) -> bool:
    """Whether something is called as the data folder of a store at a place would be, and is none."""
    data = place / DATA
    return os.path.lexists(data) and not (is_folder(data) and (_is_data(data) or not any(data.iterdir())))


def is_session_name(name: str) -> bool:
    """Whether a name can be a session's id, and a folder's name on any system."""
    return _SESSION.fullmatch(name) is not None and not name.endswith(".")


def tree_folders(data: Path) -> Iterator[TreeFolder]:
    """The one tree of all sessions, if there is one, then those of single sessions by name, fit or not."""
    top = "" if data.name != DATA else f"{DATA}/"
    if _is_tree(data):
        yield TreeFolder(folder=data, key=SINGLE, where=top.rstrip("/") or ".")
    if is_folder(data / SESSIONS):
        for folder in entries(data / SESSIONS):
            if is_folder(folder):
                yield TreeFolder(folder=folder, key=folder.name, where=f"{top}{SESSIONS}/{folder.name}")


def _is_data(folder: Path) -> bool:
    if _is_tree(folder):
        return True
    sessions = folder / SESSIONS
    return is_folder(sessions) and any(_is_tree(path) for path in entries(sessions) if is_folder(path))


def _is_tree(folder: Path) -> bool:
    if is_plain(folder / BUFFER) or _INDEX_START.match(read_start(folder / INDEX, size=200)):
        return True
    nodes = folder / NODES
    return is_folder(nodes) and any(is_node_id(path.stem) for path in entries(nodes, ends=".json"))
