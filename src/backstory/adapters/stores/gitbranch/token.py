"""Which local file belongs to a repository: a token inside its git directory, which goes along when it is moved.

Git ignores files of others there, and no clone gets it. A copy of the whole folder does, and gets a token of its own.
"""

from __future__ import annotations

import contextlib
import os
import re
import secrets
import tempfile
from pathlib import Path

FILE = "backstory"
"""In the git directory that all worktrees share: the token in one line, where it was last used in the next."""

_TOKEN = re.compile(r"[0-9a-f]{24}")


def repository_token(git_dir: Path, *, create: bool) -> str | None:
    """The token of the repository with this shared git directory.

    None where there is none yet and ``create`` is not set, and where none can be written.
    """
    with contextlib.suppress(OSError):
        known = _read(git_dir)
        if known is not None and not _beside(known, git_dir):
            token, place = known
            if place != str(git_dir):
                with contextlib.suppress(OSError):  # a read-only repository that was moved
                    _write(git_dir, token, replace=True)
            return token
        if create:
            return _write(git_dir, secrets.token_hex(12), replace=known is not None)
    return None


def _read(git_dir: Path) -> tuple[str, str] | None:
    try:
        lines = (git_dir / FILE).read_text(encoding="utf-8", errors="surrogateescape").splitlines()
    except FileNotFoundError:
        return None
    return (lines[0], lines[1]) if len(lines) >= 2 and _TOKEN.fullmatch(lines[0]) else None


def _beside(known: tuple[str, str], git_dir: Path) -> bool:
    """Whether the repository of this token still stands where it was: then this is a copy of it."""
    token, place = known
    if place == str(git_dir):
        return False
    try:
        there = _read(Path(place))
        return there is not None and there[0] == token and not Path(place).samefile(git_dir)
    except (OSError, ValueError):
        return False


def _write(git_dir: Path, token: str, *, replace: bool) -> str:
    """Put the token there in one step; where another process was first, its token holds."""
    handle, name = tempfile.mkstemp(prefix=f".{FILE}-", dir=git_dir)
    try:
        with os.fdopen(handle, "w", encoding="utf-8", errors="surrogateescape") as file:
            file.write(f"{token}\n{git_dir}\n")
        if replace:
            Path(name).replace(git_dir / FILE)
            return token
        try:
            os.link(name, git_dir / FILE)
        except FileExistsError:
            known = _read(git_dir)
            if known is None:  # damaged, and nobody else's any more
                Path(name).replace(git_dir / FILE)
                return token
            return known[0]
        return token
    finally:
        with contextlib.suppress(FileNotFoundError):
            Path(name).unlink()
