"""Folders at a place and below it, in which stores of other products may stand. Links are not followed."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

from backstory.adapters.formats.outside_files import entries, is_folder

MOST_FOLDERS = 20_000
"""Looked through in one search; a store lies near the place that somebody names."""
MOST_DEEP = 12
_PASSED_OVER = frozenset({".git", "node_modules", ".venv", "__pycache__"})


def folders_below(place: str) -> Iterator[tuple[str, Path]]:
    """The place, if it is a folder, and those below it, each with its path from there (``""`` for the place itself).

    By name, a folder before those in it. The place itself may be a link: somebody named it.
    """
    top = Path(os.path.realpath(Path(place).expanduser()))
    if not is_folder(top):
        return
    waiting: list[tuple[str, Path, int]] = [("", top, 0)]
    for _ in range(MOST_FOLDERS):
        if not waiting:
            return
        label, folder, depth = waiting.pop()
        yield label, folder
        if depth < MOST_DEEP:
            below = [path for path in entries(folder) if path.name not in _PASSED_OVER and is_folder(path)]
            waiting += [(f"{label}/{path.name}".lstrip("/"), path, depth + 1) for path in reversed(below)]


def project_of(folder: Path, *, inner: tuple[str, ...]) -> str | None:
    """The project that a store's folder lies in; None where that cannot be told, as of a copy.

    ``inner`` are the names of the folders between the two. A project is what has a git directory of its own.
    """
    parts = folder.parts
    if not inner or parts[-len(inner) :] != inner:
        return None
    project = Path(*parts[: -len(inner)])
    return str(project) if os.path.lexists(project / ".git") else None
