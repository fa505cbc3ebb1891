"""Memories, changes and other JSON with texts taken out of them: whole memories, or what a rewriting says."""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Mapping
from dataclasses import fields, is_dataclass, replace
from datetime import datetime
from enum import Enum
from typing import TypeVar, cast

from backstory.codecs.record import decode_memory, encode_memory, format_time
from backstory.domain.erasure import ERASED, ERASED_REASON, Rewrite
from backstory.domain.memory import Memory, searchable_text

_TEXTS = ("content", "area", "issue")
_STATUS_TEXTS = ("evidence", "reason")
_PROVENANCE_TEXTS = ("tool", "agent", "origin_id")
_PROVENANCE_KEPT = ("session", "messages", "derived_from")
_DIGEST = re.compile(r"[0-9a-f]{16,}")
_T = TypeVar("_T")

NAMES = frozenset({
    "id", "session", "message", "part", "memory", "project", "parent", "change", "undoes", "hash", "lease_token",
    "lease", "target", "through", "directory", "sources", "children", "shown_for", "role", "host", "model", "author",
    "action", "strategy", "feature", "outcome", "made_by", "prompt",
})  # fmt: skip
"""Fields and columns that say which thing or which of several is meant, not what somebody said."""


def without(memory: Memory, erased: Collection[str], rewrite: Rewrite, *, at: datetime) -> Memory:
    """A memory as it is kept from now on: nothing but its ids and times where it is one of ``erased``, else with its
    texts rewritten. The same object where that changes nothing."""
    record = encode_memory(memory)
    kept = rewritten_record(record, erased, rewrite, at=at)
    return memory if kept == record else decode_memory(kept)


def rewritten_record(
    record: Mapping[str, object], erased: Collection[str], rewrite: Rewrite, *, at: datetime
) -> dict[str, object]:
    """The same for a memory as ``codecs.record`` writes it. What cannot be a memory has all its texts rewritten."""
    if record.get("id") in erased:
        return dict(record) if _is_tombstone(record) else _tombstone(record, at)
    if not isinstance(record.get("content"), str):
        return rewritten_json(dict(record), rewrite)
    kept = dict(record)
    _rewrite_fields(kept, _TEXTS, rewrite)
    tags = record.get("tags")
    if isinstance(tags, list):
        kept["tags"] = list(dict.fromkeys(rewrite(tag) if isinstance(tag, str) else tag for tag in tags))
    for name, texts in (("status", _STATUS_TEXTS), ("provenance", _PROVENANCE_TEXTS)):
        inner = record.get(name)
        if isinstance(inner, dict):
            kept[name] = told = dict(inner)
            _rewrite_fields(told, texts, rewrite)
            if isinstance(told.get("raw"), dict):
                told["raw"] = {name: _but_for_digests(value, rewrite) for name, value in told["raw"].items()}
    return kept


def _but_for_digests(value: object, rewrite: Rewrite) -> object:
    """A value of what a memory was made from; a digest is no text, whatever stands in it."""
    return value if not isinstance(value, str) or _DIGEST.fullmatch(value) else rewritten_text(value, rewrite)


def changed_text(before: Memory, after: Memory) -> tuple[str, str]:
    """What a person would look at to see how two states of a memory differ: their words, or else all of them."""
    words = (searchable_text(before), searchable_text(after))
    return words if words[0] != words[1] else (_dump(encode_memory(before)), _dump(encode_memory(after)))


def _tombstone(record: Mapping[str, object], at: datetime) -> dict[str, object]:
    """What is left of an erased memory: every one of its states in the history becomes this one, so that undoing what
    was done to it leads nowhere."""
    provenance = record.get("provenance")
    told = provenance if isinstance(provenance, dict) else {}
    return {
        **record,
        "content": ERASED,
        "area": None,
        "tags": [],
        "issue": None,
        "pinned": False,
        "expires_at": None,
        "status": {"state": "deleted", "since": format_time(at), "reason": ERASED_REASON},
        "provenance": {name: told[name] for name in _PROVENANCE_KEPT if name in told},
    }


def _is_tombstone(record: Mapping[str, object]) -> bool:
    status = record.get("status")
    return record.get("content") == ERASED and isinstance(status, dict) and status.get("reason") == ERASED_REASON


def _rewrite_fields(record: dict[str, object], names: Collection[str], rewrite: Rewrite) -> None:
    for name in names:
        value = record.get(name)
        if isinstance(value, str):
            record[name] = rewrite(value)


def rewritten_image(text: str, erased: Collection[str], rewrite: Rewrite, *, at: datetime) -> str:
    """An entry of the history with texts taken out; one that is no JSON is rewritten as a text. The very same text
    where nothing changes."""
    try:
        record = json.loads(text)
    except (ValueError, RecursionError):
        return rewrite(text)
    if not isinstance(record, dict):
        return rewritten_text(text, rewrite)
    kept = rewritten_record(record, erased, rewrite, at=at)
    return text if kept == record else _dump(kept)


def rewritten_change(text: str, erased: Collection[str], rewrite: Rewrite, *, at: datetime) -> str:
    """A change as ``codecs.change`` writes it, with texts taken out of its reason, its key and its memories."""
    lines = text.split("\n")
    return "\n".join(_rewritten_line(line, erased, rewrite, at) if line else line for line in lines)


def _rewritten_line(line: str, erased: Collection[str], rewrite: Rewrite, at: datetime) -> str:
    try:
        value = json.loads(line)
    except (ValueError, RecursionError):
        return rewrite(line)
    if not isinstance(value, dict):
        return rewritten_text(line, rewrite)
    kept = dict(value)
    for name in ("before", "after"):
        if isinstance(kept.get(name), dict):
            kept[name] = rewritten_record(kept[name], erased, rewrite, at=at)
    if "after" not in kept:
        _rewrite_fields(kept, ("reason",), rewrite)
        if isinstance(kept.get("key"), str) and rewrite(kept["key"]) != kept["key"]:
            kept["key"] = erased_key(str(kept.get("id")))
    return line if kept == value else json.dumps(kept, ensure_ascii=False)


def erased_key(change: str) -> str:
    """The key of a change whose own held what is gone; no two changes have the same."""
    return f"erased:{change}"


def rewritten_text(text: str, rewrite: Rewrite) -> str:
    """A text, or the texts in it where it is JSON. The very same text where nothing changes."""
    if text[:1] in ("{", "["):
        try:
            value = json.loads(text)
        except (ValueError, RecursionError):
            return rewrite(text)
        kept = rewritten_json(value, rewrite)
        return text if kept == value else _dump(kept)
    return rewrite(text)


def rewritten_column(text: str, rewrite: Rewrite) -> str:
    """What one of our own columns holds: a text, or JSON of ours, in which names stay and a list of texts is one of
    ids. The very same text where nothing changes."""
    if text[:1] not in ("{", "["):
        return rewrite(text)
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return rewrite(text)
    kept = _but_for_names(value, rewrite)
    return text if kept == value else _dump(kept)


def _but_for_names(value: object, rewrite: Rewrite) -> object:
    if isinstance(value, list):
        return [item if isinstance(item, str) else _but_for_names(item, rewrite) for item in value]
    if isinstance(value, dict):
        return {
            name: item if name in NAMES else rewrite(item) if isinstance(item, str) else _but_for_names(item, rewrite)
            for name, item in value.items()
        }
    return value


def rewritten_detail(text: str, rewrite: Rewrite) -> str:
    """What is known of a part, as JSON: its texts one by one, then all of it as one text, since a name and the value
    beside it may tell only together what the value is."""
    inside = rewritten_text(text, rewrite)
    return inside if inside == ERASED else rewrite(inside)


def rewritten_json(value: _T, rewrite: Rewrite) -> _T:
    """A JSON value with its texts rewritten; the names of fields stay."""
    kept: object = value
    if isinstance(value, str):
        kept = rewrite(value)
    elif isinstance(value, list):
        kept = [rewritten_json(item, rewrite) for item in value]
    elif isinstance(value, dict):
        kept = {name: rewritten_json(item, rewrite) for name, item in value.items()}
    return cast("_T", kept)  # the same kind of value as before


def rewritten_value(value: _T, rewrite: Rewrite) -> _T:
    """A value of the domain with its texts rewritten; its ids, names and times stay. The same object where nothing
    changes."""
    kept: object = value
    if isinstance(value, tuple):  # texts in it are ids
        kept = tuple(item if isinstance(item, str) else rewritten_value(item, rewrite) for item in value)
    elif is_dataclass(value) and not isinstance(value, type):
        changed = {
            item.name: new
            for item in fields(value)
            if (new := _rewritten_field(item.name, old := getattr(value, item.name), rewrite)) is not old
        }
        kept = replace(value, **changed) if changed else value
    return value if kept == value else cast("_T", kept)  # the same kind of value as before


def _rewritten_field(name: str, value: object, rewrite: Rewrite) -> object:
    if isinstance(value, str) and not isinstance(value, Enum):
        kept = value if name in NAMES else rewritten_text(value, rewrite)
        return value if kept == value else kept
    return rewritten_value(value, rewrite) if name not in NAMES else value


def _dump(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))
