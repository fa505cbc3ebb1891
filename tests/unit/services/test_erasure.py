"""What an erasure plans, does and tells, over the store in dictionaries."""

from __future__ import annotations

from dataclasses import replace

import pytest

from backstory.domain.history import Author
from backstory.domain.ids import MessageId, ProjectId
from backstory.domain.memory import Deleted
from backstory.domain.provenance import Provenance
from backstory.domain.scope import Audience, Viewer
from backstory.entrypoints.drive import drive
from backstory.errors import InputError, NotFound, OutOfScope, StoreUnavailable
from backstory.services.erasure import Plan, clean_of_traces
from backstory.testing.fakes import ulid
from tests.erased import PERSON, SECRET_TEXT, SESSION, WORDS, Keeper, filled, keeper, said


def plan(kept: Keeper, *refs: str, text: str | None = None) -> Plan:
    return drive(kept.erasing.plan(refs, text=text, viewer=PERSON))


def test_a_plan_counts_what_would_go_and_changes_nothing() -> None:
    kept = keeper()
    memory = filled(kept)
    planned = plan(kept, "#2")
    assert [item.n for item in planned.memories] == [2]
    assert SECRET_TEXT in planned.texts
    assert "The cold room has a name" in planned.texts
    assert planned.places["messages"] == 4
    assert planned.places["memories"] == 1
    assert any("Kühlraum" in quote.text for quote in planned.quotes)
    assert drive(kept.backend.memories.by_number(2)) == memory


def test_what_is_erased_is_nowhere_in_the_process_and_a_receipt_says_so_without_a_word_of_it() -> None:
    kept = keeper()
    filled(kept)
    receipt = drive(kept.erasing.erase(plan(kept, "#2"), viewer=PERSON, author=Author.USER))
    assert receipt is not None
    assert clean_of_traces(receipt)
    assert kept.backend.eraser is not None
    assert drive(kept.backend.eraser.scan([SECRET_TEXT, *WORDS])) == []
    assert all(word not in repr(receipt) for word in WORDS)
    assert drive(kept.erasing.receipts(viewer=PERSON)) == [receipt]


def test_what_cannot_be_found_by_its_words_is_named_in_the_receipt() -> None:
    kept = keeper()
    told = filled(kept)
    kept.say("The room for the harvest is cool", provenance=Provenance(derived_from=(told.id,)))
    receipt = drive(kept.erasing.erase(plan(kept, "#2"), viewer=PERSON, author=Author.USER))
    assert receipt is not None
    assert any(line.startswith("#4, which was derived from it") for line in receipt.remains)
    assert any(line.startswith(f"session {SESSION}") for line in receipt.remains)


def test_a_model_may_neither_plan_nor_erase() -> None:
    kept = keeper()
    kept.say("Plums are picked in August")
    model = replace(PERSON, audience=Audience.MODEL)
    with pytest.raises(OutOfScope):
        drive(kept.erasing.plan(["#1"], text=None, viewer=model))
    with pytest.raises(OutOfScope):
        drive(kept.erasing.erase(plan(kept, "#1"), viewer=PERSON, author=Author.AGENT))
    with pytest.raises(OutOfScope):
        drive(kept.erasing.receipts(viewer=model))


def test_only_what_may_be_changed_from_here_can_be_erased() -> None:
    kept = keeper()
    kept.say("Plums are picked in August")
    elsewhere = Viewer(project=ProjectId(ulid(7, series=3)), audience=Audience.PERSON)
    with pytest.raises(OutOfScope):
        drive(kept.erasing.plan(["#1"], text=None, viewer=elsewhere))


@pytest.mark.parametrize("text", ["abc", "   ab  ", "[erased]", "erased", "....", "!?!?", " . . . ", "a...", "a     b"])
def test_a_text_that_stands_everywhere_is_refused(text: str) -> None:
    with pytest.raises(InputError):
        plan(keeper(), text=text)


def test_nothing_named_is_refused_and_an_unknown_number_is_not_found() -> None:
    with pytest.raises(InputError):
        plan(keeper())
    with pytest.raises(NotFound):
        plan(keeper(), "#7")


def test_a_forgotten_memory_is_erased_by_its_number() -> None:
    kept = keeper()
    kept.say("Plums are picked in August")
    drive(kept.remember.forget(["#1"], viewer=PERSON, author=Author.USER))
    drive(kept.erasing.erase(plan(kept, "#1"), viewer=PERSON, author=Author.USER))
    gone = drive(kept.backend.memories.by_number(1))
    assert gone is not None
    assert isinstance(gone.status, Deleted)
    assert gone.content == "[erased]"


def test_erasing_twice_does_nothing_more() -> None:
    kept = keeper()
    kept.say("Plums are picked in August")
    drive(kept.erasing.erase(plan(kept, "#1"), viewer=PERSON, author=Author.USER))
    assert plan(kept, "#1").is_empty
    assert drive(kept.erasing.erase(plan(kept, "#1"), viewer=PERSON, author=Author.USER)) is None


def test_what_a_host_tells_once_more_stays_erased() -> None:
    kept = keeper()
    filled(kept)
    drive(kept.erasing.erase(plan(kept, "#2"), viewer=PERSON, author=Author.USER))
    drive(kept.backend.conversations.put_messages([said(SECRET_TEXT)]))
    (message,) = drive(kept.backend.conversations.find_messages([MessageId("m1")]))
    assert "Kühlraum" not in repr(message)


def test_a_store_without_an_eraser_says_what_can_be_done_instead() -> None:
    kept = keeper()
    kept.say("Plums are picked in August")
    kept.backend = replace(kept.backend, eraser=None)
    with pytest.raises(StoreUnavailable, match="forget"):
        plan(kept, "#1")
