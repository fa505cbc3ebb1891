"""What a file's record must be to be kept: texts cleaned and masked, names fit to be shown, dates that can be."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from dataclasses import replace
from datetime import datetime, timedelta
from functools import lru_cache
from types import MappingProxyType
from typing import Any

from backstory.domain.admission import TextLimits, admit, admit_evidence, admit_label, admit_tags
from backstory.domain.ids import is_ulid
from backstory.domain.interchange import Keepsake
from backstory.domain.memory import Active, Conflicted, Deleted, Expired, Memory, Status, Superseded, Times
from backstory.domain.provenance import Origin, Provenance
from backstory.errors import InputError

LABEL_MAX_CHARS = 200
CONTENT_MAX_CHARS = 100_000
RAW_MAX_CHARS = 200_000
"""Of all that a memory's ``provenance.raw`` holds."""
KEEPSAKE_MAX_CHARS = 16_000_000
STORE = "store"
"""The key in ``provenance.raw`` that says which of several stores a memory came from."""
LABEL_PATH_MAX_CHARS = 1000
_PLAIN_ID = re.compile(r"(?:msg|ses|prt)_[0-9A-Za-z]{1,40}|[0-9A-HJKMNP-TV-Z]{26}", re.ASCII)
"""Ids of messages, sessions, parts and memories: no secret looks like one, and each is another, so that looking for one
in every id takes a tenth of an import."""
_NO_LABEL = re.compile(r"[\\:]|(?<![^/])\.\.?(?![^/])")  # no part of a path below another on every system
FUTURE = timedelta(days=1)
"""How far ahead a date may lie: clocks differ, and some stores write local time."""


def admit_memory(memory: Memory, *, max_chars: int, origin: Origin, label: str) -> Memory:
    """A memory as it may be kept, of that origin, new here; ``label`` names its store among several. Its project is
    still the source's. Raises InputError for one that may not be kept."""
    if not is_ulid(memory.id):
        raise InputError("its id is no ULID of 26 characters", field="id")
    _check_names(memory)
    _check_dates(memory)
    limits = TextLimits(min_chars=1, max_chars=max(max_chars, CONTENT_MAX_CHARS))
    status, expires_at = _without_expired(_with_fit_status(memory))
    return replace(
        memory,
        n=0,
        revision=0,
        origin=origin,
        status=status,
        expires_at=expires_at,
        content=admit(memory.content, field="content", limits=limits).text,
        tags=_tags(memory.tags),
        area=_label(memory.area, "area"),
        issue=_label(memory.issue, "issue"),
        provenance=_with_raw(memory.provenance, label),
    )


def in_the_future(memory: Memory, now: datetime) -> bool:
    """Whether a memory was learned or changed later than any clock says."""
    return max(memory.times.learned, memory.times.updated, memory.times.confirmed) > now + FUTURE


def not_in_the_future(memory: Memory, now: datetime) -> Memory:
    """The memory with no date later than now, so that it does not stand above all others for years."""
    times = memory.times
    return replace(
        memory,
        times=Times(
            learned=min(times.learned, now),
            updated=min(times.updated, now),
            confirmed=min(times.confirmed, now),
            surfaced=None if times.surfaced is None else min(times.surfaced, now),
            used=None if times.used is None else min(times.used, now),
        ),
    )


def admit_keepsake(keepsake: Keepsake) -> Keepsake:
    """A keepsake without secrets and private passages in any of its texts; as it was, letter by letter, where there
    are none. Raises InputError for what is no JSON, or too large."""
    if len(keepsake.text) > KEEPSAKE_MAX_CHARS:
        raise InputError(f"{len(keepsake.text)} characters; the limit is {KEEPSAKE_MAX_CHARS}", field="text")
    check_names((keepsake.key, keepsake.session, keepsake.memory), max_chars=4096)
    try:
        value = json.loads(keepsake.text)
        cleaned = _cleaned(value)
    except (ValueError, RecursionError) as error:
        raise InputError("it is no JSON, or nested too deeply", field="text") from error
    store = fit_label(keepsake.store)
    if cleaned == value and store == keepsake.store:
        return keepsake
    text = keepsake.text if cleaned == value else json.dumps(cleaned, ensure_ascii=False)
    return replace(keepsake, store=store, text=text)


def fit_label(label: str) -> str:
    """The label of a store as a path below another, whatever a file or a folder is called: an export writes there."""
    printable = "".join(char if char.isprintable() else "_" for char in label[:LABEL_PATH_MAX_CHARS])
    return _NO_LABEL.sub("_", printable).strip("/")


def admit_reason(text: str | None, *, field: str) -> str | None:
    """Why something was decided, cleaned and masked. Raises InputError for one that is too long."""
    if text is not None and len(text) > CONTENT_MAX_CHARS:
        raise InputError(f"it has {len(text)} characters; the limit is {CONTENT_MAX_CHARS}", field=field)
    return None if text is None else admit_evidence(text)


def check_names(names: Iterable[str | None], *, max_chars: int = LABEL_MAX_CHARS) -> None:
    """Raise InputError for an id or name that holds what no host or we would write: it is shown as it is."""
    for name in names:
        if name is not None and not _PLAIN_ID.fullmatch(name):
            _fit(name, "provenance", max_chars)


def check_aware(*moments: datetime | None) -> None:
    """Raise InputError for a date that no store keeps: without a zone, or outside of what all zones can say."""
    for moment in moments:
        if moment is None:
            continue
        if moment.tzinfo is None:
            raise InputError("a date has no time zone", field="times")
        if not 1 < moment.year < 9999:
            raise InputError(f"a date is in the year {moment.year}", field="times")


def _check_dates(memory: Memory) -> None:
    times = memory.times
    check_aware(times.learned, times.updated, times.confirmed, times.surfaced, times.used)
    check_aware(memory.expires_at, memory.provenance.extracted_at)


def _check_names(memory: Memory) -> None:
    source = memory.provenance
    own = (memory.project, memory.session, memory.namespace)
    told = (source.session, *source.messages, *source.derived_from, source.agent, source.tool, source.origin_system)
    check_names(name for name in (*own, *told) if name)


def _with_fit_status(memory: Memory) -> Memory:
    """The memory with a status whose words and names are fit to be shown."""
    status = memory.status
    if isinstance(status, Active):
        return memory
    check_aware(status.since)
    if isinstance(status, Superseded):
        check_names((status.by,))
    elif isinstance(status, Conflicted):
        check_names((status.against,))
        evidence = admit_reason(status.evidence, field="status.evidence") or ""
        return replace(memory, status=replace(status, evidence=evidence))
    elif isinstance(status, Deleted):
        return replace(memory, status=replace(status, reason=admit_reason(status.reason, field="status.reason")))
    return memory


def _without_expired(memory: Memory) -> tuple[Status, datetime | None]:
    """Expiry is derived from a date, never stored: a file that says so gets the date."""
    if not isinstance(memory.status, Expired):
        return memory.status, memory.expires_at
    return Active(), memory.expires_at or memory.status.since


def _label(text: str | None, field: str) -> str | None:
    return None if text is None else _masked_label(text, field)


@lru_cache(maxsize=4096)
def _masked_label(text: str, field: str) -> str:
    return admit_label(admit_evidence(text), field=field, max_chars=LABEL_MAX_CHARS)


@lru_cache(maxsize=4096)
def _tags(tags: tuple[str, ...]) -> tuple[str, ...]:
    return admit_tags([admit_evidence(tag) for tag in tags])


@lru_cache(maxsize=4096)
def _fit(name: str, field: str, max_chars: int) -> str:
    """A label that is fit. The same projects, sessions, tools and tags stand in record after record, and looking for a
    secret in each takes longer than writing the memory."""
    return admit_label(name, field=field, max_chars=max_chars)


def _with_raw(provenance: Provenance, label: str) -> Provenance:
    """The provenance with texts that are searched by nobody, and shown by ``why``: masked all the same."""
    if not provenance.raw and provenance.origin_id is None and not label:
        return provenance
    if sum(len(key) + len(value) for key, value in provenance.raw.items()) > RAW_MAX_CHARS:
        raise InputError(f"what it says of its source has more than {RAW_MAX_CHARS} characters", field="provenance.raw")
    raw = {admit_evidence(key): _masked(key, value) for key, value in provenance.raw.items()}
    if label or STORE in raw:
        raw[STORE] = fit_label(raw.get(STORE, label))
    origin_id = None if provenance.origin_id is None else admit_evidence(provenance.origin_id)
    return replace(provenance, raw=MappingProxyType(raw), origin_id=origin_id)


def _masked(key: str, value: str) -> str:
    """A text under its key, or JSON inside one, whose quotes and line breaks could hide where a secret ends."""
    if value[:1] not in ("{", "[", '"'):
        return str(_named(key, value))
    try:
        parsed = json.loads(value)
        cleaned = _cleaned(parsed)
    except (ValueError, RecursionError):
        return str(_named(key, value))
    return value if cleaned == parsed else json.dumps(cleaned, ensure_ascii=False)


def _cleaned(value: Any) -> Any:  # Any: JSON of any shape
    if isinstance(value, str):
        return admit_evidence(value)
    if isinstance(value, list):
        return [_cleaned(item) for item in value]
    if isinstance(value, dict):
        return {admit_evidence(key): _named(key, item) for key, item in value.items()}
    return value


def _named(key: str, value: Any) -> Any:  # Any: as above
    """A value under its key. A secret's name may be the key and the secret the value."""
    if not isinstance(value, str) or not value:
        return _cleaned(value)
    cleaned = admit_evidence(value)
    pair = json.dumps({key: cleaned}, ensure_ascii=False)
    masked = admit_evidence(pair)
    if masked == pair:
        return cleaned
    try:
        return json.loads(masked)[key]
    except (ValueError, KeyError, TypeError):
        return "[secret]"
