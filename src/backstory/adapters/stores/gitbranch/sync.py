"""Exchanging the ref with a remote: fetch, merge, push, until both are the same or it did not work often enough.

Only the memory ref travels. Nothing is asked on a terminal, and no hook of the repository runs here: hooks such as
pre-push are about code. What the remote runs is its own affair.
"""

from __future__ import annotations

import hashlib
import random
import re
import sqlite3
import time
from collections.abc import Set
from dataclasses import dataclass, replace

from backstory.adapters.stores.gitbranch import index
from backstory.adapters.stores.gitbranch.git import Git, GitFailed
from backstory.adapters.stores.gitbranch.merging import Merge, changes_between, merge
from backstory.adapters.stores.gitbranch.publishing import write_down_found
from backstory.adapters.stores.gitbranch.reference import Moved, Reference
from backstory.errors import InputError, StoreUnavailable
from backstory.ports.synchronisation import Synchronised

ATTEMPTS = 10
_LONGEST_PAUSE_S = 2.0
_MOVED = re.compile(
    "rejected|non-fast-forward|fetch first|stale info|cannot lock ref|failed to update ref|reference already exists"
)
_PLAIN = re.compile(r"[A-Za-z0-9._-]+")
_TRAVEL = ("push.gpgSign=false", "push.followTags=false", "push.recurseSubmodules=no", "fetch.recurseSubmodules=no",
           "fetch.prune=false", "fetch.writeCommitGraph=false")  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class Remote:
    """A remote, as git knows it or as an address, and the ref that remembers what it had."""

    git: Git
    name: str
    ref: str

    @property
    def tracking(self) -> str:
        plain = self.name if _PLAIN.fullmatch(self.name) else hashlib.sha256(self.name.encode()).hexdigest()[:16]
        return f"refs/backstory/{plain}/{self.ref.removeprefix('refs/')}"

    def fetch(self, *, erased: Set[str] = frozenset()) -> str | None:
        """The commit that the remote has; None without one. Raises StoreUnavailable, and Conflict, before anything is
        fetched, where it is one of ``erased``."""
        listed = self._run("ls-remote", self.name, self.ref).decode("ascii", "replace").split()
        if not listed:
            return None
        if listed[0] in erased:
            from backstory.adapters.stores.gitbranch.erased_commits import still_there

            raise still_there(self.ref, self.name, listed[0])
        self._run("fetch", "--quiet", "--no-tags", "--no-write-fetch-head", "--refmap=", self.name,
                  f"+{self.ref}:{self.tracking}")  # fmt: skip
        return self.git.line("rev-parse", "--verify", f"{self.tracking}^{{commit}}")

    def leave(self, commit: str) -> None:
        """Let go of a commit that was fetched, with every object that only it leads to."""
        from backstory.adapters.stores.gitbranch.erased_objects import remove_unreachable

        self.git.run("update-ref", "-d", self.tracking)
        remove_unreachable(self.git, [commit])

    def push(self, commit: str) -> bool:
        """Give the remote a commit; False when somebody else was first. Raises StoreUnavailable."""
        try:
            self._run("push", "--quiet", "--no-verify", self.name, f"{commit}:{self.ref}")
        except GitFailed as error:
            if _MOVED.search(error.stderr) and "hook declined" not in error.stderr:
                return False
            raise
        self.git.run("update-ref", self.tracking, commit)
        return True

    def _run(self, *arguments: str) -> bytes:
        return self.git.run(*arguments, settings=_TRAVEL, remote=True)


def find_remote(git: Git, name: str | None, ref: str) -> Remote:
    """The remote that is meant: the one named, else ``origin``, else the only one. Raises InputError."""
    known = git.run("remote").decode("utf-8", "replace").split()
    if name is not None:
        is_address = ":" in name or "/" in name
        if name.startswith("-") or not (name in known or is_address):
            raise InputError(f"there is no remote {name!r}; known are: {', '.join(known) or 'none'}", field="remote")
        return Remote(git=git, name=name, ref=ref)
    if "origin" in known or len(known) == 1:
        return Remote(git=git, name="origin" if "origin" in known else known[0], ref=ref)
    if not known:
        raise InputError("the repository has no remote", field="remote", hint="add one with `git remote add`")
    what = f"name one of {', '.join(known)}"
    raise InputError("it is not clear which remote is meant", field="remote", hint=what)


@dataclass(frozen=True, slots=True, kw_only=True)
class Joined:
    """Where the local ref is after it took in a remote's commit, and what that meant."""

    tip: str | None
    report: Synchronised
    merge: Merge | None = None


def join(raw: sqlite3.Connection, reference: Reference, remote: Remote, theirs: str | None, *, dry_run: bool) -> Joined:
    """Take the remote's commit in: nothing to do, a step forward, or a merge. Raises Moved."""
    ours = reference.tip()
    report = Synchronised(remote=remote.name, ref=reference.name)
    if theirs is None or theirs == ours or (ours is not None and _contains(reference, ours, theirs)):
        sent = 0 if ours is None or theirs == ours else changes_between(reference, theirs, ours)
        return Joined(tip=ours, report=replace(report, sent=sent))
    if ours is None or _contains(reference, theirs, ours):
        if not dry_run:
            _step(reference, theirs, ours)
        return Joined(tip=theirs, report=replace(report, received=changes_between(reference, ours, theirs)))
    if not dry_run:
        write_down_found(raw, reference)
        ours = reference.tip() or ours
    base = _base(reference, ours, theirs)
    found = merge(reference, ours, theirs, base, highest=index.highest_number_on(raw, reference.name))
    report = replace(
        report, received=found.received, sent=found.sent, disagreements=tuple(found.disagreements),
        renumbered=tuple(found.renumbered),
    )  # fmt: skip
    tip = ours if dry_run else reference.commit(found.commit, at=found.at).commit
    return Joined(tip=tip, report=report, merge=found)


def pause(attempt: int) -> None:
    """Wait a little before the next attempt, longer each time, and not as long as the others who lost the same race."""
    time.sleep(random.uniform(0.2, 1.0) * min(0.05 * 2**attempt, _LONGEST_PAUSE_S))


def gave_up(remote: Remote) -> StoreUnavailable:
    """What to raise when the remote moved each time."""
    return StoreUnavailable(
        f"{remote.ref} of {remote.name} was written to by others {ATTEMPTS} times in a row; what came was taken in, "
        "what is here was not sent; try again"
    )


def _contains(reference: Reference, newer: str, older: str) -> bool:
    try:
        reference.git.look("merge-base", "--is-ancestor", older, newer)
    except GitFailed as error:
        if error.exit_code != 1:
            raise
        return False
    return True


def _base(reference: Reference, ours: str, theirs: str) -> str | None:
    try:
        return sorted(reference.git.look("merge-base", "--all", ours, theirs).decode("ascii").split())[0]
    except GitFailed as error:
        if error.exit_code != 1:
            raise
        return None


def _step(reference: Reference, to: str, ours: str | None) -> None:
    try:
        reference.git.run("update-ref", reference.name, to, ours or "0" * len(to))
    except GitFailed as error:
        raise Moved from error
