"""The contract of the ConversationStore on age: what is older than it may be goes, with all that hangs on it."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

from backstory.domain.blob import make_blob
from backstory.domain.conversation import FrozenBlock, FrozenSnapshot, Message, Part, Role, Session
from backstory.domain.dream_state import DreamState
from backstory.domain.ids import MessageId, PartId, SessionId
from backstory.domain.scope import Viewer
from backstory.domain.text import analyse
from backstory.ports.backend import Backend
from backstory.ports.conversation import MessageCount, Pruned
from backstory.ports.evidence import Sight
from backstory.ports.upkeep import Severity
from backstory.testing.contracts.checks import Checks, MakeBackend
from backstory.testing.fakes import ORCHARD, START, add_memories, sample_memory

RETENTION_CHECKS = check = Checks()

DAY = timedelta(days=1)
OLD, NEW = SessionId("ses-old"), SessionId("ses-new")
SHARED, OWN = make_blob(b"build log " * 900), make_blob(b"test log " * 900)


def _session(name: SessionId, *, days: int) -> Session:
    return Session(
        id=name, project=ORCHARD, host="opencode", directory="/repo", created_at=START, updated_at=START + days * DAY
    )


def _message(name: str, session: SessionId, *, days: int, text: str, blobs: bool = False) -> Message:
    refs = (SHARED.ref("text/plain"), *((OWN.ref("text/plain"),) if days < 10 else ())) if blobs else ()
    part = Part(id=PartId(f"part of {name}"), kind="text", text=text, blobs=refs)
    at = START + days * DAY
    return Message(id=MessageId(name), session=session, role=Role.USER, created_at=at, parts=(part,))


async def _filled(make: MakeBackend) -> Backend:
    """Three messages of an old session and an old and a new one of another; blocks and snapshots beside them."""
    backend = make()
    store = backend.conversations
    await store.put_session(_session(OLD, days=2))
    await store.put_session(_session(NEW, days=20))
    await store.put_session(_session(SessionId("ses-empty"), days=1))
    told = [
        _message("m1", OLD, days=0, text="the lighthouse is painted red"),
        _message("m2", OLD, days=1, text="deploys go out on Tuesdays", blobs=True),
        _message("m3", OLD, days=2, text="the harbour freezes"),
        _message("m4", NEW, days=3, text="an early word on the lighthouse"),
        _message("m5", NEW, days=20, text="the lighthouse is white now", blobs=True),
    ]
    await store.put_messages(told, blobs=[SHARED, OWN])
    await store.put_part(Part(id=PartId("lost"), kind="text", text="?"), message=MessageId("never told"), session=OLD)
    for name, session, days in (("m1", OLD, 0), ("m5", NEW, 20), ("unkept", SessionId("ses-x"), 1)):
        await store.freeze_block(
            FrozenBlock(
                message=MessageId(name), session=session, text="b", shown=(), silent_because=None,
                created_at=START + days * DAY,
            )
        )  # fmt: skip
    for session in (OLD, NEW):
        await store.freeze_snapshot(FrozenSnapshot(session=session, text="s", shown=(), created_at=START))
    return backend


WHOLE = Pruned(sessions=2, messages=4, parts=5, blobs=1, blob_bytes=OWN.size, blocks=3)


def _without_passages(pruned: Pruned) -> Pruned:
    return replace(pruned, passages=0)


@check
async def what_is_older_goes_with_all_that_hangs_on_it(make: MakeBackend) -> None:
    backend = await _filled(make)
    store = backend.conversations
    await add_memories(backend.memories, sample_memory("The lighthouse is white"))
    before = START + 10 * DAY
    expected = await store.expired(before)
    assert _without_passages(expected) == WHOLE
    assert await store.expired(before) == expected
    assert await store.prune(before, limit=100) == expected
    assert await store.prune(before, limit=100) == Pruned()
    assert await store.expired(before) == Pruned()
    assert [session.id for session in await store.sessions(limit=9)] == [NEW]
    assert [message.id for message in await store.messages(NEW)] == ["m5"]
    assert await store.messages(OLD) == []
    assert await store.blob(OWN.hash) is None
    assert await store.blob(SHARED.hash) == SHARED
    assert [block.message for block in await store.recent_blocks()] == ["m5"]
    assert await store.snapshot(OLD) is None
    assert await store.snapshot(NEW) is not None
    sight = Sight(viewer=Viewer(project=ORCHARD))
    found = await backend.evidence.search_text(analyse("lighthouse harbour Tuesdays"), sight, limit=9)
    assert len(found.numbers) == 1
    assert len(await backend.memories.history()) == 1
    if backend.upkeep is not None:
        findings = await backend.upkeep.verify(full=True)
        assert [finding for finding in findings if finding.severity is not Severity.NOTE] == []


@check
async def a_part_of_it_at_a_time_the_oldest_first_comes_to_the_same(make: MakeBackend) -> None:
    store = (await _filled(make)).conversations
    before = START + 10 * DAY
    first = await store.prune(before, limit=2)
    assert (first.messages, first.sessions) == (2, 0)
    assert [message.id for message in await store.messages(OLD)] == ["m3"]
    removed = first
    while (more := await store.prune(before, limit=2)) != Pruned():
        removed += more
    assert _without_passages(removed) == WHOLE


@check
async def how_far_a_session_is_distilled_goes_with_the_session(make: MakeBackend) -> None:
    backend = await _filled(make)
    for session in (OLD, NEW):
        await backend.dreams.apply(DreamState(session=session, project=ORCHARD, updated_at=START))
    before = START + 10 * DAY
    await backend.conversations.expired(before)
    await backend.conversations.prune(before, limit=2)
    assert await backend.dreams.state(OLD) is not None
    await backend.conversations.prune(before, limit=100)
    assert await backend.dreams.state(OLD) is None
    assert await backend.dreams.state(NEW) is not None


@check
async def nothing_that_is_young_enough_goes(make: MakeBackend) -> None:
    store = (await _filled(make)).conversations
    assert await store.expired(START) == await store.prune(START, limit=100) == Pruned()
    assert await store.count_messages() == 5


@check
async def messages_are_counted_and_named_in_their_order(make: MakeBackend) -> None:
    store = (await _filled(make)).conversations
    await store.mark_removed(MessageId("m2"), at=START)
    assert await store.message_ids(OLD) == ["m1", "m2", "m3"]
    assert await store.removed_ids(OLD) == ["m2"]
    assert await store.message_ids(SessionId("ses-empty")) == []
    assert await store.message_counts() == {
        OLD: MessageCount(messages=3, removed=1, first_at=START, last_at=START + 2 * DAY),
        NEW: MessageCount(messages=2, removed=0, first_at=START + 3 * DAY, last_at=START + 20 * DAY),
    }


@check
async def what_was_removed_for_good_does_not_come_back_when_it_is_told_again(make: MakeBackend) -> None:
    store = (await _filled(make)).conversations
    await store.prune(START + 10 * DAY, limit=100)
    old = _message("m2", OLD, days=1, text="deploys go out on Tuesdays", blobs=True)
    older = _message("m0", NEW, days=-3, text="a word of long ago, told late")
    young = _message("m6", NEW, days=4, text="what was never removed, as it was never told")
    await store.put_messages([old, older, young], blobs=[SHARED, OWN])
    assert [message.id for message in await store.messages(NEW)] == ["m6", "m5"]
    assert await store.messages(OLD) == []
    assert await store.blob(OWN.hash) is None
    await store.put_messages([old], blobs=[SHARED, OWN])
    assert await store.count_messages() == 2


@check
async def what_is_kept_is_brought_up_to_date_though_older_was_removed(make: MakeBackend) -> None:
    store = (await _filled(make)).conversations
    await store.prune(START + 10 * DAY, limit=2)
    later = replace(_message("m3", OLD, days=2, text="the harbour froze"), model="m")
    twin = replace(later, id=MessageId("twin"), parts=(), created_at=START + DAY)
    await store.put_messages([later, twin])
    assert await store.messages(OLD) == [later]


@check
async def where_nothing_was_removed_a_message_of_any_age_is_taken(make: MakeBackend) -> None:
    store = (await _filled(make)).conversations
    await store.prune(START - DAY, limit=100)
    await store.put_messages([_message("m0", OLD, days=-90, text="an early word")])
    assert await store.count_messages() == 6
