"""Condensing the notes on a session once they have grown long, and being asked for them at every request."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from backstory.adapters.tokens import EstimatedTokens
from backstory.domain.extract import EXTRACT
from backstory.domain.observation_log import render_log
from backstory.errors import CapReached, ModelError, ModelOutputInvalid
from backstory.services.observation_questions import GIVE_UP_AFTER
from backstory.testing.text_model import ScriptedTextModel
from tests.observed import Session, WordTokens, answer, digest, message, of_words, piece, view
from tests.unit.services.observing import LONG, NOTE, POLICY, UNUSABLE, observing, with_model


def grown(*answers: str | ModelError, words: int = 70, **options: Any) -> Session:
    """A session whose two observations are long enough to be condensed."""
    session = Session(observing(*answers, **options))
    half = words // 2
    session.digest = digest(
        piece(1, "Date: Mar 2, 2026\n* 🔴 " + " ".join(f"a{n}" for n in range(half - 6)), 0, 1, tokens=300),
        piece(2, "* ✅ " + " ".join(f"b{n}" for n in range(words - half - 2)), 2, 3, tokens=200),
    )
    session.tell(*(message(number) for number in range(4)))
    return session


def test_a_log_at_its_threshold_is_condensed_to_one_piece_over_its_groups() -> None:
    session = grown(answer("Date: Mar 2, 2026", "* 🔴 (09:15) short ✅", task="Primary: plums"))
    (made,) = session.work()
    (over,) = made.added
    assert (over.id, over.level, over.children, over.sources) == ("obs1_001", 1, ("obs0_001", "obs0_002"), ())
    assert (over.start, over.end, over.source_tokens) == (0, 3, 500)
    assert over.text == "Date: Mar 2, 2026\n* 🔴 (09:15) short ✅"
    assert (over.prompt, made.cycle) == ("reflect/1", "reflect")
    assert [(p.id, p.active, p.parent) for p in session.digest.pieces[:2]] == [
        ("obs0_001", False, "obs1_001"),
        ("obs0_002", False, "obs1_001"),
    ]
    assert render_log(session.digest.active()) == over.text
    assert session.digest.state.current_task == "Primary: plums"


def test_below_the_threshold_nothing_is_condensed() -> None:
    assert grown(answer("* short"), words=59).work() == []
    assert len(grown(answer("* short"), words=60).work()) == 1


def test_observing_comes_before_condensing() -> None:
    session = grown(answer("* short"))
    session.tell(of_words(4, 30))
    assert [made.cycle for made in session.work()] == ["observe", "reflect"]


@pytest.mark.parametrize(
    "said",
    [answer(" ".join(f"c{n}" for n in range(90))), answer(LONG), "<skip/>", answer(), UNUSABLE["refusal"]],
    ids=["longer", "loop", "skip", "empty", "refusal"],
)
def test_a_reflection_that_cannot_be_used_is_asked_for_again_with_more_compression(said: str) -> None:
    model = ScriptedTextModel([said, said, answer("* short")])
    session = grown()
    session.observing = with_model(model)
    for _ in range(2):
        with pytest.raises(ModelOutputInvalid):
            session.step()
    assert all(p.active for p in session.digest.pieces)
    session.work()
    assert [p.prompt for p in session.digest.active()] == ["reflect/1+2"]
    endings = [request.prompt.rpartition("</notes>")[2] for request in model.requests]
    assert len(set(endings)) == 3


def test_a_reflection_that_is_shorter_but_still_too_long_is_kept_and_condensed_harder() -> None:
    first, second = " ".join(f"c{n}" for n in range(65)), " ".join(f"d{n}" for n in range(30))
    session = grown(answer(first), answer(second))
    assert [made.added[0].prompt for made in session.work()] == ["reflect/1", "reflect/1+1"]
    assert [(p.id, p.text, p.children) for p in session.digest.active()] == [("obs2_001", second, ("obs1_001",))]


def test_a_log_that_no_compression_makes_shorter_is_extracted_at_last() -> None:
    session = grown(answer(" ".join(f"c{n}" for n in range(90))))
    for _ in range(GIVE_UP_AFTER):
        with pytest.raises(ModelOutputInvalid):
            session.step()
    (made,) = session.work()
    assert made.added[0].made_by == EXTRACT


@pytest.mark.parametrize("answers", [(), (CapReached("enough"),)])
def test_without_a_model_or_at_a_cap_notes_are_condensed_by_rule(answers: tuple[ModelError, ...]) -> None:
    session = Session(observing(*answers, policy=replace(POLICY, observation_tokens=40)))
    lines = [f"* 🔴 The user decided that row {n} is kept for pear trees of kind number {n * n}" for n in range(12)]
    session.digest = digest(piece(1, "\n".join(lines[:6]), 0), piece(2, "\n".join(lines[6:]), 1))
    session.tell(message(0), message(1))
    (made,) = session.work()
    (over,) = made.added
    assert (over.made_by, over.prompt, over.level) == (EXTRACT, "", 1)
    assert 0 < WordTokens().count(over.text) < sum(WordTokens().count(line) for line in lines)


def test_what_was_condensed_by_rule_is_well_below_the_threshold_in_any_script() -> None:
    session = Session(observing(policy=replace(POLICY, observation_tokens=300), tokens=EstimatedTokens()))
    lines = [f"* 🔴 用户决定第{n}行保留给梨树，编号{n * n}，因为冷库{n % 3}已满并且水泵坏了。" for n in range(40)]
    session.digest = digest(*(piece(n + 1, line, n) for n, line in enumerate(lines)))
    session.tell(*(message(n) for n in range(40)))
    session.work()
    active = session.digest.active()
    assert [p.made_by for p in active] == [EXTRACT]
    assert 0 < EstimatedTokens().count(active[0].text) <= 225


def test_undoing_a_message_brings_back_the_notes_beside_it() -> None:
    session = grown(answer("* short"))
    session.work()
    session.undo(message(3))
    assert [(p.id, p.active) for p in session.digest.pieces] == [("obs0_001", True)]


class Counting(WordTokens):
    def __init__(self) -> None:
        self.calls = 0

    def count(self, text: str) -> int:
        self.calls += 1
        return super().count(text)


def test_a_message_is_counted_once_in_a_process() -> None:
    tokens = Counting()
    watching = observing(answer(NOTE), tokens=tokens)
    now = view([of_words(number, 4 + 5) for number in range(2)])
    for _ in range(5):
        watching.due(now)
        watching.shows(now)
    assert tokens.calls == 2
    grown_message = replace(now.messages[1], parts=(*now.messages[1].parts, *message(9).parts))
    watching.due(view([now.messages[0], grown_message]))
    assert tokens.calls == 3
