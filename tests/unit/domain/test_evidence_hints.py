"""What questions say about speakers and days."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from backstory.domain.conversation import Role
from backstory.domain.evidence_hints import DateHint, date_hint, detail_hint, speaker_hint, tells_number, tells_time
from backstory.domain.evidence_passages import EvidencePassage, PassageNumber
from backstory.domain.ids import MessageId, SessionId
from backstory.testing.fakes import START


def hint(question: str) -> DateHint | None:
    return date_hint(question, now=START, zone=UTC)


def passage(number: int, text: str, role: Role = Role.USER) -> EvidencePassage:
    return EvidencePassage(
        number=PassageNumber(number),
        message=MessageId(f"m{number}"),
        session=SessionId("s"),
        role=role,
        at=START,
        kind="text",
        text=text,
    )


TALK = [
    passage(1, "Ada: the loom is broken"),
    passage(2, "Grace: then mend it"),
    passage(3, "Ada: how?"),
    passage(4, "Grace: with thread"),
    passage(5, "Error: no thread"),
]


def test_a_month_fits_in_any_year_unless_one_is_named() -> None:
    june = hint("What broke in June?")
    assert june is not None
    assert june.fit(datetime(2020, 6, 3, tzinfo=UTC)) == 1.0
    assert june.fit(datetime(2020, 7, 3, tzinfo=UTC)) == 0.0
    dated = hint("What broke in June 2021?")
    assert dated is not None
    assert dated.fit(datetime(2021, 6, 3, tzinfo=UTC)) == 1.0
    assert 0.0 < dated.fit(datetime(2020, 6, 3, tzinfo=UTC)) < 1.0


def test_a_named_day_fits_best() -> None:
    found = hint("What broke on June 3rd?")
    assert found is not None
    assert found.fit(datetime(2020, 6, 3, tzinfo=UTC)) == 2.0
    assert found.fit(datetime(2020, 6, 4, tzinfo=UTC)) == 1.0


def test_days_counted_back_from_now_fit() -> None:
    found = hint("what did we try yesterday")
    assert found is not None
    assert found.fit(START - timedelta(days=1)) == 1.0
    assert found.fit(START) == 0.0


@pytest.mark.parametrize("question", ["may I march on?", "which port", "", "they may 'x'", "the marching band"])
def test_words_of_every_day_are_no_dates(question: str) -> None:
    assert hint(question) is None


@pytest.mark.parametrize("question", ["in May", "on 3 May", "May 3", "the 4th of march", "3rd march", "march, 2021"])
def test_may_and_march_are_months_beside_a_number_or_a_preposition(question: str) -> None:
    found = hint(question)
    assert found is not None
    assert found.months <= {3, 5}
    assert found.months


def test_a_speaker_is_known_by_the_name_before_the_colon() -> None:
    found = speaker_hint("What did Ada say about the loom?", TALK)
    assert [found.fits(item) for item in TALK] == [True, False, True, False, False]


def test_two_names_or_an_unknown_one_ask_for_nobody() -> None:
    for question in ("What did Ada tell Grace?", "What did Linus say?", "Adam's loom", "what was the Error"):
        found = speaker_hint(question, TALK)
        assert not any(found.fits(item) for item in TALK), question


def test_i_and_you_are_the_user_and_the_assistant() -> None:
    talk = [passage(1, "hello"), passage(2, "hi", Role.ASSISTANT)]
    assert [speaker_hint("which port did I ask for", talk).fits(item) for item in talk] == [True, False]
    assert [speaker_hint("what did you suggest", talk).fits(item) for item in talk] == [False, True]
    assert not any(speaker_hint("what did you say when did I ask", talk).fits(item) for item in talk)
    assert not any(speaker_hint("which port", talk).fits(item) for item in talk)


@pytest.mark.parametrize(
    ("question", "time", "number"),
    [
        ("When did the export break?", True, False),
        ("how long has it been red", True, False),
        ("How many rows were lost", False, True),
        ("which month had how much traffic", True, True),
        ("who broke it", False, False),
        ("whenever it breaks", False, False),
    ],
)
def test_a_question_may_want_a_time_or_a_number(question: str, time: bool, number: bool) -> None:
    wanted = detail_hint(question)
    assert (wanted.time, wanted.number) == (time, number)


def test_a_text_tells_a_time_or_a_number() -> None:
    assert tells_time("it broke last Friday")
    assert tells_time("shipped in 2024")
    assert not tells_time("the lasting weakness of dates")
    assert tells_number("3 rows")
    assert not tells_number("three rows")
