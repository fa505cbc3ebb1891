"""Memories of an assistant as people carry them away: a list in plain text or Markdown, or in JSON."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from pathlib import Path

from backstory.adapters.formats.outside_files import Json, Unfit, json_of, read_file, text_of, words
from backstory.adapters.formats.proposals import Listed, changed_at, known_by, listed, moment, proposal
from backstory.domain.interchange import ForeignMemory, Unreadable
from backstory.errors import InputError
from backstory.ports.formats import ReadLimits

_LISTS = ("memories", "memory", "items", "entries", "data")
_TEXTS = ("content", "memory", "text", "value", "fact")
_BORN = ("created_at", "created_timestamp", "create_time", "createdAt", "created", "date", "timestamp")
_CHANGED = ("updated_at", "updated_timestamp", "update_time", "updatedAt", "updated", "last_updated")

Listing = ForeignMemory | Unreadable


def read_list(path: Path, format_name: str, *, limits: ReadLimits) -> Iterator[Listing]:
    """A file's memories as proposals; what a person wrote twice is one. Raises InputError where it cannot be read."""
    try:
        text = text_of(read_file(path, at_most=limits.file_bytes))
    except Unfit as problem:
        raise InputError(f"{path} is {problem}", field="path") from problem
    records = _from_json(text, format_name) if text.lstrip()[:1] in ("[", "{") else None
    if records is None:
        records = _from_text(text, path, format_name)
    seen: set[str] = set()
    for record in records:
        if isinstance(record, ForeignMemory):
            if record.memory.id in seen:
                continue
            seen.add(record.memory.id)
        yield record


def _from_text(text: str, path: Path, format_name: str) -> Iterator[Listing]:
    undated = changed_at(path)
    for entry in listed(text):
        yield entry_proposal(entry, format_name, undated=undated)


def entry_proposal(entry: Listed, format_name: str, *, undated: datetime, place: str | None = None) -> ForeignMemory:
    """An entry of a list as a proposal, known again by its words."""
    return proposal(
        format_name,
        [known_by(entry.text)],
        entry.text,
        where=f"line {entry.line}",
        learned=entry.learned,
        undated=undated,
        area=entry.heading,
        place=place,
    )


def _from_json(text: str, format_name: str) -> Iterator[Listing] | None:
    """None where the text is no JSON after all: a list may begin with a date in brackets."""
    try:
        value = json_of(text)
    except Unfit:
        return None
    entries = _entries(value)
    if entries is None:
        raise InputError("no list of memories was found in the JSON", field="path")
    return _from_entries(entries, format_name)


def _entries(value: Json) -> list[Json] | None:
    if isinstance(value, list):
        return value
    lists = (value.get(name) for name in _LISTS) if isinstance(value, dict) else ()
    return next((found for found in lists if isinstance(found, list)), None)


def _from_entries(entries: list[Json], format_name: str) -> Iterator[Listing]:
    for number, entry in enumerate(entries, start=1):
        told = entry if isinstance(entry, dict) else {"text": entry}
        text = next((text for name in _TEXTS if (text := words(told.get(name)))), None)
        if text is None:
            yield Unreadable(where=f"entry {number}", reason="it has no text")
            continue
        own = words(told.get("id")) or words(told.get("uuid"))
        yield proposal(
            format_name,
            [own or known_by(text)],
            text.strip(),
            where=f"entry {number}",
            learned=next((date for name in _BORN if (date := moment(told.get(name)))), None),
            updated=next((date for name in _CHANGED if (date := moment(told.get(name)))), None),
        )
