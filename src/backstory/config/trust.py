"""What a project's own file may set. It comes with the repository, so it is somebody else's word.

It may tune within the limits and switch features off. It may not name stores, folders, endpoints, models or keys, and
may not switch on what would be off without it. Whatever is wrong with it is a warning, never an error.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from backstory.config.files import Unreadable, entries, leads_outside, read_document
from backstory.config.locations import PROJECT_FILE
from backstory.config.names import unknown
from backstory.config.options import Layer, Option, Value
from backstory.config.settings import groups, options
from backstory.config.values import parse, place, printable
from backstory.errors import ConfigError

_MAX_WARNINGS = 10


def read_project_file(root: Path, without: Layer) -> tuple[Layer, list[str]]:
    """What the project's file sets, and what the user should be told about the rest.

    ``without`` is what all other layers give; it tells whether the project tries to switch something on. At most ten
    warnings, and one that counts the others.
    """
    path = root / PROJECT_FILE
    source = f"project file {printable(str(path))}"
    try:
        if path.is_symlink() and leads_outside(path, root):
            raise Unreadable("is a link that leads out of the project")
        document = read_document(path) or {}
    except Unreadable as error:
        return {}, [f"{source} {printable(str(error))}; it is ignored"]
    return _accepted(document, source, without)


def _accepted(document: Mapping[str, object], source: str, without: Layer) -> tuple[Layer, list[str]]:
    table = {option.name: option for option in options()}
    accepted: Layer = {}
    warnings: list[str] = []
    unsaid = 0
    for name, raw in entries(document, groups()):
        if name not in table and len(warnings) == _MAX_WARNINGS:
            unsaid += 1  # without the search for the nearest name, which thousands of keys would make slow
            continue
        try:
            if name not in table:
                raise unknown(name, table, source=source)
            value = _permitted(table[name], raw, source, without)
        except ConfigError as error:
            if len(warnings) < _MAX_WARNINGS:
                warnings.append(f"{error}; it is ignored")
            else:
                unsaid += 1
        else:
            if value is not None:
                accepted[name] = (value, source)
    if unsaid:
        warnings.append(f"{source}: {unsaid:,} more settings are ignored")
    return accepted, warnings


def _permitted(option: Option, raw: object, source: str, without: Layer) -> Value:
    """The value the project gives; None if that changes nothing. Raises ConfigError if the project may not give it."""
    where = place(option.name, source)
    if option.project == "never":
        raise ConfigError(f"{where}: a project may not set this", option=option.name, source=source)
    value = parse(option, raw, written=option.name, source=source, text=False)
    if option.project == "safe" or value == option.off:
        return value
    if value == without.get(option.name, (option.default, ""))[0]:
        return None
    message = f"{where}: a project may only set this to {str(option.off).lower()}"
    raise ConfigError(message, option=option.name, source=source)
