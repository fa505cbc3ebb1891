"""The memory of the MCP reference server: a file with an entity or a relation in each line, as proposals."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime
from pathlib import Path

from backstory.adapters.formats.outside_files import (
    Json,
    Unfit,
    entries,
    is_folder,
    is_plain,
    json_of,
    lines,
    named,
    read_start,
    words,
)
from backstory.adapters.formats.proposals import changed_at, known_by, proposal
from backstory.domain.interchange import ForeignMemory, ForeignRecord, Unreadable
from backstory.errors import InputError
from backstory.ports.formats import FoundStore, ReadLimits

_ENDINGS = (".json", ".jsonl")
_START_BYTES = 64 * 1024
_LOOKED_AT_FILES = 20


class McpMemory:
    """Found by what the first line of a file says. In a folder, only files that are called after memory are looked
    at: it stands in one with a program's own."""

    name = "mcp-memory"

    def find(self, place: str) -> Sequence[FoundStore]:
        path = named(place)
        if is_plain(path):
            return [FoundStore(format=self.name, place=str(path))] if _is_graph(path) else []
        candidates = [
            file
            for file in (entries(path) if is_folder(path) else ())
            if "memory" in file.name.lower() and file.suffix in _ENDINGS and is_plain(file)
        ]
        return [
            FoundStore(format=self.name, place=str(file), label=file.name)
            for file in candidates[:_LOOKED_AT_FILES]
            if _is_graph(file)
        ]

    def read(self, store: FoundStore, *, limits: ReadLimits) -> Iterator[ForeignRecord]:
        """Each observation of an entity is one, and each relation between two."""
        path = Path(store.place)
        undated = changed_at(path)
        seen: set[str] = set()
        try:
            for number, line in lines(path, at_most=limits.file_bytes, line_bytes=limits.record_bytes):
                for record in _records(number, line, undated, limits):
                    if isinstance(record, ForeignMemory):
                        if record.memory.id in seen:
                            continue
                        seen.add(record.memory.id)
                    yield record
        except Unfit as problem:
            raise InputError(f"{path} is {problem}", field="path") from problem


def _records(number: int, line: bytes | None, undated: datetime, limits: ReadLimits) -> Iterator[ForeignRecord]:
    where = f"line {number}"
    if line is None:
        yield Unreadable(where=where, reason=f"longer than {limits.record_bytes:,} bytes")
        return
    if not line.strip():
        return
    try:
        told = json_of(line)
    except Unfit as problem:
        yield Unreadable(where=where, reason=str(problem))
        return
    if _is_entity(told):
        yield from _entity(told, where, undated)
    elif _is_relation(told):
        said = f"{told['from']} {told['relationType'].replace('_', ' ')} {told['to']}"
        yield proposal(
            McpMemory.name, ["relation", known_by(said)], said, where=where, undated=undated, area=told["from"],
            raw={"relationType": told["relationType"]},
        )  # fmt: skip
    else:
        yield Unreadable(where=where, reason="neither an entity nor a relation")


def _entity(told: Json, where: str, undated: datetime) -> Iterator[ForeignRecord]:
    name, kind = told["name"], told["entityType"]
    observations = told["observations"] or [f"a {kind.replace('_', ' ')}"]
    for position, observation in enumerate(observations, start=1):
        if not words(observation):
            yield Unreadable(where=f"{where}, observation {position}", reason="it has no text")
            continue
        yield proposal(
            McpMemory.name, ["entity", known_by(name), known_by(observation)], f"{name}: {observation.strip()}",
            where=f"{where}, observation {position}", undated=undated, area=name, tags=(kind,),
            raw={"entityType": kind},
        )  # fmt: skip


def _is_graph(path: Path) -> bool:
    first = next((line for line in read_start(path, size=_START_BYTES).splitlines() if line.strip()), b"")
    try:
        told = json_of(first)
    except Unfit:
        return False
    return _is_entity(told) or _is_relation(told)


def _is_entity(told: Json) -> bool:
    return (
        isinstance(told, dict)
        and told.get("type") == "entity"
        and all(words(told.get(name)) for name in ("name", "entityType"))
        and isinstance(told.get("observations"), list)
    )


def _is_relation(told: Json) -> bool:
    return (
        isinstance(told, dict)
        and told.get("type") == "relation"
        and all(words(told.get(name)) for name in ("from", "to", "relationType"))
    )
