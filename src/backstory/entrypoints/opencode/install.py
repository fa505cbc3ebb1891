"""What an installation in OpenCode consists of, and how it is made, renewed and taken away.

A plan is made first and says everything that will happen, so that it can be shown instead of being carried out.
Files are ours when they say so themselves; nothing else is ever replaced or removed.
"""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Literal, assert_never

from backstory.__about__ import __version__
from backstory.config.files import leads_outside
from backstory.entrypoints.opencode.files import read_regular, reason, remove, write_whole
from backstory.entrypoints.opencode.locations import Place
from backstory.entrypoints.opencode.offline import SEED_FILES, is_seeded
from backstory.entrypoints.opencode.sidecar import FILE as SIDECAR
from backstory.entrypoints.opencode.sidecar import KEY as SIDECAR_KEY
from backstory.entrypoints.opencode.sidecar import Sidecar
from backstory.errors import InstallError

PLUGIN = "backstory.js"
MARKER = "// backstory:plugin "
"""The first line of an installed plugin file begins so, and goes on with the version."""

_PACKAGED = Path(__file__).with_name("plugin.js")

Action = Literal["create", "update", "keep", "remove"]


class FileState(StrEnum):
    """How a file compares with what this Backstory would write."""

    MISSING = "missing"
    CURRENT = "current"
    STALE = "stale"
    FOREIGN = "foreign"


@dataclass(frozen=True, slots=True, kw_only=True)
class FileChange:
    """One file and what happens to it. ``content`` is what it will hold; None when it is removed."""

    path: Path
    action: Action
    content: bytes | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """Everything an installation or its removal will do. ``left`` are files with our names that are not ours."""

    place: Place
    changes: tuple[FileChange, ...]
    left: tuple[Path, ...] = ()

    def paths(self, *actions: Action) -> list[Path]:
        """The files to which one of these happens."""
        return [change.path for change in self.changes if change.action in actions]


@dataclass(frozen=True, slots=True, kw_only=True)
class Installation:
    """An installation as it lies there. ``version`` and ``command`` are empty where they cannot be read."""

    place: Place
    folder: Path
    plugin: FileState
    sidecar: FileState
    version: str
    command: tuple[str, ...]
    env: Mapping[str, str]

    @property
    def is_ours(self) -> bool:
        """Whether OpenCode would load our plugin from here."""
        return self.plugin in (FileState.CURRENT, FileState.STALE)


def packaged_plugin() -> bytes:
    """The plugin file as it is installed: the packaged one under a line that marks it as ours."""
    header = f"{MARKER}{__version__}, written by `backstory install opencode`; edits are lost at the next install\n"
    return header.encode() + _PACKAGED.read_bytes()


def plan_install(place: Place, sidecar: Sidecar, *, offline_seed: bool = False) -> Plan:
    """What installing at ``place`` will do; nothing, when it is done already.

    Raises InstallError when a file there has our name but is not ours, when a project's folder leads out of the
    project, or when ``offline_seed`` would have to touch npm's own files.
    """
    _check_folder(place)
    seeds = _seeds(place.config) if offline_seed and not is_seeded(place.config) else []
    # the sidecar first: the plugin must never be found without it
    new = [(place.plugins / SIDECAR, sidecar.content()), (place.plugins / PLUGIN, packaged_plugin())]
    _, earlier = place.plugin_folders
    changes = (*seeds, *(_to_write(path, content) for path, content in new), *_to_remove(earlier))
    return Plan(place=place, changes=changes)


def plan_uninstall(place: Place) -> Plan:
    """What removing the installation at ``place`` will do; no changes when there is none. Folders stay."""
    found = [change for folder in place.plugin_folders for change in _to_remove(folder)]
    left = [
        folder / name
        for folder in place.plugin_folders
        for name in (PLUGIN, SIDECAR)
        if _exists(folder / name) and folder / name not in [change.path for change in found]
    ]
    seeds = [place.config / name for name, content in SEED_FILES.items() if _content(place.config / name) == content]
    if len(seeds) == len(SEED_FILES):  # one that was changed means that npm has taken over
        found += [FileChange(path=path, action="remove") for path in seeds]
    return Plan(place=place, changes=tuple(found), left=tuple(left))


def carry_out(plan: Plan) -> None:
    """Make the changes, in order. Raises InstallError at the first that fails; running the same again goes on there."""
    for change in plan.changes:
        match change.action:
            case "create" | "update":
                assert change.content is not None
                write_whole(change.path, change.content)
            case "remove":
                remove(change.path)
                if change.path.parent.name == "node_modules":
                    with contextlib.suppress(OSError):  # not empty: somebody else's packages
                        change.path.parent.rmdir()
            case "keep":
                pass
            case _:
                assert_never(change.action)


def installations(places: Sequence[Place]) -> list[Installation]:
    """Everything with our names in these folders, ours or not, in their order."""
    return list(_found(places))


def _found(places: Sequence[Place]) -> Iterator[Installation]:
    for place in places:
        for folder in place.plugin_folders:
            plugin, sidecar = folder / PLUGIN, folder / SIDECAR
            if _exists(plugin) or _exists(sidecar):
                fields = _sidecar_fields(sidecar)
                yield Installation(
                    place=place,
                    folder=folder,
                    plugin=_state(plugin),
                    sidecar=_state(sidecar),
                    version=str(fields.get("version", "")),
                    command=_words(fields.get("command")),
                    env=_text_values(fields.get("env")),
                )


def differs(installation: Installation, wanted: Sidecar) -> list[str]:
    """In what the installed sidecar differs from the one that would be written now, in words; the command aside."""
    fields = _sidecar_fields(installation.folder / SIDECAR)
    now = json.loads(wanted.content())
    words = {"version": "version", "manifest": "tools", "deadlines_ms": "deadlines", "env": "folders"}
    return [word for name, word in words.items() if fields.get(name) != now[name]]


def is_plugin(path: Path) -> bool:
    """Whether a file is our plugin, of whatever version and under whatever name."""
    content = _content(path)
    return content is not None and _is_ours(path.with_name(PLUGIN), content)


def _check_folder(place: Place) -> None:
    for folder in (place.config, place.plugins):
        if place.root is not None and leads_outside(folder, place.root):
            raise InstallError(f"{folder} is a link that leads out of the project {place.root}; nothing was written")
        if _exists(folder) and not folder.is_dir():
            what = "a link that leads nowhere" if folder.is_symlink() else "not a folder"
            raise InstallError(f"{folder} is {what}; move it away and install again")


def _seeds(config: Path) -> list[FileChange]:
    for name in SEED_FILES:
        if _exists(config / name):
            raise InstallError(
                f"{config / name} is there already, so this folder is npm's; let OpenCode run npm here once instead"
            )
    return [FileChange(path=config / name, action="create", content=content) for name, content in SEED_FILES.items()]


def _to_write(path: Path, content: bytes) -> FileChange:
    try:
        present = read_regular(path)
    except OSError as error:
        raise InstallError(f"{path} cannot be read and is left as it is: {reason(error)}") from error
    if present is None:
        return FileChange(path=path, action="create", content=content)
    if present == content:
        return FileChange(path=path, action="keep", content=content)
    if not _is_ours(path, present):
        raise InstallError(f"{path} was not written by Backstory and is left as it is; move it away and install again")
    return FileChange(path=path, action="update", content=content)


def _to_remove(folder: Path) -> Iterator[FileChange]:
    for name in (PLUGIN, SIDECAR):  # the plugin first, as above
        content = _content(folder / name)
        if content is not None and _is_ours(folder / name, content):
            yield FileChange(path=folder / name, action="remove")


def _state(path: Path) -> FileState:
    if not _exists(path):
        return FileState.MISSING
    content = _content(path)
    if content is None or not _is_ours(path, content):
        return FileState.FOREIGN
    if path.name == PLUGIN:
        return FileState.CURRENT if content == packaged_plugin() else FileState.STALE
    return FileState.CURRENT if _sidecar_fields(path).get("version") == __version__ else FileState.STALE


def _is_ours(path: Path, content: bytes) -> bool:
    if path.name == PLUGIN:
        return content.startswith(MARKER.encode()) or content == _PACKAGED.read_bytes()
    return path.name == SIDECAR and SIDECAR_KEY in _fields(content)


def _sidecar_fields(path: Path) -> Mapping[str, object]:
    return _fields(_content(path) or b"")


def _fields(content: bytes) -> Mapping[str, object]:
    try:
        fields = json.loads(content)
    except (ValueError, RecursionError):
        return {}
    return fields if isinstance(fields, dict) else {}


def _content(path: Path) -> bytes | None:
    try:
        return read_regular(path)
    except OSError:
        return None


def _exists(path: Path) -> bool:
    """Whether anything is there, as far as may be seen; a link counts wherever it leads."""
    return os.path.lexists(path)


def _words(value: object) -> tuple[str, ...]:
    return tuple(value) if isinstance(value, list) and all(isinstance(word, str) and word for word in value) else ()


def _text_values(value: object) -> dict[str, str]:
    return {name: text for name, text in value.items() if isinstance(text, str)} if isinstance(value, dict) else {}
