"""Searching bytes, wherever they lie, for every form in which a text might be written."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from backstory.domain.erasure import raw_forms
from backstory.domain.erasure_encodings import base64_forms, folded_forms

_CHUNK_BYTES = 1 << 22


class ByteSearch:
    """What is searched for: texts in all their forms. The case of ASCII letters counts only in base64."""

    def __init__(self, texts: Iterable[str]) -> None:
        wanted = list(texts)
        self._folded = tuple(
            dict.fromkeys(form.lower() for text in wanted for form in (*raw_forms(text), *folded_forms(text)))
        )
        self._exact = tuple(dict.fromkeys(form for text in wanted for form in base64_forms(text)))
        self._longest = max((len(form) for form in (*self._folded, *self._exact)), default=0)

    def count_in(self, data: bytes) -> int:
        """How often anything of it stands in some bytes; forms that lie within one another count each."""
        lowered = data.lower()
        return sum(map(lowered.count, self._folded)) + sum(map(data.count, self._exact))

    def count_in_file(self, file: Path) -> int:
        """The same for a file, a part at a time; 0 for one that went away or that this user may not read."""
        try:
            with file.open("rb") as source:
                return sum(map(self._count_new, _windows(iter(lambda: source.read(_CHUNK_BYTES), b""), self._longest)))
        except (FileNotFoundError, IsADirectoryError, PermissionError):
            return 0

    def _count_new(self, window: tuple[bytes, int]) -> int:
        """What is in a window and not wholly in its beginning, which the window before had too."""
        data, repeated = window
        return self.count_in(data) - self.count_in(data[:repeated])


def _windows(chunks: Iterator[bytes], longest: int) -> Iterator[tuple[bytes, int]]:
    """Chunks that overlap, each with the length of what was in the one before it."""
    tail = b""
    for chunk in chunks:
        data = tail + chunk
        yield data, len(tail)
        tail = data[-(longest - 1) :] if longest > 1 else b""


def files_in(folder: Path) -> Sequence[Path]:
    """All files in a folder and in the folders in it, by name; links are not followed."""
    found = [Path(place, name) for place, _, names in os.walk(folder) for name in names]
    return sorted(file for file in found if file.is_file() and not file.is_symlink())
