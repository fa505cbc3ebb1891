"""Words that stand together in a question and in a passage."""

from __future__ import annotations

import pytest

from backstory.domain.evidence_phrases import phrases_of, said_together
from backstory.domain.text import analyse, analyse_query


def together(question: str, text: str) -> list[tuple[str, str]]:
    phrases = phrases_of([term.token for term in analyse_query(question)])
    return said_together(phrases, text, set(analyse(text)))


@pytest.mark.parametrize(
    ("question", "text", "found"),
    [
        ("grey heron", "A grey heron.", True),
        ("grey heron", "the heron was grey", True),
        ("grey heron", "the heron of that long winter was grey", False),
        ("grey heron", "greyhound and heron", False),
        ("training puppies", "I train my puppy", True),
        ("cost of the server", "servers cost more", True),
        ("src/auth login", "the login in src/auth", True),
    ],
)
def test_two_words_of_a_question_stand_together_again(question: str, text: str, found: bool) -> None:
    assert bool(together(question, text)) == found


def test_only_words_that_stand_next_to_each_other_in_the_question_are_looked_for() -> None:
    assert together("heron near the barn", "heron barn") == []


def test_one_word_has_no_neighbour_and_a_pasted_question_a_bound() -> None:
    assert phrases_of(["heron"]) == []
    assert len(phrases_of([f"word{n}" for n in range(1000)])) == 16


def test_a_hostile_text_takes_no_time() -> None:
    assert together("heron barn", "heron " + "-" * 20_000 + " heron " * 2_000) == []
