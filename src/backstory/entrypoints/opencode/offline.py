"""Making OpenCode believe that its own npm package is there, for machines that cannot reach npm.

For every configuration folder OpenCode 1.18 installs a package with npm, and waits for that before it loads any plugin:
75 s when the registry refuses. It skips this when ``node_modules`` is there and the lock file's root names the package.
Ours needs no package; another plugin that imports it would then silently fail to load.
"""

from __future__ import annotations

import json
from pathlib import Path

from backstory.entrypoints.opencode.files import read_regular

PACKAGE = "@opencode-ai/plugin"

_WANTS = {"dependencies": {PACKAGE: "*"}}


def _lines(value: object) -> bytes:
    return (json.dumps(value, indent=2) + "\n").encode()


SEED_FILES = {
    "node_modules/.backstory-offline": b"Made by `backstory install opencode --offline-seed`.\n",
    "package.json": _lines(_WANTS),
    "package-lock.json": _lines({"lockfileVersion": 3, "packages": {"": _WANTS}}),
}
"""What is written, by path below the configuration folder."""


def is_seeded(config: Path) -> bool:
    """Whether OpenCode will skip npm in this folder, because it has run already or was made to believe so."""
    wanted = {PACKAGE, *_named(_read(config / "package.json"))}
    return (config / "node_modules").is_dir() and wanted <= _named(_root(_read(config / "package-lock.json")))


def _read(path: Path) -> object:
    try:
        value: object = json.loads(read_regular(path) or b"null")
    except (OSError, ValueError, RecursionError):
        return None
    return value


def _root(lock: object) -> object:
    packages = lock.get("packages") if isinstance(lock, dict) else None
    return packages.get("") if isinstance(packages, dict) else None


def _named(package: object) -> set[str]:
    """The names of all dependencies, of every sort."""
    if not isinstance(package, dict):
        return set()
    sorts = ("dependencies", "devDependencies", "peerDependencies", "optionalDependencies")
    return {str(name) for sort in sorts if isinstance(package.get(sort), dict) for name in package[sort]}
