"""A memory as JSON: what is missing takes its default, what is wrong is named."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import pytest

from backstory.codecs.record import (
    decode_memory,
    decode_provenance,
    decode_status,
    encode_memory,
    encode_provenance,
    format_time,
)
from backstory.domain.ids import MessageId
from backstory.domain.memory import Active, Expired
from backstory.domain.provenance import Origin, Provenance
from backstory.errors import InputError
from backstory.testing.fakes import FULL_MEMORY, START, sample_memory

LEAST: dict[str, Any] = {"id": FULL_MEMORY.id, "content": "x", "times": {"learned": "2026-03-02T12:00:00Z"}}


def test_every_field_comes_back_through_json() -> None:
    assert decode_memory(json.loads(json.dumps(encode_memory(FULL_MEMORY)))) == FULL_MEMORY


def test_what_a_memory_was_made_from_is_a_list_that_older_records_have_not() -> None:
    encoded = encode_memory(FULL_MEMORY)
    provenance = encoded["provenance"]
    assert isinstance(provenance, dict)
    assert provenance["derived_from"] == list(FULL_MEMORY.provenance.derived_from)
    older = {name: value for name, value in provenance.items() if name != "derived_from"}
    assert decode_provenance(older) == replace(FULL_MEMORY.provenance, derived_from=())
    assert "derived_from" not in encode_provenance(Provenance(messages=(MessageId("m1"),)))
    for wrong in ("x", [1], {"a": "b"}):
        with pytest.raises(InputError, match="derived_from"):
            decode_provenance({"derived_from": wrong})


def test_what_is_missing_takes_its_default() -> None:
    memory = decode_memory(LEAST)
    assert (memory.times.updated, memory.times.confirmed, memory.times.used) == (START, START, None)
    assert (memory.origin, memory.status, memory.provenance) == (Origin.IMPORTED, Active(), Provenance())
    assert (memory.tags, memory.weight, memory.namespace) == ((), 1.0, "agent")


@pytest.mark.parametrize(
    ("fields", "field"),
    [
        ({"colour": 1}, "colour"),
        ({"id": None}, "id"),
        ({"id": "x"}, "id"),
        ({"id": 5}, "id"),
        ({"content": ""}, "content"),
        ({"content": ["x"]}, "content"),
        ({"kind": "poem"}, "kind"),
        ({"kind": 1}, "kind"),
        ({"tags": "x"}, "tags"),
        ({"tags": [1]}, "tags"),
        ({"pinned": 1}, "pinned"),
        ({"n": -1}, "n"),
        ({"n": True}, "n"),
        ({"n": 1.5}, "n"),
        ({"n": 1 << 63}, "n"),
        ({"weight": 1.01}, "weight"),
        ({"confidence": float("nan")}, "confidence"),
        ({"expires_at": "soon"}, "expires_at"),
        ({"expires_at": 5}, "expires_at"),
        ({"expires_at": "0001-01-01T00:00:00+14:00"}, "expires_at"),
        ({"expires_at": "9999-12-31T23:59:59-01:00"}, "expires_at"),
        ({"times": {}}, "times.learned"),
        ({"times": []}, "times.learned"),
        ({"times": "x"}, "times"),
        ({"times": {"learned": "2026-03-02", "born": "x"}}, "times.born"),
        ({"counters": {"helpful": "x"}}, "counters.helpful"),
        ({"status": "active"}, "status"),
        ({"status": {}}, "status.state"),
        ({"status": {"state": "poem"}}, "status.state"),
        ({"status": {"state": "active", "mood": "x"}}, "status.mood"),
        ({"status": {"state": "superseded", "since": "2026-03-02"}}, "status.by"),
        ({"status": {"state": "deleted"}}, "status.since"),
        ({"provenance": {"raw": []}}, None),
        ({"provenance": {"raw": ["x"]}}, "provenance.raw"),
        ({"provenance": {"mood": "x"}}, "provenance.mood"),
        ({"provenance": "x"}, "provenance"),
    ],
)
def test_what_is_wrong_is_named(fields: dict[str, Any], field: str | None) -> None:
    if field is None:
        decode_memory(LEAST | fields)
        return
    with pytest.raises(InputError) as caught:
        decode_memory(LEAST | fields)
    assert caught.value.field == field
    assert field in str(caught.value)


def test_times_are_written_in_utc_and_read_from_any_zone() -> None:
    east = datetime(2026, 3, 2, 14, 0, 0, 5, tzinfo=timezone(timedelta(hours=2)))
    assert format_time(east) == "2026-03-02T12:00:00.000005Z"
    assert format_time(START) == "2026-03-02T12:00:00Z"
    for text in ("2026-03-02T14:00:00+02:00", "2026-03-02T12:00:00", "2026-03-02 12:00:00Z"):
        assert decode_memory(LEAST | {"times": {"learned": text}}).times.learned == START


def test_nothing_known_is_written_as_nothing() -> None:
    assert encode_memory(sample_memory())["provenance"] == {}
    assert decode_provenance(None) == Provenance()
    assert decode_status(None) == Active()


def test_a_derived_status_can_be_written_and_read() -> None:
    since = datetime(2026, 1, 1, tzinfo=UTC)
    assert decode_status({"state": "expired", "since": "2026-01-01T00:00:00Z"}) == Expired(since=since)
