"""What was corrected since is outdated where it still stands in the sessions: said so, put last, not quoted unasked."""

from __future__ import annotations

from datetime import UTC, timedelta
from typing import TYPE_CHECKING, Any

import pytest

from backstory.adapters.tokens import EstimatedTokens
from backstory.domain.conversation import Message, Part, Role, Session
from backstory.domain.history import Action, Author, Change, Edit
from backstory.domain.ids import ChangeId, MessageId, PartId, SessionId
from backstory.domain.lifecycle import Revision, supersede
from backstory.domain.memory import Sensitivity
from backstory.domain.provenance import Provenance
from backstory.entrypoints.tools.evidence import evidence_answer
from backstory.services.corrections import Corrections
from backstory.services.evidence import EvidenceRecall
from backstory.services.evidence_found import EvidenceFound
from backstory.services.evidence_quotes import EvidenceQuotes, Quoted
from backstory.testing.fakes import ORCHARD, START, ulid

if TYPE_CHECKING:
    from tests.unit.services.conftest import Shop

SETTLED = "We decided that the courier webhook retries five times, then parks the parcel."
REMINDED = "what did we decide about retries of the courier webhook?"
OLD = "The courier webhook retries five times."
NEW = "The courier webhook retries eight times."
ASKED = "how often did we say the courier webhook retries?"
CHAT = (
    "Let us look at the invoices first.", "The tests are green again.", "Rename the helper, please.",
    "Done, it is called reader now.", "Good. Is the report ready?", "It waits for the numbers of May.",
)  # fmt: skip


def archive(shop: Shop, *texts: str, session: str = "ses-old", day: int = 0) -> None:
    """Keep what was said in a session, days before the memories."""
    at = START - timedelta(days=10 - day)
    told = Session(id=SessionId(session), project=ORCHARD, host="test", directory="/r", created_at=at, updated_at=at)
    shop.do(shop.conversations.take_session(told))
    messages = [
        Message(
            id=MessageId(f"{session}-{n}"),
            session=told.id,
            role=Role.USER,
            created_at=at + timedelta(minutes=n),
            parts=(Part(id=PartId(f"{session}-{n}-a"), kind="text", text=text),),
        )
        for n, text in enumerate(texts)
    ]
    shop.do(shop.conversations.take_messages(messages))


def evidence(shop: Shop, *, corrected: bool = True) -> EvidenceRecall:
    corrections = Corrections(shop.backend.memories, shop.backend.text, clock=shop.clock) if corrected else None
    return EvidenceRecall(
        shop.backend.evidence, None, clock=shop.clock, zone=UTC, no_embedder="none is set", corrections=corrections
    )


def search(shop: Shop, question: str = ASKED, **fields: Any) -> EvidenceFound:
    return shop.do(evidence(shop).search(question, **({"viewer": shop.model} | fields)))


def quote(shop: Shop, prompt: str = REMINDED, *, corrected: bool = True) -> Quoted:
    quotes = EvidenceQuotes(
        evidence(shop, corrected=corrected), shop.backend.memories, shop.backend.conversations, clock=shop.clock,
        tokens=EstimatedTokens(), budget_tokens=1200,
    )  # fmt: skip
    return shop.do(quotes.quote(prompt, shop.model, within_s=None))


def marks(found: EvidenceFound) -> dict[str, str | None]:
    return {result.passage.text: result.outdated for result in found.results}


@pytest.fixture(autouse=True)
def chat(shop: Shop) -> None:
    archive(shop, *CHAT, session="ses-chat")


def replace_old(shop: Shop, text: str = NEW, **fields: Any) -> None:
    shop.say(OLD, **fields)
    shop.clock.advance(timedelta(hours=1))
    shop.say(text, supersedes="#1")


def test_what_was_replaced_is_called_outdated_and_comes_last(shop: Shop) -> None:
    said = "The courier webhook retries five times, we said, and how often it retries is no secret."
    archive(shop, said)
    archive(shop, "How often the courier webhook retries is up to the courier.", session="ses-2")
    replace_old(shop)
    found = search(shop)
    assert [result.outdated for result in found.results] == [None, f"outdated: replaced by #2: {NEW}"]
    assert found.results[-1].passage.text == said
    assert f"note: outdated: replaced by #2: {NEW}" in evidence_answer(found).text
    assert len(search(shop, limit=1).results) == 1


def test_other_words_are_recognised_by_what_they_share_and_by_the_message_they_are_from(shop: Shop) -> None:
    archive(shop, "Remember: five times the courier webhook retries!", "The webhook of the courier gives up late.")
    replace_old(shop, provenance=Provenance(session=SessionId("ses-old"), messages=(MessageId("ses-old-1"),)))
    assert all(mark is not None for mark in marks(search(shop, "courier webhook retries")).values())


def test_what_differs_in_the_detail_or_states_the_correction_too_is_not_outdated(shop: Shop) -> None:
    archive(
        shop, "The courier webhook retries 50 times a day.", "From five to eight times: the courier webhook retries."
    )
    replace_old(shop)
    assert set(marks(search(shop, "courier webhook retries times")).values()) == {None}


def test_a_chain_of_replacements_names_what_holds_in_the_end(shop: Shop) -> None:
    archive(shop, OLD)
    replace_old(shop)
    shop.say("The courier webhook never retries.", supersedes="#2")
    assert list(marks(search(shop)).values()) == ["outdated: replaced by #3: The courier webhook never retries."]


def test_a_memory_put_into_other_words_outdates_what_it_said(shop: Shop) -> None:
    archive(shop, OLD)
    shop.say(OLD)
    assert list(marks(search(shop)).values()) == [None]
    shop.clock.advance(timedelta(hours=1))
    shop.do(shop.remember.update("#1", Revision(content=NEW), viewer=shop.person, author=Author.USER))
    assert list(marks(search(shop)).values()) == [f"outdated: replaced by #1: {NEW}"]


def test_what_was_merged_with_its_like_is_as_true_as_before(shop: Shop) -> None:
    archive(shop, OLD)
    shop.say(OLD)
    kept = shop.say("Five retries is what the courier webhook does.").memory
    old = shop.stored(1)
    edit = Edit(before=old, after=supersede(old, by=kept.id, now=START))
    change = Change(
        id=ChangeId(ulid(5, series=7)), at=START, author=Author.USER, action=Action.CONSOLIDATE, edits=(edit,)
    )
    shop.do(shop.backend.memories.commit(change))
    assert list(marks(search(shop)).values()) == [None]


def test_taking_the_correction_back_makes_it_true_again(shop: Shop) -> None:
    archive(shop, OLD)
    replace_old(shop)
    shop.undo()
    assert list(marks(search(shop)).values()) == [None]


def test_a_correction_for_people_alone_is_not_told_to_a_model(shop: Shop) -> None:
    archive(shop, OLD)
    shop.say(OLD)
    shop.clock.advance(timedelta(hours=1))
    shop.say(NEW, supersedes="#1", sensitivity=Sensitivity.LOCAL_ONLY)
    assert list(marks(search(shop)).values()) == ["outdated: replaced since"]
    assert list(marks(search(shop, viewer=shop.person)).values()) == [f"outdated: replaced by #2: {NEW}"]


@pytest.mark.parametrize("corrected", [True, False])
def test_what_was_corrected_is_not_quoted_unasked(shop: Shop, corrected: bool) -> None:
    archive(shop, "And now the couriers.", SETTLED)
    assert quote(shop, corrected=corrected).text is not None
    replace_old(shop, sensitivity=Sensitivity.NORMAL)
    assert quote(shop, corrected=corrected) == Quoted(text=None, told="what was said earlier was corrected since")


def test_other_projects_corrections_are_not_told(shop: Shop) -> None:
    archive(shop, OLD)
    shop.say(OLD, viewer=shop.elsewhere)
    shop.say(NEW, viewer=shop.elsewhere, supersedes="#1")
    assert list(marks(search(shop)).values()) == [None]
