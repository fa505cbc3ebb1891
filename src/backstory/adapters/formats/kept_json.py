"""JSON of other products within bounds, and how what has no place of ours is kept of it: cleaned, word for word."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from backstory.adapters.formats.js_json import stringify
from backstory.adapters.formats.outside_files import Unfit, json_of
from backstory.domain.admission import admit_evidence
from backstory.domain.interchange import Keepsake, Unreadable

DOCUMENT_BYTES = 64 * 1024 * 1024
"""Of one JSON file that is held as a whole."""
MAX_DEPTH = 100
"""No store nests deeper; whatever walks through a value, or writes it, may recurse as deep."""
_SETTINGS_BYTES = 1024 * 1024
_SECRET_KEY = re.compile(r"key|token|secret|password", re.IGNORECASE)


def bounded_json(content: bytes | str) -> Any:
    """A JSON value. Raises Unfit where it is none, or is nested deeper than ``MAX_DEPTH``."""
    value = json_of(content)
    level, depth = [value], 0
    while level:
        depth += 1
        if depth > MAX_DEPTH:
            raise Unfit("JSON nested too deep")
        level = [item for outer in level for item in _inner(outer) if isinstance(item, dict | list)]
    return value


def kept_text(value: Any) -> str:
    """The text of a keepsake: JSON in which every text is cleaned of secrets and private passages."""
    return stringify(cleaned(value))


def cleaned(value: Any) -> Any:
    """A JSON value with every text in it cleaned, names of fields left alone."""
    if isinstance(value, str):
        return admit_evidence(value)
    if isinstance(value, dict):
        return {key: cleaned(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [cleaned(item) for item in value]
    return value


def kept_object(text: str) -> Mapping[str, Any]:
    """What ``kept_text`` was made of; empty where it is no object, as after a text in it was erased."""
    try:
        value = bounded_json(text)
    except Unfit:
        return {}
    return value if isinstance(value, dict) else {}


def settings_kept(path: Path, *, format_name: str, store: str) -> Iterator[Keepsake | Unreadable]:
    """The keepsake of a settings file, without its secrets, under the file's name; nothing where there is none."""
    try:
        text = settings_without_secrets(path)
    except Unfit as error:
        yield Unreadable(where=path.name, reason=str(error))
        return
    if text is not None:
        yield Keepsake(format=format_name, store=store, key=path.name, text=kept_text({"text": text}))


def settings_without_secrets(path: Path) -> str | None:
    """The text of a settings file with every key, token and password emptied; None where there is no such file.

    Raises Unfit where it cannot be read as JSON: what is secret in it could not be told.
    """
    import os

    from backstory.adapters.formats.outside_files import read_file, text_of

    if not os.path.lexists(path):
        return None
    text = text_of(read_file(path, at_most=_SETTINGS_BYTES))
    for secret in sorted(set(_secrets(bounded_json(text))), key=len, reverse=True):
        text = text.replace(stringify(secret), '""')
    return admit_evidence(text)


def _secrets(value: Any) -> list[str]:
    if isinstance(value, dict):
        own = [item for key, item in value.items() if isinstance(item, str) and item and _SECRET_KEY.search(key)]
        return own + [secret for item in value.values() for secret in _secrets(item)]
    return [secret for item in value for secret in _secrets(item)] if isinstance(value, list) else []


def _inner(value: Any) -> list[Any]:
    return list(value.values()) if isinstance(value, dict) else value if isinstance(value, list) else []
