"""Clones of one repository exchange their memories through real remotes, and end up with the same."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
from collections import Counter
from collections.abc import Callable, Coroutine, Iterator
from dataclasses import replace
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import anyio
import pytest

from backstory.adapters.clock import UlidSource
from backstory.adapters.project_folder import see_project
from backstory.adapters.stores.gitbranch.merging import joined_lines
from backstory.adapters.stores.gitbranch.store import open_git
from backstory.adapters.stores.memory import open_memory_store
from backstory.domain.history import Action, Author, Change, Edit
from backstory.domain.ids import ChangeId, ProjectId
from backstory.domain.memory import Active, Counters, Deleted, Memory, Sensitivity, Visibility, forget
from backstory.domain.provenance import Origin
from backstory.domain.scope import Audience, Viewer
from backstory.domain.selection import EVERY_STATE, Selection
from backstory.errors import InputError, StoreUnavailable
from backstory.ports.backend import Backend
from backstory.ports.synchronisation import Synchronised
from backstory.ports.upkeep import Finding, Severity
from backstory.services.synchronise import Synchronise
from backstory.testing.fakes import START, sample_memory

REF = "refs/memory/agent"
IDS = UlidSource()
T = TypeVar("T")


def git(folder: Path, *arguments: str) -> str:
    command = ["git", "-c", "user.name=Ada", "-c", "user.email=ada@example.invalid", *arguments]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, errors="replace")
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


class Clone:
    """A clone with a store of its own, and what people do with it."""

    def __init__(self, folder: Path, **options: object) -> None:
        self.folder = folder
        self.backend: Backend = open_git(folder, index=folder.with_suffix(".db"), **options)  # type: ignore[arg-type]
        self.project = self.do(
            self.backend.projects.identify, see_project(folder), now=START, new_id=ProjectId(IDS.new_id())
        ).id

    def do(self, call: Callable[..., Coroutine[Any, Any, T]], *arguments: object, **named: object) -> T:
        return anyio.run(partial(call, *arguments, **named))

    def commit(self, *edits: Edit, minutes: int = 0, action: Action = Action.UPDATE) -> Memory:
        change = Change(
            id=ChangeId(IDS.new_id()), at=START + timedelta(minutes=minutes), author=Author.USER, action=action,
            edits=edits,
        )  # fmt: skip
        return self.do(self.backend.memories.commit, change).edits[0].after

    def add(self, content: str, *, minutes: int = 0, **fields: Any) -> Memory:
        memory = sample_memory(content, project=self.project, at=START + timedelta(minutes=minutes), **fields)
        return self.commit(Edit(before=None, after=memory), minutes=minutes, action=Action.ADD)

    def reword(self, memory: Memory, content: str, *, minutes: int) -> Memory:
        return self.commit(Edit(before=memory, after=replace(memory, content=content)), minutes=minutes)

    def rate(self, memory: Memory, *, helpful: int, irrelevant: int = 0, minutes: int) -> Memory:
        rated = replace(memory, counters=replace(memory.counters, helpful=helpful, irrelevant=irrelevant))
        return self.commit(Edit(before=memory, after=rated), minutes=minutes, action=Action.FEEDBACK)

    def forget(self, memory: Memory, *, minutes: int) -> Memory:
        gone = forget(memory, now=START + timedelta(minutes=minutes), reason="wrong")
        return self.commit(Edit(before=memory, after=gone), minutes=minutes, action=Action.FORGET)

    def sync(self, remote: str | None = None, *, dry_run: bool = False, trusted: bool = False) -> Synchronised:
        service = Synchronise(self.backend)
        return self.do(service.with_remote, remote, dry_run=dry_run, trusted=trusted)

    def memories(self, *, states: frozenset[str] = frozenset({"active"})) -> list[Memory]:
        viewer = Viewer(project=self.project, audience=Audience.PERSON)
        selection = Selection(viewer=viewer, now=START, states=states)
        return self.do(self.backend.memories.select, selection, limit=1000)

    def contents(self) -> list[str]:
        return sorted(memory.content for memory in self.memories())

    def tree(self) -> str:
        return git(self.folder, "ls-tree", "-r", REF)

    def close(self) -> None:
        self.do(self.backend.memories.close)


def check(clone: Clone) -> list[Finding]:
    assert clone.backend.upkeep is not None
    found: list[Finding] = clone.do(clone.backend.upkeep.verify, full=True)
    return found


@pytest.fixture
def remote(tmp_path: Path) -> Path:
    folder = tmp_path / "remote.git"
    subprocess.run(["git", "init", "-q", "--bare", "-b", "main", str(folder)], check=True)
    return folder


@pytest.fixture
def clone(tmp_path: Path, remote: Path) -> Iterator[Callable[..., Clone]]:
    clones: list[Clone] = []

    def make(name: str, **options: object) -> Clone:
        git(tmp_path, "clone", "-q", str(remote), name)
        clones.append(Clone(tmp_path / name, **options))
        return clones[-1]

    yield make
    for one in clones:
        one.close()


def test_memories_travel_to_another_clone_through_the_remote(clone: Callable[..., Clone], remote: Path) -> None:
    here, there = clone("here"), clone("there")
    memory = here.add("Otters sleep holding hands", origin=Origin.AGENT)
    sent = here.sync()
    assert (sent.sent, sent.received, sent.pushed, sent.remote) == (1, 0, True, "origin")
    got = there.sync()
    assert (got.sent, got.received, got.pushed) == (0, 1, False)
    [found] = there.memories()
    assert (found.id, found.n, found.content) == (memory.id, memory.n, memory.content)
    assert found.project == there.project != here.project
    assert found.origin is Origin.PEER
    assert git(remote, "rev-parse", REF) == git(here.folder, "rev-parse", REF)
    assert (here.sync().sent, there.sync().received) == (0, 0)


def test_a_person_can_vouch_for_what_others_said(clone: Callable[..., Clone]) -> None:
    here, there = clone("here"), clone("there")
    here.add("Otters float", origin=Origin.USER)
    here.sync()
    there.sync()
    assert [memory.origin for memory in there.memories()] == [Origin.PEER]
    there.sync(trusted=True)
    assert [memory.origin for memory in there.memories()] == [Origin.USER]


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


def test_a_dry_run_tells_and_changes_nothing(clone: Callable[..., Clone], remote: Path) -> None:
    here, there = clone("here"), clone("there")
    here.add("from here")
    here.sync()
    there.add("from there", minutes=1)
    before = there.tree(), git(remote, "for-each-ref")
    report = there.sync(dry_run=True)
    assert (report.received, report.sent, report.pushed, len(report.renumbered)) == (1, 1, False, 1)
    assert (there.tree(), git(remote, "for-each-ref")) == before
    assert there.contents() == ["from there"]


def test_a_backup_that_was_restored_elsewhere_counts_as_what_it_took_back(
    clone: Callable[..., Clone], tmp_path: Path
) -> None:
    here, there = clone("here"), clone("there")
    here.add("Otters groom")
    assert here.backend.upkeep is not None
    here.do(here.backend.upkeep.backup, tmp_path / "copy.db")
    here.add("Otters yawn", minutes=1)
    here.sync()
    there.sync()
    assert there.contents() == ["Otters groom", "Otters yawn"]
    here.do(here.backend.upkeep.restore, tmp_path / "copy.db")
    assert here.sync().sent == 1
    there.add("Otters doze", minutes=2)
    assert there.sync().received == 1
    assert there.contents() == ["Otters doze", "Otters groom"]


def test_private_memories_are_not_sent(clone: Callable[..., Clone], remote: Path) -> None:
    here = clone("here")
    here.add("in the open")
    here.add("only here: zumpel", sensitivity=Sensitivity.LOCAL_ONLY)
    here.sync()
    assert "zumpel" not in git(remote, "cat-file", "--batch-all-objects", "--batch")


def test_a_number_of_a_local_memory_gives_way(clone: Callable[..., Clone]) -> None:
    here, there = clone("here"), clone("there")
    arrived = here.add("from afar")
    local = there.add("only there", sensitivity=Sensitivity.LOCAL_ONLY)
    here.sync()
    there.sync()
    numbers = {memory.id: memory.n for memory in there.memories()}
    assert numbers[arrived.id] == 1
    assert numbers[local.id] > 1


def test_a_hook_before_pushing_does_not_run(clone: Callable[..., Clone]) -> None:
    here = clone("here")
    hook = here.folder / ".git" / "hooks" / "pre-push"
    hook.write_text("#!/bin/sh\nexit 1\n")
    hook.chmod(0o755)
    here.add("pushed all the same")
    assert here.sync().pushed


def test_a_remote_that_refuses_or_is_not_there_is_an_error_in_clear_words(
    clone: Callable[..., Clone], remote: Path, tmp_path: Path
) -> None:
    here = clone("here")
    memory = here.add("stays here")
    with pytest.raises(InputError, match="no remote 'nowhere'"):
        here.sync("nowhere")
    with pytest.raises(StoreUnavailable, match="git ls-remote failed"):
        here.sync(str(tmp_path / "not-there"))
    hook = remote / "hooks" / "pre-receive"
    hook.write_text("#!/bin/sh\necho not today >&2\nexit 1\n")
    hook.chmod(0o755)
    with pytest.raises(StoreUnavailable, match="not today"):
        here.sync()
    git(here.folder, "remote", "remove", "origin")
    with pytest.raises(InputError, match="not clear which remote"):
        here.sync()
    assert [one.id for one in here.memories()] == [memory.id]


def test_a_store_that_stays_where_it_is_says_so() -> None:
    backend = open_memory_store()
    with pytest.raises(InputError, match="no remote"):
        anyio.run(Synchronise(backend).with_remote)


def test_the_command_says_what_to_do_where_the_store_is_none_of_git(tmp_path: Path) -> None:
    env = {**os.environ, "BACKSTORY_HOME": str(tmp_path / "home"), "BACKSTORY_EMBEDDER_PROVIDER": "none"}
    done = subprocess.run(
        [sys.executable, "-m", "backstory", "sync", "--store", f"sqlite://{tmp_path}/memory.db"],
        cwd=tmp_path, env=env, capture_output=True, text=True,
    )  # fmt: skip
    assert done.returncode == 2
    assert "has no remote to exchange memories with" in done.stderr
    assert "git store" in done.stderr


def test_many_clones_at_once_lose_nothing(clone: Callable[..., Clone], tmp_path: Path, remote: Path) -> None:
    code = textwrap.dedent("""
        import sys
        from pathlib import Path
        import anyio
        from backstory.adapters.clock import UlidSource
        from backstory.adapters.stores.gitbranch.store import open_git
        from backstory.domain.history import Action, Author, Change, Edit
        from backstory.testing.fakes import START, sample_memory
        folder, who = sys.argv[1:]
        async def main():
            backend = open_git(Path(folder), index=Path(folder + ".db"))
            ids = UlidSource()
            for n in range(3):
                edits = (Edit(before=None, after=sample_memory(f"{who} says {n}")),)
                await backend.memories.commit(
                    Change(id=ids.new_id(), at=START, author=Author.USER, action=Action.ADD, edits=edits))
                await backend.memories.synchronise(None, dry_run=False, trusted=False)
            await backend.memories.close()
        anyio.run(main)
    """)
    folders = [tmp_path / f"clone-{n}" for n in range(3)]
    for folder in folders:
        git(tmp_path, "clone", "-q", str(remote), folder.name)
    running = [subprocess.Popen([sys.executable, "-c", code, str(folder), folder.name]) for folder in folders]
    assert [process.wait(120) for process in running] == [0, 0, 0]
    reader = clone("reader")
    reader.sync()
    viewer = Viewer(project=None, audience=Audience.PERSON, all_projects=True)
    selection = Selection(viewer=viewer, now=START, states=EVERY_STATE)
    memories = reader.do(reader.backend.memories.select, selection, limit=100)
    assert len(memories) == 9
    assert len({memory.n for memory in memories}) == 9
    assert not any(isinstance(memory.status, Deleted) for memory in memories)
    day = git(remote, "show", f"{REF}:.opencode/memory/2026-03-02.logfmt")
    assert len(day.splitlines()) == 9


def test_joining_lines_does_not_depend_on_the_order() -> None:
    def line(n: int) -> str:
        return f'ts=2026-03-0{n}T00:00:00.000Z type=context scope=x content="{n}"\n'

    base = (line(2) + "# note\n" + line(4)).encode()
    one = (line(2) + "# note\n" + line(4) + line(1) + line(5)).encode()
    other = (line(2) + line(5) + line(3)).encode()
    wanted = (line(1) + line(2) + line(3) + line(5)).encode()
    assert joined_lines(base, one, other, needed=Counter()) == wanted
    assert joined_lines(base, other, one, needed=Counter()) == wanted
