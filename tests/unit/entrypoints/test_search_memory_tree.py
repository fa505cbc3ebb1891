"""The tool that looks behind a session's summaries."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import anyio
import pytest

from backstory.adapters.stores.memory import open_memory_store
from backstory.bootstrap import App
from backstory.config import Settings
from backstory.domain.digest import DigestUpdate
from backstory.domain.ids import SessionId
from backstory.domain.interchange import UNVOUCHED, UNVOUCHED_NOTE
from backstory.domain.scope import Audience, Viewer
from backstory.entrypoints.tools.search_memory_tree import SEARCH_MEMORY_TREE
from backstory.entrypoints.tools.tool import Answer, Call, run_tool
from backstory.services.tree_lookup import NO_TREE
from tests.trees import SESSION, grown, no_digest, talk


@pytest.fixture
def app() -> App:
    backend = open_memory_store()

    async def fill() -> None:
        messages = talk(12)
        await backend.conversations.put_messages(messages)
        await backend.digests.apply(DigestUpdate(state=no_digest().state, added=grown(no_digest(), messages).pieces))

    anyio.run(fill)
    return App(Settings(), backend, None, no_embedder="not in this test")


def call(app: App, *, session: SessionId | None = SESSION, **arguments: object) -> Answer:
    viewer = Viewer(project=None, session=session, audience=Audience.MODEL)
    return anyio.run(run_tool, SEARCH_MEMORY_TREE, arguments, Call(app=app, viewer=viewer, tool="search_memory_tree"))


def test_a_node_is_opened(app: App) -> None:
    answer = call(app, node_id="node0_001")
    assert answer.text.startswith("## Expanded Node: node0_001")
    assert not answer.failed


@pytest.mark.parametrize("arguments", [{}, {"node_id": "node0_001"}, {"query": "step parser"}])
def test_a_tree_that_nobody_vouched_for_is_marked_in_every_answer(app: App, arguments: dict[str, Any]) -> None:
    assert UNVOUCHED_NOTE not in call(app, **arguments).text
    digest = anyio.run(app.backend.digests.digest, SESSION)
    assert digest is not None
    anyio.run(app.backend.digests.apply, DigestUpdate(state=replace(digest.state, problem=UNVOUCHED)))
    assert call(app, **arguments).text.startswith(f"{UNVOUCHED_NOTE}\n")


def test_words_are_found(app: App) -> None:
    assert "node0_001" in call(app, query="step parser").text


def test_without_arguments_the_tree_is_listed(app: App) -> None:
    assert "**[node0_001]**" in call(app).text
    assert call(app, node_id="", query=" ") == call(app)


def test_a_session_without_a_tree_is_told_so(app: App) -> None:
    assert call(app, session=SessionId("ses-new"), node_id="node0_001").text == NO_TREE
    assert call(app, session=None).text == NO_TREE


def test_a_path_is_no_node_id(app: App) -> None:
    answer = call(app, node_id="../meta")
    assert answer.failed
    assert "'../meta' is no node id" in answer.text


def test_a_page_must_be_there(app: App) -> None:
    assert call(app, node_id="node0_001", page=0).text == call(app, node_id="node0_001").text
    assert call(app, node_id="node0_001", page=9).failed


def test_the_schema_names_the_seeds_parameter_first() -> None:
    schema = SEARCH_MEMORY_TREE.schema()
    properties = schema["properties"]
    assert isinstance(properties, dict)
    assert list(properties) == ["node_id", "query", "page"]
    assert "required" not in schema
