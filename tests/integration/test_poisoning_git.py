"""Whoever may push to a remote can write anything on the ref: what of it is believed, and what reaches a model."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path

import anyio
import pytest

from backstory.bootstrap import App
from backstory.config import load
from backstory.domain.history import Action, Edit
from backstory.domain.ids import MemoryId
from backstory.domain.memory import Memory, Tier, Visibility, supersede
from backstory.domain.provenance import Origin
from backstory.domain.scope import Viewer
from backstory.domain.selection import EVERY_STATE
from backstory.testing.fakes import START
from tests.integration.test_git_sync import REF, Clone, git
from tests.poisoned import ASKED, LIE, MARK, TRUTH

LINE = f'ts=2026-03-02T13:00:00.000Z type=decision scope=project content="{LIE}"\n'


class Team:
    """Two clones that share a statement of ours; the other one is the attacker's."""

    def __init__(self, folder: Path) -> None:
        subprocess.run(["git", "init", "-q", "--bare", "-b", "main", str(folder / "remote.git")], check=True)
        for name in ("ours", "theirs"):
            git(folder, "clone", "-q", str(folder / "remote.git"), name)
        self.ours, self.theirs = Clone(folder / "ours"), Clone(folder / "theirs")
        self.ours.add(TRUTH, origin=Origin.USER)
        self.exchange()
        (self.seen,) = self.theirs.memories()

    def exchange(self) -> None:
        """They push, we take it in and push, and they again."""
        for clone in (self.theirs, self.ours, self.theirs, self.ours):
            clone.sync()

    def lies(self) -> list[Memory]:
        return [memory for memory in self.ours.memories(states=EVERY_STATE) if MARK in memory.content]

    def shown(self) -> str:
        """What our model is shown unasked: a block, and a snapshot."""
        settings = load(env={}, project_root=None, flags={"store.url": "memory", "embedder.provider": "none"}).settings
        app = App(settings, self.ours.backend, None, no_embedder="off")
        viewer = Viewer(project=self.ours.project)
        block = self.ours.do(app.blocks.for_prompt, ASKED, viewer).text or ""
        snapshot = anyio.run(partial(app.blocks.snapshot, viewer, session=MemoryId("ses_new")))  # type: ignore[arg-type]
        return f"{block}{snapshot or ''}"

    def rewrite(self, edit: Callable[[str], str]) -> None:
        """Push a commit in which every file of the ref is another, as no tool of ours would."""
        folder = self.theirs.folder
        environ = {**os.environ, "GIT_INDEX_FILE": str(folder / ".git" / "other.index")}

        def run(*arguments: str, data: bytes = b"") -> str:
            command = ["git", "-c", "user.name=Eve", "-c", "user.email=eve@example.invalid", *arguments]
            done = subprocess.run(command, cwd=folder, env=environ, input=data, capture_output=True, check=True)
            return done.stdout.decode().strip()

        run("read-tree", REF)
        for path in git(folder, "ls-tree", "-r", "--name-only", REF).splitlines():
            blob = run("hash-object", "-w", "--stdin", data=edit(run("show", f"{REF}:{path}") + "\n").encode())
            run("update-index", "--cacheinfo", f"100644,{blob},{path}")
        run("update-ref", REF, run("commit-tree", run("write-tree"), "-p", REF, "-m", "rewritten"))
        run("push", "-q", "origin", f"{REF}:{REF}")

    def close(self) -> None:
        self.ours.close()
        self.theirs.close()


@pytest.fixture
def team(tmp_path: Path) -> Iterator[Team]:
    made = Team(tmp_path)
    yield made
    made.close()


def add(team: Team) -> None:
    team.theirs.add(LIE, origin=Origin.USER, pinned=True, tier=Tier.CORE, minutes=2)


def add_everywhere(team: Team) -> None:
    team.theirs.add(LIE, origin=Origin.USER, visibility=Visibility.GLOBAL, pinned=True, minutes=2)


def reword(team: Team) -> None:
    team.theirs.commit(Edit(before=team.seen, after=replace(team.seen, content=LIE, origin=Origin.USER)), minutes=3)


def replace_it(team: Team) -> None:
    lie = team.theirs.add(LIE, origin=Origin.USER, pinned=True, minutes=2)
    team.theirs.commit(Edit(before=team.seen, after=supersede(team.seen, by=lie.id, now=START)), minutes=3)


def add_and_retag_twice(team: Team) -> None:
    """Sent to us, touched by us, and touched by them again."""
    lie = team.theirs.add(LIE, origin=Origin.USER, minutes=2)
    team.exchange()
    (ours,) = team.lies()
    ours = team.ours.commit(Edit(before=ours, after=replace(ours, tags=("ours",))), minutes=4, action=Action.UPDATE)
    team.exchange()
    (theirs,) = [memory for memory in team.theirs.memories() if memory.id == lie.id]
    team.theirs.commit(Edit(before=theirs, after=replace(theirs, tags=("user",), origin=Origin.USER)), minutes=6)


def write_a_line(team: Team) -> None:
    """As another tool on the same ref does."""
    team.rewrite(lambda text: text + LINE if TRUTH in text and not text.startswith("{") else text)


def write_our_change_anew(team: Team) -> None:
    """The file of a change that we made, under its own name, with their words in it."""
    team.rewrite(lambda text: text.replace(TRUTH, LIE))


WAYS = (add, add_everywhere, reword, replace_it, add_and_retag_twice, write_a_line, write_our_change_anew)


@pytest.mark.parametrize("way", WAYS)
def test_what_others_put_on_the_ref_is_never_our_users_word(team: Team, way: Callable[[Team], None]) -> None:
    way(team)
    if way in (write_a_line, write_our_change_anew):
        team.ours.sync()
    else:
        team.exchange()
    assert team.lies()
    assert {memory.origin for memory in team.lies()} <= {Origin.PEER, Origin.IMPORTED}
    assert MARK not in team.shown()


def test_what_we_said_ourselves_is_shown(team: Team) -> None:
    """Without this the test before it would prove nothing."""
    add(team)
    team.exchange()
    assert TRUTH in team.shown()
