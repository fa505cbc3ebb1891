"""The samples of opencode-memory-tree: in as their description says, out byte for byte."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import pytest

from backstory.domain.digest import Strategy
from backstory.domain.interchange import ForeignMessages
from backstory.entrypoints.drive import drive
from tests.stores import open_file
from tests.unit.adapters.formats.barns import LONG, SHORT, digest, messages, of, opened
from tests.unit.adapters.formats.exchange import Exchange, contents, sample


@pytest.fixture
def exchange() -> Exchange:
    return Exchange("memory-tree")


def test_the_samples_come_in_as_their_description_says(exchange: Exchange) -> None:
    report = exchange.bring_in(sample("memory-tree"))
    assert (report.new.sessions, report.new.nodes) == (3, 30)
    assert not report.refused
    assert Counter(piece.level for piece in digest(exchange, LONG).pieces) == {0: 22, 1: 6, 2: 1}
    assert len(messages(exchange, LONG)) == 118
    assert len(messages(exchange, SHORT)) == 7
    assert digest(exchange, SHORT).pieces == ()
    single = next(s for s in drive(exchange.backend.conversations.sessions(limit=9)) if s.id not in (LONG, SHORT))
    assert (len(messages(exchange, single.id)), len(digest(exchange, single.id).pieces)) == (14, 1)
    assert len(digest(exchange, single.id).pieces[0].sources) == 5  # so 9 are raw
    assert {digest(exchange, name).state.strategy for name in (LONG, SHORT, single.id)} == {Strategy.TREE}


def test_the_samples_go_out_byte_for_byte(tmp_path: Path) -> None:
    exchange = Exchange("memory-tree", open_file(tmp_path))
    store = sample("memory-tree")
    exchange.bring_in(store)
    exchange.take_out(tmp_path / "out")
    theirs = {name: text for name, text in contents(store).items() if not name.endswith((".log", ".transcript.json"))}
    assert len(theirs) == 39
    assert contents(tmp_path / "out") == theirs


def test_the_tool_answers_about_the_sample_as_the_products_own_did(exchange: Exchange) -> None:
    exchange.bring_in(sample("memory-tree"), trusted=True)
    told = json.loads(sample("memory-tree/search_memory_tree.transcript.json").read_text(encoding="utf-8"))
    assert len(told) == 5
    for call in told:
        assert opened(exchange, LONG, call["node_id"]) == call["result"]


def test_messages_keep_their_order_and_the_times_that_are_known(exchange: Exchange) -> None:
    records = exchange.records(sample("memory-tree/per-session"))
    for session in (LONG, SHORT):
        told = [m for r in of(ForeignMessages, records) if r.session == session for m in r.messages]
        assert [m.created_at for m in told] == sorted({m.created_at for m in told})
        tool = next(m for m in told if any(part.tool for part in m.parts))
        assert tool.created_at.isoformat().startswith("2025-12-29T09:20:00")
