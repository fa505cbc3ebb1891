"""The files of a checkout as they are on the disk, tracked or not: which there are, and what names stand in them."""

from __future__ import annotations

import hashlib
from collections import defaultdict
from collections.abc import Iterable
from pathlib import PurePosixPath

from backstory.adapters.code_names import NamesInCode
from backstory.adapters.code_repository import CodeRepository
from backstory.ports.code import Progress

_REPORTED_FILES = 100


class CodeFiles:
    """The files of the checkout as they are on the disk."""

    def __init__(self, repository: CodeRepository) -> None:
        self._repository = repository
        skipped = repository.skipped()
        self.untracked = repository.untracked()
        listed = dict.fromkeys([*repository.tracked(), *self.untracked])
        self.paths = [path for path in listed if path in skipped or repository.is_on_disk(path)]
        self._known = set(self.paths)
        self._ends: dict[str, list[str]] = defaultdict(list)
        for path in self.paths:
            self._ends[PurePosixPath(path).name].append(path)
        self._folders = {str(folder) for path in self.paths for folder in PurePosixPath(path).parents}
        self.ids: set[str] = set()
        """The blob ids of the files that ``holding`` has read."""

    def find(self, path: str) -> str | None:
        """The file or folder that a memory means: from the root, or by the end of its path."""
        name = path.removesuffix("/")
        if name in self._known or name in self._folders or self._repository.holds_something(name):
            return name
        if path.endswith("/"):
            return next((folder for folder in self._folders if folder.endswith("/" + name)), None)
        ending = "/" + name
        return next((known for known in self._ends.get(PurePosixPath(name).name, ()) if known.endswith(ending)), None)

    def holding(self, names: NamesInCode, *, keep: Iterable[str], progress: Progress) -> dict[str, list[str]]:
        """The files in which names stand; those outside ``keep`` only in the first one found. Reads no file more than
        it takes."""
        found: dict[str, list[str]] = defaultdict(list)
        kept = frozenset(keep)
        read = 0
        for path in self.paths:
            if not names:
                break
            if (data := self._repository.file(path)) is None:
                continue
            self._repository.left_s  # noqa: B018 - raises at the deadline
            self.ids.add(blob_id(data))
            here = names.in_code(data)
            for name in here:
                found[name].append(path)
            names.without(here - kept)
            read += 1
            if read % _REPORTED_FILES == 0:
                progress(_REPORTED_FILES)
        progress(read % _REPORTED_FILES)
        return found


def blob_id(data: bytes) -> str:
    """The id that git gives a file with this content, where no filter changes it on the way in."""
    return hashlib.sha1(b"blob %d\0" % len(data) + data, usedforsecurity=False).hexdigest()
