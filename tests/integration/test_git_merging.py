"""Two clones that decided differently: both stay in the history, and both come to the same."""

from __future__ import annotations

import subprocess
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from backstory.adapters.stores.gitbranch.merging import joined_lines
from backstory.domain.history import Action, Author, Edit
from backstory.domain.memory import Active, Counters, Sensitivity, Visibility
from backstory.domain.provenance import Origin
from backstory.ports.upkeep import Severity
from backstory.testing.fakes import sample_memory
from tests.integration.git_clones import REF, Clone, check, git
from tests.integration.git_clones import clone as clone
from tests.integration.git_clones import remote as remote


def test_two_clones_that_wrote_at_once_converge(clone: Callable[..., Clone]) -> None:
    here, there = clone("here"), clone("there")
    mine, yours = here.add("from here", minutes=1), there.add("from there", minutes=2)
    assert mine.n == yours.n == 1
    here.sync()
    report = there.sync()
    assert [(item.memory, item.old, item.new) for item in report.renumbered] == [(yours.id, 1, 2)]
    here.sync()
    assert here.contents() == there.contents() == ["from here", "from there"]
    assert here.tree() == there.tree()
    assert {memory.id: memory.n for memory in here.memories()} == {mine.id: 1, yours.id: 2}
    assert {memory.id: memory.n for memory in there.memories()} == {mine.id: 1, yours.id: 2}
    assert len(git(here.folder, "rev-list", "--parents", "-1", REF).split()) == 3
    assert there.add("next").n == 3


def test_both_sides_of_a_conflict_stay_in_the_history_and_the_newer_decision_stands(
    clone: Callable[..., Clone],
) -> None:
    here, there = clone("here"), clone("there")
    memory = here.add("Otters eat fish", origin=Origin.AGENT)
    here.sync()
    there.sync()
    [theirs] = there.memories()
    here.reword(memory, "Otters eat trout", minutes=5)
    there.reword(theirs, "Otters eat crabs", minutes=9)
    there.sync()
    report = here.sync()
    [item] = report.disagreements
    assert (item.kept, item.set_aside, item.n) == ("Otters eat crabs", "Otters eat trout", memory.n)
    there.sync()
    assert here.contents() == there.contents() == ["Otters eat crabs"]
    assert here.tree() == there.tree()
    for one in (here, there):
        changes = one.do(one.backend.memories.history, memory=memory.id)
        told = {edit.after.content for change in changes for edit in change.edits}
        assert told == {"Otters eat fish", "Otters eat trout", "Otters eat crabs"}
        assert changes[0].author is Author.SYSTEM
        assert changes[0].edits[0].after.content == "Otters eat crabs"
        assert changes[1].edits[0].before is not None
        assert changes[1].edits[0].before.content == "Otters eat trout"
        assert one.do(one.backend.upkeep.verify, full=True) == [] if one.backend.upkeep else True
    [now] = here.memories()
    here.reword(now, "Otters eat anything", minutes=20)
    here.sync()
    there.sync()
    assert there.contents() == ["Otters eat anything"]


def test_ratings_of_two_clones_count_from_both(clone: Callable[..., Clone]) -> None:
    here, there = clone("here"), clone("there")
    draft = sample_memory(
        "Otters eat fish", project=None, visibility=Visibility.GLOBAL, counters=Counters(helpful=4, irrelevant=2)
    )
    memory = here.commit(Edit(before=None, after=draft), action=Action.ADD)
    here.sync()
    there.sync()
    [theirs] = there.memories()
    mine = here.rate(memory, helpful=5, irrelevant=1, minutes=5)
    here.rate(mine, helpful=6, irrelevant=1, minutes=6)
    there.rate(theirs, helpful=5, irrelevant=3, minutes=9)
    there.sync()
    report = here.sync()
    assert (report.disagreements, report.renumbered) == ((), ())
    there.sync()
    assert here.tree() == there.tree()
    for one in (here, there):
        assert [found.counters for found in one.memories()] == [Counters(helpful=7, irrelevant=2)]
        changes = one.do(one.backend.memories.history, memory=memory.id)
        assert (changes[0].author, "both count" in str(changes[0].reason)) == (Author.SYSTEM, True)
        assert check(one) == []
    here.sync()
    assert here.sync().sent == 0


def test_the_same_rating_in_two_clones_counts_twice_and_beside_a_newer_text(clone: Callable[..., Clone]) -> None:
    here, there = clone("here"), clone("there")
    memory = here.add("Otters eat fish", origin=Origin.AGENT)
    here.sync()
    there.sync()
    [theirs] = there.memories()
    here.rate(memory, helpful=1, minutes=5)
    there.reword(there.rate(theirs, helpful=1, minutes=6), "Otters eat crabs", minutes=9)
    here.sync()
    there.sync()
    here.sync()
    for one in (here, there):
        assert [(found.content, found.counters.helpful) for found in one.memories()] == [("Otters eat crabs", 2)]


@pytest.mark.parametrize("forgotten_later", [True, False])
def test_forgetting_against_changing_goes_by_time_too(clone: Callable[..., Clone], forgotten_later: bool) -> None:
    here, there = clone("here"), clone("there")
    memory = here.add("Otters bark")
    here.add("Otters dive", minutes=1)
    here.sync()
    there.sync()
    theirs = next(one for one in there.memories() if one.id == memory.id)
    here.forget(memory, minutes=9 if forgotten_later else 5)
    there.reword(theirs, "Otters whistle", minutes=7)
    here.sync()
    report = there.sync()
    here.sync()
    assert len(report.disagreements) == 1
    wanted = ["Otters dive"] if forgotten_later else ["Otters dive", "Otters whistle"]
    assert here.contents() == there.contents() == wanted
    assert here.tree() == there.tree()
    day = git(here.folder, "show", f"{REF}:.opencode/memory/2026-03-02.logfmt")
    assert len(day.splitlines()) == len(wanted)


@pytest.mark.parametrize("sensitivity", [Sensitivity.PRIVATE, Sensitivity.LOCAL_ONLY])
@pytest.mark.parametrize("pushed_first", ["here", "there"])
def test_what_one_clone_made_private_stays_so_whatever_another_makes_of_it_later(
    clone: Callable[..., Clone], remote: Path, sensitivity: Sensitivity, pushed_first: str
) -> None:
    here, there = clone("here"), clone("there")
    memory = here.add("Otters nest by the weir")
    here.sync()
    there.sync()
    [theirs] = there.memories()
    hidden = here.commit(Edit(before=memory, after=replace(memory, sensitivity=sensitivity)), minutes=5)
    here.reword(hidden, "Otters nest by the weir: zumpel", minutes=6)
    there.reword(theirs, "Otters nest by the mill", minutes=9)
    for one in (here, there) if pushed_first == "here" else (there, here):
        one.sync()
    here.sync()
    there.sync()
    [kept] = here.memories()
    assert (kept.content, kept.sensitivity) == ("Otters nest by the weir: zumpel", sensitivity)
    assert there.contents() == []
    assert here.tree() == there.tree()
    assert git(here.folder, "show", f"{REF}:.opencode/memory/2026-03-02.logfmt") == ""
    assert "zumpel" not in git(remote, "cat-file", "--batch-all-objects", "--batch")
    [gone] = there.memories(states=frozenset({"deleted"}))
    assert "does not share it" in (there.do(there.backend.memories.history, memory=gone.id)[0].reason or "")
    assert [found for one in (here, there) for found in check(one)] == []


def test_sharing_again_elsewhere_leaves_a_memory_private_where_it_was_made_so(clone: Callable[..., Clone]) -> None:
    here, there = clone("here"), clone("there")
    memory = here.add("Otters mark stones")
    here.sync()
    there.sync()
    here.commit(Edit(before=memory, after=replace(memory, sensitivity=Sensitivity.LOCAL_ONLY)), minutes=5)
    here.sync()
    there.sync()
    [gone] = there.memories(states=frozenset({"deleted"}))
    there.commit(Edit(before=gone, after=replace(gone, status=Active())), minutes=9, action=Action.UNDO)
    there.sync()
    here.sync()
    assert there.contents() == ["Otters mark stones"]
    [kept] = here.memories()
    assert (kept.id, kept.sensitivity) == (memory.id, Sensitivity.LOCAL_ONLY)
    assert [(found.severity, found.where) for found in check(here)] == [(Severity.NOTE, f"#{kept.n}")]
    assert check(there) == []
    there.reword(there.memories()[0], "Otters mark roots", minutes=12)
    there.sync()
    here.sync()
    assert here.contents() == ["Otters mark stones"]
    assert [(found.severity, found.where) for found in check(here)] == [(Severity.NOTE, f"#{kept.n}")]
    assert check(there) == []


def test_merging_in_both_clones_at_once_makes_the_same_commit(clone: Callable[..., Clone], remote: Path) -> None:
    here, there = clone("here"), clone("there")
    here.add("one side", minutes=1)
    there.add("other side", minutes=2)
    tips = {one.folder.name: git(one.folder, "rev-parse", REF) for one in (here, there)}
    # each is told that the remote stands where the other is
    for one, other in ((here, there), (there, here)):
        git(remote, "fetch", "-q", str(other.folder), f"+{tips[other.folder.name]}:{REF}")
        one.sync()
    assert git(here.folder, "rev-parse", REF) == git(there.folder, "rev-parse", REF)


def test_both_clones_may_have_adopted_lines_of_the_original_tool(clone: Callable[..., Clone], tmp_path: Path) -> None:
    here, there = clone("here"), clone("there")
    line = 'ts=2026-03-01T08:00:00.000Z type=learning scope=river content="Otters sing"\n'
    blob = subprocess.run(
        ["git", "hash-object", "-w", "--stdin"], cwd=here.folder, input=line, capture_output=True, text=True, check=True
    ).stdout.strip()
    tree = subprocess.run(
        ["git", "mktree"], cwd=here.folder, input=f"100644 blob {blob}\t2026-03-01.logfmt\n", capture_output=True,
        text=True, check=True,
    ).stdout.strip()  # fmt: skip
    for name in ("memory", ".opencode"):
        tree = subprocess.run(
            ["git", "mktree"], cwd=here.folder, input=f"040000 tree {tree}\t{name}\n", capture_output=True, text=True,
            check=True,
        ).stdout.strip()  # fmt: skip
    git(here.folder, "update-ref", REF, git(here.folder, "commit-tree", tree, "-m", "memory: add learning/river"))
    git(there.folder, "fetch", "-q", str(here.folder), f"{REF}:{REF}")
    [mine], [yours] = here.memories(), there.memories()
    assert mine.id == yours.id
    here.commit(Edit(before=mine, after=replace(mine, pinned=True)), minutes=3)
    there.reword(yours, "Otters hum", minutes=5)
    here.sync()
    there.sync()
    here.sync()
    assert here.contents() == there.contents() == ["Otters hum"]
    assert here.tree() == there.tree()


def test_a_number_of_a_local_memory_gives_way(clone: Callable[..., Clone]) -> None:
    here, there = clone("here"), clone("there")
    arrived = here.add("from afar")
    local = there.add("only there", sensitivity=Sensitivity.LOCAL_ONLY)
    here.sync()
    there.sync()
    numbers = {memory.id: memory.n for memory in there.memories()}
    assert numbers[arrived.id] == 1
    assert numbers[local.id] > 1


def test_joining_lines_does_not_depend_on_the_order() -> None:
    def line(n: int) -> str:
        return f'ts=2026-03-0{n}T00:00:00.000Z type=context scope=x content="{n}"\n'

    base = (line(2) + "# note\n" + line(4)).encode()
    one = (line(2) + "# note\n" + line(4) + line(1) + line(5)).encode()
    other = (line(2) + line(5) + line(3)).encode()
    wanted = (line(1) + line(2) + line(3) + line(5)).encode()
    assert joined_lines(base, one, other, needed=Counter()) == wanted
    assert joined_lines(base, other, one, needed=Counter()) == wanted
