"""Messages that expire leave the digest of their session too, in every store."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest

from backstory.domain.blob import make_blob
from backstory.domain.conversation import Message, Part, Role, Session
from backstory.domain.digest import DigestState, DigestUpdate, Piece, SessionDigest, Strategy
from backstory.domain.ids import MessageId, PartId, SessionId
from backstory.entrypoints.drive import drive
from backstory.errors import StoreDamaged
from backstory.ports.backend import Backend
from backstory.ports.digests import DigestStore
from backstory.services.retention import Retention
from backstory.testing.fakes import START, FakeClock
from backstory.testing.postgres import postgres_for_tests, why_there_is_none
from tests.stores import STORES

DAY = timedelta(days=1)
SESSION = SessionId("ses_orchard")


@pytest.fixture(params=list(STORES))
def backend(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Backend]:
    backend = STORES[request.param](tmp_path)
    yield backend
    drive(backend.memories.close())


def told(backend: Backend, days: int, session: SessionId = SESSION) -> None:
    """One message a day, from day 0 on, in a session that was last heard of on the last day."""
    last = START + (days - 1) * DAY
    drive(
        backend.conversations.put_session(
            Session(id=session, project=None, host="opencode", directory="/o", created_at=START, updated_at=last)
        )
    )
    messages = [
        Message(id=MessageId(f"{session}-m{day}"), session=session, role=Role.USER, created_at=START + day * DAY)
        for day in range(days)
    ]
    drive(backend.conversations.put_messages(messages))


def leaf(number: int, *days: int, session: SessionId = SESSION, parent: str | None = None) -> Piece:
    return Piece(
        session=session,
        id=f"node0_{number:03}",
        strategy=Strategy.TREE,
        level=0,
        text=f"about days {days}",
        start=days[0],
        end=days[-1],
        sources=tuple(MessageId(f"{session}-m{day}") for day in days),
        parent=parent,
        active=parent is None,
        made_by="m",
        prompt="p/1",
        source_tokens=9,
        created_at=START,
    )


def digested(digests: DigestStore, *pieces: Piece, session: SessionId = SESSION) -> None:
    shown = tuple(piece.id for piece in pieces if piece.active)
    state = DigestState(session=session, strategy=Strategy.TREE, shown=shown, updated_at=START)
    assert drive(digests.apply(DigestUpdate(state=state, added=pieces)))


def pruned(backend: Backend, *, before_day: int, today: int = 20) -> Retention:
    """Everything said before a day goes."""
    retention = Retention(backend.conversations, backend.digests, clock=FakeClock(START + today * DAY), days=None)
    drive(retention.prune((today - before_day) * DAY))
    return retention


def digest_of(backend: Backend, session: SessionId = SESSION) -> SessionDigest:
    found = drive(backend.digests.digest(session))
    assert found is not None
    return found


def test_what_was_made_of_expired_messages_goes_and_the_rest_stays(backend: Backend) -> None:
    told(backend, 6)
    digested(backend.digests, leaf(1, 0, 1), leaf(2, 2, 3), leaf(3, 4, 5))
    pruned(backend, before_day=3)
    digest = digest_of(backend)
    assert [piece.id for piece in digest.pieces] == ["node0_003"]
    assert (digest.state.shown, digest.state.due) == (("node0_003",), True)


def test_a_parent_of_what_expired_goes_and_its_other_children_stand_for_themselves(backend: Backend) -> None:
    told(backend, 4)
    parent = replace(leaf(9, 0, 3), id="node1_001", level=1, sources=(), children=("node0_001", "node0_002"))
    digested(backend.digests, leaf(1, 0, 1, parent="node1_001"), leaf(2, 2, 3, parent="node1_001"), parent)
    pruned(backend, before_day=2)
    [left] = digest_of(backend).pieces
    assert (left.id, left.active, left.parent) == ("node0_002", True, None)
    assert digest_of(backend).state.shown == ("node0_002",)


def test_a_digest_of_which_nothing_is_left_goes_whole_though_the_session_lives(backend: Backend) -> None:
    told(backend, 6)
    digested(backend.digests, leaf(1, 0, 1))
    pruned(backend, before_day=3)
    assert drive(backend.digests.digest(SESSION)) is None
    assert drive(backend.conversations.session(SESSION)) is not None


def test_a_session_that_is_removed_takes_its_digest_along(backend: Backend) -> None:
    told(backend, 3)
    told(backend, 12, SessionId("ses_shed"))
    digested(backend.digests)
    digested(backend.digests, leaf(1, 9, 10, session=SessionId("ses_shed")), session=SessionId("ses_shed"))
    drive(backend.conversations.prune(START + 5 * DAY, limit=100))
    assert drive(backend.digests.revision(SESSION)) == 0
    assert len(digest_of(backend, SessionId("ses_shed")).pieces) == 1


def test_a_preview_changes_no_digest(backend: Backend) -> None:
    told(backend, 3)
    digested(backend.digests, leaf(1, 0, 1))
    clock = FakeClock(START + 20 * DAY)
    drive(Retention(backend.conversations, backend.digests, clock=clock, days=None).preview(DAY))
    assert len(digest_of(backend).pieces) == 1


def test_messages_that_were_never_kept_are_not_taken_for_expired_ones(backend: Backend) -> None:
    told(backend, 6)
    digested(backend.digests, leaf(1, 40, 41), leaf(2, 4, 5))
    pruned(backend, before_day=3)
    assert [piece.id for piece in digest_of(backend).pieces] == ["node0_001", "node0_002"]


class Spoilt:
    """Digests of which none can be read."""

    def __init__(self, digests: DigestStore) -> None:
        self._digests = digests
        self.revision: Callable[[SessionId], object] = digests.revision
        self.forget: Callable[[SessionId], object] = digests.forget

    async def digest(self, session: SessionId) -> SessionDigest | None:
        raise StoreDamaged(f"the digest of session {session} in the store cannot be read")


def test_a_digest_that_cannot_be_read_goes_with_what_it_may_quote(backend: Backend) -> None:
    told(backend, 6)
    digested(backend.digests, leaf(1, 4, 5))
    spoilt = Spoilt(backend.digests)
    retention = Retention(backend.conversations, spoilt, clock=FakeClock(START + 20 * DAY), days=None)  # type: ignore[arg-type]
    assert drive(retention.prune(17 * DAY)).messages == 3
    assert drive(backend.digests.digest(SESSION)) is None


def test_what_would_go_is_told_of_more_messages_than_the_server_holds_in_memory() -> None:
    if (reason := why_there_is_none()) is not None:
        pytest.skip(reason)
    from backstory.adapters.stores.postgres.store import open_postgres

    server = postgres_for_tests()
    schema = server.new_name()
    address = server.dsn(options="-c work_mem=64kB")
    backend = open_postgres(address, schema=schema, tenant="one", timeout=timedelta(seconds=2))
    log = make_blob(b"compiled 31 modules\n" * 3000)
    part = Part(id=PartId("p"), kind="tool", tool="bash", blobs=(log.ref("text/plain"),))
    drive(backend.conversations.put_part(part, message=MessageId("m1"), session=SESSION, blobs=[log]))
    server.run(
        f"INSERT INTO {schema}.messages (tenant, id, session, role, created_us) "
        "SELECT 'one', 'm' || n, 'ses_orchard', 'user', n FROM generate_series(1, 20000) n"
    )
    server.run(
        f"INSERT INTO {schema}.parts (tenant, id, message, session, kind, text, synthetic) "
        "SELECT 'one', 'a part ' || n, 'm' || n, 'ses_orchard', 'text', '', 0 FROM generate_series(1, 20000) n"
    )
    server.run(
        f"INSERT INTO {schema}.part_blobs (tenant, part, position, hash, size, media_type) "
        f"SELECT 'one', 'a part ' || n, 0, '{log.hash}', {log.size}, 'text/plain' FROM generate_series(1, 20000) n"
    )
    server.run(f"ANALYZE {schema}.messages, {schema}.parts, {schema}.part_blobs")  # it plans for as many as there are
    told = drive(backend.conversations.expired(START))
    assert (told.messages, told.parts, told.blobs, told.blob_bytes) == (20000, 20001, 1, log.size)
    drive(backend.memories.close())
