"""The contract of the ConversationStore."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

from backstory.domain.conversation import FrozenBlock, FrozenSnapshot, Message, Part, Role, Session, ShownMemory
from backstory.domain.history import WITHHELD, Edit
from backstory.domain.ids import MemoryId, MessageId, PartId, SessionId
from backstory.domain.memory import Deleted, Sensitivity, Superseded
from backstory.testing.contracts.checks import Checks, MakeBackend
from backstory.testing.fakes import ORCHARD, START, add_memories, sample_change, sample_memory, ulid

CONVERSATION_STORE_CHECKS = Checks()
S1, S2 = SessionId("ses-1"), SessionId("ses-2")
M1, M2 = MessageId("msg-1"), MessageId("msg-2")
SECOND = timedelta(seconds=1)
SESSION = Session(
    id=S1, project=ORCHARD, host="opencode", directory="/repo", title="First", created_at=START, updated_at=START
)
MESSAGE = Message(id=M1, session=S1, role=Role.USER, created_at=START)


def part(name: str, text: str = "hello", **fields: object) -> Part:
    """A part of a message."""
    return replace(Part(id=PartId(name), kind="text", text=text), **fields)  # type: ignore[arg-type]  # fields of Part


def block(message: MessageId, text: str = "<b>…</b>", **fields: object) -> FrozenBlock:
    """A frozen block."""
    parts = (("meaning", 6.25), ("project", 2.0))
    shown = (ShownMemory(memory=MemoryId(ulid(1)), n=1, score=0.5, reason="words, “quoted”", parts=parts),)
    plain = FrozenBlock(message=message, session=S1, text=text, shown=shown, silent_because=None, created_at=START)
    return replace(plain, **fields)  # type: ignore[arg-type]  # fields of FrozenBlock


@CONVERSATION_STORE_CHECKS
async def a_session_comes_back_and_is_brought_up_to_date(make: MakeBackend) -> None:
    store = make().conversations
    assert await store.session(S1) is None
    await store.put_session(SESSION)
    assert await store.session(S1) == SESSION
    later = replace(SESSION, project=None, title=None, parent=S2, updated_at=START + SECOND)
    await store.put_session(later)
    expected = replace(SESSION, parent=S2, updated_at=START + SECOND)
    assert await store.session(S1) == expected
    await store.put_session(replace(SESSION, title="Second", updated_at=START - SECOND, deleted_at=START))
    assert await store.session(S1) == replace(expected, title="Second", deleted_at=START)
    await store.put_session(replace(SESSION, deleted_at=START + SECOND))
    stored = await store.session(S1)
    assert stored is not None
    assert stored.deleted_at == START


@CONVERSATION_STORE_CHECKS
async def sessions_come_most_recently_updated_first(make: MakeBackend) -> None:
    store = make().conversations
    for name, project, seconds in (("a", ORCHARD, 1), ("b", None, 3), ("c", ORCHARD, 2), ("d", None, 3)):
        moment = START + seconds * SECOND
        await store.put_session(replace(SESSION, id=SessionId(name), project=project, updated_at=moment))
    assert [session.id for session in await store.sessions(limit=9)] == ["b", "d", "c", "a"]
    assert [session.id for session in await store.sessions(limit=1)] == ["b"]
    assert [session.id for session in await store.sessions(limit=9, project=ORCHARD)] == ["c", "a"]


@CONVERSATION_STORE_CHECKS
async def a_part_is_known_to_be_its_messages(make: MakeBackend) -> None:
    store = make().conversations
    await store.put_messages([replace(MESSAGE, parts=(part("p1"), part("p2")))])
    await store.put_part(part("p3"), message=M2, session=S1)
    owners = await store.part_owners([PartId("p3"), PartId("p1"), PartId("unknown")])
    assert owners == {PartId("p1"): M1, PartId("p3"): M2}
    assert await store.part_owners([]) == {}


@CONVERSATION_STORE_CHECKS
async def messages_come_oldest_first_with_their_parts_by_id(make: MakeBackend) -> None:
    store = make().conversations
    full = part("p1", "text\nand ünïcödé", tool="bash", synthetic=True, detail='{"a": 1}')
    first = replace(MESSAGE, agent="build", model="m", completed_at=START + SECOND, parts=(full, part("p2")))
    second = replace(MESSAGE, id=M2, created_at=START + SECOND, role=Role.ASSISTANT)
    await store.put_messages([second, replace(first, parts=first.parts[::-1])])
    assert await store.messages(S1) == [first, second]
    assert await store.messages(S1, limit=1, offset=1) == [second]
    assert await store.messages(S2) == []
    assert await store.count_messages() == 2


@CONVERSATION_STORE_CHECKS
async def messages_of_one_moment_come_by_id(make: MakeBackend) -> None:
    store = make().conversations
    await store.put_messages([replace(MESSAGE, id=M2), MESSAGE])
    assert [message.id for message in await store.messages(S1)] == [M1, M2]


@CONVERSATION_STORE_CHECKS
async def a_message_needs_no_session(make: MakeBackend) -> None:
    store = make().conversations
    await store.put_messages([MESSAGE])
    assert await store.messages(S1) == [MESSAGE]
    assert await store.session(S1) is None


@CONVERSATION_STORE_CHECKS
async def a_part_may_arrive_before_its_message(make: MakeBackend) -> None:
    store = make().conversations
    await store.put_part(part("p1"), message=M1, session=S1)
    assert await store.messages(S1) == []
    await store.put_messages([MESSAGE])
    assert await store.messages(S1) == [replace(MESSAGE, parts=(part("p1"),))]


@CONVERSATION_STORE_CHECKS
async def telling_everything_nine_times_changes_nothing(make: MakeBackend) -> None:
    store = make().conversations
    message = replace(MESSAGE, parts=(part("p1"),))
    for _ in range(9):
        await store.put_session(SESSION)
        await store.put_messages([message, message])
        await store.put_part(part("p1"), message=M1, session=S1)
    assert await store.messages(S1) == [message]
    assert (await store.count_messages(), await store.sessions(limit=9)) == (1, [SESSION])


@CONVERSATION_STORE_CHECKS
async def a_part_is_replaced_and_parts_not_named_stay(make: MakeBackend) -> None:
    store = make().conversations
    await store.put_messages([replace(MESSAGE, parts=(part("p1", "draft"), part("p2")))])
    await store.put_part(part("p1", "final"), message=M1, session=S1)
    await store.put_messages([replace(MESSAGE, parts=(part("p3"),))])
    (stored,) = await store.messages(S1)
    assert stored.parts == (part("p1", "final"), part("p2"), part("p3"))


@CONVERSATION_STORE_CHECKS
async def a_completion_once_set_stays(make: MakeBackend) -> None:
    store = make().conversations
    await store.put_messages([MESSAGE])
    await store.put_messages([replace(MESSAGE, agent="plan", model="m", completed_at=START)])
    await store.put_messages([replace(MESSAGE, completed_at=None)])
    await store.put_messages([replace(MESSAGE, completed_at=START + SECOND)])
    assert await store.messages(S1) == [replace(MESSAGE, agent="plan", model="m", completed_at=START)]


@CONVERSATION_STORE_CHECKS
async def what_was_taken_back_is_marked_and_stays(make: MakeBackend) -> None:
    store = make().conversations
    await store.put_messages([replace(MESSAGE, parts=(part("p1"), part("p2")))])
    await store.mark_removed(M1, at=START)
    await store.mark_removed(M1, at=START + SECOND)
    await store.mark_removed(M2, at=START)
    await store.remove_part(PartId("p1"))
    await store.remove_part(PartId("no such part"))
    await store.put_messages([MESSAGE])
    assert await store.messages(S1) == [replace(MESSAGE, removed_at=START, parts=(part("p2"),))]


@CONVERSATION_STORE_CHECKS
async def the_first_frozen_block_wins(make: MakeBackend) -> None:
    store = make().conversations
    first = block(M1)
    assert await store.freeze_block(first) == first
    assert await store.freeze_block(block(M1, "other", session=S2)) == first
    assert await store.blocks([M1, M2]) == {M1: first}
    assert await store.blocks([]) == {}


@CONVERSATION_STORE_CHECKS
async def a_withdrawn_block_is_empty_for_ever(make: MakeBackend) -> None:
    store = make().conversations
    await store.freeze_block(block(M1))
    await store.withdraw_block(M1, because="too late")
    await store.withdraw_block(M2, because="never frozen")
    empty = block(M1, "", shown=(), silent_because="too late")
    assert await store.blocks([M1]) == {M1: empty}
    assert await store.freeze_block(block(M1)) == empty


@CONVERSATION_STORE_CHECKS
async def recent_blocks_come_newest_first_silent_ones_included(make: MakeBackend) -> None:
    store = make().conversations
    silent = block(M2, "", shown=(), silent_because="nothing fits", created_at=START + SECOND)
    other = block(MessageId("msg-3"), session=S2, created_at=START - SECOND)
    for item in (block(M1), silent, other):
        await store.freeze_block(item)
    assert await store.recent_blocks() == [silent, block(M1), other]
    assert await store.recent_blocks(limit=1) == [silent]
    assert await store.recent_blocks(session=S2) == [other]


@CONVERSATION_STORE_CHECKS
async def blocks_are_found_by_their_project_and_by_what_they_show(make: MakeBackend) -> None:
    store = make().conversations
    await store.put_session(replace(SESSION, project=ORCHARD))
    await store.put_session(replace(SESSION, id=S2, project=None))
    shown = tuple(ShownMemory(memory=MemoryId(ulid(n)), n=n, score=0.5, reason="words") for n in (7, 8, 7))
    here, there = block(M1, shown=shown), block(M2, session=S2, shown=shown[:1], created_at=START + SECOND)
    unknown = block(MessageId("msg-3"), session=SessionId("never told"), shown=(), created_at=START - SECOND)
    for item in (here, there, unknown):
        await store.freeze_block(item)
    assert await store.recent_blocks(project=ORCHARD) == [here]
    assert await store.recent_blocks(showing=MemoryId(ulid(7))) == [there, here]
    assert await store.recent_blocks(showing=MemoryId(ulid(8))) == [here]
    assert await store.recent_blocks(showing=MemoryId(ulid(7)), session=S1) == [here]
    await store.withdraw_block(M1, because="too late")
    assert await store.recent_blocks(showing=MemoryId(ulid(7))) == [there]


@CONVERSATION_STORE_CHECKS
async def a_text_made_before_a_memory_was_withheld_is_not_frozen_after_it(make: MakeBackend) -> None:
    backend = make()
    store = backend.conversations
    gone, hidden, fine = await add_memories(backend.memories, *map(sample_memory, ("a", "b", "c")))
    edits = (
        Edit(before=gone, after=replace(gone, status=Deleted(since=START))),
        Edit(before=hidden, after=replace(hidden, sensitivity=Sensitivity.LOCAL_ONLY)),
    )
    await backend.memories.commit(sample_change(99, *edits))
    shown = {memory.id: ShownMemory(memory=memory.id, n=memory.n, score=0.5, reason="words") for memory in (gone, fine)}
    late = block(M1, shown=tuple(shown.values()))
    empty = replace(late, text="", shown=(), silent_because=WITHHELD)
    assert await store.freeze_block(late) == empty
    assert await store.blocks([M1]) == {M1: empty}
    good = block(M2, shown=(shown[fine.id],))
    assert await store.freeze_block(good) == good
    snapshot = FrozenSnapshot(session=S1, text="text", shown=(fine.id, hidden.id), created_at=START)
    assert await store.freeze_snapshot(snapshot) == replace(snapshot, text="", shown=())
    assert await store.snapshot(S1) is None


@CONVERSATION_STORE_CHECKS
async def no_frozen_text_shows_what_a_change_withholds(make: MakeBackend) -> None:
    backend = make()
    store = backend.conversations
    memories = await add_memories(backend.memories, *(sample_memory(text) for text in ("a", "b", "c", "d", "e")))
    for memory in memories:
        shown = (ShownMemory(memory=memory.id, n=memory.n, score=0.5, reason="words"),)
        await store.freeze_block(block(MessageId(memory.content), shown=shown))
        await store.freeze_snapshot(
            FrozenSnapshot(session=SessionId(memory.content), text="text", shown=(memory.id,), created_at=START)
        )
    a, b, c, d, e = memories
    afters = (
        replace(a, status=Deleted(since=START)),
        replace(b, sensitivity=Sensitivity.LOCAL_ONLY),
        replace(c, sensitivity=Sensitivity.PRIVATE),
        replace(d, status=Superseded(by=e.id, since=START)),
        replace(e, pinned=True),
    )
    edits = [Edit(before=before, after=after) for before, after in zip(memories, afters, strict=True)]
    await backend.memories.commit(sample_change(99, *edits))
    blocks = await store.blocks([MessageId(name) for name in "abcde"])
    told = [(item.text, item.silent_because) for item in blocks.values()]
    assert told == [("", WITHHELD)] * 3 + [("<b>…</b>", None)] * 2
    assert [item.shown[0].memory for item in blocks.values()] == [memory.id for memory in memories]
    assert [name for name in "abcde" if await store.snapshot(SessionId(name)) is not None] == ["d", "e"]
    assert await store.recent_blocks(showing=a.id) == [blocks[MessageId("a")]]


@CONVERSATION_STORE_CHECKS
async def messages_are_found_by_their_ids(make: MakeBackend) -> None:
    store = make().conversations
    other = replace(MESSAGE, id=M2, session=S2)
    await store.put_messages([replace(MESSAGE, parts=(part("p1"),)), other])
    found = await store.find_messages([M2, MessageId("unknown"), M1, M2])
    assert found == [other, replace(MESSAGE, parts=(part("p1"),))]
    assert await store.find_messages([]) == []


@CONVERSATION_STORE_CHECKS
async def the_first_snapshot_wins_until_it_is_thawed(make: MakeBackend) -> None:
    store = make().conversations
    first = FrozenSnapshot(session=S1, text="one", shown=(MemoryId(ulid(2)), MemoryId(ulid(1))), created_at=START)
    second = replace(first, text="", shown=())
    assert await store.snapshot(S1) is None
    assert await store.freeze_snapshot(first) == first
    assert await store.freeze_snapshot(second) == first
    assert await store.snapshot(S1) == first
    await store.thaw_snapshot(S2)
    await store.thaw_snapshot(S1)
    assert await store.snapshot(S1) is None
    assert await store.freeze_snapshot(second) == second
