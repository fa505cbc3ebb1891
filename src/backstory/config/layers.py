"""Where values come from, and which wins: flags, then environment, project file, user file, defaults.

Files named ``.env`` are never read. What a project may set is decided in ``trust.py``.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType

from backstory.config.files import Unreadable, entries, read_document
from backstory.config.locations import CONFIG, HOME, home_folder, user_config_file
from backstory.config.names import unknown
from backstory.config.older import dependent_values, older_switches
from backstory.config.options import Layer, Option, Value
from backstory.config.settings import Settings, groups, options
from backstory.config.trust import read_project_file
from backstory.config.values import parse, place, printable
from backstory.errors import ConfigError

PREFIX = "BACKSTORY_"
NOT_SETTINGS = {
    "BACKSTORY_PLUGIN_LOG": "the file in which the OpenCode plugin notes its own faults",
    "BACKSTORY_CALLER": "who runs the command: a coding agent sets it to `agent` in its shells",
    "BACKSTORY_NO_BACKGROUND": "what keeps `backstory remember` from embedding in the background",
    "BACKSTORY_RENEW_GOLDEN": "what makes the tests write their golden files anew",
    "BACKSTORY_OPENCODE": "the OpenCode binary that our end-to-end tests run",
}
"""Variables of ours that others read; here they are only not unknown."""
TEST_PREFIX = "BACKSTORY_TEST_"
"""Variables that begin so are left to test runs."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Resolved:
    """The settings in force, where each came from, and what the user should be told.

    ``sources`` maps every option's dotted name to "default", "user file PATH", "project file PATH", "environment NAME"
    or "flag --NAME".
    """

    settings: Settings
    sources: Mapping[str, str]
    warnings: tuple[str, ...]


def load(
    *,
    env: Mapping[str, str],
    project_root: Path | None,
    flags: Mapping[str, object] = MappingProxyType({}),
    user_file: Path | None = None,
    left_out: Collection[str] = (),
) -> Resolved:
    """Find the value of every option.

    ``flags`` maps dotted option names to values, as text or already typed; None means the flag was not given.
    ``user_file`` is read in place of the user's own; like BACKSTORY_CONFIG, it must then exist. ``left_out`` are names
    in it to be passed over. An empty environment
    variable counts as not set. Raises ConfigError for whatever is wrong in flags, environment or user file; faults of
    the project's file are warnings. Without BACKSTORY_HOME, the platform's folders are asked from the process itself.
    """
    user = _user_file(env, user_file, left_out)
    above = {**_environment(env), **_flags(flags)}
    project, warnings = read_project_file(project_root, {**user, **above}) if project_root else ({}, [])
    given = {**user, **project, **above}
    dependent, notes = dependent_values(env, given)
    given = {**given, **dependent}
    return Resolved(
        settings=_settings(given, home_folder(env)),
        sources=MappingProxyType({option.name: given.get(option.name, (None, "default"))[1] for option in options()}),
        warnings=(*warnings, *notes),
    )


def _flags(flags: Mapping[str, object]) -> Layer:
    table = _table()
    layer: Layer = {}
    for name, raw in flags.items():
        if name not in table:
            raise unknown(name, table, source=f"flag {printable(name)}")
        if raw is None:
            continue
        option = table[name]
        if option.secret:
            raise exposed_secret(option, written=option.flag, source=f"flag {option.flag}", where="on a command line")
        source = f"flag {option.flag}"
        layer[name] = (parse(option, raw, written=option.flag, source=source, text=True), source)
    return layer


def _environment(env: Mapping[str, str]) -> Layer:
    _refuse_unknown_variables(env)
    layer: Layer = {}
    for option in options():
        name = next((name for name in (option.env, *option.aliases) if env.get(name, "").strip()), None)
        if name is not None:
            source = f"environment {name}"
            layer[option.name] = (parse(option, env[name], written=name, source=source, text=True), source)
    home = home_folder(env)
    if home is not None:
        layer["store.dir"] = (home, f"environment {HOME}")
    return {**older_switches(env), **layer}


def _refuse_unknown_variables(env: Mapping[str, str]) -> None:
    known = [*(option.env for option in options()), HOME, CONFIG, *NOT_SETTINGS]
    for name in env:
        if name.startswith(PREFIX) and not name.startswith(TEST_PREFIX) and name not in known:
            raise unknown(name, known, source=f"environment {printable(name)}")


def _user_file(env: Mapping[str, str], user_file: Path | None, left_out: Collection[str]) -> Layer:
    path = user_file or user_config_file(env)
    source = f"user file {printable(str(path))}"
    named = user_file is not None or bool(env.get(CONFIG, "").strip())
    table = _table()
    layer: Layer = {}
    for name, raw in entries(_user_document(path, source, must_exist=named), groups()):
        if name in left_out:
            continue
        if name not in table:
            raise unknown(name, table, source=source)
        if table[name].secret:
            raise exposed_secret(table[name], written=name, source=source, where="in a file")
        layer[name] = (parse(table[name], raw, written=name, source=source, text=False), source)
    return layer


def _user_document(path: Path, source: str, *, must_exist: bool) -> Mapping[str, object]:
    if str(path) == os.devnull:  # the customary way to ask for no file at all
        return {}
    try:
        document = read_document(path)
    except Unreadable as error:
        raise ConfigError(f"{source} {printable(str(error))}", option=CONFIG, source=source) from None
    if document is None and must_exist:
        raise ConfigError(f"{source} does not exist", option=CONFIG, source=source)
    return document or {}


def exposed_secret(option: Option, *, written: str, source: str, where: str) -> ConfigError:
    """The error for a secret that others could see ``where`` it was written, with where it belongs."""
    named = f"{option.name}_env"
    advice = f"set {option.env}" + (f", or name a variable of your own in {named}" if named in _table() else "")
    return ConfigError(
        f"{place(written, source)}: a secret does not belong {where}; {advice}", option=written, source=source
    )


def _table() -> dict[str, Option]:
    return {option.name: option for option in options()}


def _settings(given: Layer, home: Path | None) -> Settings:
    values: dict[str, dict[str, Value]] = {name: {} for name in groups()}
    for name, (value, _) in given.items():
        group, _, key = name.partition(".")
        values[group][key] = value
    built = {name: cls(**values[name]) for name, cls in groups().items()}
    return Settings(**built, home=home)
