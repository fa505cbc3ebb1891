"""Recall through the real store and the real embedder: hostile queries, and very small stores."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import anyio
import pytest

from backstory.adapters.embedders.minilm import MiniLmEmbedder, availability
from backstory.adapters.stores.sqlite.store import open_sqlite
from backstory.bootstrap import App
from backstory.config import Settings
from backstory.domain.history import Author
from backstory.domain.ids import MemoryId, ProjectId
from backstory.domain.provenance import Origin
from backstory.domain.scope import Audience, Viewer
from backstory.ports.models import Embedder
from backstory.services.query import Query
from backstory.services.remember import Draft

CASES = Path(__file__).resolve().parents[3] / "shared" / "cases"
VIEWER = Viewer(project=ProjectId("PROJECT"), audience=Audience.MODEL)
EXTENDED_SHARE = 0.9

REMEMBERED = "the staging cluster is called heron-2"
OTHERS = (
    "Use pnpm, never npm, in the web package.",
    "Integration tests hang unless docker compose is up.",
    "Releases are cut on Tuesdays by the platform team.",
    "Invoices are rounded half to even, per line.",
)
ASKING = (
    "what is the staging cluster called?",
    "which cluster do we use for staging?",
    "deploy this branch to the staging cluster",
    "staging cluster?",
    "how do I reach heron-2",
)
UNRELATED = (
    "add a unit test for the date parser that covers leap years",
    "rename getUser to fetchUser everywhere in src/api",
    "explain how promises work in javascript",
    "why does my grid overflow on narrow screens?",
)
SMALL_TALK = ("ok", "yes do it", "thanks", "continue", "go ahead", "run it again", "looks good, next one")


@dataclass(frozen=True, slots=True)
class Filled:
    app: App
    names: dict[MemoryId, str]


@pytest.fixture(scope="module")
def local_embedder() -> MiniLmEmbedder:
    if (missing := availability()) is not None:
        pytest.skip(missing)
    return MiniLmEmbedder(None)


@pytest.fixture(params=["words", pytest.param("meaning", marks=pytest.mark.model)])
def embedder(request: pytest.FixtureRequest) -> Embedder | None:
    if request.param == "words":
        return None
    local: MiniLmEmbedder = request.getfixturevalue("local_embedder")
    return local


def fill(path: Path, embedder: Embedder | None, texts: dict[str, str]) -> Filled:
    async def work() -> Filled:
        app = App(Settings(), open_sqlite(path), embedder, no_embedder="switched off by this test")
        names = {}
        for name, text in texts.items():
            stored = await app.remember.remember(
                Draft(content=text, origin=Origin.USER), viewer=VIEWER, author=Author.USER
            )
            names[stored.memory.id] = name
        await app.maintenance.embed_missing()
        return Filled(app, names)

    return anyio.run(work)


def rows(file: str) -> Iterator[dict[str, Any]]:
    path = CASES / file
    if not path.is_file():
        pytest.skip(f"there are no cases at {path}")
    return (json.loads(line) for line in path.read_text(encoding="utf-8").splitlines())


def query_of(row: dict[str, Any]) -> str:
    generated = "".join(part["s"] * part["n"] for part in row.get("query_gen", ()))
    return str(row.get("query", generated))


def found(filled: Filled, text: str) -> Sequence[str]:
    async def work() -> Sequence[str]:
        recalled = await filled.app.recall.recall(Query(text=text, viewer=VIEWER, limit=10))
        return [filled.names[result.memory.id] for result in recalled.results]

    return anyio.run(work)


def test_every_query_is_plain_text_and_finds_what_it_names(tmp_path: Path, embedder: Embedder | None) -> None:
    corpus = {row["id"]: row["content"] for row in rows("fts-corpus.jsonl")}
    filled = fill(tmp_path / "cases.db", embedder, corpus)
    failed: dict[str, list[str]] = {"core": [], "extended": []}
    count = dict.fromkeys(failed, 0)
    for row in rows("fts-queries.jsonl"):
        count[row["tier"]] += 1
        names = found(filled, query_of(row))
        if not set(row["must_match"]) <= set(names) or set(row["must_not_match"]) & set(names):
            failed[row["tier"]].append(f"{row['id']} ({row['note']}): {names}")
    assert failed["core"] == []
    assert len(failed["extended"]) <= (1 - EXTENDED_SHARE) * count["extended"], failed["extended"]


@pytest.mark.parametrize("others", [(), OTHERS], ids=["one memory", "five memories"])
def test_a_tiny_store_speaks_when_asked_and_only_then(
    tmp_path: Path, embedder: Embedder | None, others: Sequence[str]
) -> None:
    texts = {text: text for text in (REMEMBERED, *others)}
    filled = fill(tmp_path / "tiny.db", embedder, texts)

    async def block(prompt: str) -> str | None:
        return (await filled.app.blocks.for_prompt(prompt, VIEWER)).text

    for prompt in ASKING:
        assert "heron-2" in (anyio.run(block, prompt) or ""), prompt
    for prompt in (*UNRELATED, *SMALL_TALK):
        assert anyio.run(block, prompt) is None, prompt


def test_what_is_asked_for_by_name_comes_without_being_sure(tmp_path: Path, embedder: Embedder | None) -> None:
    filled = fill(tmp_path / "named.db", embedder, {text: text for text in (REMEMBERED, *OTHERS)})
    assert found(filled, "cluster")[0] == REMEMBERED
    assert found(filled, "the team")[0] == OTHERS[2]
