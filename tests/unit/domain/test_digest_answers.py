"""Observations and summaries a model wrote."""

from __future__ import annotations

import pytest

from backstory.domain.answers import Finish, Reason, Unusable
from backstory.domain.digest_answers import ObservedText, read_observations, read_summary

SOURCE = """user: please plant the tomatoes in bed four, not in bed two
assistant: done, they stand in bed four; bed two is free now
user: good. water them every other day
assistant: noted, the timer of valve 3 runs every 48 hours now"""
GOOD = "Tomatoes moved to bed four; valve 3 waters them every 48 hours; bed two is free."


def summary(raw: str, finish: Finish = Finish.STOP, instruction: str = "") -> str | Unusable:
    return read_summary(raw, source=SOURCE, instruction=instruction, finish=finish)


@pytest.mark.parametrize(
    "raw",
    [
        GOOD,
        f"Here is the summary of the conversation:\n{GOOD}",
        f"**Summary:** {GOOD}",
        f"## Summary\n\n{GOOD}",
        f"<summary>\n{GOOD}\n</summary>",
        f"```markdown\n<summary>{GOOD}</summary>\n```",
        f"<think>short, please</think>Sure! Here's a concise summary:\n{GOOD}",
    ],
)
def test_a_summary_comes_bare(raw: str) -> None:
    assert summary(raw) == GOOD


@pytest.mark.parametrize(
    ("raw", "reason"),
    [
        (SOURCE, Reason.ECHO),
        ("\n".join(SOURCE.splitlines()[:3]), Reason.ECHO),
        ("Sum up what was planted where.\nNothing else.", Reason.ECHO),
        (f"{GOOD} " * 6, Reason.TOO_LONG),
        ("Fine.", Reason.TOO_SHORT),
        ("-----", Reason.TOO_SHORT),
        ("Let me water them now and see.", Reason.OFF_TASK),
        ("I'm unable to access the garden.", Reason.REFUSAL),
        ("Rate limit exceeded, try later", Reason.PROVIDER_NOTICE),
    ],
)
def test_what_is_no_summary_is_refused(raw: str, reason: Reason) -> None:
    instruction = "Sum up what was planted where.\nNothing else."
    assert summary(raw, instruction=instruction) == Unusable(reason=reason)


def test_a_summary_that_ran_out_of_room_is_refused() -> None:
    assert summary(GOOD, Finish.LENGTH) == Unusable(reason=Reason.TRUNCATED)


@pytest.mark.parametrize(
    "told",
    [
        "The user hit a rate limit of the API and added a retry with 2 s pause.",
        "Summary tables were moved to bed four; the index stays.",
        "Sorry-page of the shop got a new text and a link home.",
        "One line may be repeated: user: good. water them every other day",
    ],
)
def test_a_summary_about_limits_and_summaries_is_one(told: str) -> None:
    assert summary(told) == told


def test_a_short_source_may_have_a_short_summary() -> None:
    assert read_summary("ok", source="user: is it fine?", finish=Finish.STOP) == "ok"


def test_observations_are_taken_from_their_tags() -> None:
    raw = "Noted.\n<OBSERVATIONS>\n- bed four\n</OBSERVATIONS >\n<current_task> water </current_task>"
    assert read_observations(raw, finish=Finish.STOP) == ObservedText(observations="- bed four", current_task="water")


def test_a_missing_closing_tag_ends_at_the_next_tag_of_ours() -> None:
    raw = "```xml\n<observations>\n- bed four <T>\n<current-task>water</current-task>\n<suggested-response>yes\n```"
    expected = ObservedText(observations="- bed four <T>", current_task="water", suggested_response="yes")
    assert read_observations(raw, finish=Finish.STOP) == expected


@pytest.mark.parametrize("finish", [Finish.LENGTH, Finish.UNKNOWN])
def test_a_missing_closing_tag_is_a_cut_unless_the_model_was_done(finish: Finish) -> None:
    assert read_observations("<observations>\n- bed f", finish=finish) == Unusable(reason=Reason.TRUNCATED)


@pytest.mark.parametrize("raw", ["<skip/>", "```\n<skip></skip>\n```", "<observations> </observations>"])
def test_nothing_to_note_is_an_answer(raw: str) -> None:
    assert read_observations(raw, finish=Finish.STOP) == ObservedText(observations="")


@pytest.mark.parametrize(
    ("raw", "reason"),
    [
        ("- bed four", Reason.NOT_STRUCTURED),
        ("I'm sorry, there is nothing I can do.", Reason.REFUSAL),
        ("", Reason.EMPTY),
        ("skip, as in <skip/> the rest", Reason.NOT_STRUCTURED),
    ],
)
def test_observations_without_tags_are_refused(raw: str, reason: Reason) -> None:
    assert read_observations(raw, finish=Finish.STOP) == Unusable(reason=reason)
