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
from backstory.domain.ids import MemoryId, SessionId
from backstory.domain.lifecycle import supersede
from backstory.domain.memory import Conflicted, Memory, Sensitivity, Tier, Visibility
from backstory.domain.provenance import Origin
from backstory.domain.scope import Viewer
from backstory.domain.selection import EVERY_STATE
from backstory.ports.upkeep import Severity
from backstory.testing.fakes import START
from tests.integration.git_clones import REF, Clone, check, git
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


# --- what the user said is not displaced ------------------------------------------------------------------------------


def forget_ours(team: Team) -> None:
    team.theirs.forget(team.seen, minutes=3)


def let_it_expire(team: Team) -> None:
    team.theirs.commit(Edit(before=team.seen, after=replace(team.seen, expires_at=START)), minutes=3)


def dispute(team: Team) -> None:
    disputed = replace(team.seen, status=Conflicted(evidence=LIE, since=START))
    team.theirs.commit(Edit(before=team.seen, after=disputed), minutes=3, action=Action.CONFLICT)


def narrow(team: Team) -> None:
    hidden = replace(team.seen, visibility=Visibility.SESSION, session=SessionId("ses_theirs"))
    team.theirs.commit(Edit(before=team.seen, after=hidden), minutes=3)


def reword_both(team: Team) -> None:
    """They reword, later than we said it once more in other words, which are the true ones."""
    (ours,) = team.ours.memories()
    team.ours.commit(Edit(before=ours, after=replace(ours, tags=("ours",))), minutes=2)
    reword(team)


def cut_the_line(team: Team) -> None:
    team.rewrite(lambda text: "" if TRUTH in text and not text.startswith("{") else text)


DISPLACING = (reword, replace_it, forget_ours, let_it_expire, dispute, narrow, reword_both, cut_the_line,
              write_our_change_anew)  # fmt: skip


@pytest.mark.parametrize("way", DISPLACING)
def test_what_the_user_said_still_holds_whatever_others_make_of_it(team: Team, way: Callable[[Team], None]) -> None:
    way(team)
    team.ours.sync()
    held = [memory for memory in team.ours.memories() if memory.content == TRUTH and memory.origin is Origin.USER]
    assert len(held) == 1
    assert TRUTH in team.shown()
    assert MARK not in team.shown()
    assert [finding for finding in check(team.ours) if finding.severity is not Severity.NOTE] == []


@pytest.mark.parametrize("way", [reword, forget_ours, replace_it])
def test_sync_says_what_was_kept_and_goes_on_without_end_or_growth(team: Team, way: Callable[[Team], None]) -> None:
    way(team)
    team.theirs.sync()
    (kept,) = team.ours.sync().kept
    assert (kept.said, kept.changed) == (TRUTH, team.seen.n)
    assert kept.now == (LIE if way is reword else TRUTH if way is replace_it else None)
    counts = []
    for _ in range(3):
        team.exchange()
        counts.append(len(team.ours.memories(states=EVERY_STATE)))
        assert team.ours.sync().kept == ()
    assert len(set(counts)) == 1
    assert team.ours.tree() == team.theirs.tree()


def test_of_two_users_each_keeps_what_he_said(team: Team) -> None:
    """Theirs is the newer wording of one memory; on their clone it is their user's word."""
    theirs = "Our service is deployed on Tuesdays, by hand."
    team.theirs.commit(Edit(before=team.seen, after=replace(team.seen, content=theirs, origin=Origin.USER)), minutes=3)
    for _ in range(3):
        team.exchange()
    for clone, said in ((team.ours, TRUTH), (team.theirs, theirs)):
        own = [memory.content for memory in clone.memories() if memory.origin is Origin.USER]
        assert own == [said]


def test_with_a_person_who_vouches_the_others_word_counts(team: Team) -> None:
    forget_ours(team)
    team.theirs.sync()
    assert team.ours.sync(trusted=True).kept == ()
    assert team.ours.memories() == []


def test_a_statement_that_was_made_private_is_not_said_again_on_the_ref(team: Team) -> None:
    hidden = replace(team.seen, sensitivity=Sensitivity.PRIVATE)
    team.theirs.commit(Edit(before=team.seen, after=hidden), minutes=3)
    team.exchange()
    files = git(team.ours.folder, "ls-tree", "-r", "--name-only", REF).split()
    days = [path for path in files if path.endswith(".logfmt") and "/2026" in path]
    assert days
    for path in days:
        assert TRUTH not in git(team.ours.folder, "show", f"{REF}:{path}")
    held = [(memory.content, memory.sensitivity) for memory in team.ours.memories()]
    assert held == [(TRUTH, Sensitivity.PRIVATE)]
