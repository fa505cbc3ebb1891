"""Where opencode-observational-memory keeps what: ``om-state`` with a file for each session, ``om-config.json``."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from backstory.adapters.formats.outside_files import entries, is_folder, is_plain, read_start

CONFIG, STATES = "om-config.json", "om-state"
INNER = (".opencode",)
"""The folder between a project and its store."""

_SESSION = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,199}", re.ASCII)
_STARTS = re.compile(rb'\s*\{\s*"sessionId"\s*:\s*"([^"\\]{1,200})"\s*,\s*"observations"')
_LOOKED_AT = 20


def states_of(place: Path) -> Path | None:
    """The folder of states of a store that stands at a place; None where none does. That folder alone is one, too,
    whatever it is called."""
    if is_folder(place / STATES) and next(state_files(place / STATES), None) is not None:
        return place / STATES
    first = [path for path in entries(place, ends=".json") if is_plain(path)][:_LOOKED_AT]
    return place if any(map(_is_state, first)) else None


def state_files(folder: Path) -> Iterator[Path]:
    """The files of a folder of states, by name, fit or not."""
    return (path for path in entries(folder, ends=".json") if is_plain(path) and path.name != CONFIG)


def _is_state(path: Path) -> bool:
    """Whether a file begins as a state does, and is named after the session in it."""
    found = _STARTS.match(read_start(path, size=500))
    return found is not None and found[1] == path.stem.encode()


def is_session_name(name: str) -> bool:
    """Whether a name can be a session's id, and a file's name on any system."""
    return _SESSION.fullmatch(name) is not None
