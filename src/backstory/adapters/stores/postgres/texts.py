"""Texts that Postgres cannot hold: those with NUL, and with half a character (a lone surrogate)."""

from __future__ import annotations

import re
from collections.abc import Iterator

from backstory.codecs.record import encode_memory
from backstory.domain.history import Change
from backstory.errors import InputError

_UNSTORABLE = re.compile("[\x00\ud800-\udfff]")


def is_storable(text: str) -> bool:
    """Whether a text can be a value in Postgres; what cannot is in no row."""
    return _UNSTORABLE.search(text) is None


def check_storable(change: Change) -> None:
    """Raise InputError, which names the field, where a text of a change cannot be stored."""
    for field in ("reason", "session", "key"):
        _check(getattr(change, field), field)
    for edit in change.edits:
        for name, value in encode_memory(edit.after).items():
            _check(value, name)


def _check(value: object, field: str) -> None:
    for text in _texts(value):
        found = _UNSTORABLE.search(text)
        if found is not None:
            what = "a NUL character" if found.group() == "\x00" else f"half a character (U+{ord(found.group()):04X})"
            raise InputError(f"{field} contains {what}, which Postgres cannot hold", field=field)


def _texts(value: object) -> Iterator[str]:
    match value:
        case str():
            yield value
        case dict():
            for item in value.values():
                yield from _texts(item)
        case list() | tuple():
            for item in value:
                yield from _texts(item)
