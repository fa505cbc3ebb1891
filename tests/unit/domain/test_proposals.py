"""Facts and changes that a model proposes."""

from __future__ import annotations

import pytest

from backstory.domain.answers import Finish, Reason, Unusable
from backstory.domain.memory import Kind, Visibility
from backstory.domain.proposals import Proposals, ProposedFact, ProposedFacts, read_facts, read_proposals

KNOWN = ("a1", "a2", "a3")


def facts(raw: str, finish: Finish = Finish.STOP) -> ProposedFacts:
    read = read_facts(raw, finish=finish)
    assert isinstance(read, ProposedFacts)
    return read


def texts(raw: str) -> list[str]:
    return [fact.text for fact in facts(raw).facts]


def proposals(raw: str) -> Proposals:
    read = read_proposals(raw, known=KNOWN, finish=Finish.STOP)
    assert isinstance(read, Proposals)
    return read


@pytest.mark.parametrize(
    "raw",
    [
        '{"facts": ["Tea is at four", "Bread is at five"]}',
        '["Tea is at four", {"content": " Bread is at five "}]',
        '{"memories": [{"statement": "Tea is at four"}, {"memory": "Bread is at five"}]}',
        '{"fact": "Tea is at four"}\n\n{"fact": "Bread is at five"}',
        'As in {"facts": ["an example"]}, so:\n{"facts": ["Tea is at four", "Bread is at five"]}',
    ],
)
def test_facts_are_read_in_every_shape(raw: str) -> None:
    assert texts(raw) == ["Tea is at four", "Bread is at five"]


def test_a_fact_keeps_what_the_model_said_about_it() -> None:
    raw = '[{"text": "t", "kind": "decision", "scope": "Global", "tags": "a, b,a,", "confidence": 0.8}]'
    (fact,) = facts(raw).facts
    assert fact == ProposedFact(text="t", type="decision", scope="Global", tags=("a", "b"), confidence=0.8)
    assert (fact.kind(), fact.visibility(Visibility.PROJECT)) == (Kind.DECISION, Visibility.GLOBAL)


@pytest.mark.parametrize("word", ["session", "galaxy", "", None])
def test_a_scope_that_a_model_may_not_choose_falls_back(word: str | None) -> None:
    assert ProposedFact(text="t", scope=word).visibility(Visibility.PROJECT) is Visibility.PROJECT


def test_a_type_nobody_knows_is_other_and_none_is_a_fact() -> None:
    assert ProposedFact(text="t", type="vibe").kind() is Kind.OTHER
    assert ProposedFact(text="t").kind() is Kind.FACT


@pytest.mark.parametrize("confidence", ["true", "-1", "1.5", '"high"', "null"])
def test_a_confidence_that_is_no_share_is_left_out(confidence: str) -> None:
    assert facts(f'[{{"text": "t", "confidence": {confidence}}}]').facts[0].confidence is None


def test_items_that_say_nothing_are_dropped_and_counted() -> None:
    read = facts('["...", "<fact>", "fact 1", 7, {"text": "{text}"}, "Tea is at four"]')
    assert ([fact.text for fact in read.facts], read.dropped) == (["Tea is at four"], 5)


@pytest.mark.parametrize(
    ("raw", "reason"),
    [
        ('{"facts": [1, 2]}', Reason.WRONG_KIND),
        ('{"facts": 7}', Reason.WRONG_KIND),
        ('{"facts": ["...", "<fact>"]}', Reason.PLACEHOLDER),
        ('{"thoughts": ["x"]}', Reason.NOT_STRUCTURED),
        ('{"query": {"facts": []}}', Reason.NOT_STRUCTURED),
    ],
)
def test_an_answer_of_another_kind_is_refused(raw: str, reason: Reason) -> None:
    assert read_facts(raw, finish=Finish.STOP) == Unusable(reason=reason)


def test_lines_that_ran_out_of_room_may_lack_the_last_one() -> None:
    lines = '{"text": "one thing"}\n{"text": "another"}\n'
    assert read_facts(lines, finish=Finish.LENGTH) == Unusable(reason=Reason.TRUNCATED)
    assert len(facts(lines).facts) == 2


def test_chatter_cut_behind_a_complete_object_does_no_harm() -> None:
    assert texts('{"facts": ["Tea is at four"]}\nI chose this since') == ["Tea is at four"]
    assert len(facts('{"facts": ["Tea is at four"]}\nI chose this since', Finish.LENGTH).facts) == 1


def test_an_id_asked_to_be_two_things_is_left_alone() -> None:
    raw = """{"update": [{"id": "a1", "text": "one"}, {"id": "a1", "text": "two"}, {"id": "a2", "text": "x"}],
              "delete": ["a2", "a3", "a3", "zz", 4], "new": ["Tea is at four"]}"""
    read = proposals(raw)
    assert (read.update, read.delete) == ((), ("a3",))
    assert (read.contradictory, read.skipped) == (("a1", "a2"), 1)


def test_the_same_update_twice_is_one() -> None:
    raw = '{"update": [{"id": "a1", "text": "one"}, {"id": "a1", "content": "one"}]}'
    assert proposals(raw).update == (("a1", "one"),)


def test_evidence_against_a_memory_is_kept_for_known_ids() -> None:
    raw = '{"conflicts": [{"id": "a1", "evidence": "we moved to four"}, {"id": "b9", "evidence": "x"}, {"id": "a2"}]}'
    read = proposals(raw)
    assert (read.disputed, read.skipped) == ((("a1", "we moved to four"),), 1)


def test_deleting_everything_shown_is_for_a_person_to_decide() -> None:
    read = proposals('{"delete": ["a3", "a1", "a2"]}')
    assert (read.delete, read.review) == ((), ("a3", "a1", "a2"))
    assert proposals('{"delete": ["a1", "a2", "a3"], "new": ["Tea is at four"]}').review == ()


def test_proposals_of_another_shape_are_refused() -> None:
    assert read_proposals("[1]", known=KNOWN, finish=Finish.STOP) == Unusable(reason=Reason.NOT_STRUCTURED)
    assert proposals('{"new": 7, "update": "a1", "delete": {"a1": 1}, "summary": []}') == Proposals()


def test_every_id_that_is_proposed_was_shown() -> None:
    read = proposals(
        '{"update": [{"id": "x", "text": "y"}], "delete": ["*", "a1 "], "conflicts": [{"id": "", "evidence": "e"}]}'
    )
    assert (read.update, read.delete, read.disputed, read.skipped) == ((), (), (), 4)


def test_sources_are_numbers_or_ids_whatever_stands_around_them() -> None:
    (fact,) = facts('[{"text": "t", "sources": [3, "#4", "[5]", "msg_6", 3, true, null, {}, " "]}]').facts
    assert fact.sources == ("3", "4", "5", "msg_6")
    (alone,) = facts('[{"text": "t", "sources": 7}]').facts
    assert alone.sources == ("7",)


def test_an_update_may_cite_its_sources() -> None:
    found = proposals('{"update": [{"id": "a1", "text": "x", "sources": [2]}, {"id": "a2", "text": "y"}]}')
    assert found.update == (("a1", "x"), ("a2", "y"))
    assert found.cited == {"a1": ("2",)}
