"""Stores of opencode-memory that are damaged or hostile: what is whole comes in, the rest is told."""

from __future__ import annotations

import base64
import json
from pathlib import Path
from typing import Any

import pytest

from backstory.adapters.formats.opencode_memory.json_text import js_text
from backstory.adapters.formats.opencode_memory.reader import OpencodeMemoryReader
from backstory.domain.interchange import ForeignMemory, ForeignRecord, Remark, Unreadable
from backstory.errors import InputError
from backstory.ports.formats import FoundStore, ReadLimits
from tests.unit.adapters.formats.exchange import Exchange
from tests.unit.adapters.formats.opencode_memories import ENTRIES, PEAR, PLUM, QUINCE, entry, taken_out, written
from tests.unit.adapters.formats.opencode_memories import exchange as exchange

CASES = Path(__file__).resolve().parents[5] / "shared" / "cases" / "json-store-corruption.jsonl"


def reasons(records: list[ForeignRecord]) -> list[str]:
    return [f"{record.where}: {record.reason}" for record in records if isinstance(record, Unreadable)]


@pytest.mark.parametrize("wrong", [7, None, [], "text", {}, {"text": 7}, {"text": " "}, {"text": None}])
def test_what_is_no_entry_is_told_and_stops_no_other(tmp_path: Path, wrong: object) -> None:
    records = Exchange("opencode-memory").records(written(tmp_path, [entry(id="a"), wrong, entry(id="b")]))
    assert reasons(records) == ["entry 2: it has no text"]
    assert sum(isinstance(record, ForeignMemory) for record in records) == 2


ODD: list[object] = [
    None, True, -1, 0, 10**400, -(10**30), 1e308, 0.5, "", "NaN", "2025-01-01", "\x00\x1b[31m", "\ud800", "../../etc",
    "x" * 9000, [], [[]], {}, {"$ne": 1}, ["\u0000", 7, None],
]  # fmt: skip
FIELDS = (
    "category", "scope", "projectID", "weight", "lastSeen", "source", "created", "createdBy", "sourceSessionID",
    "sourceMessageIDs", "extractedAt", "confidence", "tier", "pinned", "expiresAt", "sensitivity", "id", "status",
    "conflictEvidence", "conflictAt", "supersededAt", "useCount", "lastUsed", "helpfulCount", "surfacedCount",
)  # fmt: skip


@pytest.mark.parametrize("field", FIELDS)
def test_no_value_of_any_field_is_an_error(exchange: Exchange, tmp_path: Path, field: str) -> None:
    entries = [
        entry(id=f"id{n}", text=f"Kept {n}.", status="CONFLICTED") | {field: value} for n, value in enumerate(ODD)
    ]
    tmp_path.joinpath("store.json").write_text(json.dumps({"version": 2, "entries": entries}))
    report = exchange.bring_in(tmp_path)
    assert report.new.memories + report.refused.count == len(ODD)
    assert report.new.memories >= len(ODD) - 3 or field == "projectID"
    assert json.loads(js_text(taken_out(exchange, tmp_path)))["version"] == 2


@pytest.mark.parametrize(
    "literal", ["NaN", "Infinity", "-Infinity", "1e999", "9" * 5000, "1e-400", "-0", "0.1e1", "12345678901234567890"]
)
def test_numbers_that_no_json_can_write_again_are_taken_as_nothing(
    exchange: Exchange, tmp_path: Path, literal: str
) -> None:
    text = json.dumps({"version": 2, "entries": [entry(weight="HERE")]}).replace('"HERE"', literal)
    (tmp_path / "store.json").write_text(text)
    assert exchange.bring_in(tmp_path).new.memories == 1
    again = taken_out(exchange, tmp_path)["entries"][0]["weight"]
    assert again is None or isinstance(again, int | float)


def test_text_beyond_the_limit_and_values_nested_too_deep_are_told(tmp_path: Path) -> None:
    deep: Any = 1
    for _ in range(200):
        deep = [deep]
    written(tmp_path, [entry(id="a", text="x" * 200), entry(id="b", extra=deep)])
    store = json.loads((tmp_path / "store.json").read_text())
    (tmp_path / "store.json").write_text(json.dumps(store | {"deep": deep}))
    records = Exchange("opencode-memory").records(tmp_path, limits=ReadLimits(record_bytes=100))
    assert reasons(records) == ["store.json: its field 'deep' is nested too deep"] + [
        f"entry {n}: it is too large, or nested too deep" for n in (1, 2)
    ]


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"", "the file is empty"),
        (b" \n", "the file is empty"),
        (b"\0" * 500, "is no store"),
        (b"[1, 2]", "is no store"),
        (b'"text"', "is no store"),
        (b"\xff\xfe\xfa", "cannot be read"),
        (b"\x80\x81", "cannot be read"),
        (b"[" * 100_000, "is no store"),
        (b'{"a":' * 100_000, "is no store"),
        (b"{}", "is no store"),
        (b'{"version": 3, "entries": []}', "has version 3; known are 1 and 2"),
        (b'{"version": "2", "entries": []}', "of no number"),
        (b'{"entries": []}', "of no number"),
    ],
)
def test_a_file_that_is_no_store_is_refused_and_left_as_it_is(tmp_path: Path, content: bytes, reason: str) -> None:
    file = tmp_path / "store.json"
    file.write_bytes(content)
    with pytest.raises(InputError, match=reason):
        list(
            OpencodeMemoryReader().read(FoundStore(format="opencode-memory", place=str(tmp_path)), limits=ReadLimits())
        )
    assert file.read_bytes() == content


def test_every_cut_of_a_store_gives_the_entries_that_are_whole(exchange: Exchange, tmp_path: Path) -> None:
    text = (written(tmp_path, ENTRIES) / "store.json").read_text()
    ends = [text.index(one) for one in (PEAR, PLUM, QUINCE)]
    for cut in range(text.index("entries") + 5, len(text), 41):
        (tmp_path / "store.json").write_text(text[:cut])
        try:
            records = exchange.records(tmp_path)
        except InputError:
            assert cut < ends[0] + 200
            continue
        assert reasons(records) == ["store.json: the file is damaged; what is whole in it was read"]
        whole = sum(isinstance(record, ForeignMemory) for record in records)
        assert sum(end < cut for end in ends) - 1 <= whole <= sum(end < cut for end in ends)


def test_two_stores_glued_together_give_each_entry_once(exchange: Exchange, tmp_path: Path) -> None:
    text = (written(tmp_path, ENTRIES) / "store.json").read_text()
    (tmp_path / "store.json").write_text(f"<<<<<<< here\n{text}\n=======\n{text}\n>>>>>>> there\n")
    records = exchange.records(tmp_path)
    assert sum(isinstance(record, ForeignMemory) for record in records) == 3
    assert len(reasons(records)) == 1


def test_a_state_or_a_summary_that_cannot_be_read_is_told_and_left(exchange: Exchange, tmp_path: Path) -> None:
    (written(tmp_path, ENTRIES) / "state.json").write_bytes(b"\x80")
    records = exchange.records(tmp_path)
    assert [record.where for record in records if isinstance(record, Remark)] == ["state.json"]


def corruption_cases() -> list[Any]:
    if not CASES.exists():
        return []
    return [case for line in CASES.read_text().splitlines() if (case := json.loads(line))["file"] == "store.json"]


@pytest.mark.parametrize("case", corruption_cases() or [None], ids=lambda case: case["id"] if case else "none")
def test_a_damaged_store_gives_what_is_whole_in_it_and_says_so(tmp_path: Path, case: Any) -> None:
    if case is None:
        pytest.skip("the cases of damaged files are not here")
    content = base64.b64decode(case["bytes_b64"])
    (tmp_path / "store.json").write_bytes(content)
    store = FoundStore(format="opencode-memory", place=str(tmp_path))
    records: list[ForeignRecord] = []
    damaged = False
    try:
        records += OpencodeMemoryReader().read(store, limits=ReadLimits())
    except InputError:
        damaged = True
    texts = [record.memory.content for record in records if isinstance(record, ForeignMemory)]
    assert texts == case["expect"]["recovered_texts"]
    assert (damaged or bool(reasons(records))) == case["expect"]["status_mentions_damage"]
    assert (tmp_path / "store.json").read_bytes() == content
