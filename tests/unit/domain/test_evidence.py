"""Scoring passages with their neighbours, and messages by their best passage."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import fields, replace
from datetime import UTC

import pytest

from backstory.domain.conversation import Role
from backstory.domain.evidence import (
    BY_WORDS,
    WITH_MEANING,
    WORD_BY_WORD,
    EvidenceWeights,
    answers,
    explain_evidence,
    score_messages,
)
from backstory.domain.evidence_hints import date_hint, detail_hint, speaker_hint
from backstory.domain.evidence_passages import EvidencePassage, LoadedPassage, PassageNumber
from backstory.domain.evidence_signs import ComparedWords, EvidenceStatistics, PassageSigns, read_signs
from backstory.domain.ids import MessageId, SessionId
from backstory.domain.text import analyse, analyse_query
from backstory.testing.fakes import START

NOTHING = EvidenceWeights(**dict.fromkeys((field.name for field in fields(EvidenceWeights)), 0.0))


def talk(
    *texts: str, session: str = "s", roles: Mapping[int, Role] | None = None, first: int = 1
) -> list[LoadedPassage]:
    """One message a text, in one session, all loaded."""
    loaded = []
    for number, text in enumerate(texts, start=first):
        tokens = analyse(text)
        passage = EvidencePassage(
            number=PassageNumber(number),
            message=MessageId(f"m{number}"),
            session=SessionId(session),
            role=(roles or {}).get(number, Role.ASSISTANT),
            at=START,
            kind="text",
            text=text,
        )
        before = PassageNumber(number - 1) if number > first else None
        held = {token: tokens.count(token) for token in tokens}
        loaded.append(LoadedPassage(passage=passage, held=held, length=len(tokens), before=before))
    return loaded


def signs(
    question: str,
    loaded: Sequence[LoadedPassage],
    cosines: Mapping[int, float] | None = None,
    compared: ComparedWords | None = None,
) -> list[PassageSigns]:
    """The signs of passages for a question; statistics are those of the passages."""
    terms = analyse_query(question)
    tokens = {term.token for term in terms}
    loaded = [replace(item, held={t: n for t, n in item.held.items() if t in tokens}) for item in loaded]
    frequency = {token: sum(token in item.held for item in loaded) for token in tokens}
    mean = sum(item.length for item in loaded) / max(1, len(loaded))
    return read_signs(
        terms,
        loaded,
        statistics=EvidenceStatistics(documents=len(loaded), mean_length=mean, frequency=frequency),
        cosines={PassageNumber(n): cosine for n, cosine in (cosines or {}).items()},
        speaker=speaker_hint(question, [item.passage for item in loaded]),
        date=date_hint(question, now=START, zone=UTC),
        detail=detail_hint(question),
        compared=compared,
    )


def ranked(found: Sequence[PassageSigns], weights: EvidenceWeights) -> list[str]:
    return [score.best.message for score in score_messages(found, weights)]


def test_the_passage_with_the_rare_words_comes_first() -> None:
    found = signs("where is the heron kept", talk("the barn", "the heron is kept here", "kept kept kept", "the cat"))
    assert ranked(found, BY_WORDS)[0] == "m2"
    assert found[1].words > found[2].words > found[0].words == 0.0


def test_a_passage_is_read_with_its_neighbours() -> None:
    found = signs("why heron", talk("why though", "because", "the heron bites", "the end", "again"))
    assert found[1].coverage == pytest.approx(1.0)
    assert found[1].words == 0.0
    assert found[1].words_far > 0.0
    assert found[4].coverage == 0.0
    assert found[4].words_far > 0.0


def test_words_are_read_up_to_four_passages_away_in_one_run() -> None:
    found = signs("heron", talk("the heron", *["a barn"] * 5))
    assert [sign.words_far > 0.0 for sign in found] == [True] * 5 + [False]
    gap = talk("the heron", "a barn", "not loaded", "a barn")
    assert [sign.words_far > 0.0 for sign in signs("heron", [*gap[:2], gap[3]])] == [True, True, False]


def test_what_the_session_holds_of_the_question_counts_for_all_of_it() -> None:
    found = signs("heron barn", [*talk("a heron", "a cat", "a barn"), *talk("a heron", session="t", first=9)])
    assert [sign.session_words for sign in found[:3]] == [1.0, 1.0, 1.0]
    assert 0.0 < found[3].session_words < 1.0


def test_words_that_stand_together_count_more_than_the_same_words_apart() -> None:
    apart, together = signs("the blue heron", talk("blue sky over a lake, then a heron", "a heron, very blue"))
    assert apart.together == 0.0
    assert together.together > 0.0
    assert ranked([apart, together], replace(NOTHING, together=1.0)) == ["m2", "m1"]


def test_the_answer_to_a_question_is_lifted_by_its_words() -> None:
    users = dict.fromkeys(range(9), Role.USER)
    found = signs("which heron", talk("which heron?", "the grey one", "a heron", "the tall one", roles=users))
    assert [sign.asked > 0.0 for sign in found] == [False, True, False, False]
    assert all(sign.asked == 0.0 for sign in signs("which heron", talk("which heron?", "the grey one")))


def test_a_time_or_a_number_counts_where_the_question_wants_one() -> None:
    said = talk("the heron left yesterday", "the heron has 3 eggs")
    assert [(sign.dated, sign.counted) for sign in signs("when did the heron leave", said)] == [(1.0, 0.0), (0.0, 0.0)]
    assert [(sign.dated, sign.counted) for sign in signs("how many eggs", said)] == [(0.0, 0.0), (0.0, 1.0)]
    assert all(sign.dated == sign.counted == 0.0 for sign in signs("heron eggs", said))


def test_a_passage_of_next_to_nothing_counts_less() -> None:
    short, long = signs("heron", talk("heron!", "the heron " + "came back " * 10))
    assert short.brief > 0.9
    assert long.brief == 0.0
    assert ranked([short, long], replace(NOTHING, words=1.0)) == ["m1", "m2"]
    assert ranked([short, long], replace(NOTHING, words=1.0, brief=1.0)) == ["m2", "m1"]


def test_neighbours_of_another_session_or_far_away_do_not_count() -> None:
    apart = [*talk("the heron"), *talk("the barn", session="t", first=2)]
    assert signs("heron", apart)[1].coverage == 0.0
    gap = talk("the heron", "unloaded", "the barn")
    assert signs("heron", [gap[0], gap[2]])[1].coverage == 0.0


def test_meaning_joins_the_words() -> None:
    found = signs("heron", talk("a heron", "a bird", "a barn"), {1: 0.2, 2: 0.9, 3: 0.1})
    assert ranked(found, replace(NOTHING, meaning=1.0))[0] == "m2"
    assert found[1].cosine_around == pytest.approx(0.4)
    assert ranked(found, replace(NOTHING, words=1.0))[0] == "m1"


def test_a_passage_without_a_vector_is_taken_by_its_words() -> None:
    found = signs("heron", talk("a heron", "a bird", "a barn"), {2: 0.9, 3: 0.1})
    assert found[0].cosine is None
    assert ranked(found, replace(NOTHING, words=0.1, meaning=1.0))[0] == "m1"


def test_the_speaker_and_the_day_that_are_asked_for_count() -> None:
    texts = ("Ada: it broke", "Eve: it broke", "Ada: yes", "Eve: no")
    assert ranked(signs("what did Eve say broke", talk(*texts)), BY_WORDS)[0] == "m2"
    march = signs("what broke in March", talk("it broke"))
    assert march[0].date == 1.0


def test_users_count_more() -> None:
    found = signs("broke", talk("it broke", "it broke", roles={2: Role.USER}))
    assert ranked(found, replace(NOTHING, words=1.0)) == ["m1", "m2"]
    assert ranked(found, replace(NOTHING, words=1.0, user=0.1)) == ["m2", "m1"]


def test_a_long_message_must_fit_better() -> None:
    loaded = talk("heron barn", "cat", "dog", "owl", "heron barn")
    long = [replace(item, passage=replace(item.passage, message=MessageId("long"))) for item in loaded[:4]]
    found = signs("heron", [*long, loaded[4]])
    assert [sign.length for sign in found] == [2.0, 2.0, 2.0, 2.0, 0.0]
    assert ranked(found, replace(NOTHING, words=1.0)) == ["long", "m5"]
    assert ranked(found, replace(NOTHING, words=1.0, length=0.1)) == ["m5", "long"]


def test_a_message_beside_a_good_one_and_in_a_good_session_is_lifted() -> None:
    found = signs("heron", [*talk("heron", "barn", "cat", "dog"), *talk("hedge", session="t", first=9)])
    weights = replace(NOTHING, words=1.0)
    beside = score_messages(found, replace(weights, neighbour=0.5))
    assert [score.best.message for score in beside][:2] == ["m1", "m2"]
    assert beside[1].total > beside[2].total == 0.0
    in_session = score_messages(found, replace(weights, session=0.5))
    assert [score.best.message for score in in_session][-1] == "m9"
    assert in_session[-1].total == 0.0


def test_a_message_scores_as_its_best_passage() -> None:
    loaded = talk("barn", "heron", "cat")
    joined = [replace(item, passage=replace(item.passage, message=MessageId("one"))) for item in loaded]
    (score,) = score_messages(signs("heron", joined), BY_WORDS)
    assert score.best.passage == 2


@pytest.mark.parametrize("weights", [WITH_MEANING, BY_WORDS])
def test_scores_lie_between_0_and_1(weights: EvidenceWeights) -> None:
    loaded = talk(*["heron in March"] * 5, roles=dict.fromkeys(range(9), Role.USER))
    found = signs("which heron in 2 March did I see", loaded, dict.fromkeys(range(9), 1.0))
    assert all(0.0 < score.total <= 1.0 for score in score_messages(found, weights))
    assert score_messages([], weights) == []


def test_what_is_near_or_holds_telling_words_answers() -> None:
    near, held, far = signs("heron sightings", talk("bird", "a heron", "cat"), {1: 0.6, 2: 0.0, 3: 0.0})
    assert answers(near)
    assert answers(held)
    (small_talk,) = signs("ok thanks", talk("ok"))
    assert not answers(small_talk)
    (nothing,) = signs("heron", talk("cat"))
    assert not answers(nothing)
    assert answers(far)  # it stands beside the heron


def test_reasons_name_every_sign() -> None:
    found = signs("what did I say of the heron in March", talk("heron", roles={1: Role.USER}), {1: 0.5})
    reasons = explain_evidence(found[0])
    assert reasons[0] == "meaning 0.50"
    assert "heron" in reasons[1]
    assert reasons[2:] == ("the speaker asked for", "the time asked for")


def test_where_people_talk_the_words_that_agree_bring_up_the_answer() -> None:
    loaded = talk("Ada: hi Ben!", "Ben: hello", "Ada: I bought a canoe", "Ben: how nice")
    near = {PassageNumber(n): (0.8 if n == 3 else 0.1,) for n in range(1, 5)}
    found = signs("which boat", loaded, compared=ComparedWords(words=["boat"], nearest=near))
    assert ranked(found, WORD_BY_WORD)[0] == "m3"
    told = [sign.talk for sign in found if sign.talk is not None]
    assert [sign.opening for sign in told] == [1.0, 0.0, 0.0, 0.0]
    assert [sign.of_oneself for sign in told] == [0.0, 0.0, 1.0, 0.0]
    assert "like words" in explain_evidence(found[2])
    assert "like words" not in explain_evidence(found[1])


def test_elsewhere_nothing_is_said_of_talk() -> None:
    found = signs("which boat", talk("the canoe", "the heron"))
    assert [sign.talk for sign in found] == [None, None]


def test_statistics_of_what_was_loaded_count_its_words() -> None:
    here = EvidenceStatistics.of_loaded(talk("the heron", "the heron and the barn", "nothing"))
    assert (here.documents, here.frequency["heron"], here.frequency["barn"]) == (3, 2, 1)
    assert here.idf("barn") > here.idf("heron") > 0.0
    assert EvidenceStatistics.of_loaded([]).mean_length == 0.0
