"""Reading a settings file that may be hostile: bounded, regular files only, TOML only."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator, Mapping
from pathlib import Path

MAX_BYTES = 64 * 1024
MAX_DOTS = 64
"""Dots in one line. tomllib takes quadratic time for a dotted name: one that fills the file would take 15 s."""

_TOO_LARGE = f"is larger than {MAX_BYTES // 1024} KiB"


class Unreadable(Exception):
    """The file is there but cannot be used; the text says why, without quoting the file."""


class NotToml(Unreadable):
    """The text breaks the rules of TOML."""


def read_document(path: Path) -> Mapping[str, object] | None:
    """The parsed file, or None if there is none. Raises Unreadable.

    Reads 64 KiB at most and never waits on a pipe. A byte-order mark is ignored. At worst takes half a second.
    """
    data = read_bounded(path)
    return None if data is None else parse_document(data)


def leads_outside(path: Path, root: Path) -> bool:
    """Whether ``path``, with symbolic links followed, lies outside ``root``."""
    real_root = os.path.realpath(root)
    return os.path.commonpath([real_root, os.path.realpath(path)]) != real_root


def entries(document: Mapping[str, object], groups: Mapping[str, object]) -> Iterator[tuple[str, object]]:
    """Dotted name and value of everything in a file, known or not, in order. Empty known groups say nothing."""
    for name, body in document.items():
        if not isinstance(body, dict) or (not body and name not in groups):
            yield name, body
        else:
            yield from ((f"{name}.{key}", value) for key, value in body.items())


def read_bounded(path: Path) -> bytes | None:
    """The file's bytes, 64 KiB at most, or None if there is none. Raises Unreadable."""
    try:
        handle = os.open(os.path.realpath(path), os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        raise Unreadable(f"cannot be opened ({error.strerror})") from None
    except ValueError:  # a NUL in the path
        raise Unreadable("has a name that no file can have") from None
    try:
        if not stat.S_ISREG(os.fstat(handle).st_mode):
            raise Unreadable("is not a regular file")
        with open(handle, "rb", closefd=False) as stream:
            data = stream.read(MAX_BYTES + 1)
    except OSError as error:
        raise Unreadable(f"cannot be read ({error.strerror})") from None
    finally:
        os.close(handle)
    if len(data) > MAX_BYTES:
        raise Unreadable(_TOO_LARGE)
    return data


def parse_document(data: bytes) -> Mapping[str, object]:
    """What the bytes say as TOML. Raises Unreadable, also where they are more than 64 KiB."""
    import tomllib  # only where there is a file

    if len(data) > MAX_BYTES:
        raise Unreadable(_TOO_LARGE)
    if any(line.count(b".") > MAX_DOTS for line in data.split(b"\n")):
        raise Unreadable(f"has more than {MAX_DOTS} dots in one line (a long text may go over several)")
    try:
        return tomllib.loads(data.decode("utf-8-sig"))
    except UnicodeDecodeError as error:
        raise Unreadable(f"is not UTF-8 (byte {error.start + 1:,})") from None
    except tomllib.TOMLDecodeError as error:
        raise NotToml(f"is not TOML: {error}") from None
    except (ValueError, RecursionError):  # a number of thousands of digits; brackets nested by the thousand
        raise Unreadable("is not usable TOML: a value is too large or nested too deeply") from None
