"""The git store over real repositories: what stands on the ref, who else may write there, and what is never touched."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import textwrap
from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest

from backstory.codecs.change import decode_change, encode_change
from backstory.codecs.logfmt import parse_lines
from backstory.domain.history import Action, Author, Change, Edit, undo_edits
from backstory.domain.ids import ChangeId, MemoryId
from backstory.domain.lifecycle import forget
from backstory.domain.memory import Counters, Kind, Sensitivity
from backstory.domain.provenance import Provenance
from backstory.domain.selection import EVERY_STATE
from backstory.errors import InputError
from backstory.ports.backend import Backend
from backstory.ports.store import Use
from backstory.ports.upkeep import Severity, StoreUpkeep
from backstory.testing.fakes import FULL_MEMORY, START, sample_memory
from tests.integration.git_repositories import IDS, LINES, REF, Repository, add, commit, contents, everything, run
from tests.integration.git_repositories import opened as opened
from tests.integration.git_repositories import repository as repository


def upkeep_of(backend: Backend) -> StoreUpkeep:
    assert backend.upkeep is not None
    return backend.upkeep


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
