"""The contract of the DigestStore: states, and who may write them. Pieces are in ``digest_pieces.py``."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

from backstory.domain.digest import DigestState, DigestUpdate, Lease, Piece, SessionDigest, Strategy
from backstory.domain.ids import MessageId, SessionId
from backstory.errors import InputError
from backstory.ports.digests import DigestStore
from backstory.testing.contracts.checks import Checks, MakeBackend
from backstory.testing.fakes import START

DIGEST_STORE_CHECKS = Checks()
HOUR = timedelta(hours=1)
MOMENT = datetime(2026, 3, 2, 12, 0, 0, 123456, tzinfo=UTC)
S1, S2 = SessionId("ses-1"), SessionId("ses-2")
STATE = DigestState(session=S1, strategy=Strategy.TREE, updated_at=START)
FULL_STATE = DigestState(
    session=S1,
    strategy=Strategy.OBSERVATIONS,
    revision=0,
    shown=("obs0_001", "größe 🚀"),
    shown_for=MessageId("msg-9"),
    shown_task="Pick the pears",
    shown_response="Go on – picking",
    current_task="Prune the pear trees\n\tbefore March",
    suggested_response='He said "go on" – \u2028 \\ {}',
    system_prompt="",
    due=True,
    forced=True,
    lease=Lease(token="worker-1", expires_at=MOMENT),
    attempts=3,
    not_before=MOMENT - HOUR,
    problem="the model did not answer",
    last_cycle_at=MOMENT + HOUR,
    last_cycle="observed 12 messages",
    updated_at=MOMENT,
)
"""A state with no field at its default, but the revision."""
FULL_PIECE = Piece(
    session=S1,
    id="node1_001",
    strategy=Strategy.OBSERVATIONS,
    level=1,
    text="Pears are pruned in winter. 日本 🚀\n\n- “when?”\u2029",
    start=3,
    end=4_000_000_000,
    sources=(MessageId("msg-1"), MessageId("größe 🚀"), MessageId('"quoted", [1]')),
    children=("node0_001", "node0_002"),
    parent="node2_001",
    active=False,
    made_by="openai:größe-1",
    prompt="tree-2",
    source_tokens=5_000_000_000,
    created_at=MOMENT,
)
"""A piece with no field at its default."""


def piece(number: int, *, session: SessionId = S1, **fields: object) -> Piece:
    """A leaf that stands for one message."""
    plain = Piece(
        session=session,
        id=f"node0_{number:03}",
        strategy=Strategy.TREE,
        level=0,
        text=f"message {number} was about pears",
        start=number,
        end=number,
        sources=(MessageId(f"msg-{number}"),),
        made_by="m",
        prompt="p1",
        source_tokens=7,
        created_at=START,
    )
    return replace(plain, **fields)  # type: ignore[arg-type]  # fields of Piece


async def written(store: DigestStore, *added: Piece, session: SessionId = S1, **fields: object) -> DigestState:
    """Add pieces to what a session has now; the state it has afterwards."""
    state = replace(STATE, session=session, revision=await store.revision(session), **fields)  # type: ignore[arg-type]
    assert await store.apply(DigestUpdate(state=state, added=added))
    return replace(state, revision=state.revision + 1)


async def pieces(store: DigestStore, session: SessionId = S1) -> tuple[Piece, ...]:
    """All pieces of a session."""
    digest = await store.digest(session)
    return () if digest is None else digest.pieces


@DIGEST_STORE_CHECKS
async def a_session_without_a_digest_has_none_and_no_revision(make: MakeBackend) -> None:
    store = make().digests
    assert await store.digest(S1) is None
    assert await store.revision(S1) == 0
    assert not await store.forget(S1)


@DIGEST_STORE_CHECKS
async def state_and_pieces_come_back_as_they_were_written(make: MakeBackend) -> None:
    store = make().digests
    empty = piece(1, text="", sources=(), made_by="", prompt="", source_tokens=0)
    assert await store.apply(DigestUpdate(state=FULL_STATE, added=(FULL_PIECE, empty)))
    expected = SessionDigest(state=replace(FULL_STATE, revision=1), pieces=(FULL_PIECE, empty))
    assert await store.digest(S1) == expected
    bare = replace(STATE, revision=1)
    assert await store.apply(DigestUpdate(state=bare))
    assert await store.digest(S1) == SessionDigest(state=replace(bare, revision=2), pieces=expected.pieces)


@DIGEST_STORE_CHECKS
async def every_write_is_one_revision_further(make: MakeBackend) -> None:
    store = make().digests
    for count in range(1, 5):
        await written(store, piece(count))
        assert await store.revision(S1) == count
        digest = await store.digest(S1)
        assert digest is not None
        assert digest.state.revision == count


@DIGEST_STORE_CHECKS
async def a_change_of_what_is_no_longer_so_writes_nothing(make: MakeBackend) -> None:
    store = make().digests
    assert not await store.apply(DigestUpdate(state=replace(STATE, revision=1), added=(piece(9),)))
    assert await store.digest(S1) is None
    await written(store, piece(1), piece(2))
    await written(store, piece(3))
    before = await store.digest(S1)
    for revision in (0, 1, 3):
        late = DigestUpdate(
            state=replace(FULL_STATE, revision=revision),
            added=(piece(9),),
            changed=(piece(1, active=False),),
            dropped=("node0_002",),
        )
        assert not await store.apply(late)
        assert await store.digest(S1) == before


@DIGEST_STORE_CHECKS
async def whoever_comes_late_is_told_so_and_not_that_the_id_is_taken(make: MakeBackend) -> None:
    store = make().digests
    await written(store, piece(1, text="first"))
    assert not await store.apply(DigestUpdate(state=STATE, added=(piece(1, text="second"),)))
    assert [each.text for each in await pieces(store)] == ["first"]


@DIGEST_STORE_CHECKS
async def of_writers_at_one_moment_one_wins(make: MakeBackend) -> None:
    import anyio

    store = make().digests
    for round_number in range(3):
        won: list[int] = []

        async def write(number: int, round_number: int = round_number, won: list[int] = won) -> None:
            state = replace(STATE, revision=round_number, current_task=f"{number}")
            if await store.apply(DigestUpdate(state=state, added=(piece(10 * round_number + number),))):
                won.append(number)

        async with anyio.create_task_group() as tasks:
            for number in range(6):
                tasks.start_soon(write, number)
        digest = await store.digest(S1)
        assert digest is not None
        assert [f"{number}" for number in won] == [digest.state.current_task]
        assert len(digest.pieces) == digest.state.revision == round_number + 1
        assert digest.pieces[-1] == piece(10 * round_number + won[0])


@DIGEST_STORE_CHECKS
async def work_is_due_or_forced_and_comes_the_latest_first(make: MakeBackend) -> None:
    store = make().digests
    for name, hours, fields in (
        ("a", 1, {"due": True}),
        ("b", 3, {"forced": True}),
        ("c", 4, {}),
        ("e", 2, {"due": True, "forced": True}),
        ("d", 2, {"due": True}),
    ):
        await written(store, session=SessionId(name), updated_at=START + hours * HOUR, **fields)
    assert list(await store.due(now=START, limit=9)) == ["b", "d", "e", "a"]
    assert list(await store.due(now=START, limit=2)) == ["b", "d"]
    await written(store, session=SessionId("b"), updated_at=START)
    await written(store, session=SessionId("a"), updated_at=START + 9 * HOUR, due=True)
    assert list(await store.due(now=START, limit=9)) == ["a", "d", "e"]


@DIGEST_STORE_CHECKS
async def work_that_somebody_does_or_that_waits_is_not_due(make: MakeBackend) -> None:
    store = make().digests
    tick = timedelta(microseconds=1)
    for name, until, wait in (
        ("leased", START + tick, None),
        ("left", START, None),
        ("waiting", None, START + tick),
        ("waited", None, START),
        ("left, waiting", START - HOUR, START + HOUR),
    ):
        lease = None if until is None else Lease(token="t", expires_at=until)
        await written(store, session=SessionId(name), due=True, lease=lease, not_before=wait)
    assert list(await store.due(now=START, limit=9)) == ["left", "waited"]
    assert list(await store.due(now=START + tick, limit=9)) == ["leased", "left", "waited", "waiting"]
    assert len(await store.due(now=START + HOUR, limit=9)) == 5
    await written(store, session=SessionId("waiting"), forced=True, not_before=START + HOUR)
    assert list(await store.due(now=START + tick, limit=9)) == ["leased", "left", "waited"]


@DIGEST_STORE_CHECKS
async def a_digest_that_was_forgotten_is_gone_and_begins_anew(make: MakeBackend) -> None:
    store = make().digests
    await written(store, piece(1), piece(2), due=True)
    await written(store, piece(1, session=S2), session=S2)
    assert await store.forget(S1)
    assert not await store.forget(S1)
    assert (await store.digest(S1), await store.revision(S1)) == (None, 0)
    assert list(await store.due(now=START, limit=9)) == []
    assert not await store.apply(DigestUpdate(state=replace(STATE, revision=1), added=(piece(3),)))
    await written(store, piece(2))
    assert await pieces(store) == (piece(2),)
    assert await pieces(store, S2) == (piece(1, session=S2),)


@DIGEST_STORE_CHECKS
async def the_archive_need_not_know_a_session_and_does_not_learn_of_it(make: MakeBackend) -> None:
    backend = make()
    await written(backend.digests, piece(1))
    assert await backend.conversations.session(S1) is None
    assert await backend.conversations.count_messages() == 0


@DIGEST_STORE_CHECKS
async def ids_and_texts_may_hold_any_character(make: MakeBackend) -> None:
    store = make().digests
    for odd in ("a\x00b", "' OR 1=1 --", "日本 🚀", "", "\u2028\r\n\t\x7f", "%_\\", "é é"):
        session = SessionId(odd)
        leaf = piece(1, session=session, id=f"{odd}0", text=odd, parent=f"{odd}1", active=False, made_by=odd)
        above = piece(2, session=session, id=f"{odd}1", text=odd, sources=(MessageId(odd),), children=(f"{odd}0",))
        state = await written(store, leaf, above, session=session, shown=(f"{odd}1",), current_task=odd, problem=odd)
        digest = await store.digest(session)
        assert digest is not None
        kept = odd if digest.state.current_task == odd else odd.replace("\x00", "\ufffd")
        assert digest.state == replace(
            state, session=SessionId(kept), shown=(f"{kept}1",), current_task=kept, problem=kept
        )
        assert [each.text for each in digest.pieces] == [kept, kept]
        assert [each.id for each in digest.shown()] == [f"{kept}1"]
        [low, high] = digest.pieces
        assert (low.parent, high.children, high.sources) == (high.id, (low.id,), (kept,))
        again = DigestUpdate(
            state=digest.state, changed=(replace(leaf, active=True, parent=None),), dropped=(f"{odd}1",)
        )
        assert await store.apply(replace(again, state=replace(state, session=session)))
        assert [(each.id, each.active) for each in await pieces(store, session)] == [(low.id, True)]
        assert await store.revision(session) == 2
        assert await store.forget(session)


@DIGEST_STORE_CHECKS
async def half_a_character_is_refused_whole_or_kept_as_well_as_can_be(make: MakeBackend) -> None:
    store = make().digests
    half = "half \ud83d of it"
    for odd in (
        DigestUpdate(state=replace(STATE, current_task=half), added=(piece(1),)),
        DigestUpdate(state=STATE, added=(piece(1), piece(2, text=half))),
        DigestUpdate(state=STATE, added=(piece(1), piece(2, sources=(MessageId(half),)))),
    ):
        try:
            assert await store.apply(odd)
        except InputError:
            assert await store.digest(S1) is None
        else:
            digest = await store.digest(S1)
            assert digest is not None
            assert len(digest.pieces) == len(odd.added)
            assert await store.forget(S1)


@DIGEST_STORE_CHECKS
async def stores_do_not_share_digests(make: MakeBackend) -> None:
    ours, theirs = make().digests, make().digests
    await written(ours, piece(1), due=True)
    assert await theirs.digest(S1) is None
    assert list(await theirs.due(now=START, limit=9)) == []
    await written(theirs, piece(1, text="other"))
    assert not await theirs.forget(S2)
    assert await theirs.forget(S1)
    assert await pieces(ours) == (piece(1),)
