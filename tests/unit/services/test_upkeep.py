"""What was said, saved from a store and brought into another one."""

from __future__ import annotations

from datetime import timedelta

from backstory.adapters.stores.memory import open_memory_store
from backstory.codecs.jsonl_records import foreign_records
from backstory.domain.blob import make_blob
from backstory.domain.conversation import Message, Part, Role, Session
from backstory.domain.ids import MessageId, PartId, ProjectId, SessionId
from backstory.domain.interchange import ForeignMessages, ForeignSession, Unreadable
from backstory.domain.project import ProjectSighting
from backstory.services.imported_memories import ImportPolicy
from backstory.services.upkeep import Upkeep
from backstory.testing.fakes import START
from tests.unit.services.conftest import Shop

LOG = make_blob(b"water level 1\n" * 5_000)
ORCHARD = ProjectId("01KORCHARD0000000000000000")


def message(name: str, session: str, text: str, *, minutes: int, log: bool = False) -> Message:
    blobs = (LOG.ref("text/plain"),) if log else ()
    part = Part(id=PartId(f"{name}-p"), kind="text", text=text, blobs=blobs)
    at = START + timedelta(minutes=minutes)
    return Message(id=MessageId(name), session=SessionId(session), role=Role.USER, created_at=at, parts=(part,))


def filled() -> Shop:
    shop = Shop(backend=open_memory_store())
    sighting = ProjectSighting(name="orchard", root="/orchard", aliases=("path:/orchard",))
    shop.do(shop.backend.projects.identify(sighting, now=START, new_id=ORCHARD))
    shop.do(
        shop.backend.conversations.put_session(
            Session(
                id=SessionId("herons"), project=ORCHARD, host="opencode", directory="/orchard", title="Herons",
                created_at=START, updated_at=START,
            )
        )
    )  # fmt: skip
    said = [
        message("m2", "herons", f"Nine of them \u2028 by the weir, see {LOG.hash}", minutes=2, log=True),
        message("m1", "herons", "How many herons are there?", minutes=1),
        message("m3", "stray", "A message whose session is lost", minutes=3),
    ]
    shop.do(shop.backend.conversations.put_messages(said, blobs=[LOG]))
    return shop


def saved_lines(shop: Shop) -> list[str]:
    return list(shop.do(Upkeep(shop.backend, clock=shop.clock).salvage()).sessions)


def test_sessions_that_were_saved_come_back_with_their_messages_and_contents() -> None:
    source, target = filled(), Shop(backend=open_memory_store())
    lines = saved_lines(source)
    records = list(foreign_records(lines))
    assert not [record for record in records if isinstance(record, Unreadable)]
    policy = ImportPolicy(trusted=True)
    for _ in range(2):
        report = target.do(target.importing.bring_in(foreign_records(lines), target.person, policy))
        assert report.refused.count == 0
    found = target.do(target.backend.conversations.messages(SessionId("herons")))
    assert found == source.do(source.backend.conversations.messages(SessionId("herons")))
    assert [item.id for item in found] == ["m1", "m2"]
    assert target.do(target.backend.conversations.blob(LOG.hash)) == LOG
    session = target.do(target.backend.conversations.session(SessionId("herons")))
    assert session is not None
    assert (session.title, session.directory) == ("Herons", "/orchard")


def test_a_session_of_which_only_messages_are_left_is_made_up_from_them() -> None:
    records = list(foreign_records(saved_lines(filled())))
    sessions = [record.session for record in records if isinstance(record, ForeignSession)]
    assert [(session.id, session.host) for session in sessions] == [("herons", "opencode"), ("stray", "unknown")]
    assert sessions[1].created_at == sessions[1].updated_at == START + timedelta(minutes=3)
    said = [record for record in records if isinstance(record, ForeignMessages)]
    assert [record.session for record in said] == ["herons", "herons", "stray"]
