"""Stores of opencode-memory in and out: every entry a memory, every file as it was but for what changed here."""

from __future__ import annotations

import base64
import json
import stat
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from backstory.adapters.formats.opencode_memory.json_text import js_number, js_text
from backstory.adapters.formats.opencode_memory.reader import OpencodeMemoryReader
from backstory.adapters.formats.opencode_memory.writer import OpencodeMemoryWriter
from backstory.domain.interchange import ForeignMemory, ForeignRecord, Remark, Unreadable
from backstory.domain.memory import (
    Active,
    Conflicted,
    Kind,
    Sensitivity,
    Source,
    Superseded,
    Tier,
    Visibility,
    forget,
    set_pin,
)
from backstory.domain.provenance import Origin
from backstory.entrypoints.drive import drive
from backstory.errors import InputError
from backstory.ports.formats import FoundStore, ReadLimits
from backstory.services.exporting import Exporting, ExportPolicy
from tests.unit.adapters.formats.decided import by_origin, own, put, reworded
from tests.unit.adapters.formats.exchange import PERSON, Exchange, contents, sample

CASES = Path(__file__).resolve().parents[5] / "shared" / "cases" / "json-store-corruption.jsonl"
ORCHARD = "/home/kim/orchard"
START = 1_750_000_000_000
PEAR, PLUM, QUINCE = "0b1c7d5e-pear", "3c2f-plum", "9f00-quince"

ENTRIES: list[dict[str, Any]] = [
    {
        "text": "Pears are picked before they are ripe.", "category": "workflow", "scope": "project",
        "projectID": ORCHARD, "weight": 3.5, "lastSeen": START + 9000, "source": "explicit", "created": START,
        "createdBy": "memory_write", "confidence": 1, "tier": "core", "pinned": True, "sensitivity": "normal",
        "id": PEAR, "status": "ACTIVE", "useCount": 4, "helpfulCount": 2, "lastUsed": START + 8000,
    },
    {
        "text": "Plums freeze well:\n\t- halved \"C:\\tin\" 梅 🍑", "category": "general", "scope": "global",
        "weight": 1.0625000001, "lastSeen": START + 500, "source": "dreamed", "created": START + 500,
        "createdBy": "consolidation", "sourceSessionID": "ses_1", "sourceMessageIDs": ["msg_1", "msg_2"],
        "extractedAt": START + 500, "confidence": 0.7, "id": PLUM, "tier": "archival", "status": "SUPERSEDED",
        "sensitivity": "normal", "supersededAt": START + 700, "invented": {"kept": [1, 2.5, None]},
    },
    {
        "text": "Quinces need two frosts.", "category": "status", "scope": "global", "weight": 3,
        "lastSeen": START + 100, "source": "explicit", "created": START + 100, "createdBy": "memory_write",
        "confidence": 1, "tier": "temporary", "expiresAt": START + 10**12, "sensitivity": "normal", "id": QUINCE,
        "status": "CONFLICTED", "conflictEvidence": "\"one frost did\"", "conflictAt": START + 200,
    },
]  # fmt: skip
STATE = {"sessions": {"ses_1": START}, "inProgress": {"ses_2": {"targetTs": START, "startedAt": START + 1}}}


def written(folder: Path, entries: list[Any], *, version: object = 2, summary: str = "Kim keeps an orchard.") -> Path:
    """A store as the plugin leaves it."""
    folder.mkdir(exist_ok=True, parents=True)
    store = {"version": version, "summary": summary, "updatedAt": START + 9000, "entries": entries}
    (folder / "store.json").write_text(js_text(store))
    (folder / "state.json").write_text(js_text(STATE))
    page = f"# opencode memory summary\n\nUpdated: 2025-06-15T15:06:49.000Z\n\n{summary}\n"
    (folder / "SUMMARY.md").write_text(page)
    return folder


def entry(**values: object) -> dict[str, Any]:
    """An entry in which these fields say something else; one that is None is not there."""
    made = {"text": "Kept.", "category": "other", "scope": "global", "weight": 3, "lastSeen": START,
            "source": "explicit", "created": START, "id": "one"} | values  # fmt: skip
    return {name: value for name, value in made.items() if value is not None}


def taken_out(exchange: Exchange, folder: Path) -> dict[str, Any]:
    """The store as an export writes it."""
    exchange.take_out(folder / "out")
    found: dict[str, Any] = json.loads((folder / "out" / "store.json").read_text())
    return found


def reasons(records: list[ForeignRecord]) -> list[str]:
    return [f"{record.where}: {record.reason}" for record in records if isinstance(record, Unreadable)]


@pytest.fixture
def exchange() -> Exchange:
    return Exchange("opencode-memory")


# ---- in --------------------------------------------------------------------------------------------------------------


def test_each_entry_becomes_a_memory_with_all_that_it_says(exchange: Exchange, tmp_path: Path) -> None:
    report = exchange.bring_in(written(tmp_path / "memory", ENTRIES))
    assert (report.new.memories, report.refused.count) == (3, 0)
    memories = by_origin(exchange)
    pear, plum, quince = memories[PEAR], memories[PLUM], memories[QUINCE]
    assert (pear.kind, pear.visibility, pear.tier, pear.pinned) == (Kind.WORKFLOW, Visibility.PROJECT, Tier.CORE, True)
    assert (pear.weight, pear.counters.recalled, pear.counters.helpful) == (0.875, 4, 2)
    assert pear.times.learned == datetime.fromtimestamp(START / 1000, UTC)
    assert pear.times.confirmed - pear.times.learned == timedelta(seconds=9)
    assert pear.origin is Origin.IMPORTED
    assert (plum.kind, plum.source, plum.confidence) == (Kind.OTHER, Source.DREAMED, 0.7)
    assert (plum.provenance.session, plum.provenance.messages) == ("ses_1", ("msg_1", "msg_2"))
    assert isinstance(plum.status, Superseded)
    assert isinstance(quince.status, Conflicted)
    assert quince.status.evidence == '"one frost did"'
    assert (quince.tier, quince.expires_at is not None) == (Tier.TEMPORARY, True)


def test_a_second_import_changes_nothing(exchange: Exchange, tmp_path: Path) -> None:
    exchange.bring_in(written(tmp_path, ENTRIES))
    again = exchange.bring_in(tmp_path)
    assert (again.new.memories, again.updated.memories, again.known.memories, again.new.keepsakes) == (0, 0, 3, 0)


def test_local_only_and_private_stay_what_they_are(exchange: Exchange, tmp_path: Path) -> None:
    words = ["local-only", "private", "normal", "top secret", 7]
    exchange.bring_in(written(tmp_path, [entry(id=f"id{n}", sensitivity=word) for n, word in enumerate(words)]))
    found = by_origin(exchange)
    assert [found[f"id{n}"].sensitivity for n in range(5)] == [
        Sensitivity.LOCAL_ONLY, Sensitivity.PRIVATE, Sensitivity.NORMAL, Sensitivity.PRIVATE, Sensitivity.PRIVATE,
    ]  # fmt: skip


def test_version_1_has_the_tiers_of_its_categories(exchange: Exchange, tmp_path: Path) -> None:
    categories = ["preferences", "workflow", "decisions", "environment", "user", "project", "status", "other"]
    entries = [entry(id=category, category=category) for category in categories]
    exchange.bring_in(written(tmp_path, entries, version=1))
    found = by_origin(exchange)
    assert [category for category in categories if found[category].tier is Tier.CORE] == categories[:4]


def test_the_same_text_in_two_scopes_is_two_memories(exchange: Exchange, tmp_path: Path) -> None:
    both = [entry(id=None), entry(id=None, scope="project", projectID=ORCHARD)]
    assert exchange.bring_in(written(tmp_path, both)).new.memories == 2


def test_a_lock_that_was_left_behind_does_not_matter(exchange: Exchange, tmp_path: Path) -> None:
    (written(tmp_path, ENTRIES) / ".lock").touch()
    assert exchange.bring_in(tmp_path).new.memories == 3


def test_the_formats_name_stands_for_the_folder_of_the_plugin(
    exchange: Exchange, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("OPENCODE_MEMORY_DIR", raising=False)
    monkeypatch.chdir(tmp_path)
    usual = written(tmp_path / ".local" / "share" / "opencode" / "memory", ENTRIES)
    assert [store.place for store in exchange.found(Path("opencode-memory"))] == [str(usual)]
    elsewhere = written(tmp_path / "elsewhere", [])
    monkeypatch.setenv("OPENCODE_MEMORY_DIR", str(elsewhere))
    assert [store.place for store in exchange.found(Path("opencode-memory"))] == [str(elsewhere)]


def test_only_what_looks_like_a_store_is_taken_for_one(exchange: Exchange, tmp_path: Path) -> None:
    written(tmp_path / "b", [])
    written(tmp_path / "a" / "deep", [])
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "store.json").write_text('{"shop": true}')
    (tmp_path / "link").symlink_to(tmp_path / "b")
    assert [store.label for store in exchange.found(tmp_path)] == ["a/deep", "b"]
    assert [store.label for store in exchange.found(tmp_path / "b" / "store.json")] == [""]


# ---- damaged and hostile ---------------------------------------------------------------------------------------------


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


# ---- and out ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("version", [1, 2])
def test_what_was_not_changed_goes_back_byte_for_byte(exchange: Exchange, tmp_path: Path, version: int) -> None:
    kept = ("text", "category", "scope", "projectID", "weight", "lastSeen", "source", "created", "id")
    entries = ENTRIES if version == 2 else [{k: v for k, v in one.items() if k in kept} for one in ENTRIES]
    folder = written(tmp_path / "memory", entries, version=version)
    exchange.bring_in(folder)
    (done,) = exchange.take_out(tmp_path / "out")
    assert (done.memories, done.left_out) == (3, [])
    assert contents(tmp_path / "out") == contents(folder)
    assert {stat.S_IMODE(file.stat().st_mode) for file in done.files} == {0o600}


def test_a_summary_that_somebody_wrote_into_and_a_missing_state_stay_so(exchange: Exchange, tmp_path: Path) -> None:
    folder = written(tmp_path / "memory", ENTRIES)
    (folder / "SUMMARY.md").write_text("Mine.\n")
    (folder / "state.json").unlink()
    exchange.bring_in(folder)
    exchange.take_out(tmp_path / "out")
    assert contents(tmp_path / "out") == contents(folder)


def test_a_changed_memory_changes_its_fields_and_no_other(exchange: Exchange, tmp_path: Path) -> None:
    exchange.bring_in(written(tmp_path, ENTRIES))
    pear, quince = by_origin(exchange)[PEAR], by_origin(exchange)[QUINCE]
    pear = reworded(exchange, pear, "Pears ripen from the inside.")
    put(exchange, set_pin(pear, pinned=False), before=pear)
    put(exchange, replace(quince, status=Active(), kind=Kind.DECISION), before=quince)
    store = taken_out(exchange, tmp_path)
    now = int(exchange.clock.now().timestamp() * 1000)
    first = ENTRIES[0] | {"text": "Pears ripen from the inside.", "pinned": False, "lastSeen": now}
    settled = {k: v for k, v in ENTRIES[2].items() if not k.startswith("conflict")}
    assert store["entries"] == [first, ENTRIES[1], settled | {"status": "ACTIVE", "category": "decisions"}]
    assert (store["updatedAt"], store["summary"]) == (now, "Kim keeps an orchard.")


def test_a_forgotten_memory_leaves_and_takes_the_summary_with_it(exchange: Exchange, tmp_path: Path) -> None:
    exchange.bring_in(written(tmp_path, ENTRIES, summary="Pears are picked unripe."))
    pear = by_origin(exchange)[PEAR]
    put(exchange, forget(pear, now=exchange.clock.now(), reason=None), before=pear)
    store = taken_out(exchange, tmp_path)
    assert [one["id"] for one in store["entries"]] == [PLUM, QUINCE]
    assert store["summary"] == ""
    assert "unripe" not in (tmp_path / "out" / "SUMMARY.md").read_text()
    assert "_No summary yet" in (tmp_path / "out" / "SUMMARY.md").read_text()


def test_what_was_forgotten_does_not_come_alive_there(exchange: Exchange, tmp_path: Path) -> None:
    exchange.bring_in(written(tmp_path, ENTRIES))
    pear = by_origin(exchange)[PEAR]
    put(exchange, forget(pear, now=exchange.clock.now(), reason=None), before=pear)
    web = own(exchange, "Somebody on the web says so.")
    put(exchange, replace(web, origin=Origin.WEB), before=web)
    policy = ExportPolicy(whole_stores=True, forgotten=True)
    (store,) = drive(
        Exporting(exchange.backend, clock=exchange.clock).stores(exchange.format, PERSON, policy, run=drive)
    )
    done = OpencodeMemoryWriter().write(store, tmp_path / "out")
    assert [one["id"] for one in json.loads((tmp_path / "out" / "store.json").read_text())["entries"]] == [PLUM, QUINCE]
    assert [reason.partition(": ")[2] for reason in done.left_out[:2]] == [
        "it is forgotten",
        "opencode-memory would offer it unasked, which text of origin web never is",
    ]


def test_what_an_export_leaves_out_for_its_sensitivity_does_not_take_the_summary(
    exchange: Exchange, tmp_path: Path
) -> None:
    words = ["local-only", "private", "normal"]
    exchange.bring_in(written(tmp_path, [entry(id=word, sensitivity=word) for word in words]))
    store = taken_out(exchange, tmp_path)
    assert [one["id"] for one in store["entries"]] == ["normal"]
    assert store["summary"] == "Kim keeps an orchard."


def test_a_memory_that_never_was_there_is_written_as_the_plugin_would(exchange: Exchange, tmp_path: Path) -> None:
    exchange.bring_in(written(tmp_path, ENTRIES))
    mine = own(exchange, "Prune in February.")
    now = int(exchange.clock.now().timestamp()) * 1000
    assert taken_out(exchange, tmp_path)["entries"][-1] == {
        "text": "Prune in February.", "category": "decisions", "scope": "global", "weight": 4, "lastSeen": now,
        "source": "explicit", "created": now, "createdBy": "memory_write", "confidence": 1, "tier": "archival",
        "sensitivity": "normal", "id": mine.id, "status": "ACTIVE",
    }  # fmt: skip


def test_a_store_that_never_was_is_made_with_all_of_its_files(exchange: Exchange, tmp_path: Path) -> None:
    own(exchange, "Prune in February.")
    exchange.take_out(tmp_path / "out")
    found = contents(tmp_path / "out")
    assert {*found} == {"store.json", "state.json", "SUMMARY.md"}
    assert json.loads(found["state.json"]) == {"sessions": {}, "inProgress": {}}
    assert json.loads(found["store.json"])["version"] == 2


def test_version_1_becomes_version_2_once_it_cannot_say_all(exchange: Exchange, tmp_path: Path) -> None:
    exchange.bring_in(written(tmp_path, [entry(category="preferences")], version=1))
    memory = by_origin(exchange)["one"]
    put(exchange, set_pin(memory, pinned=True), before=memory)
    (done,) = exchange.take_out(tmp_path / "out")
    store = json.loads((tmp_path / "out" / "store.json").read_text())
    assert store["version"] == 2
    assert store["entries"][0] == entry(category="preferences") | {
        "pinned": True, "tier": "core", "sensitivity": "normal", "status": "ACTIVE",
    }  # fmt: skip
    assert done.left_out == ["the store is written in version 2: version 1 cannot say all that is known now"]


@pytest.mark.parametrize(
    ("value", "text"),
    [(3.0, "3"), (3.5, "3.5"), (1e21, "1e+21"), (1e16, "10000000000000000"), (1e-7, "1e-7"), (0.00001, "0.00001"),
     (3.4999999578189303, "3.4999999578189303"), (-0.0, "0"), (123456789012345680000, "123456789012345680000")],
)  # fmt: skip
def test_numbers_are_written_as_javascript_writes_them(value: float, text: str) -> None:
    assert js_number(value) == text


# ---- the older product's own samples ---------------------------------------------------------------------------------


def test_the_samples_come_in_whole(exchange: Exchange) -> None:
    folder = sample("opencode-memory")
    first = exchange.bring_in(folder)
    assert (first.new.memories, first.refused.count) == (25, 0)
    of = [memory.provenance.raw["store"] for memory in exchange.memories()]
    assert (of.count("v1-store"), of.count("v2-store"), of.count("v2-stale-lock")) == (6, 19, 0)
    assert sum(memory.sensitivity is Sensitivity.LOCAL_ONLY for memory in exchange.memories()) == 1
    assert exchange.bring_in(folder).new.memories == 0


def test_the_samples_go_out_byte_for_byte_but_for_what_stays_here(exchange: Exchange, tmp_path: Path) -> None:
    folder = sample("opencode-memory")
    exchange.bring_in(folder)
    exchange.take_out(tmp_path)
    found, wanted = contents(tmp_path), contents(folder)
    stays = {"v2-stale-lock/.lock", "v2-store/expected.json"}
    assert {*found} == {*wanted} - stays
    assert [name for name in found if found[name] != wanted[name]] == ["v2-store/store.json"]
    whole = json.loads(wanted["v2-store/store.json"])
    whole["entries"] = [one for one in whole["entries"] if one["sensitivity"] == "normal"]
    assert found["v2-store/store.json"].decode() == js_text(whole)
