"""The gate for quotes of earlier sessions: sure ones pass, and none but what a user or the assistant said."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from backstory.domain.conversation import Role
from backstory.domain.evidence_offer import (
    GATE_BY_WORDS,
    GATE_WITH_MEANING,
    MOST_OFFERED,
    NOTHING_SAID,
    brevity_of,
    confidence,
    is_quotable,
    offer,
    repeats,
)
from backstory.domain.evidence_passages import EvidencePassage, PassageNumber
from backstory.domain.evidence_signs import PassageSigns
from backstory.domain.ids import MessageId, SessionId
from backstory.domain.provenance import Provenance
from backstory.domain.text import analyse_query
from backstory.testing.fakes import START, sample_memory

ASKED = analyse_query("which retry limit did we set for the courier webhook")


def passage(number: int = 1, **fields: Any) -> EvidencePassage:
    plain: dict[str, Any] = {"role": Role.USER, "kind": "text", "text": "retry the courier webhook five times"}
    return EvidencePassage(
        number=PassageNumber(number),
        message=MessageId(f"msg-{number}"),
        session=SessionId("ses-1"),
        at=START,
        **(plain | fields),
    )


def signs(number: int = 1, **fields: Any) -> PassageSigns:
    plain: dict[str, Any] = {
        "words": 5.0, "words_far": 5.0, "coverage": 0.7, "session_words": 0.7, "together": 0.3, "cosine": 0.6,
        "cosine_around": 0.4, "speaker": 0.0, "date": 0.0, "user": 1.0, "asked": 0.0, "dated": 0.0, "counted": 0.0,
        "length": 0.0, "brief": 0.0, "matched": ("retri", "webhook"), "telling": True, "follows": False,
    }  # fmt: skip
    of = passage(number)
    return PassageSigns(passage=of.number, message=of.message, session=of.session, **(plain | fields))


def offered(*found: PassageSigns) -> list[int]:
    passages = {sign.passage: passage(sign.passage) for sign in found}
    return [item.passage.number for item in offer(ASKED, found, passages).passages]


def test_what_is_near_and_holds_the_words_is_offered_with_reasons() -> None:
    (only,) = offer(ASKED, [signs()], {PassageNumber(1): passage()}).passages
    assert only.passage == passage()
    assert only.confidence >= GATE_WITH_MEANING.sure
    assert "meaning 0.60" in only.reasons


def test_what_is_far_is_not_and_says_how_far() -> None:
    silent = offer(ASKED, [signs(cosine=0.2, coverage=0.2, together=0.0)], {PassageNumber(1): passage()})
    assert silent.passages == ()
    assert "20% of the words" in (silent.silent_because or "")
    assert "needed 40%" in (silent.silent_because or "")
    assert offer(ASKED, [], {}).silent_because == NOTHING_SAID


def test_without_vectors_the_words_must_say_more() -> None:
    assert offered(signs(cosine=None, cosine_around=None)) == [1]
    assert offered(signs(cosine=None, cosine_around=None, coverage=0.3, session_words=0.3, together=0.0)) == []


def test_small_talk_in_common_is_no_answer() -> None:
    assert confidence(signs(telling=False), GATE_BY_WORDS, brevity=0.0) == 0.0


def test_at_most_three_are_offered_and_none_far_behind_the_best() -> None:
    assert offered(*(signs(number) for number in range(1, 8))) == [1, 2, 3]
    assert MOST_OFFERED == 3
    weak = signs(2, cosine=0.0, coverage=0.0, words=0.0, words_far=0.0, together=0.0, session_words=0.0)
    assert offered(signs(1), weak) == [1]


def test_a_prompt_of_one_word_must_be_answered_more_surely() -> None:
    one, many = brevity_of(analyse_query("webhooks?")), brevity_of(ASKED)
    assert one < many <= 0.0
    assert confidence(signs(), GATE_WITH_MEANING, brevity=one) < confidence(signs(), GATE_WITH_MEANING, brevity=many)
    assert brevity_of(analyse_query("ok go on")) < one


@pytest.mark.parametrize(
    ("fields", "may"),
    [
        ({}, True),
        ({"role": Role.ASSISTANT}, True),
        ({"role": Role.SYSTEM}, False),
        ({"kind": "tool", "role": Role.ASSISTANT}, False),
        ({"kind": "reasoning", "role": Role.ASSISTANT}, False),
        ({"by_sub_agent": True}, False),
    ],
)
def test_only_a_users_and_the_assistants_own_words_may_be_quoted(fields: dict[str, Any], may: bool) -> None:
    assert is_quotable(passage(**fields)) is may


def test_a_message_repeats_a_memory_that_was_made_of_it_or_says_the_same() -> None:
    name, other = MessageId("msg-1"), sample_memory(content="We deploy on Fridays")
    assert not repeats(name, "The tests are green", [other])
    assert repeats(name, "It is so", [other, replace(other, provenance=Provenance(messages=(name,)))])
    assert repeats(name, "ok: we  DEPLOY on fridays", [other])
    assert not repeats(name, "ok: we  DEPLOY on fridays", [])
