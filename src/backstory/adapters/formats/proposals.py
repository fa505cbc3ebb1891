"""Memories of products that say little about theirs: what they all become here, and lists of them in plain text."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, time
from pathlib import Path
from types import MappingProxyType

from backstory.domain.interchange import ForeignMemory, foreign_id
from backstory.domain.memory import Kind, Memory, Source, Times, Visibility
from backstory.domain.provenance import Origin, Provenance

NEVER = datetime.fromtimestamp(0, tz=UTC)
"""Stands in ids of what has no date: the date of a file changes when it is copied."""
_LABEL_MAX_CHARS = 200
_TAG_MAX_CHARS = 64
_MOST_TAGS = 10
_MARK_MAX_CHARS = 1000  # of a heading or rule: a longer line is none, and would take long to be told so

_BULLET = re.compile(r"\s*(?:[-*+•–]|\d{1,4}[.)])\s+(?=\S)")
_DATED = re.compile(r"\[?(\d{4}-\d{2}-\d{2})\]?\s*(?:[-–—:]\s*)(?=\S)")
_UNDATED = re.compile(r"\[(?:unknown|no date|undated)\]\s*[-–—:]\s*(?=\S)", re.IGNORECASE)
_HEADING = re.compile(r"\s*#{1,6}\s+(.*?)\s*#*\s*")
_RULE = re.compile(r"\s*(?:[-*_=]\s*){3,}|\s*(?:```|~~~).*")


@dataclass(frozen=True, slots=True, kw_only=True)
class Listed:
    """An entry of a list of memories: its text, the heading above it, its date where it has one, its line."""

    text: str
    heading: str | None
    learned: datetime | None
    line: int


def proposal(
    format_name: str,
    key: Sequence[str],
    content: str,
    *,
    where: str,
    learned: datetime | None = None,
    undated: datetime = NEVER,
    updated: datetime | None = None,
    kind: Kind = Kind.FACT,
    area: str | None = None,
    tags: Sequence[str] = (),
    origin: Origin = Origin.IMPORTED,
    place: str | None = None,
    raw: Mapping[str, str] | None = None,
) -> ForeignMemory:
    """A memory that waits for a person to vouch for it: nothing of it is offered before.

    ``undated`` is when it counts as learned where the source does not say. With a ``place`` it is that project's,
    otherwise it is everybody's. What is too long for a label or a tag is cut or left out there.
    """
    since = learned or undated
    return ForeignMemory(
        memory=Memory(
            id=foreign_id(format_name, key, learned=learned or NEVER),
            content=content,
            kind=kind,
            visibility=Visibility.GLOBAL if place is None else Visibility.PROJECT,
            project=None,
            area=label(area),
            tags=fit_tags(tags),
            origin=origin,
            source=Source.IMPORTED,
            provenance=Provenance(
                origin_system=format_name, origin_id="/".join(key)[:_LABEL_MAX_CHARS], raw=MappingProxyType(raw or {})
            ),
            times=Times(learned=since, updated=max(since, updated or since), confirmed=max(since, updated or since)),
        ),
        place=place,
        where=where,
    )


def listed(text: str) -> Iterator[Listed]:
    """The entries of a list that a person copied: one for each bullet or number, with the lines that belong to it, or
    for each line where there is no mark. Dates in front, as ``[2025-03-01] - ``, are read."""
    heading: str | None = None
    entry: list[str] = []
    started = 0
    for number, line in enumerate([*text.splitlines(), ""], start=1):
        begins = _BULLET.match(line)
        is_long = len(line) > _MARK_MAX_CHARS
        title = None if is_long else _HEADING.fullmatch(line)
        goes_on = bool(entry) and line[:1].isspace() and line.strip() != "" and not begins
        if goes_on:
            entry.append(line.strip())
            continue
        if entry:
            yield _entry(entry, heading, started)
            entry = []
        if title:
            heading = title[1] or None
        elif line.strip() and (is_long or not _RULE.fullmatch(line)):
            entry, started = [line[begins.end() :].strip() if begins else line.strip()], number


def known_by(text: str) -> str:
    """The key of a memory that has only its words, whatever their letter case and blanks. A digest: where the text is
    erased, nothing of it may stay in a key."""
    return hashlib.sha256(" ".join(text.split()).casefold().encode("utf-8", "replace")).hexdigest()[:32]


def fit_tags(tags: Sequence[str]) -> tuple[str, ...]:
    """Of somebody's tags those that can be ours, each once, at most ten."""
    fit = (" ".join(tag.split()).lstrip("#") for tag in tags)
    return tuple(dict.fromkeys(tag for tag in fit if 0 < len(tag) <= _TAG_MAX_CHARS and tag.isprintable()))[:_MOST_TAGS]


def label(text: str | None) -> str | None:
    """A text as an area: one line, printable, cut at 200 characters; None where nothing is left."""
    line = " ".join("".join(char if char.isprintable() else " " for char in text or "").split())
    return (line if len(line) <= _LABEL_MAX_CHARS else line[: _LABEL_MAX_CHARS - 1].rstrip() + "…") or None


def changed_at(path: Path) -> datetime:
    """When a file was changed last."""
    try:
        return datetime.fromtimestamp(path.lstat().st_mtime, tz=UTC)
    except (OSError, OverflowError, ValueError):
        return NEVER


def moment(value: object) -> datetime | None:
    """A date as JSON has it: ISO 8601 (without a zone taken as UTC), or seconds or milliseconds since 1970."""
    try:
        if isinstance(value, str):
            told = datetime.fromisoformat(value)
            told = told.replace(tzinfo=UTC) if told.tzinfo is None else told.astimezone(UTC)
        elif isinstance(value, int | float) and not isinstance(value, bool):
            told = datetime.fromtimestamp(value / 1000 if abs(value) > 1e11 else value, tz=UTC)
        else:
            return None
    except (ValueError, OverflowError, OSError):
        return None
    return told if 1970 <= told.year < 9999 else None


def _entry(lines: list[str], heading: str | None, number: int) -> Listed:
    text = "\n".join(lines)
    learned = None
    if dated := _DATED.match(text):
        learned = _day(dated[1])
    if learned is not None and dated is not None:
        text = text[dated.end() :]
    elif nameless := _UNDATED.match(text):
        text = text[nameless.end() :]
    return Listed(text=text, heading=heading, learned=learned, line=number)


def _day(text: str) -> datetime | None:
    try:
        return datetime.combine(date.fromisoformat(text), time(), tzinfo=UTC)
    except ValueError:
        return None
