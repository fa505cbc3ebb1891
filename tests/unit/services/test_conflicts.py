"""Memories that disagree: flagged with both sides, listed with their evidence, settled by a decision."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from backstory.domain.conversation import Message, Part, Role, Session
from backstory.domain.history import Action, Author
from backstory.domain.ids import MessageId, PartId, SessionId
from backstory.domain.memory import Conflicted, Kind, Sensitivity, Source, Visibility
from backstory.domain.provenance import Origin, Provenance
from backstory.domain.selection import Selection
from backstory.domain.settlement import KeepThis, SayInstead
from backstory.errors import InputError, StoreUnavailable
from backstory.ports.index import TextSearch
from backstory.testing.fakes import ORCHARD, START

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tests.unit.services.conftest import Shop

from tests.unit.services.disputes import HOUR, NEW, OLD, conflicts, disagreeing, flag, resolve, states, status, update


class UnreadableIndex:
    """A text index that cannot be searched."""

    async def search_text(self, tokens: Sequence[str], selection: Selection, *, limit: int) -> TextSearch:
        raise StoreUnavailable("the index cannot be read")


def test_a_contradiction_flags_both_sides_in_the_change_that_stores_it(shop: Shop) -> None:
    old = shop.say(OLD).memory
    done = shop.say(NEW)
    assert done.notes == ("it disagrees with #1: 9090 against 8080; `backstory conflicts` tells how to settle it",)
    assert status(shop, 1) == Conflicted(evidence="8080 against 9090", since=START, against=done.memory.id)
    assert status(shop, 2) == Conflicted(evidence="9090 against 8080", since=START, against=old.id)
    assert (done.change.action, len(done.change.edits)) == (Action.ADD, 2)
    shop.undo()
    assert states(shop, 1, 2) == ["active", "deleted"]


def test_both_sides_stay_findable(shop: Shop) -> None:
    disagreeing(shop)
    assert set(shop.found("which is the metrics port?")) == {OLD, NEW}


@pytest.mark.parametrize(
    "fields",
    [
        {"visibility": Visibility.GLOBAL},
        {"visibility": Visibility.SESSION},
        {"sensitivity": Sensitivity.LOCAL_ONLY},
        {"sensitivity": Sensitivity.PRIVATE},
        {"expires_in": HOUR},
        {"kind": Kind.STATUS},
        {"supersedes": "#1"},
    ],
    ids=lambda fields: next(iter(fields.items()))[0] + str(next(iter(fields.values()))),
)
def test_what_is_for_other_readers_or_replaces_the_old_is_no_conflict(shop: Shop, fields: dict[str, Any]) -> None:
    shop.say(OLD)
    assert shop.say(NEW, **fields).notes == ()
    assert "conflicted" not in states(shop, 1, 2)


def test_another_project_is_another_matter(shop: Shop) -> None:
    shop.say(OLD, viewer=shop.elsewhere)
    assert shop.say(NEW).notes == ()


def test_what_was_forgotten_replaced_or_expired_contradicts_nothing(shop: Shop) -> None:
    shop.say(OLD)
    shop.forget(1)
    shop.say("The cache port is 1.", expires_in=HOUR)
    shop.clock.advance(HOUR)
    assert shop.say(NEW).notes == ()
    assert shop.say("The cache port is 2.", expires_in=HOUR).notes == ()


def test_a_guess_puts_the_users_word_in_question_and_changes_nothing_else(shop: Shop) -> None:
    before = shop.say(OLD).memory
    shop.say(NEW, origin=Origin.AGENT, source=Source.DREAMED)
    after = shop.stored(1)
    assert replace(after, status=before.status, revision=before.revision) == before


def test_outside_text_leaves_the_users_word_as_it_is(shop: Shop) -> None:
    shop.say(OLD)
    assert shop.say(NEW, origin=Origin.WEB).against
    assert states(shop, 1, 2) == ["active", "conflicted"]
    shop.forget(2)
    assert states(shop, 1) == ["active"]


def test_an_update_that_contradicts_is_flagged_too_and_one_that_agrees_settles(shop: Shop) -> None:
    shop.say(OLD)
    shop.say("The metrics port is secret.")
    update(shop, 2, content=NEW)
    assert states(shop, 1, 2) == ["conflicted", "conflicted"]
    update(shop, 2, tags=("ops",))
    assert states(shop, 1, 2) == ["conflicted", "conflicted"]
    update(shop, 2, content="the metrics port is  9090")
    assert states(shop, 1, 2) == ["conflicted", "conflicted"]
    update(shop, 2, content="The metrics live on /metrics.")
    assert states(shop, 1, 2) == ["active", "active"]


def test_making_one_side_private_takes_its_words_out_of_the_others_evidence(shop: Shop) -> None:
    disagreeing(shop)
    update(shop, 2, sensitivity=Sensitivity.LOCAL_ONLY)
    assert states(shop, 1, 2) == ["active", "active"]
    assert "9090" not in repr(shop.stored(1))


@pytest.mark.parametrize("way", ["forget", "supersede", "supersede by what is known"])
def test_when_one_side_goes_the_other_is_believed_again(shop: Shop, way: str) -> None:
    disagreeing(shop)
    match way:
        case "forget":
            shop.forget(1)
        case "supersede":
            shop.say("The metrics moved to statsd.", supersedes="#1")
        case _:
            done = shop.say(NEW, supersedes="#1")
            assert (done.memory.n, done.fresh, done.superseded is not None) == (2, False, True)
    assert states(shop, 2) == ["active"]
    shop.undo()
    assert states(shop, 1, 2) == ["conflicted", "conflicted"]


def test_of_three_that_disagree_the_rest_stay_in_question(shop: Shop) -> None:
    disagreeing(shop)
    third = shop.say("The metrics port is 7070.").memory
    assert states(shop, 1, 2, 3) == ["conflicted"] * 3
    shop.forget(2)
    assert status(shop, 1).against == third.id
    shop.forget(1)
    assert states(shop, 3) == ["active"]


def test_what_a_decision_does_not_name_stays_in_question_while_it_contradicts_what_holds(shop: Shop) -> None:
    disagreeing(shop)
    shop.say("The metrics port is 7070.")
    assert status(shop, 3).against == shop.stored(1).id
    resolve(shop, 2, KeepThis())
    assert states(shop, 1, 2, 3) == ["superseded", "active", "conflicted"]
    assert status(shop, 3).against == shop.stored(2).id


def test_what_takes_the_place_of_two_is_set_against_a_third(shop: Shop) -> None:
    disagreeing(shop)
    shop.say("The metrics port is 7070.")
    resolve(shop, 2, SayInstead(text="The metrics port is 6060."))
    assert (states(shop, 3, 4), status(shop, 3).against) == (["conflicted", "active"], shop.stored(4).id)


def test_of_several_it_contradicts_a_statement_names_the_users(shop: Shop) -> None:
    users = shop.say(OLD).memory
    shop.say(NEW, origin=Origin.AGENT)
    shop.say("The metrics port is 7070.", origin=Origin.AGENT)
    assert status(shop, 3).against == users.id


def test_a_statement_is_kept_where_the_text_index_fails(shop: Shop) -> None:
    shop.say(OLD)
    shop.backend = replace(shop.backend, text=UnreadableIndex())
    done = shop.say(NEW)
    assert (done.fresh, done.against, states(shop, 1, 2)) == (True, (), ["active", "active"])


def test_a_statement_captured_twice_is_flagged_once(shop: Shop) -> None:
    shop.say(OLD)
    first = shop.say(NEW, key="capture:m:0")
    assert shop.say(NEW, key="capture:m:0").change == first.change
    assert shop.stored(1).revision == 2


@pytest.mark.parametrize(("origin", "state"), [(Origin.USER, "active"), (Origin.AGENT, "conflicted")])
def test_what_is_said_again_is_believed_again_unless_a_better_source_says_otherwise(
    shop: Shop, origin: Origin, state: str
) -> None:
    disagreeing(shop)
    shop.say(OLD, origin=origin)
    assert states(shop, 1, 2) == [state, "conflicted"]
    flag(shop, 1, None)
    shop.say(OLD, origin=Origin.WEB)
    assert states(shop, 1) == ["conflicted"]


def test_a_pair_is_listed_once_with_sentence_session_and_date_of_each_side(shop: Shop) -> None:
    session = SessionId("ses-1")
    told = Session(id=session, project=ORCHARD, host="test", directory="/r", created_at=START, updated_at=START)
    shop.do(shop.conversations.take_session(told))
    part = Part(id=PartId("p"), kind="text", text="Good morning. Remember that the metrics port is 8080! Thanks.")
    message = Message(id=MessageId("m"), session=session, role=Role.USER, created_at=START - HOUR, parts=(part,))
    shop.do(shop.conversations.take_messages([message]))
    shop.say(OLD, provenance=Provenance(session=session, messages=(message.id,)))
    shop.say(NEW)
    (found,) = shop.do(conflicts(shop).conflicts(shop.model))
    assert (found.one.memory.n, found.evidence) == (2, "9090 against 8080")
    assert found.other is not None
    assert found.other.sentence == "Remember that the metrics port is 8080!"
    assert (found.other.session, found.other.at) == (session, START - HOUR)
    assert shop.do(conflicts(shop).conflicts(shop.elsewhere)) == []


def test_what_a_viewer_may_not_see_is_not_listed(shop: Shop) -> None:
    shop.say(OLD, sensitivity=Sensitivity.LOCAL_ONLY)
    shop.say(NEW, sensitivity=Sensitivity.LOCAL_ONLY)
    assert len(shop.do(conflicts(shop).conflicts(shop.person))) == 1
    assert shop.do(conflicts(shop).conflicts(shop.model)) == []


def test_flagging_says_why_and_is_a_change_of_its_own(shop: Shop) -> None:
    shop.say(OLD)
    shop.say("Metrics were moved behind the proxy.", origin=Origin.AGENT)
    change = flag(shop, 1, 2)
    assert change is not None
    assert (change.action, change.author) == (Action.CONFLICT, Author.SYSTEM)
    assert status(shop, 1).evidence == status(shop, 2).evidence == "“it is 9090 now”"
    assert flag(shop, 1, 2) is None
    shop.undo()
    assert states(shop, 1, 2) == ["active", "active"]


def test_a_memory_may_be_flagged_by_evidence_alone(shop: Shop) -> None:
    shop.say(OLD)
    flag(shop, 1, None)
    (found,) = shop.do(conflicts(shop).conflicts(shop.person))
    assert (found.other, found.evidence) == (None, "“it is 9090 now”")
    resolve(shop, 1, KeepThis())
    assert states(shop, 1) == ["active"]


def test_memories_for_different_readers_are_not_set_against_each_other(shop: Shop) -> None:
    shop.say(OLD)
    shop.say(NEW, sensitivity=Sensitivity.LOCAL_ONLY)
    with pytest.raises(InputError, match="not for the same readers"):
        flag(shop, 1, 2)
