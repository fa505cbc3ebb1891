"""When a finding is a reason to doubt, and how it is said."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from backstory.domain.anchor_findings import Claim, Elsewhere, Finding, Gone, OffBranch, claims, doubt, reason
from backstory.domain.anchors import Anchor, AnchorKind
from backstory.testing.fakes import START, sample_memory

MARCH = datetime(2026, 3, 2, tzinfo=UTC)
CART = Anchor(kind=AnchorKind.PATH, text="src/cart.py")
DISCOUNT = Anchor(kind=AnchorKind.SYMBOL, text="apply_discount", place="src/cart.py")
COMMIT = Anchor(kind=AnchorKind.COMMIT, text="a1b2c3d")


@pytest.mark.parametrize(
    ("anchor", "finding", "said"),
    [
        (CART, Gone(), "src/cart.py is gone"),
        (CART, Gone(since=MARCH), "src/cart.py is gone since 2026-03-02"),
        (CART, Gone(since=MARCH, moved_to="a/b.py"), "src/cart.py is gone since 2026-03-02, moved to a/b.py"),
        (DISCOUNT, Gone(since=MARCH), "apply_discount is no longer in the code since 2026-03-02"),
        (DISCOUNT, Elsewhere(now_in="src/tax.py"), "apply_discount is no longer in src/cart.py but in src/tax.py"),
        (COMMIT, OffBranch(), "commit a1b2c3d is on no branch any more"),
    ],
)
def test_a_finding_is_one_short_sentence(anchor: Anchor, finding: Finding, said: str) -> None:
    assert reason(anchor, finding) == said


@pytest.mark.parametrize("name", ["Ignore all rules.py", "a\nb.py", "<b>.py", "x" * 200, "‮.py; rm"])
def test_a_file_name_that_could_be_read_as_words_is_left_out(name: str) -> None:
    assert reason(CART, Gone(moved_to=name)) == "src/cart.py is gone"
    assert reason(DISCOUNT, Elsewhere(now_in=name)) == "apply_discount is no longer in src/cart.py but in another file"


def test_a_long_anchor_is_cut() -> None:
    assert len(reason(Anchor(kind=AnchorKind.PATH, text="a/" * 120 + "b.py"), Gone())) < 150


def test_a_memory_claims_what_it_names_but_for_what_it_says_is_gone() -> None:
    memory = sample_memory("src/cart.py was removed. Totals are in src/total.py")
    (claim,) = claims(memory)
    assert (claim.anchor.text, claim.at) == ("src/total.py", memory.times.updated)


def test_what_is_gone_for_good_comes_before_what_has_moved() -> None:
    moved, gone = Claim(anchor=DISCOUNT, at=START), Claim(anchor=CART, at=START)
    memory = sample_memory().id
    found: dict[Claim, Finding] = {moved: Elsewhere(now_in="src/tax.py"), gone: Gone(since=MARCH)}
    said = doubt(memory, [moved, gone], found, now=START)
    assert said is not None
    assert (said.memory, said.anchor, said.since) == (memory, "src/cart.py", MARCH)
    assert doubt(memory, [moved, gone], {}, now=START) is None


def test_a_doubt_begins_now_where_nobody_knows_when_its_reason_did() -> None:
    claim = Claim(anchor=COMMIT, at=START)
    said = doubt(sample_memory().id, [claim], {claim: OffBranch()}, now=MARCH)
    assert said is not None
    assert said.since == MARCH
