"""A file written whole or not at all, in a folder that others write to as well."""

from __future__ import annotations

import contextlib
import os
import tempfile
from collections.abc import Callable
from pathlib import Path


def place(path: Path, data: bytes, *, mode: int, check: Callable[[], None] = lambda: None) -> None:
    """Put ``data`` at ``path`` in one step and on the disk, its folder made if need be; a reader sees the old file or
    the new one. A link at ``path`` is replaced, not followed.

    ``check`` is called when all is written, just before the file takes its place; what it raises leaves the old one.
    Raises OSError.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.", suffix=".tmp")
    temporary = Path(name)
    try:
        with os.fdopen(handle, "wb") as stream:
            stream.write(data)
            stream.flush()
            os.fchmod(handle, mode)
            os.fsync(handle)
        check()
        temporary.replace(path)
    finally:
        with contextlib.suppress(OSError):  # it is there no more where all went well
            temporary.unlink()
