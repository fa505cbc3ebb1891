"""Memories out into a store of opencode-memory: as they came where nothing changed, else as the plugin writes."""

from __future__ import annotations

import json
import stat
from dataclasses import replace
from pathlib import Path

import pytest

from backstory.adapters.formats.opencode_memory.json_text import js_number, js_text
from backstory.adapters.formats.opencode_memory.writer import OpencodeMemoryWriter
from backstory.domain.lifecycle import forget, set_pin
from backstory.domain.memory import Active, Kind
from backstory.domain.provenance import Origin
from backstory.entrypoints.drive import drive
from backstory.services.exporting import Exporting, ExportPolicy
from tests.unit.adapters.formats.decided import by_origin, own, put, reworded
from tests.unit.adapters.formats.exchange import PERSON, Exchange, contents, sample
from tests.unit.adapters.formats.opencode_memories import ENTRIES, PEAR, PLUM, QUINCE, entry, taken_out, written
from tests.unit.adapters.formats.opencode_memories import exchange as exchange


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
