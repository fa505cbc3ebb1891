"""The contract of the Eraser. A backend without one has nothing to keep here."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

from backstory.domain.conversation import FrozenBlock, FrozenSnapshot, Message, Part, Role, Session, ShownMemory
from backstory.domain.doubt import Doubt
from backstory.domain.dream_state import Summary
from backstory.domain.erasure import ERASED, ERASED_REASON, asked_eraser_of
from backstory.domain.history import Action, Edit
from backstory.domain.ids import ChangeId, MemoryId, MessageId, PartId, SessionId
from backstory.domain.memory import Deleted, Memory
from backstory.errors import Conflict
from backstory.ports.backend import Backend
from backstory.ports.erasing import Eraser, Erasure, Found
from backstory.ports.index import Embedded
from backstory.ports.models import EmbeddingModel
from backstory.testing.contracts.checks import Checks, MakeBackend, expect_error
from backstory.testing.fakes import ORCHARD, START, add_memories, hash_vector, sample_change, sample_memory, ulid

ERASER_CHECKS = Checks()
WORDS = "the quince lies in the blue larder"
LATER = START + timedelta(days=1)
SESSION = SessionId("ses-erased")
MODEL = EmbeddingModel(name="m", dimension=64)


def _erasure(*memories: Memory, number: int = 900) -> Erasure:
    return Erasure(
        id=ChangeId(ulid(number, series=1)),
        at=LATER,
        memories=tuple(memory.id for memory in memories),
        rewrite=asked_eraser_of(WORDS),
        reason=ERASED_REASON,
    )


def _eraser(backend: Backend) -> Eraser | None:
    return backend.eraser


async def _said(backend: Backend) -> Message:
    session = Session(
        id=SESSION, project=ORCHARD, host="h", directory="/d", title=f"On {WORDS}", created_at=START, updated_at=START
    )
    await backend.conversations.put_session(session)
    parts = (
        Part(id=PartId("p-one"), kind="text", text=f"note that {WORDS.upper()}, please"),
        Part(id=PartId("p-two"), kind="text", text="plums ripen late"),
    )
    message = Message(id=MessageId("m-erased"), session=SESSION, role=Role.USER, created_at=START, parts=parts)
    await backend.conversations.put_messages([message])
    return message


@ERASER_CHECKS
async def an_erased_memory_keeps_its_number_and_no_word(make: MakeBackend) -> None:
    backend = make()
    if (eraser := _eraser(backend)) is None:
        return
    one, two, three = await add_memories(
        backend.memories,
        replace(sample_memory(WORDS), tags=("larder",), area="cellar", pinned=True),
        sample_memory(f"Remember: {WORDS}, says Anna"),
        sample_memory("Plums ripen late"),
    )
    places = await eraser.erase(_erasure(one))
    assert (places["memories"], places["history"]) == (2, 2)
    known = await backend.memories.get([one.id, two.id, three.id])
    gone = known[one.id]
    assert (gone.n, gone.content, gone.tags, gone.area, gone.pinned) == (one.n, ERASED, (), None, False)
    assert gone.status == Deleted(since=LATER, reason=ERASED_REASON)
    assert known[two.id].content == f"Remember: {ERASED}, says Anna"
    assert known[three.id] == three
    history = await backend.memories.history()
    assert all("quince" not in repr(change) for change in history)
    assert (history[0].id, history[0].action, history[0].reason) == (_erasure().id, Action.MASK, ERASED_REASON)


@ERASER_CHECKS
async def looking_changes_nothing_and_tells_every_place(make: MakeBackend) -> None:
    backend = make()
    if (eraser := _eraser(backend)) is None:
        return
    (one,) = await add_memories(backend.memories, sample_memory(f"Remember: {WORDS}"))
    message = await _said(backend)
    found: list[Found] = []
    await eraser.look(asked_eraser_of(WORDS), found.append)
    assert {item.place for item in found} >= {"memories", "history", "messages", "titles"}
    assert all("quince" in item.before.lower() and ERASED in item.after for item in found if item.place != "commits")
    assert (await backend.memories.get([one.id]))[one.id] == one
    assert await backend.conversations.find_messages([message.id]) == [message]
    assert await eraser.receipts(limit=5) == []


@ERASER_CHECKS
async def an_earlier_state_cannot_be_written_back(make: MakeBackend) -> None:
    backend = make()
    if (eraser := _eraser(backend)) is None:
        return
    one, two = await add_memories(backend.memories, sample_memory(WORDS), sample_memory(f"So {WORDS}"))
    await eraser.erase(_erasure(one))
    for number, stale in enumerate((one, two), start=50):
        change = sample_change(number, Edit(before=stale, after=replace(stale, pinned=True)), action=Action.PIN)
        await expect_error(Conflict, backend.memories.commit(change))
    late = Embedded(id=two.id, revision=two.revision, vector=hash_vector(two.content, dimension=64))
    assert await backend.vectors.put_vectors([late], model=MODEL) == 0


@ERASER_CHECKS
async def what_was_made_of_it_goes_with_it(make: MakeBackend) -> None:
    backend = make()
    if (eraser := _eraser(backend)) is None:
        return
    (one,) = await add_memories(backend.memories, sample_memory(WORDS))
    await backend.vectors.put_vectors(
        [Embedded(id=one.id, revision=one.revision, vector=hash_vector(WORDS, dimension=64))], model=MODEL
    )
    shown = (ShownMemory(memory=one.id, n=one.n, score=0.5, reason="words"),)
    block = FrozenBlock(
        message=MessageId("m"), session=SESSION, text=WORDS, shown=shown, silent_because=None, created_at=START
    )
    await backend.conversations.freeze_block(block)
    await backend.conversations.freeze_snapshot(
        FrozenSnapshot(session=SESSION, text=WORDS, shown=(one.id,), created_at=START)
    )
    await backend.dreams.put_summary(
        Summary(project=ORCHARD, text="A larder", sources=(one.id,), made_by="m", prompt="1", created_at=START)
    )
    await backend.doubts.replace([one.id], [Doubt(memory=one.id, anchor="a", reason=WORDS, since=START)])
    await eraser.erase(_erasure(one))
    kept = (await backend.conversations.blocks([block.message]))[block.message]
    assert (kept.text, [item.memory for item in kept.shown]) == ("", [one.id])
    assert await backend.conversations.snapshot(SESSION) is None
    assert await backend.dreams.summary(ORCHARD) is None
    assert await backend.doubts.doubts() == {}
    assert dict(await backend.vectors.vector_counts()) == {}


@ERASER_CHECKS
async def evidence_stays_erased_however_often_it_is_told(make: MakeBackend) -> None:
    backend = make()
    if (eraser := _eraser(backend)) is None:
        return
    message = await _said(backend)
    await eraser.erase(_erasure())
    for _ in range(2):
        (kept,) = await backend.conversations.find_messages([message.id])
        assert [part.text for part in kept.parts] == [f"note that {ERASED}, please", "plums ripen late"]
        session = await backend.conversations.session(SESSION)
        assert session is not None
        assert session.title == f"On {ERASED}"
        await _said(backend)
    await backend.conversations.put_part(message.parts[0], message=message.id, session=SESSION)
    assert await eraser.scan([WORDS]) == []


@ERASER_CHECKS
async def a_receipt_is_kept_and_finished_after_cleaning(make: MakeBackend) -> None:
    backend = make()
    if (eraser := _eraser(backend)) is None:
        return
    (one,) = await add_memories(backend.memories, sample_memory(WORDS))
    assert [trace for trace in await eraser.scan([WORDS]) if not trace.beside]
    places = await eraser.erase(_erasure(one))
    (receipt,) = await eraser.receipts(limit=5)
    assert (receipt.id, receipt.at, receipt.memories) == (_erasure().id, LATER, (one.id,))
    assert (dict(receipt.places), receipt.finished, receipt.traces) == (dict(places), False, None)
    cleaned = await eraser.clean(copies=False)
    assert cleaned.finished
    assert await eraser.scan([WORDS]) == []
    known = replace(receipt, finished=True, traces=(), forms=("as written",), remains=("in “memory”",))
    await eraser.note(known)
    assert await eraser.receipts(limit=5) == [known]


@ERASER_CHECKS
async def erasing_what_is_not_there_keeps_nothing(make: MakeBackend) -> None:
    backend = make()
    if (eraser := _eraser(backend)) is None:
        return
    await add_memories(backend.memories, sample_memory("Plums ripen late"))
    erasure = replace(_erasure(), memories=(MemoryId(ulid(404)),))
    assert dict(await eraser.erase(erasure)) == {}
    assert await eraser.receipts(limit=5) == []
    assert len(await backend.memories.history()) == 1
