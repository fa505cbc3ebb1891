"""Stores of opencode-memory in and out: every entry a memory, every file as it was but for what changed here."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from backstory.domain.memory import Conflicted, Kind, Sensitivity, Source, Superseded, Tier, Visibility
from backstory.domain.provenance import Origin
from tests.unit.adapters.formats.decided import by_origin
from tests.unit.adapters.formats.exchange import Exchange, sample
from tests.unit.adapters.formats.opencode_memories import ENTRIES, ORCHARD, PEAR, PLUM, QUINCE, START, entry, written
from tests.unit.adapters.formats.opencode_memories import exchange as exchange


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


def test_the_samples_come_in_whole(exchange: Exchange) -> None:
    folder = sample("opencode-memory")
    first = exchange.bring_in(folder)
    assert (first.new.memories, first.refused.count) == (25, 0)
    of = [memory.provenance.raw["store"] for memory in exchange.memories()]
    assert (of.count("v1-store"), of.count("v2-store"), of.count("v2-stale-lock")) == (6, 19, 0)
    assert sum(memory.sensitivity is Sensitivity.LOCAL_ONLY for memory in exchange.memories()) == 1
    assert exchange.bring_in(folder).new.memories == 0
