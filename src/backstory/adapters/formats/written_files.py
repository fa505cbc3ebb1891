"""Files written for another product: complete before anything of them stands in its place, readable by their owner."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType

from backstory.errors import InputError


class FolderDraft:
    """The new contents of a folder, kept aside in it until all is there.

    As a context manager: left without an error it moves everything to its place, otherwise it leaves no trace. Names in
    ``whole`` are the folders, at the top of the new contents, that replace an older one with all that is in it; any
    other file takes the place of the one of its name alone.
    """

    def __init__(self, folder: Path, *, whole: Sequence[str] = ()) -> None:
        self._folder = folder
        self._whole = whole
        self._paths: list[str] = []

    def __enter__(self) -> FolderDraft:
        """Raises InputError where the folder cannot be made or written in."""
        try:
            self._folder.mkdir(parents=True, exist_ok=True, mode=0o700)
            self._aside = Path(tempfile.mkdtemp(prefix=".backstory-", dir=self._folder))
        except OSError as error:
            raise _unwritable(self._folder, error) from error
        return self

    def put(self, path: str, content: bytes) -> None:
        """A file by its path from the folder, with ``/`` between names. The caller vouches for the names."""
        place = self._aside / "new" / path
        try:
            place.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            write_private(place, content)
        except OSError as error:
            raise _unwritable(self._folder / path, error) from error
        self._paths.append(path)

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        try:
            if kind is None:
                self._move()
        except OSError as failed:
            raise _unwritable(self._folder, failed) from failed
        finally:
            shutil.rmtree(self._aside, ignore_errors=True)

    @property
    def files(self) -> list[Path]:
        """What was put, where it stands in the end."""
        return [self._folder / path for path in self._paths]

    def _move(self) -> None:
        self._check_links()
        for name in self._whole:
            new, place = self._aside / "new" / name, self._folder / name
            if os.path.lexists(place):
                place.replace(self._aside / f"old-{name}")
            if new.exists():
                new.replace(place)
        for path in self._paths:
            if path.partition("/")[0] not in self._whole:
                (self._folder / path).parent.mkdir(parents=True, exist_ok=True, mode=0o700)
                (self._aside / "new" / path).replace(self._folder / path)

    def _check_links(self) -> None:
        """Raise InputError where a link in the folder leads out of it: whoever made the folder chose no place there."""
        root = self._folder.resolve()
        for path in self._paths:
            place = (self._folder / path).parent.resolve()
            if path.partition("/")[0] not in self._whole and not place.is_relative_to(root):
                raise InputError(f"{self._folder / path} leads out of {self._folder} by a link", field="target")


def write_private(path: Path, content: bytes) -> None:
    """A new file that only its owner reads. Raises OSError, also where one is there."""
    with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as sink:
        sink.write(content)


def _unwritable(path: Path, error: OSError) -> InputError:
    return InputError(f"{path} cannot be written: {error.strerror or error}", field="target")
