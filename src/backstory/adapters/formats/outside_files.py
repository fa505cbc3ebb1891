"""Files and JSON that somebody else wrote: opened without following links, read within bounds, never changed."""

from __future__ import annotations

import errno
import json
import os
import re
import stat
from collections.abc import Iterator
from io import BufferedReader, FileIO
from pathlib import Path
from typing import Any

Json = Any  # whatever stands in the file; readers take each field by its type

ID_MAX_CHARS = 200
_CHUNK_BYTES = 1 << 20
_BLANK = re.compile(r"[ \t\r\n]*+")
# Windows has neither flag; without O_NONBLOCK the opening of a pipe waits for whoever writes into it
_FLAGS = os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)


class Unfit(ValueError):
    """A file or record is not read; the message says why, without anything of its contents."""


def named(place: str) -> Path:
    """The path that somebody named, who may well name a link; links further in are not followed."""
    try:
        return Path(os.path.realpath(Path(place).expanduser()))
    except (OSError, ValueError, RuntimeError):  # no path, or the home of nobody
        return Path(place)


def is_plain(path: Path) -> bool:
    """Whether a path names a regular file, and not through a link of that name."""
    try:
        return stat.S_ISREG(path.lstat().st_mode)
    except (OSError, ValueError):
        return False


def is_folder(path: Path) -> bool:
    """Whether a path names a folder, and not through a link of that name."""
    try:
        return stat.S_ISDIR(path.lstat().st_mode)
    except (OSError, ValueError):
        return False


def entries(folder: Path, *, ends: str = "") -> list[Path]:
    """What stands in a folder, by name; links and other things that are neither file nor folder left out. Empty where
    the folder cannot be read."""
    try:
        paths = sorted(path for path in folder.iterdir() if path.name.endswith(ends))
    except (OSError, ValueError):
        return []
    return [path for path in paths if is_plain(path) or is_folder(path)]


def read_file(path: Path, *, at_most: int) -> bytes:
    """All of a file. Raises Unfit where it is a link, no plain file, larger than ``at_most`` bytes or unreadable."""
    with _opened(path, at_most=at_most) as stream:
        try:
            content = stream.read(at_most + 1)
        except OSError as error:
            raise Unfit(_words(error)) from error
    if len(content) > at_most:
        raise Unfit(f"larger than {at_most:,} bytes")
    return content


def read_start(path: Path, *, size: int) -> bytes:
    """The first bytes of a file; none where it cannot be read."""
    try:
        with _opened(path, at_most=None) as stream:
            return stream.read(size)
    except (Unfit, OSError):
        return b""


def lines(path: Path, *, at_most: int | None, line_bytes: int, start: int = 0) -> Iterator[tuple[int, bytes | None]]:
    """The lines of a file with their numbers from 1, without their ends; None for one beyond ``line_bytes``, which is
    passed over without being held. From the byte ``start`` on, the rest of a line that begins before it counts as one.
    Raises Unfit as ``read_file``."""
    with _opened(path, at_most=at_most) as stream:
        stream.seek(start)
        number = 0
        while True:
            try:
                line = stream.readline(line_bytes + 1)
                number += 1
                if not line:
                    return
                if len(line) > line_bytes and not line.endswith(b"\n"):
                    while line and not line.endswith(b"\n"):
                        line = stream.readline(_CHUNK_BYTES)
                    yield number, None
                    continue
            except OSError as error:
                raise Unfit(_words(error)) from error
            yield number, line.rstrip(b"\r\n")


def text_of(content: bytes) -> str:
    """A text file's text: UTF-8, with or without its mark, or UTF-16 with one. Raises Unfit for anything else."""
    try:
        if content.startswith((b"\xff\xfe", b"\xfe\xff")):
            return content.decode("utf-16")
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise Unfit("not a text in UTF-8") from error


def json_of(content: bytes | str) -> Json:
    """A JSON value. Raises Unfit where it is none, or nested too deep."""
    try:
        return json.loads(text_of(content) if isinstance(content, bytes) else content)
    except Unfit:
        raise
    except RecursionError as error:
        raise Unfit("JSON nested too deep") from error
    except ValueError as error:
        raise Unfit("not JSON") from error


def elements(text: str, *, at_most: int) -> Iterator[tuple[int, Json]]:
    """The values of a JSON list with their numbers from 1, one after the other, so that the list is never held whole;
    ``Unfit`` instead of one with more than ``at_most`` characters, or nested too deep.

    Raises Unfit where the text is no list, and where it ends before the list does or goes on as no JSON does.
    """
    at = _after_blank(text, 0)
    if text[at : at + 1] != "[":
        raise Unfit("not a JSON list")
    decoder = json.JSONDecoder()
    at = _after_blank(text, at + 1)
    number = 0
    while text[at : at + 1] != "]":
        number += 1
        try:
            value, end = decoder.raw_decode(text, at)
        except RecursionError as error:
            raise Unfit(f"JSON nested too deep, in entry {number}") from error
        except ValueError as error:
            raise Unfit(f"not JSON from entry {number} on") from error
        yield number, value if end - at <= at_most else Unfit(f"larger than {at_most:,} characters")
        at = _after_blank(text, end)
        if text[at : at + 1] == ",":
            at = _after_blank(text, at + 1)
        elif text[at : at + 1] != "]":
            raise Unfit(f"not JSON after entry {number}")


def is_id(value: object) -> bool:
    """Whether a value can be somebody's id: a short text without line breaks and the like."""
    return isinstance(value, str) and 0 < len(value) <= ID_MAX_CHARS and value.isprintable() and value == value.strip()


def words(value: object) -> str | None:
    """A text that says something; None for anything else."""
    return value if isinstance(value, str) and value.strip() else None


def _after_blank(text: str, at: int) -> int:
    found = _BLANK.match(text, at)
    return found.end() if found else at


def opened(path: Path, *, at_most: int | None) -> FileIO:
    """A file to be read, without a buffer. Raises Unfit as ``read_file``."""
    try:
        handle = os.open(path, _FLAGS)
    except (OSError, ValueError) as error:
        raise Unfit(_words(error)) from error
    status = os.fstat(handle)
    if not stat.S_ISREG(status.st_mode):
        os.close(handle)
        raise Unfit("not a plain file")
    if at_most is not None and status.st_size > at_most:
        os.close(handle)
        raise Unfit(f"larger than {at_most:,} bytes")
    return FileIO(handle, "rb")


def _opened(path: Path, *, at_most: int | None) -> BufferedReader:
    return BufferedReader(opened(path, at_most=at_most))


def _words(error: Exception) -> str:
    """Why a file was not opened, without its name: the report names it already."""
    if isinstance(error, OSError) and error.errno == errno.ELOOP:
        return "a link, which is not followed"
    return (error.strerror or "cannot be read") if isinstance(error, OSError) else "no path"
