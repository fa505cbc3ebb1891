"""memory_export, memory_import and memory_compact as opencode-plugin-git-memory has them."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from datetime import datetime
from typing import Any, Literal

from pydantic import Field

from backstory.adapters.formats.git_memory.records import memory_of
from backstory.adapters.stores.gitbranch.tree import format_ts
from backstory.codecs.logfmt import Record, encode_record, parse_lines
from backstory.domain.context_block import quote
from backstory.domain.memory import Memory, Sensitivity
from backstory.domain.topics import TYPES, topic_of, type_of, written
from backstory.entrypoints.tools.sets.git_memory.topics import topics
from backstory.entrypoints.tools.tool import Answer, Arguments, Call, Effect, Tool
from backstory.errors import InputError

Format = Literal["jsonl", "json", "logfmt"]
NAMESPACE = "agent"
_MOST_CHARS = 1_000_000  # of one import, and so of one export
_MOST_RECORDS = 5_000  # about 2 s
_SHOWN_LINE = 80
_SHOWN_REFUSED = 5


class ExportArguments(Arguments):
    """Arguments of memory_export."""

    format: Format = Field(default="jsonl", description="In which form.")
    includeDeletions: bool = Field(default=False, description="logfmt only: say how many were deleted, too.")


async def export(arguments: ExportArguments, call: Call) -> Answer:
    """The memories that may leave, as text for a model: its markup is defused."""
    memories = [m for m in await topics(call).all(call.viewer) if m.sensitivity is Sensitivity.NORMAL]
    match arguments.format:
        case "jsonl":
            text = "\n".join(json.dumps(_shape(m), ensure_ascii=False, separators=(",", ":")) for m in memories)
        case "json":
            text = json.dumps([_shape(m) for m in memories], ensure_ascii=False, indent=2)
        case "logfmt":
            lines = [encode_record(_without_commas(_record(m))) for m in memories]
            if arguments.includeDeletions:
                lines.append("# deleted memories are not shown to models; `backstory history` lists them")
            text = "\n".join(lines)
    if len(text) > _MOST_CHARS:
        raise InputError(
            f"{len(memories)} memories are {len(text)} characters; one answer has at most {_MOST_CHARS}",
            field="format",
            hint="the user can run `backstory export --format git-memory`",
        )
    return Answer(text=text, title=f"{len(memories)} memories")


def _shape(memory: Memory) -> dict[str, object]:
    record = _record(memory)
    shape: dict[str, object] = {
        "ts": record.ts, "type": record.type, "scope": record.scope, "content": record.content,
    }  # fmt: skip
    return (
        shape | ({"issue": record.issue} if record.issue else {}) | ({"tags": list(record.tags)} if record.tags else {})
    )


def _record(memory: Memory) -> Record:
    return Record(
        ts=format_ts(written(memory)),
        type=type_of(memory),
        scope=quote(topic_of(memory)),
        content=_defused(memory.content),
        issue=None if memory.issue is None else quote(memory.issue),
        tags=tuple(map(quote, memory.tags)),
    )


def _without_commas(record: Record) -> Record:
    """A line separates tags by commas."""
    return replace(record, tags=tuple(tag.replace(",", "%2C") for tag in record.tags))


def _defused(text: str) -> str:
    """The text with its line breaks and blanks, its markup made harmless."""
    return "\n".join(
        line[: len(line) - len(line.lstrip())] + quote(line) + line[len(line.rstrip()) :] if line.strip() else line
        for line in text.split("\n")
    )


class ImportArguments(Arguments):
    """Arguments of memory_import."""

    data: str = Field(min_length=1, max_length=_MOST_CHARS, description="Records as memory_export gives them.")
    format: Format = Field(default="jsonl", description="In which form.")
    dryRun: bool = Field(default=False, description="true: only say what would come in.")


async def import_(arguments: ImportArguments, call: Call) -> Answer:
    """Take records in, or none of them where the text cannot be read."""
    try:
        memories = list(_memories(arguments, call.app.clock.now()))
    except _Unreadable as error:
        return Answer(text=error.args[0], title="not read", failed=True)
    if len(memories) > _MOST_RECORDS:
        raise InputError(
            f"data has {len(memories)} records; the limit is {_MOST_RECORDS}",
            field="data",
            hint="the user can run `backstory import`",
        )
    taken = await topics(call).take_in(
        memories, viewer=call.viewer, provenance=call.provenance(), dry_run=arguments.dryRun
    )
    lines = [f"{'Would import' if arguments.dryRun else 'Imported'} {taken.added} memory(s)"]
    if taken.known:
        lines.append(f"{taken.known} were here already")
    lines += [f"Not imported: {quote(reason)}" for reason in taken.refused[:_SHOWN_REFUSED]]
    if len(taken.refused) > _SHOWN_REFUSED:
        lines.append(f"and {len(taken.refused) - _SHOWN_REFUSED} more")
    title = f"{taken.added} {'to import' if arguments.dryRun else 'imported'}"
    return Answer(text="\n".join(lines), title=title)


class _Unreadable(Exception):
    """The text as a whole is not what it is said to be."""


def _memories(arguments: ImportArguments, now: datetime) -> Iterator[Memory]:
    """What the records tell, as a file of them would."""
    for record in _records(arguments):
        try:
            yield memory_of(record, namespace=NAMESPACE)
        except InputError:  # no time that can be read: it is new
            yield memory_of(replace(record, ts=format_ts(now)), namespace=NAMESPACE)


def _records(arguments: ImportArguments) -> Iterator[Record]:
    match arguments.format:
        case "logfmt":
            yield from (line.record for line in parse_lines(arguments.data) if line.record is not None)
        case "json":
            try:
                values = json.loads(arguments.data)
            except (ValueError, RecursionError):
                raise _Unreadable("Failed to parse JSON: invalid format") from None
            if not isinstance(values, list):
                raise _Unreadable("Expected JSON array of memories")
            yield from map(_record_of, filter(_is_record, values))
        case "jsonl":
            values = [_value(line) for line in arguments.data.splitlines() if line.strip()]
            yield from map(_record_of, filter(_is_record, values))


def _value(line: str) -> Any:  # Any: JSON of any shape
    try:
        return json.loads(line)
    except (ValueError, RecursionError):
        shown = quote(line.strip()[:_SHOWN_LINE])
        raise _Unreadable(f"Failed to parse JSON at line: {shown}") from None


def _is_record(value: object) -> bool:
    """Whether it is one of a known type; others are left out, as the original does."""
    return isinstance(value, dict) and value.get("type") in TYPES


def _record_of(value: dict[str, Any]) -> Record:  # Any: JSON of any shape
    def text(name: str) -> str:
        return value[name] if isinstance(value.get(name), str) else ""

    tags = value.get("tags")
    return Record(
        ts=text("ts"),
        type=value["type"],
        scope=text("scope"),
        content=text("content"),
        issue=text("issue") or None,
        tags=tuple(tag for tag in tags if isinstance(tag, str) and tag.strip()) if isinstance(tags, list) else (),
    )


class CompactArguments(Arguments):
    """Arguments of memory_compact."""

    dryRun: bool = Field(default=False, description="true: only say what would go.")


async def compact(arguments: CompactArguments, call: Call) -> Answer:
    """Let one stand for memories that are equal in every field."""
    total, gone = await topics(call).compact(call.viewer, dry_run=arguments.dryRun)
    verb = "Would compact" if arguments.dryRun else "Compacted"
    text = f"{verb} {total} memories to {total - gone} unique memories ({gone} duplicate(s) removed)"
    return Answer(text=text, title=f"{gone} duplicates")


EXPORT = Tool(
    name="memory_export",
    description=(
        "Write the memories of this project as jsonl, json or logfmt, for the user to read or keep. Private ones stay"
        " here. For a complete copy the user runs `backstory export`."
    ),
    arguments=ExportArguments,
    handler=export,
    effect=Effect.READS,
)
IMPORT = Tool(
    name="memory_import",
    description=(
        "Take in records in the form of memory_export, with their own times. Only when the user asks for it; they count"
        " as imported until the user confirms them. For one statement use memory_remember."
    ),
    arguments=ImportArguments,
    handler=import_,
    effect=Effect.ADDS,
    adds_many=True,
)
COMPACT = Tool(
    name="memory_compact",
    description=(
        "Remove memories that equal another in every field, such as those written twice by accident. Use it when the"
        " user asks to clean up; what is only alike stays."
    ),
    arguments=CompactArguments,
    handler=compact,
)
