"""What other tools, other people and git itself do to the ref of a store, and what becomes of it here."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from backstory.codecs.logfmt import parse_lines
from backstory.domain.history import Action, Edit
from backstory.domain.ids import ProjectId
from backstory.domain.lifecycle import forget
from backstory.domain.memory import Deleted, Kind
from backstory.domain.provenance import Origin
from backstory.domain.selection import EVERY_STATE
from backstory.ports.backend import Backend
from backstory.ports.upkeep import Severity
from backstory.testing.contracts.doubt_store import doubt_of
from backstory.testing.contracts.summaries import summary_of
from backstory.testing.fakes import START
from tests.integration.git_repositories import LINES, REF, Repository, add, commit, contents, everything, run
from tests.integration.git_repositories import opened as opened
from tests.integration.git_repositories import repository as repository

BUNDLE = Path(__file__).parents[3] / "shared" / "seed-stores" / "git-memory" / "git-memory.bundle"


@pytest.fixture
def seed(repository: Repository) -> Repository:
    if not BUNDLE.exists():
        pytest.skip(f"{BUNDLE.name} is not here")
    repository.git("fetch", "-q", "--update-head-ok", str(BUNDLE), "refs/*:refs/*")
    return repository


def test_a_store_of_the_original_tool_is_read_written_and_left_as_it_was(
    seed: Repository, opened: Callable[..., Backend]
) -> None:
    before = {path: seed.file(path) for path in seed.files()}
    backend = opened(seed.folder, also=["refs/memory/team"])
    memories = everything(backend)
    texts = {parsed.record.content for text in before.values() for parsed in parse_lines(text) if parsed.record} - {""}
    assert {memory.content for memory in memories if memory.namespace == "agent"} == texts
    assert {memory.origin for memory in memories} == {Origin.IMPORTED}
    assert {memory.namespace for memory in memories} == {"agent", "team"}
    [issue] = [memory for memory in memories if memory.issue == "#301"]
    assert (issue.kind, issue.area) == (Kind.BLOCKER, "ci")

    add(backend, "written beside the others", area="wal", kind=Kind.DECISION)
    added = ".opencode/memory/2026-03-02.logfmt"
    after = {path: seed.file(path) for path in seed.files() if not path.startswith(".backstory")}
    assert {path: text for path, text in after.items() if path != added} == {
        path: text for path, text in before.items() if path != added
    }
    line = 'ts=2026-03-02T12:00:00.000Z type=decision scope=wal content="written beside the others"'
    assert after[added] == before[added] + line + "\n"


def test_forgetting_a_line_of_the_original_tool_is_seen_by_it(seed: Repository, opened: Callable[..., Backend]) -> None:
    backend = opened(seed.folder)
    [memory] = [memory for memory in everything(backend) if memory.issue == "#301"]
    commit(
        backend,
        Edit(before=memory, after=forget(memory, now=START, reason="fixed")),
        action=Action.FORGET,
        reason="fixed",
    )
    assert "EAGAIN" not in seed.file(f"{LINES}/2026-03-09.logfmt")
    last = parse_lines(seed.file(f"{LINES}/deletions.logfmt"))[-1].deletion
    assert last is not None
    assert (last.record.ts, last.reason, last.record.issue) == ("2026-03-09T23:59:59.999Z", "fixed", "#301")
    rebuilt = opened(seed.folder, index="again.db")
    assert contents(rebuilt) == contents(backend)


def test_lines_added_removed_and_rewritten_by_another_tool_are_picked_up(
    repository: Repository, opened: Callable[..., Backend]
) -> None:
    backend = opened(repository.folder)
    add(backend, "mine, and it stays", area="x")
    mine = add(backend, "mine, to be removed", area="x")
    path = f"{LINES}/2026-03-02.logfmt"
    stays, removed = repository.lines()
    foreign = 'ts=2026-03-02T13:00:00.000Z type=learning scope="two words" content="not by us" tags=a,b color=red'
    repository.write_as_the_original_tool(path, f"{stays}\n{removed}\n{foreign}\n# a note\n")
    assert contents(backend) == ["mine, and it stays", "mine, to be removed", "not by us"]
    [found] = [memory for memory in everything(backend) if memory.content == "not by us"]
    assert (found.kind, found.area, found.tags, found.origin) == (
        Kind.LEARNING, "two words", ("a", "b"), Origin.IMPORTED,
    )  # fmt: skip

    audit = f'ts=2026-03-03T09:00:00.000Z action=deleted original_{removed} reason="no use"'
    repository.write_as_the_original_tool(f"{LINES}/deletions.logfmt", audit + "\n")
    repository.write_as_the_original_tool(path, f"{stays}\n{foreign}\n# a note\n")
    assert contents(backend) == ["mine, and it stays", "not by us"]
    [gone] = [memory for memory in everything(backend, states=EVERY_STATE) if memory.id == mine.id]
    assert isinstance(gone.status, Deleted)
    assert gone.status.reason == "no use"

    rewritten = 'ts=2026-03-04T13:00:00.000Z type=learning scope="two words" content="not by us, but better"'
    update = (
        "ts=2026-03-04T13:00:00.000Z action=deleted original_ts=2026-03-02T13:00:00.000Z type=learning "
        'scope="two words" content="not by us" reason="Updated to: not by us, but better" tags=a,b'
    )
    repository.write_as_the_original_tool(f"{LINES}/deletions.logfmt", f"{audit}\n{update}\n")
    assert contents(backend) == ["mine, and it stays", "not by us"]
    repository.write_as_the_original_tool(path, f"{stays}\n{rewritten}\n# a note\n")
    [same] = [memory for memory in everything(backend) if memory.id == found.id]
    assert (same.content, same.n) == ("not by us, but better", found.n)

    commit(backend, Edit(before=same, after=replace(same, pinned=True)), action=Action.PIN)
    assert repository.file(path) == f"{stays}\n{rewritten}\n# a note\n"
    changed = commit(backend, Edit(before=everything(backend)[0], after=everything(backend)[0]), action=Action.CONFIRM)
    assert changed.edits
    again = opened(repository.folder, index="again.db", trusted=True)
    assert {(m.id, m.content, m.pinned) for m in everything(again)} == {
        (m.id, m.content, m.pinned) for m in everything(backend)
    }


def test_damaged_lines_and_conflict_markers_are_read_around_and_kept(
    repository: Repository, opened: Callable[..., Backend]
) -> None:
    odd = '<<<<<<< ours\nts=1 ty\nts=yesterday type=context scope=x content="when?"\n=======\n>>>>>>> theirs\n'
    good = 'ts=2026-03-02T13:00:00.000Z type=context scope=x content="read around"\n'
    repository.write_as_the_original_tool(f"{LINES}/2026-03-02.logfmt", odd + good)
    backend = opened(repository.folder)
    assert contents(backend) == ["read around"]
    add(backend, "one more", area="x")
    assert repository.file(f"{LINES}/2026-03-02.logfmt").startswith(odd + good)


def test_a_secret_in_a_line_of_another_tool_is_masked_here(
    repository: Repository, opened: Callable[..., Backend]
) -> None:
    secret = "ghp_" + "Zz9Yy8Xx7Ww6Vv5Uu4Tt" + "3Ss2Rr1Qq0Pp9Oo8"
    line = f'ts=2026-03-02T13:00:00.000Z type=context scope=x content="the token is {secret}"\n'
    repository.write_as_the_original_tool(f"{LINES}/2026-03-02.logfmt", line)
    backend = opened(repository.folder)
    [memory] = everything(backend)
    assert secret not in memory.content
    commit(backend, Edit(before=memory, after=forget(memory, now=START, reason="leaked")), action=Action.FORGET)
    assert repository.lines() == []


def test_what_was_derived_goes_with_what_others_change_on_the_ref(
    repository: Repository, opened: Callable[..., Backend]
) -> None:
    backend = opened(repository.folder)
    other = opened(repository.folder, index="other.db", trusted=True)
    reworded, forgotten, kept, removed = (add(backend, f"memory {n}", area="x") for n in range(4))
    projects = [ProjectId(f"p{n}") for n in range(4)]
    for project, memory in zip(projects, (reworded, forgotten, kept, removed), strict=True):
        run(backend.dreams.put_summary, summary_of(memory, project=project))
    ids = [memory.id for memory in (reworded, forgotten, kept, removed)]
    run(backend.doubts.replace, ids, [doubt_of(memory) for memory in (reworded, forgotten, kept, removed)])
    theirs = run(other.memories.get, ids)
    commit(other, Edit(before=theirs[ids[0]], after=replace(theirs[ids[0]], content="another text")))
    commit(
        other, Edit(before=theirs[ids[1]], after=forget(theirs[ids[1]], now=START, reason="x")), action=Action.FORGET
    )
    commit(other, Edit(before=theirs[ids[2]], after=replace(theirs[ids[2]], pinned=True)), action=Action.PIN)
    [path] = [path for path in repository.files() if path.startswith(LINES) and "deletions" not in path]
    rest = [line for line in repository.lines() if "memory 3" not in line]
    repository.write_as_the_original_tool(path, "\n".join(rest) + "\n")
    assert [run(backend.dreams.summary, project) is None for project in projects] == [True, True, False, True]
    assert set(run(backend.doubts.doubts)) == {kept.id}


def test_what_others_put_on_the_ref_is_not_believed_to_be_the_users_words(
    repository: Repository, opened: Callable[..., Backend]
) -> None:
    add(opened(repository.folder, index="theirs.db"), "obey me", origin=Origin.USER)
    backend = opened(repository.folder)
    [memory] = everything(backend)
    assert memory.origin is Origin.PEER
    commit(backend, Edit(before=memory, after=replace(memory, pinned=True)), action=Action.PIN)
    assert [m.origin for m in everything(opened(repository.folder, index="third.db", trusted=True))] == [Origin.USER]
    mine = add(backend, "my own words", origin=Origin.USER)
    assert {m.id: m.origin for m in everything(backend)} == {memory.id: Origin.PEER, mine.id: Origin.USER}


def test_a_ref_that_was_set_back_is_followed(repository: Repository, opened: Callable[..., Backend]) -> None:
    backend = opened(repository.folder)
    memory = add(backend, "before")
    tip = repository.git("rev-parse", REF)
    add(backend, "after")
    commit(backend, Edit(before=memory, after=replace(memory, content="reworded")), action=Action.UPDATE)
    repository.git("update-ref", REF, tip)
    assert contents(backend) == ["before"]
    add(backend, "another future")
    assert contents(opened(repository.folder, index="other.db")) == ["another future", "before"]


def test_a_ref_that_is_gone_leaves_nothing_to_be_seen_and_a_copy_aside(
    repository: Repository, opened: Callable[..., Backend], tmp_path: Path
) -> None:
    backend = opened(repository.folder)
    add(backend, "of the old repository")
    run(backend.memories.close)
    shutil.rmtree(repository.folder)
    newcomer = Repository(repository.folder)
    again = opened(newcomer.folder)
    assert contents(again) == []
    add(again, "of the new one")
    assert contents(again) == ["of the new one"]
    assert len(newcomer.lines()) == 1
    [copy] = [path for path in tmp_path.glob("local.db.*") if not path.name.endswith(("-wal", "-shm"))]
    assert copy.stat().st_mode & 0o777 == 0o600
    assert again.upkeep is not None
    assert [found for found in run(again.upkeep.verify, full=True) if found.severity is not Severity.NOTE] == []
