"""What can be read of a ``store.json``: all of it, or what is left of a damaged one."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from backstory.adapters.formats.opencode_memory.json_text import Json, decoder

_SALVAGED_CHARS = 16_000_000
"""Of a damaged file that is searched for entries."""
_MISSES = 1_000
"""Beginnings of objects that turn out to be none; a file with more of them is not searched further."""
_MAX_DEPTH = 100


@dataclass(slots=True)
class Salvaged:
    """The store as it stands, with its entries apart; ``damage`` says what is wrong with the file, if anything is."""

    head: dict[str, Json] = field(default_factory=dict)
    entries: list[Json] = field(default_factory=list)
    damage: str | None = None


def salvage(text: str) -> Salvaged:
    """Read a store. Where the file is cut off or holds more than one object, all entries that are whole are found, each
    once where it has an id."""
    read, found, end = decoder(), Salvaged(), 0
    try:
        whole, end = read.raw_decode(text, len(text) - len(text.lstrip()))
    except (ValueError, RecursionError):
        whole = None
    if isinstance(whole, dict):
        found = _store(whole)
    if isinstance(whole, dict) and not text[end:].strip():
        return found
    found.damage = "the file is damaged; what is whole in it was read" if text.strip() else "the file is empty"
    known = {_id(entry) for entry in found.entries}
    for entry in _objects(text[end if isinstance(whole, dict) else 0 : _SALVAGED_CHARS]):
        store = _store(entry) if "entries" in entry else None
        if store is not None and not found.head:
            found.head = store.head
        for one in [entry] if store is None else store.entries:
            if (
                isinstance(one, dict)
                and isinstance(one.get("text"), str)
                and (_id(one) is None or _id(one) not in known)
            ):
                known.add(_id(one))
                found.entries.append(one)
    return found


def is_deep(value: Json) -> bool:
    """Whether a value is nested deeper than any store is: what walks through it must not run out of stack."""
    level, depth = [value], 0
    while level:
        depth += 1
        if depth > _MAX_DEPTH:
            return True
        level = [one for outer in level for one in _inner(outer) if isinstance(one, dict | list)]
    return False


def _store(value: dict[str, Json]) -> Salvaged:
    entries = value.get("entries")
    head = {key: [] if key == "entries" else one for key, one in value.items()}
    return Salvaged(head=head, entries=entries if isinstance(entries, list) else [])


def _objects(text: str) -> Iterator[dict[str, Json]]:
    """The whole objects in a text, the outermost ones."""
    read, position, misses = decoder(), text.find("{"), 0
    while position >= 0 and misses < _MISSES:
        end = position + 1
        try:
            found, end = read.raw_decode(text, position)
        except (ValueError, RecursionError):
            misses += 1
        else:
            if isinstance(found, dict):
                yield found
        position = text.find("{", end)


def _id(entry: Json) -> str | None:
    id_ = entry.get("id") if isinstance(entry, dict) else None
    return id_ if isinstance(id_, str) else None


def _inner(value: Json) -> list[Json]:
    if isinstance(value, dict):
        return [*value.values()]
    return value if isinstance(value, list) else []
