"""Looks up in a git repository whether what memories name is still there, and whether it ever was.

The files of now are in ``code_files.py``, those of the past in ``code_history.py``.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path

from backstory.adapters.blocking import run_blocking
from backstory.adapters.code_files import CodeFiles
from backstory.adapters.code_history import CodeHistory
from backstory.adapters.code_names import NamesInCode, defines
from backstory.adapters.code_repository import Change, CodeRepository, OutOfTime
from backstory.adapters.project_folder import project_root
from backstory.adapters.stores.gitbranch.git import GitFailed
from backstory.domain.anchor_findings import Claim, Elsewhere, Finding, Gone, OffBranch
from backstory.domain.anchors import AnchorKind
from backstory.errors import StoreUnavailable
from backstory.ports.code import Looked, Progress

HEAD_WITHIN_S = 5.0
_SHALLOW = "the clone is shallow: what went before its first commit cannot be told, and commits are not looked up"
_SIDE = ("test", "spec", "doc", "example", "fixture", "changelog", "readme")


class GitCodeAnchors:
    """The port ``CodeAnchors`` over git."""

    async def look(
        self, folder: Path, claims: Sequence[Claim], *, within: timedelta, progress: Progress | None = None
    ) -> Looked:
        return await run_blocking(partial(_look, folder, claims, within, progress or (lambda count: None)))

    async def head(self, folder: Path) -> str | None:
        return await run_blocking(partial(_head, folder))


def _head(folder: Path) -> str | None:
    try:
        return CodeRepository(project_root(folder), within_s=HEAD_WITHIN_S).head()
    except (StoreUnavailable, GitFailed, OutOfTime):
        return None


def _look(folder: Path, claims: Sequence[Claim], within: timedelta, progress: Progress) -> Looked:
    try:
        repository = CodeRepository(project_root(folder), within_s=within.total_seconds())
        if repository.head() is None:
            return _cannot(claims, "the repository has no commit yet: there is no history to tell what is gone")
        if repository.is_bare():
            return _cannot(claims, "the repository is bare: there are no files to look at")
        return _Look(repository, progress).run(claims)
    except OutOfTime:
        return _cannot(claims, "there was not enough time")
    except (StoreUnavailable, GitFailed) as error:
        return _cannot(claims, str(error).removesuffix("; nothing was stored"))


def _cannot(claims: Sequence[Claim], why: str) -> Looked:
    return Looked(undecided=frozenset(claims), cannot=why)


class _Look:
    """One look at one checkout."""

    def __init__(self, repository: CodeRepository, progress: Progress) -> None:
        self._repository = repository
        self._progress = progress
        self._files = CodeFiles(repository)
        self._history = CodeHistory(repository, self._files)
        self._findings: dict[Claim, Finding] = {}
        self._undecided: set[Claim] = set()

    def run(self, claims: Sequence[Claim]) -> Looked:
        by_kind: dict[AnchorKind, list[Claim]] = defaultdict(list)
        for claim in dict.fromkeys(claims):
            by_kind[claim.anchor.kind].append(claim)
        is_shallow = self._repository.is_shallow()
        self._within_time(by_kind[AnchorKind.PATH], self._paths)
        self._within_time([*by_kind[AnchorKind.SYMBOL], *by_kind[AnchorKind.FLAG]], self._names)
        if not is_shallow:
            self._within_time(by_kind[AnchorKind.COMMIT], self._commits)
        notes = (_SHALLOW,) if is_shallow else ()
        return Looked(findings=self._findings, undecided=frozenset(self._undecided), notes=notes)

    def _within_time(self, claims: Sequence[Claim], look: Callable[[Sequence[Claim]], None]) -> None:
        """Look; what the time did not suffice for, or git refused to tell, stays undecided."""
        try:
            if claims:
                look(claims)
        except (OutOfTime, GitFailed):
            self._undecided.update(claim for claim in claims if claim not in self._findings)

    def _leave_open(self, claims: Iterable[Claim]) -> None:
        """What was not found wrong is undecided, where the history was not read back to its time."""
        known = self._history.known_since
        self._undecided.update(c for c in claims if c not in self._findings and int(c.at.timestamp()) < known)

    def _paths(self, claims: Sequence[Claim]) -> None:
        missing = [claim for claim in claims if self._files.find(claim.anchor.text) is None]
        ignored = self._repository.ignored([claim.anchor.text for claim in missing]) if missing else frozenset()
        missing = [claim for claim in missing if claim.anchor.text not in ignored]
        if not missing:
            return
        went = self._history.departures({claim.anchor.text for claim in missing}, since=_oldest(missing))
        for claim in missing:
            change = went.get(claim.anchor.text)
            if change is not None and (_is_later(change, claim) or _is_whole(change.path, claim.anchor.text)):
                moved_to = None if claim.anchor.text.endswith("/") else self._history.destination(change)
                self._findings[claim] = Gone(since=_day(change), moved_to=moved_to)
        self._leave_open(missing)

    def _commits(self, claims: Sequence[Claim]) -> None:
        full = self._repository.commits([claim.anchor.text for claim in claims])
        for claim in claims:
            commit = full.get(claim.anchor.text)
            if commit is not None and not self._repository.is_reachable(commit):
                self._findings[claim] = OffBranch()

    def _names(self, claims: Sequence[Claim]) -> None:
        at_home = self._at_home(claims)
        wanted = [claim for claim in claims if claim not in at_home]
        if not wanted:
            return
        placed = {claim.anchor.text for claim in wanted if claim.anchor.place}
        found = self._files.holding(_looking_for(wanted), keep=placed, progress=self._progress)
        absent = [claim for claim in wanted if claim.anchor.text not in found]
        strayed = [claim for claim in wanted if claim.anchor.text in found and claim.anchor.place]
        if not absent and not strayed:
            return
        lost = self._history.losses(
            _looking_for([*absent, *strayed]),
            places={self._home(claim) for claim in strayed},
            since=_oldest([*absent, *strayed]),
        )
        for claim in absent:
            losses = (change for change in lost.get(claim.anchor.text, ()) if _is_later(change, claim))
            if (change := next(losses, None)) is not None:
                self._findings[claim] = Gone(since=_day(change))
        for claim in strayed:
            here = (change for change in lost.get(claim.anchor.text, ()) if change.path == self._home(claim))
            if (change := next(here, None)) is not None and _is_later(change, claim):
                now_in = self._main_file(claim.anchor.text, found[claim.anchor.text])
                self._findings[claim] = Elsewhere(now_in=now_in, since=_day(change))
        self._leave_open([*absent, *strayed])

    def _home(self, claim: Claim) -> str:
        place = claim.anchor.place or ""
        return self._files.find(place) or place

    def _at_home(self, claims: Sequence[Claim]) -> set[Claim]:
        """Those whose name stands in the file in which the memory says it does."""
        by_place: dict[str, list[Claim]] = defaultdict(list)
        for claim in claims:
            if claim.anchor.place and (place := self._files.find(claim.anchor.place)):
                by_place[place].append(claim)
        at_home: set[Claim] = set()
        for place, placed in by_place.items():
            if (data := self._repository.file(place)) is not None:
                here = _looking_for(placed).in_code(data)
                at_home.update(claim for claim in placed if claim.anchor.text in here)
        return at_home

    def _main_file(self, name: str, files: Sequence[str]) -> str:
        """The file that declares a name, if one does; rather code than tests and documents."""

        def rank(path: str) -> tuple[bool, bool, str]:
            data = self._repository.file(path) or b""
            return not defines(data, name), any(word in path.lower() for word in _SIDE), path

        return min(files, key=rank)


def _looking_for(claims: Iterable[Claim]) -> NamesInCode:
    named = [claim.anchor for claim in claims]
    return NamesInCode(
        (anchor.text for anchor in named if anchor.kind is AnchorKind.SYMBOL),
        (anchor.text for anchor in named if anchor.kind is AnchorKind.FLAG),
    )


def _oldest(claims: Iterable[Claim]) -> int:
    return min(int(claim.at.timestamp()) for claim in claims)


def _is_later(change: Change, claim: Claim) -> bool:
    """Whether a change came after a claim, or in the same second, in which nobody can tell."""
    return change.commit is None or change.at >= int(claim.at.timestamp())


def _is_whole(path: str, named: str) -> bool:
    """Whether a memory names a path, or a folder above it, from the root."""
    return f"{path}/".startswith(named.removesuffix("/") + "/")


def _day(change: Change) -> datetime | None:
    return None if change.commit is None else datetime.fromtimestamp(change.at, UTC)
