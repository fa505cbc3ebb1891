"""Work behind long sessions: what is wanted while the worker is busy, and what is found after a restart."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import cast

import anyio
import anyio.lowlevel
import pytest

from backstory.bootstrap import App
from backstory.bootstrap.sessions import LongSessions
from backstory.config import Settings
from backstory.config.long_sessions import SessionSettings
from backstory.domain.conversation import Message, Session
from backstory.domain.digest import DigestState, DigestUpdate, Strategy
from backstory.domain.ids import MessageId, PartId, ProjectId, SessionId
from backstory.entrypoints.opencode import protocol
from backstory.entrypoints.opencode.histories import MAX_TRIES, HistoryHooks
from backstory.entrypoints.places import Place, Places
from backstory.errors import StoreBusy, StoreError
from backstory.ports.backend import Backend
from backstory.testing.fakes import START
from tests.unit.services.digests import SESSION, LongSession, message, texts

pytestmark = pytest.mark.anyio

SHOP = ProjectId("prj_shop")
LATE_S = 0.5  # longer than a request is waited for


@dataclass(frozen=True)
class Folder:
    """What the hooks need of a folder's application."""

    long_sessions: LongSessions
    backend: Backend
    settings: Settings


@dataclass
class Host:
    """A host with one folder open, whose worker does nothing until ``work``."""

    world: LongSession = field(default_factory=LongSession)
    settings: Settings = field(default_factory=Settings)

    def __post_init__(self) -> None:
        served = LongSessions(
            strategy=Strategy.TREE, requests=self.world.requests, work=self.world.digesting, warm=lambda: None
        )
        folder = Folder(long_sessions=served, backend=self.world.backend, settings=self.settings)
        self.folder = Place(app=cast(App, folder), directory="/shop", project=SHOP)
        self.hooks = HistoryHooks(cast(Places, self), give_way=anyio.lowlevel.checkpoint)

    async def place(self, directory: str) -> Place:
        return self.folder

    def waiting(self, limit: timedelta) -> AbstractContextManager[None]:
        return nullcontext()

    async def request(self, *names: str) -> None:
        await self.world.say(*names)
        listed = [
            protocol.ListedMessage(id=name, role="user" if name.startswith("u") else "assistant") for name in names
        ]
        await self.hooks.history(protocol.History(directory="/shop", session=SESSION, messages=listed))

    async def work(self) -> None:
        """Let the worker do all that is wanted."""
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(self.hooks.keep_working)
            await anyio.wait_all_tasks_blocked()
            tasks.cancel_scope.cancel()

    async def pieces(self) -> list[str]:
        digest = await self.world.backend.digests.digest(SESSION)
        return [] if digest is None else texts(digest.pieces)


def failing(host: Host, monkeypatch: pytest.MonkeyPatch, how: Callable[[], Awaitable[None]]) -> None:
    """Have the store do something before each look at messages in the archive."""
    archive = host.world.backend.conversations
    find = archive.find_messages

    async def find_messages(messages: Sequence[MessageId]) -> list[Message]:
        await how()
        return await find(messages)

    monkeypatch.setattr(archive, "find_messages", find_messages)


async def late() -> None:
    await anyio.sleep(LATE_S)


async def busy() -> None:
    raise StoreBusy("somebody else writes")


async def test_what_a_compaction_drops_is_digested_though_the_host_goes_on_before_the_worker_comes_to_it() -> None:
    host = Host()
    await host.request("u1", "a1", "u2", "a2", "u3")
    await host.hooks.compacting(host.folder, SESSION)
    await host.request("u1", "a1", "u2", "a2", "u3")
    await host.request("u4", "a4", "u5")
    host.hooks.idle(host.folder, SESSION)
    await host.work()
    assert await host.pieces() == ["said u1 and said a1", "said u2 and said a2", "said u3", "said u4 and said a4"]


async def test_two_compactions_in_a_row_lose_nothing_and_are_worked_off_in_their_order() -> None:
    host = Host()
    for names in (("u1", "a1", "u2"), ("u4", "a4", "u5")):
        await host.request(*names)
        await host.hooks.compacting(host.folder, SESSION)
        await host.request(*names)
    await host.work()
    assert await host.pieces() == ["said u1 and said a1", "said u2", "said u4 and said a4", "said u5"]


async def test_a_compaction_whose_list_never_comes_is_prepared_with_the_last_request() -> None:
    host = Host()
    await host.request("u1", "a1", "u2", "a2", "x1", "u3")
    await host.hooks.compacting(host.folder, SESSION)
    await host.request("u4")
    host.hooks.idle(host.folder, SESSION)
    await host.work()
    assert await host.pieces() == ["said u1 and said a1", "said u2 and said a2", "said x1"]


@pytest.mark.parametrize("how", [late, busy])
async def test_a_request_that_the_store_did_not_answer_is_worked_on_all_the_same(
    how: Callable[[], Awaitable[None]], monkeypatch: pytest.MonkeyPatch
) -> None:
    host = Host()
    with monkeypatch.context() as patch:
        failing(host, patch, how)
        with pytest.raises(StoreError):
            await host.request("u1", "a1", "u2")
    await host.work()
    assert await host.pieces() == ["said u1 and said a1"]


async def test_it_is_found_again_when_its_turn_ends() -> None:
    host = Host()
    with pytest.MonkeyPatch.context() as patch:
        failing(host, patch, busy)
        with pytest.raises(StoreError):
            await host.request("u1", "a1", "u2")
        await host.work()
    assert await host.pieces() == []
    host.hooks.idle(host.folder, SESSION)
    await host.work()
    assert await host.pieces() == ["said u1 and said a1"]


async def test_a_later_answer_takes_the_place_of_a_request_that_got_none() -> None:
    host = Host()
    with pytest.MonkeyPatch.context() as patch:
        failing(host, patch, busy)
        with pytest.raises(StoreError):
            await host.request("u1", "a1", "u2")
    await host.request("u1", "a1", "u2", "a2", "u3")
    host.hooks.idle(host.folder, SESSION)
    await host.work()
    assert await host.pieces() == ["said u1 and said a1", "said u2 and said a2"]


@pytest.mark.parametrize("how", [late, busy])
async def test_an_announced_compaction_is_not_forgotten_when_the_store_does_not_answer_its_request(
    how: Callable[[], Awaitable[None]],
) -> None:
    host = Host()
    await host.request("u1", "a1", "u2")
    await host.hooks.compacting(host.folder, SESSION)

    async def revision(session: SessionId) -> int:
        await how()
        return 0

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(host.world.backend.digests, "revision", revision)
        with pytest.raises(StoreError):
            await host.request("u1", "a1", "u2")
    await host.request("u4")
    await host.work()
    assert await host.pieces() == ["said u1 and said a1", "said u2"]


async def test_a_part_that_is_taken_back_while_it_is_digested_is_not_kept() -> None:
    host = Host()
    await host.request("u1", "a1", "u2", "a2", "u3")

    async def taken_back() -> None:
        host.world.strategy.during.clear()
        await host.world.backend.conversations.remove_part(PartId("prt_a1"))
        await host.hooks.removed(host.folder, SESSION, [MessageId("a1")])

    host.world.strategy.during.append(taken_back)
    await host.work()
    assert await host.pieces() == ["said u1", "said u2 and said a2"]


async def test_a_compaction_is_announced_for_one_turn_only() -> None:
    host = Host()
    await host.request("u1", "a1", "u2")
    await host.hooks.compacting(host.folder, SESSION)
    await host.request("u1", "a1", "u2", "a2", "u3")
    await host.request("u1", "a1", "u2", "a2", "u3")
    await host.work()
    assert "said u3" not in await host.pieces()


async def test_what_a_failing_model_missed_of_a_compaction_is_made_up_for_and_makes_no_later_turn_hasty() -> None:
    host = Host()
    host.world.strategy.failing = True
    await host.request("u1", "a1", "u2")
    await host.hooks.compacting(host.folder, SESSION)
    await host.request("u1", "a1", "u2")
    await host.work()
    host.world.strategy.failing = False
    await host.request("u4", "u5")
    host.hooks.idle(host.folder, SESSION)
    await host.work()
    assert await host.pieces() == [], "too early after a failure"
    host.world.clock.advance(timedelta(minutes=10))
    host.hooks.idle(host.folder, SESSION)
    await host.work()
    assert await host.pieces() == ["said u1 and said a1", "said u2"]


async def test_what_a_model_always_fails_is_not_tried_for_ever() -> None:
    host = Host()
    host.world.strategy.failing = True
    await host.request("u1", "a1", "u2")
    await host.hooks.compacting(host.folder, SESSION)
    await host.request("u1", "a1", "u2")
    for _ in range(3 * MAX_TRIES):
        await host.work()
        host.world.clock.advance(timedelta(minutes=10))
        await host.request("u4")
        host.hooks.idle(host.folder, SESSION)
    assert 1 < host.world.strategy.asked <= MAX_TRIES


async def _left_undone(host: Host, *, agent: str | None = None) -> None:
    """A session of which a process that died knew that something was due."""
    for at, name in enumerate(("u1", "a1", "u2")):
        await host.world.backend.conversations.put_messages([replace(message(name, at), agent=agent)])
    state = DigestState(session=SESSION, strategy=Strategy.TREE, updated_at=START, due=True)
    assert await host.world.backend.digests.apply(DigestUpdate(state=state))


def _session(project: ProjectId | None = SHOP, *, parent: str | None = None, deleted: bool = False) -> Session:
    return Session(
        id=SESSION, project=project, host="opencode", directory="/shop", created_at=START, updated_at=START,
        parent=None if parent is None else SessionId(parent), deleted_at=START if deleted else None,
    )  # fmt: skip


async def test_what_an_earlier_process_left_is_taken_up() -> None:
    host = Host()
    await _left_undone(host)
    await host.world.backend.conversations.put_session(_session())
    host.hooks.sweep(host.folder)
    await host.work()
    assert await host.pieces() == ["said u1 and said a1"]


@pytest.mark.parametrize(
    "session",
    [
        pytest.param(None, id="unknown"),
        pytest.param(_session(ProjectId("prj_other")), id="another project's"),
        pytest.param(_session(None), id="of no project"),
        pytest.param(_session(parent="ses_0"), id="a sub-agent's"),
        pytest.param(_session(deleted=True), id="deleted"),
    ],
)
async def test_what_an_earlier_process_left_elsewhere_is_left_alone(session: Session | None) -> None:
    host = Host()
    await _left_undone(host)
    if session is not None:
        await host.world.backend.conversations.put_session(session)
    host.hooks.sweep(host.folder)
    await host.work()
    assert (await host.pieces(), host.world.strategy.asked) == ([], 0)


@pytest.mark.parametrize(("agent", "asked"), [("title", 0), ("build", 1), (None, 1)])
async def test_what_is_left_of_an_excluded_agent_s_session_stays(agent: str | None, asked: int) -> None:
    host = Host(settings=Settings(session=SessionSettings(exclude_agents="title")))
    await _left_undone(host, agent=agent)
    await host.world.backend.conversations.put_session(_session())
    host.hooks.sweep(host.folder)
    await host.work()
    assert host.world.strategy.asked == asked


async def test_a_request_s_list_is_not_replaced_by_what_the_archive_tells_after_a_restart() -> None:
    host = Host()
    await host.world.backend.conversations.put_session(_session())
    await _left_undone(host)
    host.hooks.sweep(host.folder)
    await host.request("u1", "a1", "u2", "a2", "u3")
    await host.work()
    assert await host.pieces() == ["said u1 and said a1", "said u2 and said a2"]
