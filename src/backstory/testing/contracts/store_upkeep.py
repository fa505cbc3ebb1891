"""What a StoreUpkeep promises, as checks. Damage is each store's own; it is tested beside the store."""

from __future__ import annotations

import tempfile
from dataclasses import replace
from pathlib import Path

from backstory.domain.blob import make_blob
from backstory.domain.conversation import Message, Part, Role, Session
from backstory.domain.history import Action, Edit
from backstory.domain.ids import MessageId, PartId, SessionId
from backstory.domain.lifecycle import forget
from backstory.domain.memory import Memory, Visibility
from backstory.domain.scope import Audience, Viewer
from backstory.domain.selection import EVERY_STATE, Selection
from backstory.errors import InputError, StoreDamaged, StoreUnavailable
from backstory.ports.backend import Backend
from backstory.ports.upkeep import Severity, StoreUpkeep
from backstory.testing.contracts.checks import Checks, MakeBackend, expect_error
from backstory.testing.fakes import START, add_memories, sample_change, sample_memory

STORE_UPKEEP_CHECKS = check = Checks()

_LOG = make_blob(b"the cluster is up\n" * 4000)
_EVERYONE = Viewer(project=None, audience=Audience.PERSON, all_projects=True)
_ALL = Selection(viewer=_EVERYONE, now=START, states=EVERY_STATE)


@check
async def a_store_that_was_only_used_keeps_every_invariant(make: MakeBackend) -> None:
    backend, upkeep = await _filled(make)
    for full in (False, True):
        found = await upkeep.verify(full=full)
        assert [finding for finding in found if finding.severity is not Severity.NOTE] == []
    await backend.memories.close()


@check
async def a_store_that_was_used_exists_and_can_be_written(make: MakeBackend) -> None:
    backend, upkeep = await _filled(make)
    before = await _contents(backend)
    assert await upkeep.exists()
    await upkeep.try_writing()
    assert await _contents(backend) == before
    await backend.memories.close()


@check
async def rebuilding_a_whole_store_finds_nothing_to_correct(make: MakeBackend) -> None:
    backend, upkeep = await _filled(make)
    before = await _contents(backend)
    rebuilt = await upkeep.rebuild()
    assert (rebuilt.memories, rebuilt.corrected) == (2, 0)
    assert await _contents(backend) == before
    assert len((await backend.text.search_text(["heron"], _ALL, limit=5)).hits) == 1
    await backend.memories.close()


@check
async def everything_is_salvaged_from_a_whole_store(make: MakeBackend) -> None:
    backend, upkeep = await _filled(make)
    session = Session(
        id=SessionId("ses-1"), project=None, host="opencode", directory="/orchard", title="Herons", created_at=START,
        updated_at=START,
    )  # fmt: skip
    await backend.conversations.put_session(session)
    saved = await upkeep.salvage()
    assert sorted(memory.content for memory in saved.memories) == await _contents(backend)
    assert list(saved.sessions) == [session]
    assert [message.id for message in saved.messages] == ["m1"]
    assert [blob.hash for blob in saved.blobs] == [ref.hash for ref in saved.messages[0].parts[0].blobs] == [_LOG.hash]
    assert list(saved.lost) == []
    await backend.memories.close()


@check
async def a_restored_store_is_as_it_was_backed_up_and_gives_no_number_twice(make: MakeBackend) -> None:
    backend, upkeep = await _filled(make)
    before = await _contents(backend)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "backup"
        if not await _backs_up(upkeep, path):
            return
        [later] = await add_memories(backend.memories, _memory("later"), first_change=50)
        await backend.conversations.remove_part(PartId("p1"))
        assert await backend.conversations.blob(_LOG.hash) is None
        restored = await upkeep.restore(path)
        assert (restored.memories, restored.messages) == (2, 1)
        assert await _contents(backend) == before
        assert await backend.conversations.blob(_LOG.hash) == _LOG
        [newest] = await add_memories(backend.memories, _memory("newest"), first_change=51)
        assert newest.n > later.n
    await backend.memories.close()


@check
async def a_backup_is_private_and_replaces_nothing_unasked(make: MakeBackend) -> None:
    backend, upkeep = await _filled(make)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "backup"
        if not await _backs_up(upkeep, path):
            return
        assert path.stat().st_mode & 0o077 == 0
        content = path.read_bytes()
        await expect_error(InputError, upkeep.backup(path))
        assert path.read_bytes() == content
        await upkeep.backup(path, overwrite=True)
        assert _names_in(path.parent) == ["backup"]
    await backend.memories.close()


@check
async def what_is_no_backup_leaves_the_store_as_it_was(make: MakeBackend) -> None:
    backend, upkeep = await _filled(make)
    before = await _contents(backend)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "backup"
        if not await _backs_up(upkeep, path):
            return
        for spoilt in (b"", b"dear diary" * 500, path.read_bytes()[: path.stat().st_size // 2]):
            path.write_bytes(spoilt)
            await expect_error(StoreDamaged, upkeep.restore(path))
            assert path.read_bytes() == spoilt
        assert await _contents(backend) == before
    await backend.memories.close()


def _names_in(folder: Path) -> list[str]:
    return [entry.name for entry in folder.iterdir()]


def _memory(content: str) -> Memory:
    return sample_memory(content, visibility=Visibility.GLOBAL, project=None)


async def _filled(make: MakeBackend) -> tuple[Backend, StoreUpkeep]:
    backend = make()
    assert backend.upkeep is not None
    _, second = await add_memories(backend.memories, _memory("The cluster is called heron"), _memory("Cut on Tuesdays"))
    reworded = replace(second, content="Cut on Fridays")
    changed = await backend.memories.commit(
        sample_change(10, Edit(before=second, after=reworded), action=Action.UPDATE)
    )
    gone = Edit(before=changed.edits[0].after, after=forget(changed.edits[0].after, now=START, reason=None))
    await backend.memories.commit(sample_change(11, gone, action=Action.FORGET))
    refs = (_LOG.ref("text/plain"),)
    part = Part(id=PartId("p1"), kind="text", text="what is the cluster called", blobs=refs)
    said = Message(id=MessageId("m1"), session=SessionId("ses-1"), role=Role.USER, created_at=START, parts=(part,))
    await backend.conversations.put_messages([said], blobs=[_LOG])
    return backend, backend.upkeep


async def _contents(backend: Backend) -> list[str]:
    return sorted(memory.content for memory in await backend.memories.select(_ALL, limit=100))


async def _backs_up(upkeep: StoreUpkeep, path: Path) -> bool:
    """Make a backup; whether the store can be copied at all."""
    try:
        await upkeep.backup(path)
    except StoreUnavailable:
        return False
    return True
