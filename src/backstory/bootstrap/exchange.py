"""The formats that memories come in by and leave by, and the services that move them."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from backstory.errors import InputError

if TYPE_CHECKING:
    from backstory.ports.formats import FormatReader, FormatWriter

_FORMATS = "backstory.adapters.formats"
READERS: dict[str, str] = {}
"""Where the reader of each format is, in the order in which a place is asked about; imported when it is used."""
WRITERS: dict[str, str] = {}
"""Where the writer of each format is."""


def reader(name: str) -> FormatReader:
    """The reader of a format. Raises InputError for a format that is not read."""
    made: FormatReader = _made(READERS, name)
    return made


def writer(name: str) -> FormatWriter:
    """The writer of a format. Raises InputError for a format that is not written."""
    made: FormatWriter = _made(WRITERS, name)
    return made


def _made(known: dict[str, str], name: str):  # type: ignore[no-untyped-def]  # either port, as the table says
    if name not in known:
        raise InputError(f"the format {name[:60]!r} is not known; known are {', '.join(known)}", field="format")
    module, _, attribute = known[name].partition(":")
    return getattr(import_module(module), attribute)()
