"""A plan, carrying it out, and taking it back: nothing is lost, and nothing goes that the plan did not show."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from backstory.adapters.near_vectors import NearVectors
from backstory.domain.consolidation import MOST_GROUPS, Pass
from backstory.domain.history import Action, Author, Change
from backstory.domain.memory import Sensitivity, Superseded, Visibility
from backstory.domain.provenance import Origin
from backstory.domain.scope import Viewer
from backstory.errors import Conflict
from backstory.ports.backend import Backend
from backstory.ports.models import Vector
from backstory.services.consolidate import EVERY_PASS, QUICKLY, Consolidate, Plan
from backstory.services.conversation import at_once
from backstory.services.near_in_meaning import NearInMeaning
from backstory.testing.fakes import HashEmbedder
from tests.stores import open_file, open_in_memory

if TYPE_CHECKING:
    from tests.unit.services.conftest import Shop

LONG = "Partitions with open snapshots are skipped by the nightly job. " * 50


class Blurred(HashEmbedder):
    """Finds all texts the same, and remembers what it was shown."""

    def __init__(self) -> None:
        super().__init__()
        self.shown: list[str] = []

    async def embed(self, texts: Sequence[str]) -> list[Vector | None]:
        self.shown += texts
        vectors = await super().embed(texts)
        return [None if vector is None else [1.0, 0.0] for vector in vectors]


def service(shop: Shop) -> Consolidate:
    meaning = NearInMeaning(
        shop.backend.vectors, shop.embedder, no_embedder="none is set", nearness=NearVectors, aside=at_once
    )
    return Consolidate(shop.backend.memories, meaning, clock=shop.clock, ids=shop.ids)


def planned(shop: Shop, *passes: Pass, viewer: Viewer | None = None) -> Plan:
    return shop.do(service(shop).plan(viewer or shop.person, passes=passes or EVERY_PASS))


def done(shop: Shop, plan: Plan | None = None) -> Change | None:
    chosen = plan or planned(shop)
    return shop.do(service(shop).carry_out(chosen, viewer=shop.person, author=Author.USER))


def say_later(shop: Shop, content: str, **fields: Any) -> int:
    """Remember a text a minute after the last; ``fields`` as in ``Shop.say`` (Any: those of a Draft)."""
    shop.clock.advance(timedelta(minutes=1))
    return shop.say(content, **fields).memory.n


def numbers(plan: Plan) -> list[list[int]]:
    return [[group.kept.n, *(memory.n for memory in group.removed)] for group in plan.groups]


@pytest.mark.parametrize("opened", [open_in_memory, open_file])
def test_those_that_go_are_superseded_by_the_one_that_stays_in_one_change(
    shop: Shop, opened: Callable[[Path], Backend], tmp_path: Path
) -> None:
    shop.backend = opened(tmp_path)
    say_later(shop, "Use uv for every install.", tags=("tools",), pinned=True)
    say_later(shop, "Please use uv for every install", tags=("python",), pinned=True)
    say_later(shop, "The gateway strips cookies.")
    say_later(shop, "Note that the gateway strips cookies.")
    before = [shop.stored(n) for n in range(1, 5)]
    change = done(shop)
    assert change is not None
    assert (change.action, change.author) == (Action.CONSOLIDATE, Author.USER)
    after = [shop.stored(n) for n in range(1, 5)]
    assert [isinstance(memory.status, Superseded) for memory in after] == [True, False, True, False]
    assert after[0].status == Superseded(by=after[1].id, since=shop.clock.now())
    assert after[1].tags == ("python", "tools")
    assert after[1].times.learned == before[0].times.learned
    assert after[0].content == before[0].content
    shop.undo(change)
    assert [replace(shop.stored(n), revision=0) for n in range(1, 5)] == [
        replace(memory, revision=0) for memory in before
    ]


def test_a_dry_run_changes_nothing_and_tells_what_the_real_run_does(shop: Shop) -> None:
    say_later(shop, "Use uv for every install.")
    say_later(shop, "Please use uv for every install.")
    say_later(shop, "The port is 8080.")
    say_later(shop, "The port is 8081.")
    history = shop.do(shop.backend.memories.history())
    first, second = planned(shop), planned(shop)
    assert first == second
    assert shop.do(shop.backend.memories.history()) == history
    change = done(shop, first)
    assert change is not None
    gone = {edit.after.n for edit in change.edits if isinstance(edit.after.status, Superseded)}
    assert gone == {memory.n for memory in first.removed} == {1}
    assert [(pair.memory.n, pair.other.n) for pair in first.doubtful] == [(4, 3)]
    assert done(shop) is None


def test_what_goes_comes_back_whole_in_the_plan(shop: Shop) -> None:
    say_later(shop, LONG)
    say_later(shop, f"Note that {LONG}")
    assert [memory.content for memory in planned(shop).removed] == [shop.stored(1).content]
    assert len(planned(shop).removed[0].content) > 3_000


@pytest.mark.parametrize("changed", [1, 2])
def test_a_plan_made_before_a_change_is_refused_and_nothing_is_done(shop: Shop, changed: int) -> None:
    say_later(shop, "Use uv for every install.")
    say_later(shop, "Please use uv for every install.")
    plan = planned(shop)
    shop.forget(changed)
    with pytest.raises(Conflict):
        done(shop, plan)
    assert not isinstance(shop.stored(3 - changed).status, Superseded)


def test_forgetting_what_stayed_brings_back_what_it_stood_for(shop: Shop) -> None:
    say_later(shop, "Use uv for every install.")
    say_later(shop, "Please use uv for every install.")
    done(shop)
    shop.forget(2)
    assert not isinstance(shop.stored(1).status, Superseded)


def test_other_projects_are_out_of_reach_also_for_one_who_reads_all(shop: Shop) -> None:
    say_later(shop, "Use uv for every install.", viewer=shop.elsewhere)
    say_later(shop, "Please use uv for every install.", viewer=shop.elsewhere)
    assert planned(shop, viewer=replace(shop.person, all_projects=True)).compared == 0


def test_an_agent_reads_nothing_private_and_the_embedder_nothing_local_only(shop: Shop) -> None:
    shop.embedder = watched = Blurred()
    for sensitivity in (Sensitivity.PRIVATE, Sensitivity.LOCAL_ONLY):
        say_later(shop, f"My {sensitivity.value} desk is 47.", sensitivity=sensitivity)
        say_later(shop, f"Note that my {sensitivity.value} desk is 47.", sensitivity=sensitivity)
    assert planned(shop, viewer=shop.model).compared == 0
    assert numbers(planned(shop, Pass.WORDING)) == [[4, 3], [2, 1]]
    planned(shop)
    assert not any("local-only" in text for text in watched.shown)


def test_meaning_finds_what_no_wording_does(shop: Shop) -> None:
    say_later(shop, "Uploads live in /srv/up/ and rotate at 50 MB.")
    say_later(shop, "Rotation of uploads under /srv/up happens at 50 MB.")
    say_later(shop, "Rotation of uploads under /srv/up happens at 60 MB.", visibility=Visibility.GLOBAL)
    plan = planned(shop)
    assert plan.groups == ()
    assert plan.skipped == {Pass.MEANING: "none is set"}
    shop.embedder = Blurred()
    plan = planned(shop)
    assert numbers(plan) == [[2, 1]]
    assert plan.groups[0].found_by is Pass.MEANING
    assert not plan.skipped


def test_without_a_working_embedder_the_other_passes_stand(shop: Shop) -> None:
    say_later(shop, "Use uv for every install.")
    say_later(shop, "Please use uv for every install.")
    shop.embedder = HashEmbedder()
    shop.embedder.failing = True
    plan = planned(shop)
    assert numbers(plan) == [[2, 1]]
    assert list(plan.skipped) == [Pass.MEANING]
    assert not planned(shop, Pass.WORDING).skipped


def test_only_the_passes_asked_for_are_done(shop: Shop) -> None:
    say_later(shop, "Use uv for every install.")
    say_later(shop, "Please use uv for every install.")
    assert numbers(planned(shop, Pass.EXACT)) == []
    assert list(planned(shop, Pass.WORDING, Pass.EXACT).found) == [Pass.EXACT, Pass.WORDING]


def test_a_further_run_takes_the_groups_that_one_run_left(shop: Shop) -> None:
    words = ["alder", "birch", "cedar", "elder", "hazel", "larch", "maple", "rowan", "aspen"]
    texts = [f"The {a} sends its report to {b}." for a in words for b in words if a < b][: MOST_GROUPS + 5]
    for text in texts:
        say_later(shop, text)
        say_later(shop, f"Note that {text}")
    first = planned(shop)
    assert (len(first.groups), first.more_groups) == (MOST_GROUPS, 5)
    done(shop, first)
    second = planned(shop)
    assert (len(second.groups), second.more_groups) == (5, 0)


@pytest.mark.parametrize("origin", [Origin.WEB, Origin.IMPORTED, Origin.AGENT])
def test_a_lower_origin_never_takes_the_place_of_a_higher_one_nor_gains_by_it(shop: Shop, origin: Origin) -> None:
    say_later(shop, "Use uv for every install.")
    say_later(shop, "Please use uv for every install.", origin=origin, pinned=True)
    done(shop)
    assert not isinstance(shop.stored(1).status, Superseded)
    assert isinstance(shop.stored(2).status, Superseded)
    assert (shop.stored(1).origin, shop.stored(2).origin) == (Origin.USER, origin)
    assert shop.stored(1).pinned is (origin is Origin.AGENT)


def test_progress_counts_each_memory_that_is_embedded_once(shop: Shop) -> None:
    shop.embedder = HashEmbedder()
    for text in ("Use uv.", "The port is 80.", "Ask Ines about invoices."):
        say_later(shop, text)
    counted: list[int] = []
    shop.do(service(shop).plan(shop.person, progress=counted.append))
    assert sum(counted) == 3


def test_who_waits_for_an_answer_gets_the_passes_that_are_quick(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    shop.embedder = Blurred()
    for text in ("Use uv for every install.", "Please use uv for every install.", "The port is 80."):
        say_later(shop, text)
    monkeypatch.setitem(QUICKLY, Pass.WORDING, 3)
    monkeypatch.setitem(QUICKLY, Pass.MEANING, 1)
    plan = shop.do(service(shop).plan(shop.person, quickly=True))
    assert numbers(plan) == [[2, 1]]
    assert list(plan.skipped) == [Pass.MEANING]
    assert "backstory consolidate" in plan.skipped[Pass.MEANING]
    assert not planned(shop).skipped
