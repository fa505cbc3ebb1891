"""Small files in folders that others write to as well: read without surprises, written whole or not at all."""

from __future__ import annotations

import os
import stat
from pathlib import Path

from backstory.adapters.whole_file import place
from backstory.errors import InstallError

MAX_BYTES = 1_000_000
"""More than any file of ours or configuration of OpenCode's has; anything larger is not what we look for."""


def read_regular(path: Path, *, at_most: int = MAX_BYTES) -> bytes | None:
    """The file's content, links followed; None when there is nothing at ``path``.

    Raises OSError for what cannot be read, a folder, a pipe or a file above ``at_most`` bytes; it never waits.
    """
    try:
        handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except (FileNotFoundError, NotADirectoryError):
        if path.is_symlink():
            raise OSError(f"{path} is a link that leads nowhere") from None
        return None
    except ValueError as error:  # a NUL in the path
        raise OSError(str(error)) from None
    with os.fdopen(handle, "rb") as stream:
        if not stat.S_ISREG(os.fstat(handle).st_mode):
            raise OSError(f"{path} is not a regular file")
        data = stream.read(at_most + 1)
    if len(data) > at_most:
        raise OSError(f"{path} is larger than {at_most:,} bytes")
    return data


def write_whole(path: Path, data: bytes, *, mode: int = 0o644) -> None:
    """Put ``data`` at ``path`` in one step, readable by all unless ``mode`` says otherwise, its folder made if need be.

    See ``place``. Raises InstallError.
    """
    try:
        place(path, data, mode=mode)
    except OSError as error:
        raise InstallError(f"{path} cannot be written: {reason(error)}") from error


def remove(path: Path) -> None:
    """Remove a file or a link; nothing there is fine. Raises InstallError."""
    try:
        path.unlink(missing_ok=True)
    except OSError as error:
        raise InstallError(f"{path} cannot be removed: {reason(error)}") from error


def reason(error: OSError) -> str:
    """What the system says, without the path, which the caller names."""
    return (error.strerror or str(error)).lower() if error.errno else str(error)
