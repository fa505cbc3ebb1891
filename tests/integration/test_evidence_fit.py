"""The fit of the evidence weights: its arrays weigh as the product does, and it finds the sign that tells."""

from __future__ import annotations

import random
from dataclasses import fields

import pytest

pytest.importorskip("numpy")

from backstory.domain.evidence import BY_WORDS, WITH_MEANING, WORD_BY_WORD, EvidenceWeights, score_messages
from backstory.domain.evidence_passages import PassageNumber
from backstory.domain.evidence_signs import PassageSigns
from backstory.domain.evidence_talk import TalkSigns
from backstory.domain.ids import MessageId, SessionId
from bench.evidence_descent import Case, descend
from bench.evidence_fit import NEUTRAL
from bench.evidence_table import as_table


def made_up(chance: random.Random, *, gold: int) -> list[PassageSigns]:
    """Sixty passages of thirty messages in three sessions; that of message ``gold`` holds words that stand together."""
    return [
        PassageSigns(
            passage=PassageNumber(n),
            message=MessageId(f"m{n // 2}"),
            session=SessionId(f"s{n // 20}"),
            follows=n % 20 > 0,
            words=5 * chance.random(),
            words_far=5 * chance.random(),
            coverage=chance.random(),
            session_words=0.5,
            together=0.6 if n // 2 == gold else 0.1 * chance.random(),
            cosine=None if n % 7 == 0 else chance.random(),
            cosine_around=None if n % 7 == 0 else chance.random(),
            speaker=float(n % 2),
            date=0.0,
            user=float(n % 4 < 2),
            asked=chance.random() if n % 3 == 0 else 0.0,
            dated=0.0,
            counted=float(n % 5 == 0),
            length=1.0,
            brief=chance.random(),
            matched=(),
            telling=True,
            talk=None
            if n % 9 == 0
            else TalkSigns(
                alike=chance.uniform(-1, 1),
                alike_near=chance.uniform(-1, 1),
                alike_session=chance.uniform(-1, 1),
                meaning_near=chance.uniform(-1, 1),
                meaning_far=chance.uniform(-1, 1),
                opening=float(n % 20 == 0),
                of_oneself=float(n % 3 == 0),
            ),
        )
        for n in range(60)
    ]


def test_the_arrays_rank_as_the_product_does() -> None:
    signs = made_up(random.Random(7), gold=3)
    table = as_table(signs)
    for weights in (WITH_MEANING, BY_WORDS, WORD_BY_WORD, NEUTRAL):
        assert table.ranking(weights) == [score.best.message for score in score_messages(signs, weights)]


def test_the_descent_finds_the_sign_that_tells_and_comes_out_the_same_twice() -> None:
    chance = random.Random(7)
    cases = [
        Case(signs=as_table(made_up(chance, gold=gold)), gold={f"m{gold}"}, weight=1.0) for gold in range(0, 30, 2)
    ]
    fitted = descend(cases, NEUTRAL, fixed=("date",))
    assert fitted.together > NEUTRAL.together + 0.5
    assert fitted.date == 0.0
    assert all(getattr(fitted, field.name) >= 0.0 for field in fields(EvidenceWeights))
    assert descend(cases, NEUTRAL, fixed=("date",)) == fitted
