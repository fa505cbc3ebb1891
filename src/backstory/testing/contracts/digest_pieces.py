"""The contract of the DigestStore on the pieces of a digest; on its state in ``digest_store.py``."""

from __future__ import annotations

import time
from dataclasses import replace

from backstory.domain.digest import DigestUpdate, under_parent
from backstory.errors import InputError
from backstory.testing.contracts.checks import Checks, MakeBackend, expect_error
from backstory.testing.contracts.digest_store import FULL_STATE, S1, S2, STATE, piece, pieces, written

DIGEST_PIECE_CHECKS = Checks()


@DIGEST_PIECE_CHECKS
async def pieces_come_in_the_order_in_which_they_were_added(make: MakeBackend) -> None:
    store = make().digests
    await written(store, piece(5), piece(1))
    await written(store, piece(9), piece(3), piece(7))
    assert [each.start for each in await pieces(store)] == [5, 1, 9, 3, 7]
    state = replace(STATE, revision=2)
    assert await store.apply(DigestUpdate(state=state, added=(piece(2),), dropped=("node0_007", "node0_001")))
    await written(store, piece(1))
    assert [each.start for each in await pieces(store)] == [5, 9, 3, 2, 1]


@DIGEST_PIECE_CHECKS
async def an_id_that_the_session_has_is_refused_with_all_that_came_with_it(make: MakeBackend) -> None:
    store = make().digests
    await written(store, piece(1), piece(2))
    before = await store.digest(S1)
    state = replace(FULL_STATE, revision=1)
    for added, dropped in (
        ((piece(3), piece(1, text="other")), ("node0_002",)),
        ((piece(3), piece(4), piece(3)), ()),
        ((piece(1),), ("node0_001",)),
        ((piece(3), piece(4, session=S2)), ()),
    ):
        refused = DigestUpdate(state=state, added=added, changed=(piece(2, active=False),), dropped=dropped)
        error = await expect_error(InputError, store.apply(refused))
        assert error.field == "added"
        assert await store.digest(S1) == before
    first = DigestUpdate(state=replace(STATE, session=S2), added=(piece(1, session=S2), piece(1, session=S2)))
    await expect_error(InputError, store.apply(first))
    assert await store.digest(S2) is None


@DIGEST_PIECE_CHECKS
async def what_changes_of_a_piece_is_its_parent_and_whether_it_is_active(make: MakeBackend) -> None:
    store = make().digests
    leaves = (piece(1), piece(2), piece(3))
    await written(store, *leaves)
    parent = piece(9, id="node1_001", level=1, sources=(), children=("node0_001", "node0_002"))
    covered = under_parent(parent, leaves[:2])
    forged = tuple(replace(each, text="forged", level=7, start=99, source_tokens=0, made_by="x") for each in covered)
    strange = piece(8, active=False, parent="node1_001")
    update = DigestUpdate(state=replace(STATE, revision=1), added=(parent,), changed=(*forged, strange))
    assert await store.apply(update)
    assert await pieces(store) == (*covered, leaves[2], parent)
    back = replace(STATE, revision=2)
    assert await store.apply(DigestUpdate(state=back, changed=leaves[:2], dropped=("node1_001", "node7_001")))
    assert await pieces(store) == leaves


@DIGEST_PIECE_CHECKS
async def a_piece_that_was_dropped_is_gone_and_its_id_free(make: MakeBackend) -> None:
    store = make().digests
    await written(store, piece(1), piece(2))
    state = replace(STATE, revision=1)
    assert await store.apply(DigestUpdate(state=state, changed=(piece(2, active=False),), dropped=("node0_002",) * 2))
    assert await pieces(store) == (piece(1),)
    await written(store, piece(2, text="anew"))
    assert await pieces(store) == (piece(1), piece(2, text="anew"))


@DIGEST_PIECE_CHECKS
async def sessions_never_see_each_others_pieces(make: MakeBackend) -> None:
    store = make().digests
    await written(store, piece(1), piece(2))
    await written(store, piece(1, session=S2), session=S2)
    assert await store.apply(
        DigestUpdate(
            state=replace(STATE, session=S2, revision=1),
            changed=(piece(1, active=False, parent="x"), piece(1, session=S2, active=False)),
            dropped=("node0_002",),
        )
    )
    assert await pieces(store, S1) == (piece(1), piece(2))
    assert await pieces(store, S2) == (piece(1, session=S2, active=False),)
    assert (await store.revision(S1), await store.revision(S2)) == (1, 2)


@DIGEST_PIECE_CHECKS
async def a_large_digest_is_read_quickly(make: MakeBackend) -> None:
    store = make().digests
    many = tuple(piece(number, text=f"{number} pears. " * 20) for number in range(2000))
    await written(store, *many)
    taken = []
    for _ in range(3):
        begun = time.monotonic()
        assert len(await pieces(store)) == 2000
        taken.append(time.monotonic() - begun)
    assert await pieces(store) == many
    assert min(taken) < 0.5  # under 0.1 s on a machine with nothing else to do
