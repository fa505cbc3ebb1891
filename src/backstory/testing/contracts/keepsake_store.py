"""The contract of the KeepsakeStore."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

from backstory.domain.erasure import ERASED, ERASED_REASON, asked_eraser_of
from backstory.domain.ids import ChangeId, SessionId
from backstory.domain.interchange import Keepsake
from backstory.ports.erasing import Erasure
from backstory.testing.contracts.checks import Checks, MakeBackend
from backstory.testing.contracts.conversation_store import SESSION
from backstory.testing.fakes import START, add_memories, sample_memory, ulid

KEEPSAKE_STORE_CHECKS = Checks()
TREE = Keepsake(format="memory-tree", store="", key="meta/ses-1", text='{"system_prompt": "Be kind. 日本 \\u0000"}')
STATE = Keepsake(format="opencode-memory", store="v2-store", key="state", text='{"sessions": {}}')


@KEEPSAKE_STORE_CHECKS
async def keepsakes_come_back_word_for_word_by_store_and_key(make: MakeBackend) -> None:
    store = make().keepsakes
    others = [replace(STATE, store="v1", key="b"), replace(STATE, store="v1", key="a"), replace(STATE, store="")]
    assert await store.put([STATE, *others, TREE]) == 5
    assert list(await store.kept("opencode-memory")) == [others[2], others[1], others[0], STATE]
    assert list(await store.kept("memory-tree")) == [TREE]
    assert list(await store.kept("ocpg")) == []


@KEEPSAKE_STORE_CHECKS
async def a_keepsake_put_again_counts_only_where_it_differs(make: MakeBackend) -> None:
    store = make().keepsakes
    await store.put([TREE, STATE])
    assert await store.put([TREE, STATE]) == 0
    changed = replace(TREE, text="{}", session=SessionId("ses-1"))
    assert await store.put([STATE, changed]) == 1
    assert list(await store.kept("memory-tree")) == [changed]
    assert await store.put([]) == 0


@KEEPSAKE_STORE_CHECKS
async def keepsakes_of_a_format_or_of_one_store_are_forgotten(make: MakeBackend) -> None:
    store = make().keepsakes
    await store.put([TREE, STATE, replace(STATE, store="other")])
    assert await store.forget("opencode-memory", store="other") == 1
    assert await store.forget("opencode-memory", store="nowhere") == 0
    assert await store.forget("opencode-memory") == 1
    assert list(await store.kept("memory-tree")) == [TREE]


@KEEPSAKE_STORE_CHECKS
async def a_keepsake_goes_with_its_session(make: MakeBackend) -> None:
    backend = make()
    await backend.conversations.put_session(SESSION)
    await backend.keepsakes.put([replace(TREE, session=SESSION.id), STATE])
    await backend.conversations.prune(SESSION.updated_at + timedelta(days=1), limit=10)
    assert list(await backend.keepsakes.kept("memory-tree")) == []
    assert list(await backend.keepsakes.kept("opencode-memory")) == [STATE]


@KEEPSAKE_STORE_CHECKS
async def a_keepsake_goes_when_its_memory_is_erased(make: MakeBackend) -> None:
    backend = make()
    if backend.eraser is None:
        return
    one, other = await add_memories(backend.memories, sample_memory("plums ripen late"), sample_memory("quinces too"))
    await backend.keepsakes.put([replace(STATE, key=memory.id, memory=memory.id) for memory in (one, other)])
    erasure = Erasure(
        id=ChangeId(ulid(901, series=1)), at=START, memories=(one.id,), rewrite=asked_eraser_of(one.content),
        reason=ERASED_REASON,
    )  # fmt: skip
    await backend.eraser.erase(erasure)
    assert [kept.memory for kept in await backend.keepsakes.kept("opencode-memory")] == [other.id]


@KEEPSAKE_STORE_CHECKS
async def what_is_erased_goes_from_keepsakes_under_whatever_name(make: MakeBackend) -> None:
    backend = make()
    words = "the quince lies in the blue larder"
    await backend.keepsakes.put([replace(STATE, text=f'{{"prompt": "say {words}", "tags": ["{words}"], "n": 1}}')])
    if backend.eraser is None:
        return
    erasure = Erasure(
        id=ChangeId(ulid(900, series=1)), at=START, memories=(), rewrite=asked_eraser_of(words), reason=ERASED_REASON
    )
    assert (await backend.eraser.erase(erasure))["keepsakes"] == 1
    (kept,) = await backend.keepsakes.kept("opencode-memory")
    assert "quince" not in kept.text
    assert kept.text.count(ERASED) == 2
