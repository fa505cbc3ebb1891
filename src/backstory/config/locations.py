"""Which folders and files settings and data live in. Reading them is in ``files.py``."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from backstory.config.values import folder, place, shown
from backstory.errors import ConfigError

HOME = "BACKSTORY_HOME"
CONFIG = "BACKSTORY_CONFIG"
PROJECT_FILE = ".backstory.toml"


def home_folder(env: Mapping[str, str]) -> Path | None:
    """The folder that holds settings, data and cache when BACKSTORY_HOME is set."""
    return _named(env, HOME)


def user_config_file(env: Mapping[str, str]) -> Path:
    """The user's file: BACKSTORY_CONFIG, else ``config.toml`` in BACKSTORY_HOME, else in the platform's folder.

    Raises ConfigError if one of them is not an absolute path, or if there is no home folder to look in.
    """
    named = _named(env, CONFIG)
    if named is not None:
        return named
    return (home_folder(env) or platform_folder("config")) / "config.toml"


def platform_folder(purpose: str) -> Path:
    """Backstory's own folder for ``config``, ``data`` or ``cache``, where this platform keeps such things."""
    from platformdirs import PlatformDirs  # 5 ms, and not needed with BACKSTORY_HOME

    folders = PlatformDirs("backstory", appauthor=False)
    path = {"config": folders.user_config_path, "data": folders.user_data_path, "cache": folders.user_cache_path}[
        purpose
    ]
    if not path.is_absolute():
        message = f"there is no home folder to keep {purpose} in; set {HOME} to an absolute path"
        raise ConfigError(message, option=HOME, source="default")
    return path


def _named(env: Mapping[str, str], name: str) -> Path | None:
    text = env.get(name, "").strip()
    if not text:
        return None
    try:
        return folder(text)
    except ValueError as error:
        source = f"environment {name}"
        raise ConfigError(f"{place(name, source)}: {shown(text)} {error}", option=name, source=source) from None
