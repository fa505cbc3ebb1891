"""Which folders OpenCode takes plugins from, and which files it takes settings from (read from 1.18.33).

Plugins are the files ``plugin/*.js|ts`` and ``plugins/*.js|ts`` of every configuration folder, subfolders not.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from backstory.adapters.project_folder import project_root, see_project
from backstory.errors import InstallError

Scope = Literal["global", "project"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """One of OpenCode's configuration folders; it may not exist. ``root`` is the checkout of a project's folder."""

    scope: Scope
    config: Path
    root: Path | None = None

    @property
    def plugins(self) -> Path:
        """Where we install."""
        return self.config / "plugins"

    @property
    def plugin_folders(self) -> tuple[Path, Path]:
        """Where OpenCode looks; an earlier installation may lie in either."""
        return self.config / "plugins", self.config / "plugin"


def global_place(env: Mapping[str, str]) -> Place:
    """The folder that every OpenCode of this user reads: ``opencode`` in XDG_CONFIG_HOME, else in ``~/.config``.

    OPENCODE_CONFIG_DIR names one that is read besides, not instead. Raises InstallError when neither variable tells.
    """
    if base := env.get("XDG_CONFIG_HOME", ""):
        return Place(scope="global", config=_absolute(base, "XDG_CONFIG_HOME") / "opencode")
    return Place(scope="global", config=_home(env) / ".config" / "opencode")


def project_place(directory: Path) -> Place:
    """``.opencode`` at the root of the checkout that holds ``directory``; outside git, in the folder itself."""
    root = project_root(directory)
    return Place(scope="project", config=root / ".opencode", root=root)


def places(env: Mapping[str, str], directory: Path) -> list[Place]:
    """Every folder an OpenCode started in ``directory`` reads, the user's own first, each once."""
    found = [*_own(env), *(Place(scope="project", config=d / ".opencode", root=d) for d in _upward(directory))]
    if Path(home := env.get("HOME", "")).is_absolute():
        found.append(Place(scope="global", config=Path(home) / ".opencode"))
    if extra := env.get("OPENCODE_CONFIG_DIR"):
        found.append(Place(scope="global", config=Path(extra).absolute()))
    unique: dict[Path, Place] = {}
    for place in sorted(found, key=lambda place: place.scope):  # a home folder's is both, and counts as global
        unique.setdefault(place.config, place)
    return list(unique.values())


def config_files(env: Mapping[str, str], directory: Path) -> Iterator[Path]:
    """Every settings file that OpenCode would read in ``directory``, whether or not it exists."""
    for own in _own(env):
        yield own.config / "config.json"
    for place in places(env, directory):
        yield from _settings_in(place.config)
    for folder in _upward(directory):
        yield from _settings_in(folder)
    if named := env.get("OPENCODE_CONFIG"):
        yield Path(named).absolute()


def _own(env: Mapping[str, str]) -> list[Place]:
    """The user's own folder, where it is known."""
    try:
        return [global_place(env)]
    except InstallError:
        return []


def _settings_in(folder: Path) -> tuple[Path, Path]:
    return folder / "opencode.json", folder / "opencode.jsonc"


def _upward(directory: Path) -> list[Path]:
    """The folder and its parents as far as OpenCode walks: to the root of the checkout, outside git to the top."""
    here = directory.resolve()
    in_git = see_project(here).aliases[0].startswith("git:")
    top = project_root(here) if in_git else None
    walked = []
    for folder in (here, *here.parents):
        walked.append(folder)
        if folder == top:
            break
    return walked


def _home(env: Mapping[str, str]) -> Path:
    home = env.get("HOME", "")
    if not home:
        raise InstallError(
            "HOME is not set, so OpenCode's configuration folder is not known;"
            " set HOME or XDG_CONFIG_HOME, or use --project"
        )
    return _absolute(home, "HOME")


def _absolute(text: str, variable: str) -> Path:
    path = Path(text)
    if not path.is_absolute():
        raise InstallError(f"{variable} is {text!r}, which is not an absolute path")
    return path
