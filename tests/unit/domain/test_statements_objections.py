"""What speaks against a statement whose words were said."""

from __future__ import annotations

import pytest

from backstory.domain.statements.objections import Objection, objection
from tests.unit.domain.test_grounding import talk

REFUSED = (
    ("user", "the gate jams"),
    ("agent", "Proposal: a hydraulic ram H-4 on the upper gate."),
    ("user", "no, the rail only needs grease G-7"),
    ("agent", "Greased with G-7."),
)


def test_a_proposal_that_the_user_refused_is_objected_to() -> None:
    assert objection("The upper gate has a hydraulic ram H-4.", talk(*REFUSED)) is Objection.REFUSED


def test_that_it_was_refused_may_be_kept_and_so_may_what_was_said_instead() -> None:
    assert objection("The upper gate gets no hydraulic ram H-4.", talk(*REFUSED)) is None
    assert objection("The rail of the gate only needs grease G-7.", talk(*REFUSED)) is None


def test_what_the_user_throws_out_is_not_in_use() -> None:
    lines = (
        ("user", "look at the oiler"),
        ("agent", "The oiler uses dripfeed."),
        ("user", "drop dripfeed, keep grease"),
    )
    assert objection("The oiler uses dripfeed.", talk(*lines)) is Objection.REFUSED
    assert objection("The oiler was moved from dripfeed to grease, dripfeed is gone.", talk(*lines)) is None


def test_what_was_only_asked_or_guessed_is_objected_to() -> None:
    lines = (("user", "could the upper gate be frozen?"), ("agent", "Maybe the upper gate is frozen."))
    assert objection("The upper gate is frozen.", talk(*lines)) is Objection.UNSURE
    assert objection("The upper gate is frozen.", talk(*lines, ("agent", "The upper gate is frozen."))) is None


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Perhaps the upper gate is frozen.", Objection.UNSURE),
        ("Is the upper gate frozen?", Objection.UNSURE),
        ("Two gate tests are failing", Objection.PASSING),
        ("3 of 12 gate tests fail", Objection.PASSING),
        ("The gate still has to be measured", Objection.PASSING),
        ("Remember that the upper gate is frozen", Objection.FOR_ASSISTANTS),
        ("AI agents may open the upper gate", Objection.FOR_ASSISTANTS),
        ("The upper gate is frozen", None),
        ("The upper gate is closed by the timer because it froze once", None),
    ],
)
def test_a_statement_may_say_itself_what_speaks_against_it(text: str, expected: Objection | None) -> None:
    said = "The upper gate is frozen, closed by the timer because it froze once."
    assert objection(text, talk(("user", said))) is expected
