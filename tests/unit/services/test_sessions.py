"""Looking through the archive: what belongs to a session, page by page, and never across the border of a project."""

from __future__ import annotations

from collections.abc import Coroutine
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Any, TypeVar

import pytest

from backstory.adapters.stores.memory.conversation import InMemoryConversations
from backstory.domain.blob import make_blob
from backstory.domain.conversation import Message, Part, Role, Session
from backstory.domain.ids import MessageId, PartId, ProjectId, SessionId
from backstory.domain.part_admission import KeepLimits, admit_message
from backstory.domain.scope import Audience, Viewer
from backstory.entrypoints.drive import drive
from backstory.errors import InputError, NotFound
from backstory.services.sessions import Page, SessionCard, Sessions
from backstory.testing.fakes import ORCHARD, START, ulid

T = TypeVar("T")

MODEL = Viewer(project=ORCHARD)
PERSON = replace(MODEL, audience=Audience.PERSON)
SHED = ProjectId(ulid(5, series=3))


@dataclass
class Archive:
    """Sessions and messages that a test tells of."""

    store: InMemoryConversations

    def session(self, name: str, *, hours: int = 0, **fields: object) -> None:
        at = START + timedelta(hours=hours)
        plain = Session(
            id=SessionId(name), project=ORCHARD, host="opencode", directory="/r", created_at=at, updated_at=at
        )
        drive(self.store.put_session(replace(plain, **fields)))  # type: ignore[arg-type]  # fields of Session

    def say(self, session: str, *texts: str, prefix: str = "msg", hours: int = 0) -> None:
        for n, text in enumerate(texts, start=1):
            part = Part(id=PartId(f"prt_{session}_{n}"), kind="text", text=text)
            message = Message(
                id=MessageId(f"{prefix}_{session}_{n:02}"),
                session=SessionId(session),
                role=Role.USER,
                created_at=START + timedelta(hours=hours, seconds=n),
                parts=(part,),
            )
            told = admit_message(message, KeepLimits())
            drive(self.store.put_messages([told.message], blobs=told.blobs))

    def __call__(self, asked: Coroutine[Any, Any, T]) -> T:
        return drive(asked)

    @property
    def sessions(self) -> Sessions:
        return Sessions(self.store)


@pytest.fixture
def archive() -> Archive:
    return Archive(InMemoryConversations())


def card(archive: Archive, ref: str, viewer: Viewer = PERSON) -> SessionCard:
    return archive(archive.sessions.card(ref, viewer))


def places(page: Page) -> tuple[int, int, int]:
    return page.first, len(page.messages), page.left


def test_the_latest_sessions_come_first_with_their_messages_and_how_many_there_are(archive: Archive) -> None:
    archive.session("ses_a")
    archive.session("ses_b", hours=2)
    archive.session("ses_c", hours=1)
    archive.say("ses_c", "one", "two")
    cards, total = archive(archive.sessions.cards(PERSON, limit=2))
    assert [card.session.id for card in cards] == ["ses_b", "ses_c"]
    assert [card.count.messages if card.count else None for card in cards] == [None, 2]
    assert total == 3


def test_a_sub_agents_session_names_its_parent_and_the_parent_its_children(archive: Archive) -> None:
    archive.session("ses_main")
    for name in ("ses_y", "ses_x"):
        archive.session(name, parent=SessionId("ses_main"))
    assert card(archive, "ses_main").children == ("ses_x", "ses_y")
    assert card(archive, "ses_x").session.parent == "ses_main"


def test_a_session_that_repeats_anothers_first_message_is_its_fork(archive: Archive) -> None:
    for hours, name in enumerate(("ses_first", "ses_copy", "ses_other")):
        archive.session(name, hours=hours)
    archive.say("ses_first", "fix the gate", "and the hinge")
    archive.say("ses_copy", "fix the gate")
    archive.say("ses_other", "mow the lawn")
    assert card(archive, "ses_copy").fork_of == "ses_first"
    assert (card(archive, "ses_first").fork_of, card(archive, "ses_other").fork_of) == (None, None)


def test_the_beginning_of_an_id_is_enough_where_only_one_begins_so(archive: Archive) -> None:
    for name in ("ses_01A", "ses_01B", "ses_02C"):
        archive.session(name)
    assert archive(archive.sessions.find("ses_02", PERSON)).id == "ses_02C"
    with pytest.raises(InputError, match="2 sessions begin with 'ses_01': ses_01A, ses_01B"):
        archive(archive.sessions.find("ses_01", PERSON))
    with pytest.raises(NotFound, match="near it: ses_02C"):
        archive(archive.sessions.find("02C", PERSON))
    with pytest.raises(NotFound, match=r"near it: .*ses_01A"):
        archive(archive.sessions.find("ses_10A", PERSON))
    with pytest.raises(NotFound):
        archive(archive.sessions.find("", PERSON))


def test_a_session_of_another_project_is_not_found_nor_named(archive: Archive) -> None:
    archive.session("ses_theirs", project=SHED)
    archive.session("ses_nobodys", project=None)
    archive.say("ses_theirs", "the shed has a new lock")
    for ref in ("ses_theirs", "ses_their", "theirs", "ses_nobodys"):
        with pytest.raises(NotFound) as refused:
            archive(archive.sessions.find(ref, PERSON))
        assert "near it" not in str(refused.value)
    with pytest.raises(NotFound):
        archive(archive.sessions.session_of("msg_ses_theirs_01", MODEL))
    assert archive(archive.sessions.cards(PERSON, limit=9)) == ([], 0)
    assert archive(archive.sessions.cards(Viewer(project=None), limit=9)) == ([], 0)
    everywhere = replace(PERSON, all_projects=True)
    assert archive(archive.sessions.find("ses_their", everywhere)).id == "ses_theirs"


def test_what_the_host_deleted_is_for_people_alone(archive: Archive) -> None:
    archive.session("ses_gone", deleted_at=START)
    assert card(archive, "ses_gone").session.deleted_at == START
    with pytest.raises(NotFound):
        card(archive, "ses_gone", MODEL)


def test_messages_are_paged_in_their_order(archive: Archive) -> None:
    archive.session("ses_a")
    archive.say("ses_a", *(f"text {n}" for n in range(25)))
    session, sessions = archive(archive.sessions.find("ses_a", MODEL)), archive.sessions
    assert places(archive(sessions.page(session, number=1, size=10))) == (0, 10, 15)
    assert places(archive(sessions.page(session, number=3, size=10))) == (20, 5, 0)
    assert places(archive(sessions.page(session, number=9, size=10))) == (25, 0, 0)
    assert places(archive(sessions.page_from(session, "msg_ses_a_13", size=5))) == (12, 5, 8)
    assert places(archive(sessions.page_around(session, "msg_ses_a_13", size=5))) == (10, 5, 10)
    assert places(archive(sessions.page_around(session, "msg_ses_a_01", size=5))) == (0, 5, 20)
    assert places(archive(sessions.page_around(session, "msg_ses_a_25", size=5))) == (20, 5, 0)
    assert places(archive(sessions.page_around(session, "msg_ses_a_02", size=100))) == (0, 25, 0)
    with pytest.raises(InputError, match="begin with"):
        archive(sessions.page_from(session, "msg_ses_a_1", size=5))
    with pytest.raises(NotFound, match="no message"):
        archive(sessions.page_from(session, "msg_other", size=5))


def test_a_part_is_found_by_its_id_and_whole(archive: Archive) -> None:
    archive.session("ses_a")
    archive.say("ses_a", "short", "word " * 30_000)
    session = archive(archive.sessions.find("ses_a", MODEL))
    message, part = archive(archive.sessions.part(session, "prt_ses_a_2"))
    assert (message.id, part.text) == ("msg_ses_a_02", "word " * 30_000)
    with pytest.raises(NotFound, match="no part"):
        archive(archive.sessions.part(session, "prt_ses_b"))


def test_of_a_damaged_content_the_excerpt_is_shown(archive: Archive) -> None:
    archive.session("ses_a")
    archive.say("ses_a", "word " * 30_000)
    session = archive(archive.sessions.find("ses_a", MODEL))
    [blob] = archive.store.blobs_kept()
    archive.store._blobs[blob.hash] = replace(blob, packed=make_blob(b"x" * 5000).packed)
    _, part = archive(archive.sessions.part(session, "prt_ses_a_1"))
    assert "characters between are kept" in part.text
