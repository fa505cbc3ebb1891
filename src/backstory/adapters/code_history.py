"""What the history of a repository knows of files and names that are not there now: that they were, where they went.

Running git is in ``code_repository.py``.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from pathlib import PurePosixPath

from backstory.adapters.code_files import CodeFiles, blob_id
from backstory.adapters.code_names import NamesInCode
from backstory.adapters.code_repository import Change, CodeRepository, OutOfTime

MAX_CHANGES = 300_000
_MOST_MOVES = 5  # of one file, followed to where it is now


class CodeHistory:
    """The way to the commit that is checked out, and from there to the files on the disk."""

    def __init__(self, repository: CodeRepository, files: CodeFiles) -> None:
        self._repository = repository
        self._files = files
        self._changes: list[Change] = []
        self._since: int | None = None
        self.known_since = 0
        """How far back all was read, in seconds; 0 where nothing was left out for want of time."""
        self._renames: dict[str | None, Mapping[str, str]] = {}

    def departures(self, paths: Iterable[str], *, since: int) -> dict[str, Change]:
        """How files and folders went that are not there now, each by its last going, uncommitted before committed.

        One that went before ``since`` is known by its full path only.
        """
        wanted = _Wanted(paths)
        found = wanted.among(Change(commit=None, at=0, path=path) for path in self._head)
        found |= wanted.among(change for change in self._changes_since(since) if change.left)
        if wanted:
            found |= wanted.among(self._repository.deletions(wanted.names()), to_the_letter=True)
        return found

    def destination(self, change: Change) -> str | None:
        """Where a file that went is now; None where it was deleted."""
        for _ in range(_MOST_MOVES):
            target = change.moved_to
            if change.commit is None or not change.old:  # where git has not looked for moves yet
                target = self._moved_by(change.commit).get(change.path)
            if target is None or self._files.find(target) == target:
                return target
            later = self.departures([target], since=change.at).get(target)
            if later is None:
                return None
            change = later
        return None

    def losses(self, names: NamesInCode, *, places: Iterable[str], since: int) -> dict[str, list[Change]]:
        """The changes since then by which files lost names, newest first, uncommitted ones before all.

        Of files whose content is still somewhere, only those at ``places`` are looked at: what they hold is not lost.
        """
        at_place, now = frozenset(places), self._files.ids
        changes = [*self._uncommitted(), *self._changes_since(since)]
        told = [change for change in changes if change.old not in now or change.path in at_place]
        held = self._names_in(told, names)
        lost: dict[str, list[Change]] = defaultdict(list)
        for change in told:
            has_left = change.path in at_place and change.left
            for name in held.get(change.old, frozenset()):
                if has_left or name not in held.get(change.new, frozenset()):
                    lost[name].append(change)
        return lost

    def _names_in(self, changes: Sequence[Change], names: NamesInCode) -> dict[str, frozenset[str]]:
        """The names that the old contents of files held, as far as there is time to read them."""
        order = {blob: place for place, blob in enumerate(dict.fromkeys(change.old for change in changes))}
        held: dict[str, frozenset[str]] = {}
        last = -1
        try:
            for blob, data in self._repository.blobs(list(order)):
                last = order[blob]
                if found := names.in_old_code(data):
                    held[blob] = frozenset(found)
        except OutOfTime:
            unread = (change.at for change in changes if order[change.old] > last)
            self.known_since = max([self.known_since, *unread]) + 1
        return held

    def _changes_since(self, since: int) -> Sequence[Change]:
        """Newest first. Half of the time that is left is for finding them, so that some is left for reading them."""
        if self._since is None or since < self._since:
            self._changes = []
            self._since = since
            least_left_s = self._repository.left_s / 2
            for change in self._repository.changes(since=since):
                self._changes.append(change)
                if len(self._changes) > MAX_CHANGES or self._repository.left_s < least_left_s:
                    self.known_since = max(self.known_since, change.at + 1)
                    break
        return self._changes

    def _uncommitted(self) -> list[Change]:
        now = self._files.ids
        return [Change(commit=None, at=0, path=path, old=blob) for path, blob in self._head.items() if blob not in now]

    @cached_property
    def _head(self) -> Mapping[str, str]:
        return self._repository.tree()

    def _moved_by(self, commit: str | None) -> Mapping[str, str]:
        if commit not in self._renames:
            moved = self._moved_on_disk() if commit is None else {}
            self._renames[commit] = moved | self._repository.renames(commit)
        return self._renames[commit]

    def _moved_on_disk(self) -> dict[str, str]:
        """Files that are no more where they were, and otherwise the same where git does not look yet."""
        new = {blob_id(data): path for path in self._files.untracked if (data := self._repository.file(path))}
        gone = (path for path in self._head if not self._repository.is_on_disk(path))
        return {path: new[self._head[path]] for path in gone if self._head[path] in new}


class _Wanted:
    """Files and folders that are looked for, as memories name them: by the end of their path."""

    def __init__(self, paths: Iterable[str]) -> None:
        self._files: dict[str, set[str]] = defaultdict(set)
        self._folders: set[str] = set()
        for path in paths:
            if path.endswith("/"):
                self._folders.add(path)
            else:
                self._files[PurePosixPath(path).name].add(path)

    def __bool__(self) -> bool:
        return bool(self._folders) or any(self._files.values())

    def names(self) -> list[str]:
        """All of them, as git names them."""
        folders = (folder.removesuffix("/") for folder in self._folders)
        return sorted({*folders, *(path for paths in self._files.values() for path in paths)})

    def among(self, changes: Iterable[Change], *, to_the_letter: bool = False) -> dict[str, Change]:
        """The first change of each, which is not looked for any more then."""
        found: dict[str, Change] = {}
        for change in changes:
            for path in self._meant_by(change.path, to_the_letter=to_the_letter):
                found[path] = change
                self._files[PurePosixPath(path).name].discard(path)
                self._folders.discard(path)
            if not self:
                break
        return found

    def _meant_by(self, file: str, *, to_the_letter: bool) -> list[str]:
        whole = f"/{file}"
        ends = [path for path in self._files.get(PurePosixPath(file).name, ()) if whole.endswith(f"/{path}")]
        inside = [path for path in self._folders if f"/{path}" in f"{whole}/"]
        if not to_the_letter:
            return [*ends, *inside]
        return [path for path in [*ends, *inside] if f"{file}/".startswith(path.removesuffix("/") + "/")]
