"""Secrets that were stored before a rule knew them, joined from parts so that nobody finds them in this file."""

from __future__ import annotations

from dataclasses import replace

import pytest

from backstory.domain.conversation import Message, Part, Role, Session
from backstory.domain.history import Action, Author, Change, Edit
from backstory.domain.ids import ChangeId, MemoryId, MessageId, PartId
from backstory.domain.scope import Audience
from backstory.entrypoints.drive import drive
from backstory.errors import OutOfScope
from backstory.services.secrets_sweep import by_kind
from backstory.testing.fakes import START, sample_memory
from tests.erased import PERSON, SESSION, Keeper, keeper

TOKEN = "ghp_" + "Kq7vW2nLx9" * 3 + "Zr4TbY"
PASSWORD = "correct-horse" + "-9battery"


def leaky(kept: Keeper) -> None:
    """Put secrets where no admission looks: straight into the store."""
    known = replace(sample_memory(f"deploy with {TOKEN}"), tags=("deploy",))
    change = Change(
        id=ChangeId(kept.ids.new_id()), at=START, author=Author.USER, action=Action.ADD,
        edits=(Edit(before=None, after=known),), reason=f"password={PASSWORD}",
    )  # fmt: skip
    drive(kept.backend.memories.commit(change))
    session = Session(
        id=SESSION, project=PERSON.project, host="opencode", directory="/work", title=f"push {TOKEN}",
        created_at=START, updated_at=START,
    )  # fmt: skip
    drive(kept.backend.conversations.put_session(session))
    parts = (
        Part(id=PartId("p1"), kind="text", text=f"export DB_PASSWORD={PASSWORD}\nand go on"),
        Part(
            id=PartId("p2"), kind="tool", text="ok", detail=f'{{"input":{{"header":"Authorization: Bearer {TOKEN}"}}}}'
        ),
        Part(id=PartId("p3"), kind="text", text="nothing to see: DB_PASSWORD=<your-password>"),
    )
    message = Message(id=MessageId("m1"), session=SESSION, role=Role.USER, created_at=START, parts=parts)
    drive(kept.backend.conversations.put_messages([message]))


def test_a_look_names_kinds_and_places_and_shows_no_secret() -> None:
    kept = keeper()
    leaky(kept)
    found = drive(kept.sweep.look(PERSON))
    assert {finding.place for finding in found} == {"memories", "history", "titles", "messages"}
    assert by_kind(found)["github-token"] >= 3
    assert all(TOKEN not in repr(finding) and PASSWORD not in repr(finding) for finding in found)
    (text,) = [finding for finding in found if finding.place == "messages" and "go on" in finding.excerpt]
    assert text.excerpt.startswith("export DB_PASSWORD=[secret:")
    assert drive(kept.backend.memories.by_number(1)) == drive(kept.backend.memories.by_number(1))
    assert len(drive(kept.sweep.look(PERSON))) == len(found)


def test_a_fix_masks_in_place_and_finds_nothing_afterwards() -> None:
    kept = keeper()
    leaky(kept)
    swept = drive(kept.sweep.fix(PERSON))
    assert swept.found
    assert swept.left == ()
    assert swept.receipt is not None
    assert (swept.receipt.finished, swept.receipt.traces) == (True, ())
    memory = drive(kept.backend.memories.by_number(1))
    assert memory is not None
    assert memory.content == "deploy with [secret:github-token]"
    newest, first = drive(kept.backend.memories.history())
    assert (newest.action, newest.author, newest.reason) == (Action.MASK, Author.USER, "secrets masked by a scan")
    assert TOKEN not in repr(first)
    assert PASSWORD not in repr(first)
    (message,) = drive(kept.backend.conversations.messages(SESSION))
    assert TOKEN not in repr(message)
    assert message.parts[2].text == "nothing to see: DB_PASSWORD=<your-password>"
    assert kept.backend.eraser is not None
    assert drive(kept.backend.eraser.scan([TOKEN, PASSWORD])) == []
    assert drive(kept.sweep.fix(PERSON)).receipt is None


def test_a_mask_that_stands_there_already_is_no_finding() -> None:
    kept = keeper()
    kept.say(f"the token {TOKEN} opens the door")
    assert drive(kept.backend.memories.get([MemoryId("x")])) == {}
    assert drive(kept.sweep.look(PERSON)) == []


def test_a_model_may_not_look() -> None:
    with pytest.raises(OutOfScope):
        drive(keeper().sweep.look(replace(PERSON, audience=Audience.MODEL)))
