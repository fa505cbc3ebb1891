"""Postgres stores with real faults: each is found, named, and mended; other tenants never notice."""

from __future__ import annotations

import pytest

from backstory.errors import StoreUnavailable
from backstory.ports.backend import Backend
from backstory.ports.upkeep import Invariant, Severity
from backstory.testing.postgres import why_there_is_none
from tests.integration.postgres_shelves import Shelf, fill
from tests.integration.postgres_shelves import server as server
from tests.integration.postgres_shelves import shelf as shelf
from tests.integration.upkeeping import faults, run, upkeep_of

pytestmark = pytest.mark.skipif(why_there_is_none() is not None, reason=str(why_there_is_none()))


def broken(backend: Backend) -> set[Invariant]:
    return {finding.invariant for finding in faults(backend)}


def test_a_store_with_something_of_each_kind_is_whole(shelf: Shelf) -> None:
    run(shelf.open(), fill)
    assert faults(shelf.open()) == []
    assert faults(shelf.open(), full=False) == []


DERIVED = {
    "a word of a memory is gone": ("DELETE FROM memory_terms WHERE term = 'heron'", Invariant.WORDS),
    "a word is counted wrongly": ("UPDATE term_frequencies SET documents = 9 WHERE term = 'heron'", Invariant.WORDS),
    "the sums are wrong": ("UPDATE tenants SET tokens = tokens + 1", Invariant.WORDS),
    "a word belongs to nothing": (
        "INSERT INTO memory_terms (term, n, count, length) VALUES ('stray', 99, 1, 1)", Invariant.WORDS
    ),
    "a vector is cut off": ("UPDATE vectors SET vector = substring(vector FOR 3) WHERE n = 1", Invariant.VECTORS),
    "pgvector has no vector": ("DELETE FROM embeddings WHERE n = 1", Invariant.VECTORS),
    "pgvector has another vector": (
        "UPDATE embeddings e SET embedding = o.embedding FROM embeddings o WHERE e.n = 1 AND o.n = 3", Invariant.VECTORS
    ),
    "a text is found under another": ("UPDATE memories SET normalised = 'x' WHERE n = 1", Invariant.LOOKUPS),
    "a digest is wrong": ("UPDATE memories SET content_key = 'x' WHERE n = 1", Invariant.LOOKUPS),
    "a passage is gone": ("DELETE FROM passages WHERE part = 'p0'", Invariant.PASSAGES),
    "a word of a passage is gone": ("DELETE FROM passage_terms WHERE term = 'heron'", Invariant.PASSAGES),
    "the passages are summed wrongly": ("UPDATE passage_statistics SET documents = 7", Invariant.PASSAGES),
    "a showing is not noted": ("DELETE FROM recall_block_memories", Invariant.SHOWINGS),
    "a piece of a digest has no parent": ("UPDATE digest_pieces SET parent = 'node9_999'", Invariant.DIGESTS),
    "a state cannot be read": ("UPDATE dreams SET updated_us = 999999999999999999", Invariant.DREAMS),
    "a summary has a source that is not there": (
        "INSERT INTO summary_sources (project, position, memory) VALUES ('', 1, 'none')", Invariant.DREAMS
    ),
    "a doubt cannot be read": ("UPDATE doubts SET since_us = 999999999999999999", Invariant.DOUBTS),
}  # fmt: skip


@pytest.mark.parametrize(("statement", "invariant"), DERIVED.values(), ids=list(DERIVED))
def test_what_is_derived_is_found_and_made_anew(shelf: Shelf, statement: str, invariant: Invariant) -> None:
    run(shelf.open(), fill)
    shelf.sql(statement)
    found = faults(shelf.open())
    assert {finding.invariant for finding in found} == {invariant}
    assert {finding.severity for finding in found} == {Severity.OUT_OF_STEP}
    assert run(shelf.open(), lambda backend: upkeep_of(backend).rebuild()).corrected + (invariant is Invariant.PASSAGES)
    assert faults(shelf.open()) == []
    assert run(shelf.open(), lambda backend: upkeep_of(backend).rebuild()).corrected == 0


DECISIONS = {
    "a memory was altered": ("UPDATE memories SET content = 'The cluster is called ibis' WHERE n = 1",
                             Invariant.HISTORY),
    "a memory cannot be read": ("UPDATE memories SET kind = 'nonsense' WHERE n = 1", Invariant.READABLE),
    "a memory lost its history": ("DELETE FROM change_edits WHERE n = 1", Invariant.HISTORY),
    "a change cannot be read": ("UPDATE changes SET author = 'nobody'", Invariant.HISTORY),
    "a memory is gone": ("DELETE FROM memories WHERE n = 1", Invariant.REFERENCES),
    "a number would be given again": ("UPDATE tenants SET last_n = 1", Invariant.NUMBERS),
    "a message cannot be read": ("UPDATE messages SET role = 'ghost'", Invariant.EVIDENCE),
    "a block cannot be read": ("UPDATE recall_blocks SET shown = '[{\"memory\": 1}]'", Invariant.EVIDENCE),
}  # fmt: skip


@pytest.mark.parametrize(("statement", "invariant"), DECISIONS.values(), ids=list(DECISIONS))
def test_what_cannot_be_made_anew_is_damage(shelf: Shelf, statement: str, invariant: Invariant) -> None:
    run(shelf.open(), fill)
    shelf.sql(statement)
    damage = [finding for finding in faults(shelf.open()) if finding.severity is Severity.DAMAGE]
    assert invariant in {finding.invariant for finding in damage}
    assert all(finding.way_out for finding in damage)


def test_a_frozen_text_that_shows_what_was_hidden_is_withdrawn(shelf: Shelf) -> None:
    run(shelf.open(), fill)
    shelf.sql("UPDATE memories SET sensitivity = 'private' WHERE n = 1")
    assert Invariant.WITHHELD in broken(shelf.open())
    run(shelf.open(), lambda backend: upkeep_of(backend).rebuild())
    assert Invariant.WITHHELD not in broken(shelf.open())


def test_a_trigger_that_is_switched_off_and_a_table_that_is_gone_are_told(shelf: Shelf) -> None:
    run(shelf.open(), fill)
    shelf.sql("ALTER TABLE vectors DISABLE TRIGGER vectors_copied")
    assert broken(shelf.open()) == {Invariant.WHOLE}
    shelf.sql("ALTER TABLE vectors ENABLE TRIGGER vectors_copied; DROP TABLE snapshots")
    assert broken(shelf.open()) == {Invariant.WHOLE}


def test_checking_makes_no_store_and_changes_no_format(shelf: Shelf) -> None:
    with pytest.raises(StoreUnavailable, match="no store"):
        faults(shelf.open())
    assert shelf.sql(f"SELECT 1 FROM pg_namespace WHERE nspname = '{shelf.schema}'") == []
    run(shelf.open(), fill)
    shelf.sql("UPDATE schema_version SET version = 99 WHERE version = 1")
    assert [finding.invariant for finding in faults(shelf.open())] == [Invariant.FORMAT]


def test_a_memory_that_cannot_be_read_is_salvaged_from_its_history(shelf: Shelf) -> None:
    run(shelf.open(), fill)
    shelf.sql("UPDATE memories SET kind = 'nonsense' WHERE n = 1; DELETE FROM memories WHERE n = 3")
    saved = run(shelf.open(), lambda backend: upkeep_of(backend).salvage())
    assert "The cluster is called heron" in {memory.content for memory in saved.memories}
    assert len(saved.memories) == 3
    assert [message.parts[0].text for message in saved.messages] == ["what is the cluster called", "it is called heron"]
    assert len(saved.lost) == 2
