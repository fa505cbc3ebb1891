"""What in OpenCode's own settings gets in the way of the plugin. They are read, never written."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from urllib.parse import unquote

from backstory.config.values import SWITCH_WORDS
from backstory.entrypoints.opencode import jsonc
from backstory.entrypoints.opencode.files import read_regular, reason
from backstory.entrypoints.opencode.install import PLUGIN, installations, is_plugin
from backstory.entrypoints.opencode.locations import Place, config_files, places

_PACKAGE_NAMES = ("backstory", "opencode-backstory")
_HINTS = {
    "OPENCODE_PURE": "OpenCode loads no plugin at all (as with --pure)",
    "OPENCODE_DISABLE_PROJECT_CONFIG": "OpenCode does not look into the project's .opencode folder",
}


def obstacles(env: Mapping[str, str], directory: Path) -> list[str]:
    """Everything that keeps the plugin from loading or makes it load twice, one sentence each; empty when all is well.

    Looks at what an OpenCode started in ``directory`` under ``env`` would read.
    """
    found = [
        *_switches(env, directory),
        *_several(places(env, directory)),
        *_copies(places(env, directory)),
    ]
    for path in dict.fromkeys(config_files(env, directory)):
        found += _in_file(path)
    return found


def _switches(env: Mapping[str, str], directory: Path) -> Iterator[str]:
    for name, effect in _HINTS.items():
        if SWITCH_WORDS.get(env.get(name, "").strip().lower(), False):
            if name != "OPENCODE_PURE" and not _only_in_project(env, directory):
                continue
            yield f"{name} is set here, and so {effect}"


def _only_in_project(env: Mapping[str, str], directory: Path) -> bool:
    scopes = {found.place.scope for found in installations(places(env, directory)) if found.is_ours}
    return scopes == {"project"}


def _several(places: Sequence[Place]) -> Iterator[str]:
    """The plugin guards against being loaded twice; but which one wins is then OpenCode's choice."""
    folders = [str(found.folder) for found in installations(places) if found.is_ours]
    if len(folders) > 1:
        yield f"Backstory is installed more than once, and one of them is enough: {', '.join(folders)}"


def _copies(places: Sequence[Place]) -> Iterator[str]:
    for place in places:
        for folder in place.plugin_folders:
            try:
                paths = sorted(path for path in folder.iterdir() if path.suffix in (".js", ".ts"))
            except OSError:
                continue
            for path in paths:
                if path.name != PLUGIN and is_plugin(path):
                    yield f"{path} is another copy of the plugin; remove it"


def _in_file(path: Path) -> Iterator[str]:
    try:
        content = read_regular(path)
        config = jsonc.loads(content.decode("utf-8")) if content else None
    except OSError as error:
        yield f"{path} cannot be read: {reason(error)}"
    except ValueError as error:
        why = "not UTF-8" if isinstance(error, UnicodeDecodeError) else str(error)
        yield f"{path} is not valid JSON with comments ({why}), so OpenCode will not start"
    else:
        for entry in _entries(config):
            yield from _about(entry, path)


def _entries(config: object) -> Iterator[str]:
    """The plugins that a configuration names, with or without options, for 1.x (``plugin``) and 2.x (``plugins``)."""
    if not isinstance(config, dict):
        return
    for key in ("plugin", "plugins"):
        listed = config.get(key)
        for entry in listed if isinstance(listed, list) else []:
            if isinstance(entry, list) and entry:
                entry = entry[0]
            if isinstance(entry, dict):
                entry = entry.get("package")
            if isinstance(entry, str):
                yield entry


def _about(entry: str, config: Path) -> Iterator[str]:
    if not entry.startswith((".", "/", "file:")):
        if entry.partition("@")[0] in _PACKAGE_NAMES:
            yield f"{config} names the npm package {entry!r}, which is not Backstory's; remove that plugin entry"
        return
    path = Path(unquote(entry.removeprefix("file://"))) if entry.startswith("file:") else config.parent / entry
    if path.name == PLUGIN or is_plugin(path):
        what = "which OpenCode finds by itself" if os.path.exists(path) else "which is not there"  # noqa: PTH110 - never raises
        yield f"{config} has a plugin entry for {entry!r}, {what}; remove that entry"
