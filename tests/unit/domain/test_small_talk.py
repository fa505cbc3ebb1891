"""Which prompts ask for nothing."""

from __future__ import annotations

import pytest

from backstory.domain.small_talk import SMALL_TALK
from backstory.domain.text import analyse_query


@pytest.mark.parametrize(
    "prompt",
    [
        "ok",
        "yes, do it",
        "thanks!",
        "continue",
        "go ahead",
        "try again",
        "looks good, next one",
        "keep going",
        "weiter",
    ],
)
def test_prompts_that_keep_a_conversation_going_are_all_small_talk(prompt: str) -> None:
    assert {term.token for term in analyse_query(prompt)} <= SMALL_TALK


@pytest.mark.parametrize("prompt", ["commit this", "fix the tests", "staging cluster?", "deploy", "why is CI red"])
def test_prompts_that_name_a_thing_are_not(prompt: str) -> None:
    assert not {term.token for term in analyse_query(prompt)} <= SMALL_TALK
