"""Clones of one repository exchange their memories through real remotes, and end up with the same."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
from collections.abc import Callable
from pathlib import Path

import anyio
import pytest

from backstory.adapters.stores.memory import open_memory_store
from backstory.domain.memory import Deleted, Sensitivity
from backstory.domain.provenance import Origin
from backstory.domain.scope import Audience, Viewer
from backstory.domain.selection import EVERY_STATE, Selection
from backstory.errors import InputError, StoreUnavailable
from backstory.services.synchronise import Synchronise
from backstory.testing.fakes import START
from tests.integration.git_clones import REF, Clone, git
from tests.integration.git_clones import clone as clone
from tests.integration.git_clones import remote as remote


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
    with pytest.raises(InputError, match="has no remote"):
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
    assert [process.wait(240) for process in running] == [0, 0, 0]
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
