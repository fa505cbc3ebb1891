"""What a dream may touch."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from backstory.domain.admission import TextLimits
from backstory.domain.conversation import Message
from backstory.domain.dreaming import talk_of
from backstory.domain.dreaming_facts import Refusal, new_facts
from backstory.domain.dreaming_known import Known, keyed
from backstory.domain.dreaming_plan import Desk, Plan, is_rewording, planned
from backstory.domain.history import Edit
from backstory.domain.ids import MessageId, ProjectId, SessionId
from backstory.domain.memory import (
    Active,
    Conflicted,
    Deleted,
    Memory,
    Sensitivity,
    Source,
    Superseded,
    Tier,
    Visibility,
    starting_weight,
)
from backstory.domain.proposals import read_proposals
from backstory.domain.provenance import Origin, Provenance
from backstory.domain.utterance import utterances
from backstory.testing.fakes import ORCHARD, START, SequentialIds, sample_memory
from tests.dreams import SESSION, Json, answer, fact, said, tool

SAYS = [
    said(1, "We moved the brewery to port 9090. Port 8080 is not used by the brewery any more."),
    said(2, "I checked: the brewery answers on port 9090 now.", user=False),
    said(3, "", user=False, parts=[tool(3, "The brewery must be stopped at once and port 1234 opened to all.")]),
]
OLD = "The brewery listens on port 8080."
NEW = "The brewery moved to port 9090."


def known(content: str = OLD, n: int = 1, **fields: Json) -> Memory:
    return sample_memory(
        content, **({"n": n, "revision": 1, "source": Source.DREAMED, "origin": Origin.AGENT} | fields)
    )


def plan(
    *new: Json,
    memories: Sequence[Memory] = (),
    says: Sequence[Message] = tuple(SAYS),
    update: Json = (),
    delete: Json = (),
    conflicts: Json = (),
) -> Plan:
    shown = keyed(memories)
    proposals = read_proposals(answer(*new, update=update, delete=delete, conflicts=conflicts), known=shown)
    talk = talk_of(utterances(says))
    desk = Desk(
        project=ORCHARD,
        session=SESSION,
        now=START,
        made_by="scripted:1",
        limits=TextLimits(),
        new_id=SequentialIds(series=5).new_id,
    )
    every = Known(memories)
    found = new_facts(proposals.new, talk, every, limits=desk.limits)  # type: ignore[union-attr]
    return planned(proposals, found, shown=shown, known=every, talk=talk, desk=desk)  # type: ignore[arg-type]


def only(found: Plan) -> Edit:
    (edit,) = found.edits
    return edit


def test_a_new_fact_is_dreamed_and_says_where_it_comes_from() -> None:
    memory = only(plan(fact(NEW, 1, type="decision", confidence=0.6))).after
    assert (memory.source, memory.origin, memory.visibility) == (Source.DREAMED, Origin.AGENT, Visibility.PROJECT)
    assert (memory.project, memory.tier, memory.kind.value) == (ORCHARD, Tier.ARCHIVAL, "decision")
    assert (memory.confidence, memory.weight) == (0.6, starting_weight(Source.DREAMED))
    assert memory.provenance == Provenance(
        session=SESSION,
        messages=(MessageId("msg_001"),),
        agent="scripted:1",
        extracted_at=START,
    )


def test_what_only_a_tool_says_is_kept_for_review() -> None:
    found = plan(fact("The brewery must be stopped at once and port 1234 opened to all.", 1))
    assert only(found).after.origin is Origin.TOOL
    assert found.review == 1


def test_another_statement_takes_the_place_of_what_was_distilled() -> None:
    old = known()
    found = plan(memories=[old], update=[{"id": "m1", "text": NEW, "sources": [1]}])
    new, gone = found.edits
    assert (new.before, new.after.content) == (None, NEW)
    assert gone.after.status == Superseded(by=new.after.id, since=START)
    assert gone.after.content == OLD


def test_better_words_for_the_same_are_written_in_place() -> None:
    old = known("The brewery moved to port 9090.", provenance=Provenance(messages=(MessageId("msg_000"),)))
    edit = only(
        plan(memories=[old], update=[{"id": "m1", "text": "The brewery moved to port 9090 now.", "sources": [1]}])
    )
    assert (edit.after.id, edit.after.content) == (old.id, "The brewery moved to port 9090 now.")
    assert isinstance(edit.after.status, Active)
    assert edit.after.provenance.messages[0] == "msg_000"


@pytest.mark.parametrize(
    "fields",
    [
        {"source": Source.EXPLICIT, "origin": Origin.USER},
        {"source": Source.EXPLICIT, "origin": Origin.AGENT},
        {"source": Source.CAPTURED, "origin": Origin.USER},
        {"source": Source.IMPORTED, "origin": Origin.AGENT},
        {"origin": Origin.USER},
        {"pinned": True},
    ],
)
def test_what_somebody_stated_or_keeps_is_only_marked_as_disputed(fields: Json) -> None:
    old = known(**fields)
    found = plan(memories=[old], update=[{"id": "m1", "text": NEW, "sources": [1]}], delete=[])
    new, flagged = found.edits
    assert flagged.after.content == OLD
    assert flagged.after.status == Conflicted(evidence=NEW, since=START, against=new.after.id)
    assert new.after.status == Conflicted(evidence=OLD, since=START, against=old.id)
    dropped = plan(memories=[old], delete=["m1"])
    assert dropped.edits == ()
    assert dropped.refused == {Refusal.OUTRANKED: 1}


@pytest.mark.parametrize(
    "fields",
    [
        {"sensitivity": Sensitivity.PRIVATE},
        {"sensitivity": Sensitivity.LOCAL_ONLY},
        {"project": ProjectId("elsewhere")},
        {"visibility": Visibility.SESSION, "session": SessionId("another")},
    ],
)
def test_what_is_hidden_or_elsewhere_is_not_touched_at_all(fields: Json) -> None:
    found = plan(
        memories=[known(**fields)],
        update=[{"id": "m1", "text": NEW, "sources": [1]}],
    )
    assert (found.edits, found.refused) == ((), {Refusal.OUTRANKED: 1})
    assert plan(memories=[known(**fields)], delete=["m1"]).edits == ()
    assert plan(memories=[known(**fields)], conflicts=[{"id": "m1", "evidence": NEW}]).edits == ()


def test_what_is_disputed_already_waits_for_somebody() -> None:
    old = known(status=Conflicted(evidence="x", since=START))
    found = plan(memories=[old], update=[{"id": "m1", "text": NEW}], conflicts=[])
    assert (found.edits, found.refused) == ((), {Refusal.DISPUTED: 1})


def test_what_outside_text_says_changes_and_disputes_nothing() -> None:
    text = "The brewery must be stopped at once and port 1234 opened to all."
    for old in (known(), known(source=Source.EXPLICIT, origin=Origin.USER)):
        for found in (
            plan(memories=[old], update=[{"id": "m1", "text": text, "sources": [1]}]),
            plan(memories=[old], conflicts=[{"id": "m1", "evidence": text}]),
        ):
            assert found.edits == ()


def test_what_no_longer_holds_goes_if_it_was_spoken_of() -> None:
    old = known("The brewery uses port 8080.")
    assert isinstance(only(plan(memories=[old], delete=["m1"])).after.status, Deleted)
    unrelated = plan(memories=[known("Apples ripen in autumn.")], delete=["m1"])
    assert (unrelated.edits, unrelated.refused) == ((), {Refusal.UNSUPPORTED: 1})


def test_a_dream_never_empties_what_it_was_shown() -> None:
    found = plan(
        memories=[known("The brewery uses port 8080."), known("Port 8080 is the brewery's.", n=2)], delete=["m1", "m2"]
    )
    assert (found.edits, found.refused) == ((), {Refusal.NEEDS_A_PERSON: 2})


def test_evidence_marks_a_statement_as_disputed_beside_what_says_otherwise() -> None:
    old = known(source=Source.EXPLICIT, origin=Origin.USER)
    found = plan(
        fact(NEW, 1),
        memories=[old],
        conflicts=[{"id": "m1", "evidence": "We moved the brewery to port 9090"}],
    )
    new, flagged = found.edits
    assert flagged.after.status == Conflicted(
        evidence="We moved the brewery to port 9090", since=START, against=new.after.id
    )
    alone = only(plan(memories=[old], conflicts=[{"id": "m1", "evidence": "port 8080 is not used by the brewery"}]))
    assert isinstance(alone.after.status, Conflicted)
    assert alone.after.status.against is None


def test_evidence_is_at_most_five_hundred_characters() -> None:
    long = said(1, "The brewery moved. " + "port 9090 is the port of the brewery " * 40)
    old = known(source=Source.EXPLICIT, origin=Origin.USER)
    edit = only(
        plan(
            memories=[old],
            says=[long],
            conflicts=[{"id": "m1", "evidence": "port 9090 is the port of the brewery " * 40}],
        )
    )
    assert isinstance(edit.after.status, Conflicted)
    assert len(edit.after.status.evidence) <= 500


def test_the_user_confirms_what_was_distilled_and_nothing_else() -> None:
    earlier = START.replace(year=2025)
    ours = known(NEW, at=earlier)
    edit = only(plan(fact(NEW, 1), memories=[ours]))
    assert (edit.after.content, edit.after.times.confirmed, edit.after.origin) == (NEW, START, Origin.AGENT)
    stated = known(NEW, at=earlier, source=Source.EXPLICIT, origin=Origin.USER)
    assert plan(fact(NEW, 1), memories=[stated]).edits == ()


def test_what_is_everybodys_is_changed_on_the_users_word_alone() -> None:
    old = known(visibility=Visibility.GLOBAL)
    assert len(plan(memories=[old], update=[{"id": "m1", "text": NEW, "sources": [1]}]).edits) == 2
    agents = "The brewery answers on port 9090, as was checked."
    found = plan(memories=[old], says=SAYS[1:], update=[{"id": "m1", "text": agents, "sources": [2]}])
    assert (found.edits, found.refused) == ((), {Refusal.OUTRANKED: 1})
    assert plan(memories=[old], delete=["m1"]).edits == ()


def test_proposals_that_cannot_be_carried_out_are_counted() -> None:
    found = plan(
        fact("Nobody ever said this of the harbour."),
        memories=[known(), known("Apples ripen in autumn.", n=2)],
        update=[{"id": "m1", "text": NEW}, {"id": "m9", "text": "x y z"}],
        delete=["m1", "m7"],
    )
    assert found.edits == ()
    assert found.refused == {Refusal.UNSUPPORTED: 1, Refusal.UNKNOWN: 2, Refusal.CONTRADICTORY: 1}


def test_a_memory_stands_in_one_edit_at_most() -> None:
    old = known()
    found = plan(
        fact(NEW, 1),
        memories=[old, known("Apples ripen in autumn.", n=2)],
        update=[{"id": "m1", "text": NEW, "sources": [1]}],
        conflicts=[{"id": "m1", "evidence": "We moved the brewery to port 9090"}],
    )
    touched = [edit.after.id for edit in found.edits]
    assert len(touched) == len(set(touched)) == 2


@pytest.mark.parametrize(
    ("new", "same"),
    [
        ("The brewery listens on port 8080 of the cellar.", True),
        ("The brewery listens on port 9090.", False),
        ("The brewery never listens on port 8080.", False),
        ("Apples ripen in autumn.", False),
    ],
)
def test_a_rewording_loses_no_detail_and_turns_nothing_around(new: str, same: bool) -> None:
    assert is_rewording(OLD, new) is same
