"""Settings for a process that must go on when some are wrong: the OpenCode bridge, whose end nobody would notice."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from backstory.config.layers import Resolved, load
from backstory.config.locations import CONFIG, HOME
from backstory.config.settings import options
from backstory.errors import ConfigError

NO_EMBEDDER = ("BACKSTORY_EMBEDDER_PROVIDER", "none")
NO_ARCHIVE = ("BACKSTORY_ARCHIVE_ENABLED", "false")
NO_STORE = ("BACKSTORY_STORE_DIR", f"{os.devnull}/backstory")


def load_leniently(*, env: Mapping[str, str], project_root: Path | None) -> tuple[Resolved, tuple[str, ...]]:
    """Like ``load``, but what is wrong in the environment and the user's file is left out; returns what that was.

    All else holds. Where a fault leaves open what was wanted, less is done: with a wrong place for the store there is
    none, with a wrong ``archive.enabled`` nothing is archived, with anything wrong about the embedder nothing is
    embedded, and with a file that cannot be read neither. Raises ConfigError for what cannot be left out.
    """
    env = dict(env)
    left_out: set[str] = set()
    faults: list[str] = []
    while True:
        before = (dict(env), len(left_out))
        try:
            resolved = load(env=env, project_root=project_root, left_out=left_out)
        except ConfigError as error:
            faults.append(str(error))
            _leave_out(error, env, left_out)
            if before == (env, len(left_out)):
                raise
        else:
            return resolved, tuple(faults)


def _leave_out(error: ConfigError, env: dict[str, str], left_out: set[str]) -> None:
    in_environment = (error.source or "").startswith("environment ")
    if in_environment or (error.option in (HOME, CONFIG) and error.option in env):
        env.pop(error.option, None)
    elif error.option == CONFIG:
        env[CONFIG] = os.devnull
    else:
        left_out.add(error.option)
    env.update(_cautions(error.option))


def _cautions(written: str) -> list[tuple[str, str]]:
    if written == CONFIG:
        return [NO_ARCHIVE, NO_EMBEDDER]
    name = next((item.name for item in options() if written in (item.name, item.env, *item.aliases)), written)
    if written == HOME or name.startswith("store."):
        return [NO_STORE]
    if name == "archive.enabled":
        return [NO_ARCHIVE]
    return [NO_EMBEDDER] if name.startswith("embedder.") else []
