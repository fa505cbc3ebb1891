"""The git store over real repositories: what stands on the ref, who else may write there, and what is never touched."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import textwrap
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
from backstory.adapters.stores.gitbranch.store import open_git
from backstory.codecs.change import decode_change, encode_change
from backstory.codecs.logfmt import parse_lines
from backstory.domain.history import Action, Author, Change, Edit, undo_edits
from backstory.domain.ids import ChangeId, MemoryId, ProjectId
from backstory.domain.memory import Counters, Deleted, Kind, Memory, Sensitivity, forget
from backstory.domain.provenance import Origin, Provenance
from backstory.domain.scope import Audience, Viewer
from backstory.domain.selection import EVERY_STATE, Selection
from backstory.errors import InputError, StoreUnavailable
from backstory.ports.backend import Backend
from backstory.ports.store import Use
from backstory.ports.upkeep import Severity, StoreUpkeep
from backstory.testing.contracts.doubt_store import doubt_of
from backstory.testing.contracts.summaries import summary_of
from backstory.testing.fakes import FULL_MEMORY, ORCHARD, START, sample_memory

BUNDLE = Path(__file__).parents[3] / "shared" / "seed-stores" / "git-memory" / "git-memory.bundle"
REF = "refs/memory/agent"
LINES = ".opencode/memory"
T = TypeVar("T")
IDS = UlidSource()


class Repository:
    """A git repository, and commands in it as somebody else would give them."""

    def __init__(self, folder: Path, *, bare: bool = False) -> None:
        self.folder = folder
        folder.mkdir(parents=True, exist_ok=True)
        self.git("init", "-q", "-b", "main", *(["--bare"] if bare else []))

    def git(self, *arguments: str, data: str | None = None, cwd: Path | None = None) -> str:
        who = ["-c", "user.name=Ada", "-c", "user.email=ada@example.invalid"]
        env = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
        done = subprocess.run(
            ["git", *who, *arguments], cwd=cwd or self.folder, env=env, input=data, capture_output=True, text=True,
            errors="replace",
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        return done.stdout.strip()

    def file(self, path: str, ref: str = REF) -> str:
        return self.git("show", f"{ref}:{path}") + "\n"

    def files(self, ref: str = REF) -> list[str]:
        return self.git("ls-tree", "-r", "--name-only", ref).splitlines()

    def lines(self, ref: str = REF) -> list[str]:
        """Every line of every day file."""
        days = [path for path in self.files(ref) if path.startswith(LINES) and "deletions" not in path]
        return [line.text for path in days for line in parse_lines(self.file(path, ref))]

    def write_as_the_original_tool(self, path: str, text: str, *, message: str = "memory: add context/x") -> None:
        """What the original tool does, on an index of our own: read-tree, update-index, write-tree, commit-tree."""
        blob = self.git("hash-object", "-w", "--stdin", data=text)
        environ = {"GIT_INDEX_FILE": str(self.folder / "its-index")}
        known = subprocess.run(["git", "rev-parse", "-q", "--verify", REF], cwd=self.folder, capture_output=True)
        for arguments in (
            *([["read-tree", REF]] if known.returncode == 0 else []),
            ["update-index", "--add", "--cacheinfo", f"100644,{blob},{path}"],
        ):
            subprocess.run(["git", *arguments], cwd=self.folder, env={**os.environ, **environ}, check=True)
        tree = subprocess.run(
            ["git", "write-tree"],
            cwd=self.folder,
            env={**os.environ, **environ},
            check=True,
            capture_output=True,
            text=True,
        ).stdout.strip()
        parent = ["-p", REF] if known.returncode == 0 else []
        self.git("update-ref", REF, self.git("commit-tree", tree, *parent, "-m", message))
        (self.folder / "its-index").unlink()


@pytest.fixture
def repository(tmp_path: Path) -> Repository:
    return Repository(tmp_path / "repository")


@pytest.fixture
def opened(tmp_path: Path) -> Iterator[Callable[..., Backend]]:
    backends: list[Backend] = []

    def make(folder: Path, *, index: str = "local.db", **options: object) -> Backend:
        backends.append(open_git(folder, index=tmp_path / index, **options))  # type: ignore[arg-type]
        return backends[-1]

    yield make
    for backend in backends:
        anyio.run(backend.memories.close)


def run(call: Callable[..., Coroutine[Any, Any, T]], *arguments: object, **named: object) -> T:
    return anyio.run(partial(call, *arguments, **named))


def commit(backend: Backend, *edits: Edit, action: Action = Action.ADD, **fields: Any) -> Change:
    change = Change(id=ChangeId(IDS.new_id()), at=START, author=Author.USER, action=action, edits=edits, **fields)
    return run(backend.memories.commit, change)


def add(backend: Backend, content: str, **fields: object) -> Memory:
    return commit(backend, Edit(before=None, after=sample_memory(content, **fields))).edits[0].after


def everything(backend: Backend, *, states: frozenset[str] = frozenset({"active"})) -> list[Memory]:
    viewer = Viewer(project=ORCHARD, audience=Audience.PERSON, all_projects=True)
    return run(backend.memories.select, Selection(viewer=viewer, now=START, states=states), limit=10_000)


def contents(backend: Backend, **options: frozenset[str]) -> list[str]:
    return sorted(memory.content for memory in everything(backend, **options))


def upkeep_of(backend: Backend) -> StoreUpkeep:
    assert backend.upkeep is not None
    return backend.upkeep


def register(backend: Backend, folder: Path) -> ProjectId:
    return run(backend.projects.identify, see_project(folder), now=START, new_id=ProjectId(IDS.new_id())).id


# --- what stands on the ref -------------------------------------------------------------------------------------------


def test_a_memory_is_a_line_of_its_day_and_a_change_beside_it(
    repository: Repository, opened: Callable[..., Backend]
) -> None:
    add(
        opened(repository.folder), 'Say "herons"\nnot storks', kind=Kind.DECISION, area="pond", tags=("birds", "naming")
    )
    line = (
        r'ts=2026-03-02T12:00:00.000Z type=decision scope=pond content="Say \"herons\"\nnot storks" tags=birds,naming'
    )
    assert repository.file(f"{LINES}/2026-03-02.logfmt") == line + "\n"
    [change] = [path for path in repository.files() if path.startswith(".backstory/changes/2026-03-02/")]
    assert decode_change(repository.file(change)).edits[0].after.content == 'Say "herons"\nnot storks'
    assert repository.git("log", "--format=%s", REF).splitlines() == ["memory: add decision/pond", "init memory store"]


def test_every_change_is_a_commit_and_forgetting_leaves_an_audit_line(
    repository: Repository, opened: Callable[..., Backend]
) -> None:
    backend = opened(repository.folder)
    memory = add(backend, "The pond freezes", area="pond", kind=Kind.LEARNING)
    kept = add(backend, "Newts hide", area="pond")
    reworded = replace(memory, content="The pond freezes at night")
    updated = commit(backend, Edit(before=memory, after=reworded), action=Action.UPDATE).edits[0].after
    commit(
        backend, Edit(before=updated, after=forget(updated, now=START, reason="spring")), action=Action.FORGET,
        reason="spring",
    )  # fmt: skip
    subjects = repository.git("log", "--format=%s", REF).splitlines()
    assert subjects[:2] == ["memory: delete learning/pond", "memory: update learning/pond"]
    assert len(subjects) == 5
    audits = [line.deletion for line in parse_lines(repository.file(f"{LINES}/deletions.logfmt"))]
    reasons = [audit.reason for audit in audits if audit]
    assert reasons == ["Updated to: The pond freezes at night", "spring"]
    [line] = repository.lines()
    assert kept.content in line


def test_a_day_without_memories_is_a_single_line_end(repository: Repository, opened: Callable[..., Backend]) -> None:
    backend = opened(repository.folder)
    memory = add(backend, "gone soon")
    commit(backend, Edit(before=memory, after=forget(memory, now=START, reason=None)), action=Action.FORGET)
    assert repository.git("cat-file", "-s", f"{REF}:{LINES}/2026-03-02.logfmt") == "1"


def test_private_and_local_only_memories_never_reach_an_object_of_git(
    repository: Repository, opened: Callable[..., Backend]
) -> None:
    backend = opened(repository.folder)
    add(backend, "heron in the open")
    add(backend, "my shoe size is a secret word: zumpel", sensitivity=Sensitivity.LOCAL_ONLY)
    hidden = add(backend, "whispered word: krapel", sensitivity=Sensitivity.PRIVATE)
    objects = repository.git("cat-file", "--batch-all-objects", "--batch")
    assert "heron" in objects
    assert not any(word in objects for word in ("zumpel", "krapel", hidden.id))
    assert len(everything(backend)) == 3


def test_a_memory_made_private_leaves_the_ref_and_one_made_public_comes(
    repository: Repository, opened: Callable[..., Backend]
) -> None:
    backend = opened(repository.folder)
    memory = add(backend, "between two worlds")
    hidden = replace(memory, sensitivity=Sensitivity.PRIVATE, content="between two worlds, secretly")
    hidden = commit(backend, Edit(before=memory, after=hidden), action=Action.UPDATE).edits[0].after
    assert repository.lines() == []
    assert "secretly" not in repository.git("cat-file", "--batch-all-objects", "--batch")
    assert contents(backend) == ["between two worlds, secretly"]
    shown = replace(hidden, sensitivity=Sensitivity.NORMAL, content="between two worlds, openly")
    commit(backend, Edit(before=hidden, after=shown), action=Action.UPDATE)
    assert "openly" in repository.lines()[0]
    other = opened(repository.folder, index="other.db")
    assert contents(other) == ["between two worlds, openly"]


def test_a_day_file_of_several_megabytes_is_read_and_written_whole(
    repository: Repository, opened: Callable[..., Backend]
) -> None:
    backend = opened(repository.folder)
    edits = [Edit(before=None, after=sample_memory(f"{n} " + "long " * 2000)) for n in range(300)]
    commit(backend, *edits, action=Action.IMPORT)
    add(backend, "the last straw")
    assert int(repository.git("cat-file", "-s", f"{REF}:{LINES}/2026-03-02.logfmt")) > 3_000_000
    assert len(repository.lines()) == 301
    assert len(everything(opened(repository.folder, index="other.db"))) == 301


def test_the_name_of_the_ref_is_checked_and_several_refs_are_read(
    repository: Repository, opened: Callable[..., Backend], tmp_path: Path
) -> None:
    team = opened(repository.folder, index="team.db", ref="refs/memory/team")
    foreign = add(team, "the team says hello", namespace="team")
    backend = opened(repository.folder, also=["refs/memory/team"])
    add(backend, "I say hello")
    assert contents(backend) == ["I say hello", "the team says hello"]
    [shown] = [memory for memory in everything(backend) if memory.id == foreign.id]
    with pytest.raises(InputError, match="refs/memory/team"):
        commit(backend, Edit(before=shown, after=replace(shown, pinned=True)), action=Action.PIN)
    assert "the team says hello" not in "".join(repository.lines())
    for name in ("memory/agent", "refs/a..b", "refs/x y", "refs/memory/"):
        with pytest.raises(InputError):
            opened(repository.folder, ref=name)


def test_a_branch_of_that_name_is_readable(repository: Repository, opened: Callable[..., Backend]) -> None:
    add(opened(repository.folder, index="first.db", ref="refs/heads/memory/agent"), "on a branch")
    assert contents(opened(repository.folder, also=["refs/heads/memory/agent"])) == ["on a branch"]


def test_a_mirror_of_the_ref_adds_nothing(repository: Repository, opened: Callable[..., Backend]) -> None:
    backend = opened(repository.folder, also=["refs/heads/memory/agent"])
    memory = add(backend, "said once")
    for number in range(3):
        repository.git("update-ref", "refs/heads/memory/agent", REF)
        assert contents(backend) == [memory.content]
        reworded = replace(memory, content=f"said {number} times")
        memory = commit(backend, Edit(before=memory, after=reworded), action=Action.UPDATE).edits[0].after
    assert contents(opened(repository.folder, index="again.db", also=["refs/heads/memory/agent"])) == ["said 2 times"]


# --- the original tool ------------------------------------------------------------------------------------------------


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


# --- the local store is derived ---------------------------------------------------------------------------------------


def test_a_lost_local_store_is_made_anew_from_the_ref(
    repository: Repository, opened: Callable[..., Backend], tmp_path: Path
) -> None:
    backend = opened(repository.folder)
    first = commit(
        backend, Edit(before=None, after=replace(FULL_MEMORY, sensitivity=Sensitivity.NORMAL)), key="k", reason="why"
    )
    memory = add(backend, "kept")
    commit(backend, Edit(before=memory, after=forget(memory, now=START, reason="x")), action=Action.FORGET)
    wanted = everything(backend, states=EVERY_STATE)
    history = run(backend.memories.history, limit=50)
    run(backend.memories.close)
    for file in tmp_path.glob("local.db*"):
        file.unlink()
    again = opened(repository.folder, trusted=True)
    assert [replace(m, counters=FULL_MEMORY.counters) for m in everything(again, states=EVERY_STATE)] == [
        replace(m, counters=FULL_MEMORY.counters) for m in wanted
    ]
    assert run(again.memories.history, limit=50) == history
    assert run(again.memories.commit, replace(first, id=ChangeId(IDS.new_id()))) == first


def test_what_somebody_decided_of_a_memory_stands_on_the_ref_and_what_was_counted_does_not(
    repository: Repository, opened: Callable[..., Backend]
) -> None:
    backend = opened(repository.folder)
    [line] = [add(backend, "rated", provenance=Provenance(derived_from=(FULL_MEMORY.id,)))]
    before = repository.lines()
    run(backend.memories.record_use, Use(memories=(line.id,), at=START, session=None, surfaced=True))
    rated = replace(line, counters=Counters(helpful=2, irrelevant=1))
    rating = commit(backend, Edit(before=line, after=rated), action=Action.FEEDBACK)
    assert repository.lines() == before  # a line has no place for it
    other = opened(repository.folder, index="other.db", trusted=True)
    [found] = everything(other)
    assert (found.counters, found.provenance) == (Counters(helpful=2, irrelevant=1), line.provenance)
    run(other.memories.record_use, Use(memories=(line.id,), at=START, session=None, surfaced=False))
    again = commit(
        other, Edit(before=found, after=replace(found, counters=Counters(helpful=3))), action=Action.FEEDBACK
    )
    assert [memory.counters for memory in everything(backend)] == [Counters(helpful=3, surfaced=1)]
    assert [memory.counters for memory in everything(other)] == [Counters(helpful=3, recalled=1)]
    for change in (again, rating):
        kept = run(backend.memories.change, change.id)
        assert kept is not None
        edits = undo_edits(kept, run(backend.memories.get, [line.id]), now=START)
        commit(backend, *edits, action=Action.UNDO, undoes=change.id)
    assert [memory.counters for memory in everything(backend)] == [Counters(surfaced=1)]
    assert [memory.counters for memory in everything(other)] == [Counters(recalled=1)]
    assert not [finding for finding in run(upkeep_of(backend).verify, full=True) if finding.severity is Severity.DAMAGE]


def test_a_change_without_sources_or_ratings_is_read_as_before(
    repository: Repository, opened: Callable[..., Backend]
) -> None:
    backend = opened(repository.folder)
    memory = add(backend, "of an older clone")
    [path] = [path for path in repository.files() if path.startswith(".backstory/changes")]
    told = [json.loads(line) for line in repository.file(path).splitlines() if line]
    assert "derived_from" not in told[1]["after"]["provenance"]
    del told[1]["after"]["counters"], told[1]["after"]["provenance"]
    repository.write_as_the_original_tool(path, "".join(json.dumps(line) + "\n" for line in told))
    [found] = everything(opened(repository.folder, index="other.db", trusted=True))
    assert (found.id, found.counters, found.provenance) == (memory.id, Counters(), Provenance())


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


def test_a_process_killed_after_the_ref_moved_leaves_a_store_that_catches_up(
    repository: Repository, opened: Callable[..., Backend], tmp_path: Path
) -> None:
    backend = opened(repository.folder)
    add(backend, "before the crash")
    run(backend.memories.close)
    code = f"""
        import os, signal
        from pathlib import Path
        import anyio
        from backstory.adapters.stores.gitbranch import publishing
        from backstory.adapters.stores.gitbranch.reference import Reference
        from backstory.adapters.stores.gitbranch.store import open_git
        from backstory.domain.history import Edit
        from backstory.testing.fakes import sample_change, sample_memory
        wrote = Reference.commit
        def commit_and_die(self, *args, **named):
            wrote(self, *args, **named)
            os.kill(os.getpid(), signal.SIGKILL)
        Reference.commit = commit_and_die
        backend = open_git(Path({str(repository.folder)!r}), index=Path({str(tmp_path / "local.db")!r}))
        edit = Edit(before=None, after=sample_memory("written, not told"))
        anyio.run(backend.memories.commit, sample_change(77, edit))
    """
    done = subprocess.run([sys.executable, "-c", textwrap.dedent(code)], capture_output=True)
    assert done.returncode == -signal.SIGKILL, done.stderr
    again = opened(repository.folder)
    assert contents(again) == ["before the crash", "written, not told"]
    assert [memory.n for memory in everything(again)] == [2, 1]


def test_writers_in_many_processes_lose_nothing(
    repository: Repository, opened: Callable[..., Backend], tmp_path: Path
) -> None:
    worktree = tmp_path / "beside"
    repository.git("commit", "-q", "--allow-empty", "-m", "start")
    repository.git("worktree", "add", "-q", str(worktree))
    code = textwrap.dedent("""
        import sys
        from pathlib import Path
        import anyio
        from backstory.adapters.clock import UlidSource
        from backstory.adapters.stores.gitbranch.store import open_git
        from backstory.domain.history import Action, Author, Change, Edit
        from backstory.testing.fakes import START, sample_memory
        folder, index, who = sys.argv[1:]
        async def main():
            backend = open_git(Path(folder), index=Path(index))
            ids = UlidSource()
            for n in range(8):
                memory = sample_memory(f"{who} says {n}")
                edits = (Edit(before=None, after=memory),)
                await backend.memories.commit(
                    Change(id=ids.new_id(), at=START, author=Author.USER, action=Action.ADD, edits=edits))
            await backend.memories.close()
        anyio.run(main)
    """)
    # two share a local store, two have one of their own: only the ref is between them
    places = [
        (repository.folder, "local.db"), (worktree, "local.db"), (repository.folder, "b.db"), (worktree, "c.db"),
    ]  # fmt: skip
    writers = [
        subprocess.Popen([sys.executable, "-c", code, str(folder), str(tmp_path / index), f"writer {n}"])
        for n, (folder, index) in enumerate(places)
    ]
    assert [writer.wait(120) for writer in writers] == [0, 0, 0, 0]
    assert len(repository.lines()) == 32
    backend = opened(repository.folder)
    assert len(everything(backend)) == 32
    assert len({memory.n for memory in everything(backend)}) == 32
    repository.git("fsck", "--strict")


# --- nothing else is touched ------------------------------------------------------------------------------------------


def test_staged_changes_a_merge_under_way_and_the_stash_stay_as_they_are(
    repository: Repository, opened: Callable[..., Backend]
) -> None:
    file = repository.folder / "file.txt"
    file.write_text("base\n")
    repository.git("add", "-A")
    repository.git("commit", "-q", "-m", "base")
    repository.git("checkout", "-q", "-b", "other")
    file.write_text("theirs\n")
    repository.git("commit", "-q", "-am", "theirs")
    repository.git("checkout", "-q", "main")
    file.write_text("stashed\n")
    repository.git("stash", "-q")
    file.write_text("ours\n")
    repository.git("commit", "-q", "-am", "ours")
    subprocess.run(["git", "merge", "-q", "other"], cwd=repository.folder, capture_output=True)
    (repository.folder / "staged.txt").write_text("staged\n")
    repository.git("add", "staged.txt")
    (repository.folder / "staged.txt").write_text("and more\n")

    def state() -> tuple[object, ...]:
        git = repository.folder / ".git"
        return (
            (git / "index").read_bytes(),
            (git / "HEAD").read_bytes(),
            (git / "config").read_bytes(),
            (git / "MERGE_HEAD").read_bytes(),
            repository.git("status", "--porcelain=v2", "--ignored"),
            repository.git("stash", "list"),
            repository.git("for-each-ref", "refs/heads", "refs/stash"),
        )

    before = state()
    backend = opened(repository.folder)
    for number in range(5):
        add(backend, f"memory {number}")
    assert everything(backend)
    assert state() == before
    assert not list((repository.folder / ".git").glob("fast_import_crash*"))


@pytest.mark.parametrize("place", ["subfolder", "worktree", "bare", "unborn", "detached", "shallow", "sha256"])
def test_it_works_in_every_sort_of_repository(
    place: str, repository: Repository, opened: Callable[..., Backend], tmp_path: Path
) -> None:
    folder = repository.folder
    if place not in ("unborn", "sha256"):
        (folder / "deep" / "down").mkdir(parents=True)
        (folder / "deep" / "file").write_text("x")
        repository.git("add", "-A")
        repository.git("commit", "-q", "-m", "start")
    if place == "subfolder":
        folder = folder / "deep" / "down"
    elif place == "worktree":
        repository.git("worktree", "add", "-q", str(tmp_path / "tree"))
        folder = tmp_path / "tree"
    elif place == "bare":
        folder = Repository(tmp_path / "bare.git", bare=True).folder
    elif place == "detached":
        repository.git("checkout", "-q", "--detach")
    elif place == "shallow":
        repository.git("clone", "-q", "--depth=1", f"file://{repository.folder}", str(tmp_path / "clone"))
        folder = tmp_path / "clone"
    elif place == "sha256":
        folder = tmp_path / "modern"
        folder.mkdir()
        repository.git("init", "-q", "--object-format=sha256", cwd=folder)
    backend = opened(folder)
    memory = add(backend, f"remembered in {place}")
    commit(backend, Edit(before=memory, after=replace(memory, pinned=True)), action=Action.PIN)
    assert contents(opened(folder, index="again.db")) == [f"remembered in {place}"]
    if place != "bare":
        assert repository.git("status", "--porcelain", cwd=folder) == ""


def test_worktrees_of_one_repository_share_their_memories(
    repository: Repository, opened: Callable[..., Backend], tmp_path: Path
) -> None:
    repository.git("commit", "-q", "--allow-empty", "-m", "start")
    repository.git("worktree", "add", "-q", str(tmp_path / "tree"))
    backend = opened(repository.folder)
    project = register(backend, repository.folder)
    add(backend, "shared", project=project)
    other = opened(tmp_path / "tree", index="tree.db")
    assert register(other, tmp_path / "tree") == project
    assert contents(other) == ["shared"]


def test_variables_of_a_surrounding_hook_lead_nowhere(
    repository: Repository, opened: Callable[..., Backend], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = Repository(tmp_path / "other")
    other.git("commit", "-q", "--allow-empty", "-m", "start")
    before = other.git("for-each-ref")
    monkeypatch.setenv("GIT_DIR", str(other.folder / ".git"))
    monkeypatch.setenv("GIT_WORK_TREE", str(other.folder))
    monkeypatch.setenv("GIT_INDEX_FILE", str(other.folder / ".git" / "index"))
    add(opened(repository.folder), "in the right place")
    assert len(repository.lines()) == 1
    assert other.git("for-each-ref") == before


def test_it_writes_without_an_identity_and_without_signing(
    repository: Repository, opened: Callable[..., Backend], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path / "nobody"))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "nobody"))
    monkeypatch.setenv("GIT_CONFIG_NOSYSTEM", "1")
    for setting in ("user.useConfigOnly", "commit.gpgSign", "core.autocrlf"):
        repository.git("config", setting, "true")
    hook = repository.folder / ".git" / "hooks" / "reference-transaction"
    hook.write_text("#!/bin/sh\nexit 1\n")
    hook.chmod(0o755)
    add(opened(repository.folder), "nobody wrote this\r\nfor certain")
    assert repository.git("log", "-1", "--format=%an <%ae>", REF) == "Backstory <backstory@localhost>"
    assert r"this\r\nfor" in repository.lines()[0]


def test_it_writes_as_whoever_works_here(repository: Repository, opened: Callable[..., Backend]) -> None:
    repository.git("config", "user.name", "Grace Ünal")
    repository.git("config", "user.email", "grace@example.invalid")
    add(opened(repository.folder), "by somebody")
    assert repository.git("log", "-1", "--format=%an <%ae>", REF) == "Grace Ünal <grace@example.invalid>"


def test_outside_a_repository_nothing_is_said_to_be_stored(opened: Callable[..., Backend], tmp_path: Path) -> None:
    (tmp_path / "plain").mkdir()
    backend = opened(tmp_path / "plain")
    with pytest.raises(StoreUnavailable, match="not in a git repository"):
        add(backend, "nowhere")
    with pytest.raises(StoreUnavailable, match="does not exist"):
        add(opened(tmp_path / "missing", index="m.db"), "nowhere")


def test_a_repository_of_another_user_is_refused_with_the_command_that_helps(
    repository: Repository, opened: Callable[..., Backend], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("GIT_CONFIG_NOSYSTEM", "1")
    monkeypatch.setenv("GIT_TEST_ASSUME_DIFFERENT_OWNER", "1")
    with pytest.raises(StoreUnavailable, match=r"git config --global --add safe\.directory"):
        add(opened(repository.folder), "not mine")
    assert not (tmp_path / ".gitconfig").exists()


def test_without_git_it_says_so(
    repository: Repository, opened: Callable[..., Backend], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(StoreUnavailable, match="git is not installed"):
        add(opened(repository.folder), "x")


def test_memories_survive_a_collection_of_garbage_at_any_time(
    repository: Repository, opened: Callable[..., Backend]
) -> None:
    repository.git("commit", "-q", "--allow-empty", "-m", "start")
    backend = opened(repository.folder)
    stop = repository.folder.parent / "stop"
    script = f"while [ ! -e {stop} ]; do git gc -q --prune=now; git prune --expire=now; done"
    collector = subprocess.Popen(["sh", "-c", script], cwd=repository.folder, stderr=subprocess.DEVNULL)
    try:
        for number in range(12):
            add(backend, f"collected {number}")
    finally:
        stop.touch()
        collector.wait(60)
    repository.git("fsck", "--strict", "--connectivity-only")
    git = repository.folder / ".git"
    assert [*git.glob("fast_import_crash*"), *git.glob("objects/pack/*.keep"), *git.glob("objects/pack/tmp*")] == []
    repository.git("gc", "-q", "--prune=now")
    assert len(everything(opened(repository.folder, index="again.db"))) == 12


def test_a_ref_whose_newest_objects_were_removed_is_mended_by_the_next_write(
    repository: Repository, opened: Callable[..., Backend]
) -> None:
    backend = opened(repository.folder)
    for number in range(3):
        add(backend, f"written {number}")
    tip = repository.git("rev-parse", REF)
    names = (tip, f"{tip}^{{tree}}", f"{tip}:{LINES}/2026-03-02.logfmt")
    for oid in [repository.git("rev-parse", name) for name in names]:
        (repository.folder / ".git" / "objects" / oid[:2] / oid[2:]).unlink()
    add(backend, "and one more")
    repository.git("fsck", "--strict")
    assert len(contents(opened(repository.folder, index="again.db"))) == 4


def test_the_first_commit_never_becomes_the_identity_of_the_repository(
    repository: Repository, opened: Callable[..., Backend]
) -> None:
    repository.git("commit", "-q", "--allow-empty", "-m", "start")
    root = repository.git("rev-parse", "HEAD")
    add(opened(repository.folder), "an orphan")
    roots = repository.git("rev-list", "--max-parents=0", "--all").splitlines()
    assert len(roots) == 2
    assert roots[0] == root
    assert min(roots) == root
    assert max(roots).startswith("ffffffa7")


def test_every_process_of_git_ends_with_the_store(repository: Repository, opened: Callable[..., Backend]) -> None:
    backend = opened(repository.folder)
    add(backend, "x")
    run(backend.memories.close)
    if shutil.which("pgrep"):
        left = subprocess.run(["pgrep", "-P", str(os.getpid()), "git"], capture_output=True, text=True).stdout
        assert left == ""


def test_a_change_is_the_same_text_for_everybody() -> None:
    edits = (Edit(before=None, after=FULL_MEMORY), Edit(before=FULL_MEMORY, after=replace(FULL_MEMORY, revision=2)))
    change = Change(
        id=ChangeId(IDS.new_id()), at=START + timedelta(microseconds=7), author=Author.AGENT, action=Action.IMPORT,
        edits=edits, reason="because\nof “this”", undoes=ChangeId(IDS.new_id()), key="k",
    )  # fmt: skip
    text = encode_change(change)
    assert decode_change(text) == change
    assert encode_change(decode_change(text)) == text
    for broken in ("", "{}", "[]", text.replace('"version": 1', '"version": 2'), text.split("\n")[0]):
        with pytest.raises(InputError):
            decode_change(broken)
    assert json.loads(text.split("\n")[0])["action"] == "import"
    assert MemoryId(FULL_MEMORY.id) in text
