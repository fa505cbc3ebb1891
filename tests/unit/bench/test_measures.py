"""The measures of a bench, on results small enough to be worked out by hand."""

from __future__ import annotations

import math

import pytest

from bench.baselines import asked_words, fts5, grep
from bench.labelled import EVERY_PROJECT, LabelledSet, Question, Stored
from bench.measures import Answer, area_under_curve, fp_by_kept, limit_keeping, measure, rank, reaching
from tests.unit.bench.sample import LABELLED, PROMPTS, answer


def test_ranks_count_the_first_answer_and_the_share_of_all_answers() -> None:
    ranked = rank(("x", "a", "y", "z", "w", "v", "b"), frozenset({"a", "b", "c"}))
    assert ranked == {"r_at_1": 0.0, "r_at_5": 1 / 3, "r_at_10": 2 / 3, "mrr": 1 / 2}
    assert rank(("b", "a"), frozenset({"a", "b"})) == {"r_at_1": 1.0, "r_at_5": 1.0, "r_at_10": 1.0, "mrr": 1.0}
    assert rank((), frozenset({"a"})) == {"r_at_1": 0.0, "r_at_5": 0.0, "r_at_10": 0.0, "mrr": 0.0}


def test_the_area_is_the_chance_to_be_higher_and_equal_ones_count_half() -> None:
    # 0.9 beats three of three; 0.4 beats one, equals one, loses to one
    assert area_under_curve([0.9, 0.4], [0.1, 0.4, 0.6]) == pytest.approx((3 + 1.5) / 6)
    assert area_under_curve([-math.inf], [-math.inf]) == 0.5
    assert math.isnan(area_under_curve([], [0.1]))


def test_a_limit_keeps_at_least_the_share_and_lets_through_what_reaches_it() -> None:
    certainties = [0.9, 0.8, 0.7, 0.2]
    assert limit_keeping(0.5, certainties) == 0.8
    assert limit_keeping(0.51, certainties) == 0.7
    assert limit_keeping(1.0, certainties) == 0.2
    assert reaching(0.8, [0.8, 0.79, 0.81]) == pytest.approx(2 / 3)
    curve = fp_by_kept(certainties, [0.75, 0.1])
    assert curve["50"] == 0.0
    assert curve["75"] == 0.5
    assert curve["95"] == 0.5


def test_all_figures_of_five_prompts_are_those_worked_out_by_hand() -> None:
    answers = [
        answer("direct", ["red", "blue"], 0.9),  # right at once
        answer("several", ["blue", "grey", "red"], 0.6),  # red and green answer: second half missing, first at rank 3
        answer("past", ["old red"], 0.8),  # history: in no total
        answer("chatter", ["grey"], 0.6),
        answer("unknown", [], -math.inf),
    ]
    figures = measure(answers, LABELLED)
    assert (figures["n"], figures["r_at_1"], figures["r_at_5"], figures["r_at_10"]) == (2, 0.5, 0.75, 0.75)
    assert figures["mrr"] == pytest.approx((1 + 1 / 3) / 2, abs=1e-4)
    assert figures["auc"] == pytest.approx((2 + 1.5) / 4)  # 0.9 beats both; 0.6 equals one and beats one
    assert figures["fp_at_90"] == 0.5  # both answerable ones are kept from 0.6 on, and so is the chatter
    assert figures["by_kind"] == {
        "direct": {"n": 1, "r_at_1": 1.0, "r_at_5": 1.0, "r_at_10": 1.0, "mrr": 1.0, "auc": 1.0, "fp_at_90": 0.0},
        "history": {"n": 1, "r_at_1": 1.0, "r_at_5": 1.0, "r_at_10": 1.0, "mrr": 1.0},
        "multi": {
            "n": 1, "r_at_1": 0.0, "r_at_5": 0.5, "r_at_10": 0.5, "mrr": 0.3333, "auc": 0.75, "fp_at_90": 0.5
        },
        "no-answer": {"n": 2, "fp_at_90": 0.5},
        "no-answer/chatter": {"n": 1, "fp_at_90": 1.0},
        "no-answer/unknown": {"n": 1, "fp_at_90": 0.0},
    }  # fmt: skip
    assert (figures["outdated_shown"], figures["leaks"]) == (0, 0)


def test_outdated_memories_count_among_the_first_five_and_leaks_wherever_they_stand() -> None:
    found = ["old red", "grey", "grey", "grey", "grey", "old red", "other project"]
    figures = measure([answer("direct", found, 0.5), answer("past", ["old red"], 0.5)], LABELLED)
    assert (figures["outdated_shown"], figures["leaks"]) == (1, 1)
    everywhere = Question(id="q", kind="direct", project=EVERY_PROJECT, text="", grades={"red": 2})
    across = Answer(question=everywhere, found=("other project",), certainty=0.5)
    assert measure([across], LABELLED)["leaks"] == 0


def test_the_simple_systems_see_what_the_prompt_may_see_and_nothing_outdated() -> None:
    small = LabelledSet(
        name="paint",
        now=LABELLED.now,
        memories=[
            Stored(id="1", text="The gate is painted red.", project="shed"),
            Stored(id="2", text="The gates are painted blue.", project="shed", supersedes="1"),
            Stored(id="3", text="Paint the gate of the barn green.", project="barn"),
            Stored(id="4", text="Brushes are washed at once.", project=None),
        ],
        questions=[Question(id="q", kind="direct", project="shed", text="What colour is the gate?", grades={"2": 2})],
    )
    for system in (grep, fts5):
        (given,) = system(small)
        assert given.found == ("2",), system.__name__
        assert given.certainty > 0
    assert asked_words("What IS the gate_colour, the gate?") == ["gate", "colour"]


def test_a_prompt_of_stop_words_finds_nothing() -> None:
    nothing = LabelledSet(name="none", now=LABELLED.now, memories=LABELLED.memories, questions=[PROMPTS["empty"]])
    for system in (grep, fts5):
        (given,) = system(nothing)
        assert given.found == ()
        assert given.certainty == -math.inf
