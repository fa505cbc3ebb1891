"""The bearer token of this installation: a file that only its owner may read, made when a server first starts.

Whoever holds it reads and changes what the user's own agents may, in every folder.
"""

from __future__ import annotations

import contextlib
import hmac
import os
import re
import secrets
import stat
import tempfile
from pathlib import Path

from backstory.errors import ConfigError

FILE = "serve-token"

_BYTES = 32
_MAX_BYTES = 1_000
_SHAPE = re.compile(r"[A-Za-z0-9_-]{32,500}")


def token_file(data_dir: Path) -> Path:
    """Where the token is kept."""
    return data_dir / FILE


def obtain_token(data_dir: Path) -> str:
    """The token; made, with the folder, if there is none. Two servers that start at once get the same.

    Raises ConfigError for a file that others may read or replace, a link, or a file that holds no token.
    """
    path = token_file(data_dir)
    if not os.path.lexists(path):
        _make(path)
    token = read_token(data_dir)
    if token is None:
        raise ConfigError(f"{path} went away while it was read; start again", option=str(path))
    return token


def read_token(data_dir: Path) -> str | None:
    """The token; None if there is no file. Raises as ``obtain_token``."""
    path = token_file(data_dir)
    try:
        _refuse_open_folder(data_dir)
        handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        told = "is a link" if path.is_symlink() else f"cannot be read: {(error.strerror or str(error)).lower()}"
        raise _refused(path, told) from error
    try:
        _refuse_open_file(path, os.fstat(handle))
        text = os.read(handle, _MAX_BYTES).decode("ascii", "replace").strip()
    finally:
        os.close(handle)
    if not _SHAPE.fullmatch(text):
        raise _refused(path, "does not hold a token")
    return text


def is_token(given: bytes, token: str) -> bool:
    """Whether the two are the same; how long it takes tells nothing about where they differ."""
    return hmac.compare_digest(given, token.encode())


def _make(path: Path) -> None:
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{FILE}.")  # only its owner may read it
        try:
            with os.fdopen(handle, "w", encoding="ascii") as stream:
                stream.write(secrets.token_urlsafe(_BYTES) + "\n")
                stream.flush()
                os.fsync(handle)
            with contextlib.suppress(FileExistsError):  # another server was faster; its token is the one
                os.link(name, path)
        finally:
            os.unlink(name)  # noqa: PTH108 - mkstemp gives a text
    except OSError as error:
        raise _refused(path, f"cannot be made: {(error.strerror or str(error)).lower()}") from error


def _refuse_open_folder(folder: Path) -> None:
    mode = folder.stat().st_mode
    if mode & stat.S_IWOTH and not mode & stat.S_ISVTX:
        raise _refused(folder, "may be written by everybody, so anybody could put a token of theirs there")


def _refuse_open_file(path: Path, told: os.stat_result) -> None:
    if not stat.S_ISREG(told.st_mode):
        raise _refused(path, "is not a regular file")
    if told.st_uid != os.geteuid():
        raise _refused(path, "belongs to another user")
    if told.st_mode & 0o077:
        mode = stat.S_IMODE(told.st_mode)
        raise _refused(path, f"may be read by others (mode {mode:04o}); remove it, a new one is made at the next start")


def _refused(path: Path, what: str) -> ConfigError:
    return ConfigError(f"{path} {what}", option=str(path))
