"""Which prompts ask for something that was said or done earlier."""

from __future__ import annotations

import time

import pytest

from backstory.domain.evidence_asked import asks_back

ASKS = (
    "what did we decide about the retry limit?",
    "which port did you pick for the metrics endpoint",
    "why was the cache dropped again",
    "remind me how the importer is started",
    "do it the way we agreed",
    "how did the migration go yesterday?",
    "what came up for the release last week",
    "use the folder that you mentioned",
    "Fix the parser.\nWhy were the tabs kept?",
    "warum haben wir den Index entfernt?",
    "welche Version wurde letzte Woche ausgeliefert",
    "pourquoi avons-nous abandonné ce module ?",
    "qué decidimos sobre los puertos?",
)
ASKS_NOTHING_BACK = (
    "",
    "ok",
    "thanks, that was it",
    "rename the parser module to reader",
    "which port does the gateway use?",
    "how do I run the tests",
    "was ist ein Index?",
    "add a test for the case where a file was removed",
    "the build is broken",
    "Traceback (most recent call last): KeyError: 'had'",
    "?",
)


@pytest.mark.parametrize("prompt", ASKS)
def test_a_question_about_earlier_talk_or_work_asks_back(prompt: str) -> None:
    assert asks_back(prompt)
    assert asks_back(prompt.upper())


@pytest.mark.parametrize("prompt", ASKS_NOTHING_BACK)
def test_an_order_or_a_question_about_now_does_not(prompt: str) -> None:
    assert not asks_back(prompt)


def test_a_paste_is_read_to_its_first_thousand_signs_only() -> None:
    assert not asks_back("x " * 600 + "what did we decide?")


@pytest.mark.parametrize(
    "text", ["what " * 250, "we had " * 150, "wie " * 250, "?\n" * 500, "\n" * 1000, "a" * 100_000]
)
def test_no_text_takes_long(text: str) -> None:
    started = time.process_time()
    asks_back(text)
    assert time.process_time() - started < 1
