"""The contract of the DreamStore: how far sessions are distilled. Summaries are in ``summaries.py``."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

from anyio import create_task_group

from backstory.domain.digest import Lease
from backstory.domain.dream_state import DreamState
from backstory.domain.ids import MessageId, ProjectId, SessionId
from backstory.errors import InputError
from backstory.ports.dreams import DreamStore
from backstory.testing.contracts.checks import Checks, MakeBackend
from backstory.testing.fakes import ORCHARD, START, ulid

DREAM_STORE_CHECKS = Checks()
HOUR = timedelta(hours=1)
MOMENT = datetime(2026, 3, 2, 12, 0, 0, 123456, tzinfo=UTC)
ELSEWHERE = ProjectId(ulid(9, series=2))
S1, S2 = SessionId("ses-1"), SessionId("ses-2")
STATE = DreamState(session=S1, project=None, updated_at=START)
FULL_STATE = DreamState(
    session=S1,
    project=ORCHARD,
    revision=0,
    through=MessageId("größe 🚀"),
    through_at=MOMENT - HOUR,
    target=MessageId('"quoted", [1]'),
    due=True,
    not_before=MOMENT + HOUR,
    lease=Lease(token="worker-1", expires_at=MOMENT),
    attempts=3,
    problem="the model did not answer –\n\t“why?” \u2028",
    updated_at=MOMENT,
)
"""A state with no field at its default, but the revision."""


async def written(store: DreamStore, session: SessionId = S1, **fields: object) -> DreamState:
    """Give a session a state in place of the one that it has; the state as it is kept."""
    known = await store.state(session)
    state = replace(STATE, session=session, revision=0 if known is None else known.revision, **fields)  # type: ignore[arg-type]  # fields of DreamState
    assert await store.apply(state)
    return replace(state, revision=state.revision + 1)


@DREAM_STORE_CHECKS
async def a_session_that_was_never_looked_at_has_no_state(make: MakeBackend) -> None:
    store = make().dreams
    assert await store.state(S1) is None
    assert not await store.forget(S1)
    assert list(await store.due(now=START, limit=9)) == []


@DREAM_STORE_CHECKS
async def a_state_comes_back_as_it_was_written_one_revision_further(make: MakeBackend) -> None:
    store = make().dreams
    assert await store.apply(FULL_STATE)
    assert await store.state(S1) == replace(FULL_STATE, revision=1)
    assert await store.apply(replace(STATE, revision=1))
    assert await store.state(S1) == replace(STATE, revision=2)
    assert await store.state(S2) is None


@DREAM_STORE_CHECKS
async def a_state_that_is_written_late_is_refused(make: MakeBackend) -> None:
    store = make().dreams
    kept = await written(store, attempts=1)
    for revision in (0, 2, 7, 2**40):
        assert not await store.apply(replace(FULL_STATE, revision=revision))
    assert await store.state(S1) == kept
    assert not await store.apply(replace(STATE, session=S2, revision=1))
    assert await store.state(S2) is None


@DREAM_STORE_CHECKS
async def of_several_that_write_at_once_one_is_first(make: MakeBackend) -> None:
    store = make().dreams
    for revision in (0, 1):
        won: list[str] = []

        async def take(token: str, revision: int = revision, won: list[str] = won) -> None:
            lease = Lease(token=token, expires_at=START)
            if await store.apply(replace(STATE, revision=revision, lease=lease)):
                won.append(token)

        async with create_task_group() as group:
            for number in range(6):
                group.start_soon(take, f"worker {number}")
        state = await store.state(S1)
        assert state is not None
        assert state.revision == revision + 1
        assert state.lease is not None
        assert won == [state.lease.token]


@DREAM_STORE_CHECKS
async def sessions_that_are_due_come_the_latest_first(make: MakeBackend) -> None:
    store = make().dreams
    for name, hours, due in (("a", 1, True), ("b", 3, True), ("c", 4, False), ("e", 2, True), ("d", 2, True)):
        await written(store, SessionId(name), updated_at=START + hours * HOUR, due=due)
    assert list(await store.due(now=START, limit=9)) == ["b", "d", "e", "a"]
    assert list(await store.due(now=START, limit=2)) == ["b", "d"]
    await written(store, SessionId("b"), updated_at=START + 9 * HOUR)
    await written(store, SessionId("a"), updated_at=START + 9 * HOUR, due=True)
    assert list(await store.due(now=START, limit=9)) == ["a", "d", "e"]


@DREAM_STORE_CHECKS
async def sessions_are_due_in_one_project_or_in_all(make: MakeBackend) -> None:
    store = make().dreams
    for name, hours, project in (("a", 1, ORCHARD), ("b", 2, ELSEWHERE), ("c", 3, None), ("d", 4, ORCHARD)):
        await written(store, SessionId(name), updated_at=START + hours * HOUR, due=True, project=project)
    assert list(await store.due(now=START, limit=9, project=ORCHARD)) == ["d", "a"]
    assert list(await store.due(now=START, limit=1, project=ORCHARD)) == ["d"]
    assert list(await store.due(now=START, limit=9, project=ELSEWHERE)) == ["b"]
    assert list(await store.due(now=START, limit=9, project=ProjectId(ulid(404)))) == []
    assert list(await store.due(now=START, limit=9)) == ["d", "c", "b", "a"]


@DREAM_STORE_CHECKS
async def a_session_that_somebody_works_on_or_that_waits_is_not_due(make: MakeBackend) -> None:
    store = make().dreams
    tick = timedelta(microseconds=1)
    for name, until, wait in (
        ("leased", START + tick, None),
        ("left", START, None),
        ("waiting", None, START + tick),
        ("waited", None, START),
        ("left, waiting", START - HOUR, START + HOUR),
    ):
        lease = None if until is None else Lease(token="t", expires_at=until)
        await written(store, SessionId(name), due=True, lease=lease, not_before=wait)
    assert list(await store.due(now=START, limit=9)) == ["left", "waited"]
    assert list(await store.due(now=START + tick, limit=9)) == ["leased", "left", "waited", "waiting"]
    assert len(await store.due(now=START + HOUR, limit=9)) == 5


@DREAM_STORE_CHECKS
async def a_state_that_was_forgotten_is_gone_and_begins_anew(make: MakeBackend) -> None:
    store = make().dreams
    await written(store, due=True)
    await written(store, S2, due=True)
    assert await store.forget(S1)
    assert not await store.forget(S1)
    assert await store.state(S1) is None
    assert list(await store.due(now=START, limit=9)) == [S2]
    assert not await store.apply(replace(STATE, revision=1))
    assert await store.apply(STATE)


@DREAM_STORE_CHECKS
async def the_archive_need_not_know_a_session_that_is_distilled(make: MakeBackend) -> None:
    backend = make()
    await written(backend.dreams)
    assert await backend.conversations.session(S1) is None


@DREAM_STORE_CHECKS
async def ids_and_problems_may_hold_any_character(make: MakeBackend) -> None:
    store = make().dreams
    for odd in ("a\x00b", "' OR 1=1 --", "日本 🚀", "", "\u2028\r\n\t\x7f", "%_\\", "é é"):
        fields = {"through": MessageId(odd), "target": MessageId(odd), "problem": odd}
        lease = Lease(token=odd, expires_at=START)
        state = await written(store, SessionId(odd), lease=lease, due=True, **fields)
        found = await store.state(SessionId(odd))
        assert found is not None
        kept = odd if found.problem == odd else odd.replace("\x00", "\ufffd")
        assert found == replace(
            state,
            session=SessionId(kept),
            through=MessageId(kept),
            target=MessageId(kept),
            problem=kept,
            lease=Lease(token=kept, expires_at=START),
        )
        assert list(await store.due(now=START, limit=9)) == [kept]
        assert await store.apply(replace(state, session=SessionId(odd)))
        assert await store.forget(SessionId(odd))


@DREAM_STORE_CHECKS
async def half_a_character_in_a_state_is_refused_or_kept_as_well_as_can_be(make: MakeBackend) -> None:
    store = make().dreams
    half = "half \ud83d of it"
    for odd in (replace(STATE, problem=half), replace(STATE, through=MessageId(half))):
        try:
            assert await store.apply(odd)
        except InputError:
            assert await store.state(S1) is None
        else:
            assert await store.state(S1) is not None
            assert await store.forget(S1)


@DREAM_STORE_CHECKS
async def stores_do_not_share_states(make: MakeBackend) -> None:
    ours, theirs = make().dreams, make().dreams
    kept = await written(ours, due=True)
    assert await theirs.state(S1) is None
    assert list(await theirs.due(now=START, limit=9)) == []
    await written(theirs, attempts=5)
    assert await theirs.forget(S1)
    assert await ours.state(S1) == kept
