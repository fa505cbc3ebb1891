"""Holding a project's memories against its code, with a code that answers what a test says."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING

from backstory.domain.anchor_findings import Claim, Gone
from backstory.domain.memory import Sensitivity, Tier, Visibility
from backstory.domain.relevance import UNASKED, Relevance
from backstory.ports.code import Looked, Progress
from backstory.services.code_check import EVERY, CodeCheck, CodeReport
from backstory.testing.fakes import ORCHARD, START

if TYPE_CHECKING:
    from tests.unit.services.conftest import Shop

FOLDER = Path("shop")


@dataclass
class Code:
    """A repository in which some things are gone."""

    gone: set[str] = field(default_factory=set)
    slow: set[str] = field(default_factory=set)
    at: str | None = "c0ffee"
    cannot: str | None = None
    looks: list[Sequence[Claim]] = field(default_factory=list)

    async def look(
        self, folder: Path, claims: Sequence[Claim], *, within: timedelta, progress: Progress | None = None
    ) -> Looked:
        self.looks.append(claims)
        if self.cannot is not None:
            return Looked(undecided=frozenset(claims), cannot=self.cannot)
        return Looked(
            findings={claim: Gone(since=START) for claim in claims if claim.anchor.text in self.gone},
            undecided=frozenset(claim for claim in claims if claim.anchor.text in self.slow),
        )

    async def head(self, folder: Path) -> str | None:
        return self.at


def check(shop: Shop, code: Code, *, dry_run: bool = False) -> CodeReport:
    service = CodeCheck(shop.backend, code, clock=shop.clock)
    return shop.do(service.check(ORCHARD, FOLDER, dry_run=dry_run))


def doubted(report: CodeReport) -> list[int]:
    return [each.memory.n for each in report.doubted]


def kept(shop: Shop) -> list[str]:
    return [doubt.reason for doubt in shop.do(shop.backend.doubts.doubts()).values()]


def test_what_names_something_that_is_gone_is_doubted_and_kept(shop: Shop) -> None:
    shop.say("Totals are rounded in src/cart.py")
    shop.say("Taxes are in src/tax.py")
    shop.say("Reviews take two days")
    report = check(shop, Code(gone={"src/cart.py"}))
    assert doubted(report) == [1]
    assert (report.memories, report.anchored, report.anchors) == (3, 2, 2)
    assert kept(shop) == ["src/cart.py is gone since 2026-03-02"]


def test_a_dry_run_tells_the_same_and_keeps_nothing(shop: Shop) -> None:
    shop.say("Totals are rounded in src/cart.py")
    assert doubted(check(shop, Code(gone={"src/cart.py"}), dry_run=True)) == [1]
    assert kept(shop) == []


def test_a_doubt_goes_when_its_reason_goes(shop: Shop) -> None:
    shop.say("Totals are rounded in src/cart.py")
    check(shop, Code(gone={"src/cart.py"}))
    assert check(shop, Code(gone={"src/cart.py"}), dry_run=True).settled == 0
    report = check(shop, Code())
    assert (doubted(report), report.settled, kept(shop)) == ([], 1, [])


def test_a_doubt_stays_where_the_time_was_too_short_or_nothing_can_be_looked_at(shop: Shop) -> None:
    shop.say("Totals are rounded in src/cart.py")
    check(shop, Code(gone={"src/cart.py"}))
    for code in (Code(slow={"src/cart.py"}), Code(cannot="there is no git")):
        report = check(shop, code)
        assert (doubted(report), report.undecided, len(kept(shop))) == ([1], 1, 1)


def test_only_the_projects_own_current_memories_are_looked_at(shop: Shop) -> None:
    shop.say("Everywhere totals are in src/cart.py", visibility=Visibility.GLOBAL)
    shop.say("Elsewhere totals are in src/cart.py", viewer=replace(shop.person, project=shop.elsewhere.project))
    shop.say("Totals were in src/cart.py once")
    shop.forget(3)
    shop.say("Only I know src/cart.py", sensitivity=Sensitivity.LOCAL_ONLY)
    assert doubted(check(shop, Code(gone={"src/cart.py"}))) == [4]


def test_nothing_is_looked_up_where_nothing_is_named(shop: Shop) -> None:
    shop.say("Reviews take two days")
    code = Code(cannot="there is no git")
    report = check(shop, code)
    assert (code.looks, report.cannot, report.undecided) == ([], None, 0)


def test_recall_says_what_to_check(shop: Shop) -> None:
    shop.say("Totals are rounded in src/cart.py")
    check(shop, Code(gone={"src/cart.py"}))
    (result,) = shop.ask("where are totals rounded?").results
    assert result.doubt is not None
    assert result.reasons[-1] == "check: src/cart.py is gone since 2026-03-02"
    (listed,) = shop.ask("").results
    assert listed.doubt == result.doubt


def test_what_holds_comes_before_what_is_doubted(shop: Shop) -> None:
    shop.say("Totals of carts are rounded in src/total.py")
    shop.say("Totals of carts are rounded in src/cart.py")
    question = "where are totals of carts rounded?"
    assert shop.found(question)[0].endswith("src/cart.py")  # the newer one
    check(shop, Code(gone={"src/cart.py"}))
    assert shop.found(question)[0].endswith("src/total.py")
    assert len(shop.found(question)) == 2


def test_unasked_what_is_to_be_checked_is_left_out_beside_what_holds_however_well_it_matches(shop: Shop) -> None:
    shop.say("Totals of carts are rounded in src/total.py")
    shop.say("Where are totals of carts rounded? In src/cart.py totals of carts are rounded")
    check(shop, Code(gone={"src/cart.py"}))
    sure = UNASKED[Relevance.KEEN]
    found = shop.found("where are totals of carts rounded? in src/cart.py?", threshold=sure)
    assert [text.rpartition("/")[2][:5] for text in found] == ["total"]


def test_unasked_what_replaced_it_is_said_although_what_is_to_be_checked_fits_far_better(shop: Shop) -> None:
    shop.say("The mooring planner weighs draughts: see planner/draught.py, which took the place of the old one")
    shop.say("Which ship does the mooring planner place first? The longest one, in planner/greedy.py")
    question, sure = "which ship does the mooring planner place first?", UNASKED[Relevance.KEEN]
    assert [text[:5] for text in shop.found(question, threshold=sure)] == ["Which"]
    check(shop, Code(gone={"planner/greedy.py"}))
    assert [text[:5] for text in shop.found(question, threshold=sure)] == ["The m"]


def test_a_block_and_a_snapshot_mark_what_is_to_be_checked(shop: Shop) -> None:
    shop.say("Totals are rounded in src/cart.py", tier=Tier.CORE)
    check(shop, Code(gone={"src/cart.py"}))
    mark = "(check: src/cart.py is gone since 2026-03-02) Totals"
    session = shop.model.session
    assert session is not None
    assert mark in (shop.do(shop.blocks.for_prompt("where are totals rounded?", shop.model)).text or "")
    assert mark in (shop.do(shop.blocks.snapshot(shop.model, session=session)) or "")


def test_beside_other_work_it_looks_at_most_once_an_hour_and_only_at_a_new_commit(shop: Shop) -> None:
    shop.say("Totals are rounded in src/cart.py")
    code = Code(gone={"src/cart.py"})
    service = CodeCheck(shop.backend, code, clock=shop.clock)

    def due() -> bool:
        return shop.do(service.check_if_due(ORCHARD, FOLDER)) is not None

    assert due()
    code.at = "beef"
    assert not due()
    shop.clock.advance(EVERY)
    assert due()
    shop.clock.advance(EVERY)
    assert not due()
    code.at = None
    shop.clock.advance(EVERY)
    assert not due()
