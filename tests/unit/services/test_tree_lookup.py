"""Looking behind the summaries of one session."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, TypeVar

import anyio
import pytest

from backstory.adapters.stores.memory import open_memory_store
from backstory.domain import tree_rendering
from backstory.domain.blob import Blob, make_blob
from backstory.domain.conversation import BlobHash, Message, Session
from backstory.domain.digest import DigestUpdate
from backstory.domain.excerpt import ExcerptSize, excerpt
from backstory.domain.ids import SessionId
from backstory.domain.tree_rendering import message_content
from backstory.errors import InputError
from backstory.ports.backend import Backend
from backstory.services import tree_lookup
from backstory.services.tree_lookup import NO_TREE, TreeLookup
from backstory.testing.fakes import START
from tests.trees import SESSION, grown, message, no_digest, talk, tool_part

T = TypeVar("T")
Ask = Callable[..., str]
OUTPUT = "\n".join(f"row {number}: nothing to see" for number in range(2000)) + "\nrow last: needle_in_a_stack"


@pytest.fixture
def backend() -> Backend:
    """A session of 40 messages and its tree; the eighth message ran a tool with a long output."""
    store = open_memory_store()

    async def fill() -> None:
        session = Session(id=SESSION, project=None, host="opencode", directory="/w", created_at=START, updated_at=START)
        blob = make_blob(OUTPUT.encode())
        kept = excerpt(OUTPUT, blob.hash, ExcerptSize(whole=200, head=100, tail=60))
        part = replace(tool_part(7, command="./find"), text=kept, blobs=(blob.ref("text/plain"),))
        messages = talk(40)
        messages[7] = message(7, parts=(part,))
        messages[22] = message(22, "The queue is drained by `drain_queue` in src/queue.rs.")
        await store.conversations.put_session(session)
        await store.conversations.put_messages(messages, blobs=[blob])
        digest = grown(no_digest(), messages)
        await store.digests.apply(DigestUpdate(state=no_digest().state, added=digest.pieces))

    anyio.run(fill)
    return store


@pytest.fixture
def ask(backend: Backend) -> Ask:
    lookup = TreeLookup(backend.digests, backend.conversations)

    def ask(method: str, *args: Any, session: SessionId = SESSION, **options: Any) -> str:  # Any: the method's own
        async def asked() -> str:
            text: str = await getattr(lookup, method)(session, *args, **options)
            return text

        return anyio.run(asked)

    return ask


def test_a_leaf_opens_with_its_messages(ask: Ask) -> None:
    text = ask("open", "node0_001")
    assert text.startswith("## Expanded Node: node0_001\nLevel: leaf (original messages)\nRange: messages 0 - 4\n")
    assert "[USER] Message 1:\nStep 0: the parser test now passes." in text


def test_a_covered_leaf_opens_and_a_parent_names_its_children(ask: Ask) -> None:
    text = ask("open", "node1_001")
    assert "- **[node0_002]** (level 0) (msgs 5-9): about node0_002" in text
    assert "Range: messages 5 - 9" in ask("open", "node0_002")


def test_an_id_is_taken_as_it_is_written_in_the_conversation(ask: Ask) -> None:
    assert ask("open", " [node1_001] ") == ask("open", "node1_001")


def test_a_tools_output_comes_whole_though_the_archive_keeps_an_excerpt(ask: Ask) -> None:
    pages = [ask("open", "node0_002", page=number) for number in (1, 2, 3)]
    rows = [line for page in pages for line in page.splitlines() if line.startswith("row ")]
    assert rows == OUTPUT.splitlines()
    assert '[tool bash, completed] {"command": "./find"}' in pages[0]


def test_a_page_that_there_is_not_is_refused(ask: Ask) -> None:
    with pytest.raises(InputError, match="no page 2"):
        ask("open", "node0_001", page=2)


def test_an_unknown_node_is_answered_in_the_seeds_words(ask: Ask) -> None:
    assert ask("open", "node7_001") == (
        'Node "node7_001" not found in memory tree. Available nodes are marked with [nodeX_XXX] in the conversation.'
    )


@pytest.mark.parametrize("node_id", ["../meta", "node0_001/../../x", "node0", "C:\\node0_001", "node0_001\x00"])
def test_what_is_no_node_id_is_refused(ask: Ask, node_id: str) -> None:
    with pytest.raises(InputError) as caught:
        ask("open", node_id)
    assert caught.value.field == "node_id"


def test_another_sessions_nodes_are_not_found(ask: Ask) -> None:
    other = SessionId("ses-other")
    assert ask("open", "node0_001", session=other) == NO_TREE
    assert ask("find", "parser", session=other) == NO_TREE
    assert ask("outline", session=other) == NO_TREE


def test_the_outline_names_what_no_parent_covers(ask: Ask) -> None:
    text = ask("outline")
    assert "**[node1_001]**" in text
    assert "**[node0_001]**" not in text


def test_a_word_that_only_a_message_has_finds_its_leaf(ask: Ask) -> None:
    text = ask("find", "drain queue")
    assert text.startswith("1 node of this session's memory tree")
    assert "- **[node0_005]** (level 0) (msgs 20-24): about node0_005" in text
    assert "  [ASSISTANT] Message 3: The queue is drained by `drain_queue` in src/queue.rs." in text


def test_a_search_can_stay_below_one_node(ask: Ask) -> None:
    assert "node0_005" not in ask("find", "parser drain_queue", within="node1_001")
    assert "node0_002" in ask("find", "needle_in_a_stack", within="node1_001")
    assert "not found" in ask("find", "parser", within="node7_001")


def test_a_search_says_what_it_had_no_time_for(ask: Ask, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tree_lookup, "MAX_SEARCHED_CHARS", 300)
    assert "oldest leaves were not searched" in ask("find", "needle_in_a_stack")


def test_a_damaged_blob_leaves_the_excerpt(backend: Backend) -> None:
    class Damaged:
        """The archive, with blobs that are not what was kept."""

        def __getattr__(self, name: str) -> Any:  # Any: whatever the archive has
            return getattr(backend.conversations, name)

        async def blob(self, name: BlobHash) -> Blob | None:
            kept = await backend.conversations.blob(name)
            return None if kept is None else replace(kept, packed=b"junk")

    text = anyio.run(TreeLookup(backend.digests, Damaged()).open, SESSION, "node0_002")
    assert "row 0: nothing to see" in text
    assert "characters between are kept in blob" in text


@pytest.mark.parametrize(("method", "asked"), [("find", "needle_in_a_stack"), ("open", "node0_002")])
def test_messages_are_written_down_aside(backend: Backend, method: str, asked: str) -> None:
    written: list[bool] = []
    beside = False

    async def aside(work: Callable[[], T]) -> T:
        nonlocal beside
        beside = True
        try:
            return work()
        finally:
            beside = False

    def watched(message: Message) -> str:
        written.append(beside)
        return message_content(message)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(tree_lookup, "message_content", watched)
        patch.setattr(tree_rendering, "message_content", watched)
        lookup = TreeLookup(backend.digests, backend.conversations, aside=aside)
        anyio.run(getattr(lookup, method), SESSION, asked)
    assert written
    assert all(written)
