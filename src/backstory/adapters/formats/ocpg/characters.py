"""The characters of a file that somebody else wrote, piece by piece: in its encoding, never all of it at once."""

from __future__ import annotations

import codecs
import os
import re
import stat
from collections.abc import Iterator
from pathlib import Path

from backstory.adapters.formats.outside_files import read_start
from backstory.errors import InputError

HEAD_BYTES = 64 * 1024
_PIECE_BYTES = 1 << 18
_FLAGS = os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)
_MARKS = ((codecs.BOM_UTF8, "utf-8-sig"), (codecs.BOM_UTF16_LE, "utf-16"), (codecs.BOM_UTF16_BE, "utf-16"))
_DECLARED = re.compile(rb"^SET client_encoding = '([A-Za-z0-9_-]{1,20})'", re.MULTILINE)
# Postgres's names for encodings whose Python names differ
_CODECS = {"utf8": "utf-8", "unicode": "utf-8", "sqlascii": "utf-8", "win1252": "cp1252", "win1251": "cp1251",
           "win1250": "cp1250", "win1254": "cp1254", "latin9": "iso8859-15", "koi8r": "koi8-r", "eucjp": "euc_jp",
           "euckr": "euc_kr", "euccn": "gb2312", "sjis": "shift_jis", "big5": "big5", "gbk": "gbk",
           "gb18030": "gb18030"}  # fmt: skip
_LATIN = re.compile("latin[1-8]")


def encoding_of(file: Path) -> str | None:
    """The encoding of a file: by its mark, else as a dump declares it, else UTF-8. None for one not known here."""
    head = read_start(file, size=HEAD_BYTES)
    for mark, encoding in _MARKS:
        if head.startswith(mark):
            return encoding
    declared = _DECLARED.search(head)
    if declared is None:
        return "utf-8"
    name = declared.group(1).decode("ascii").lower().replace("_", "").replace("-", "")
    return _CODECS.get(name) or (name if _LATIN.fullmatch(name) else None)


def pieces(file: Path, encoding: str, *, at_most: int) -> Iterator[str]:
    """The text of a file, in pieces. Bytes that are no text become halves of characters (U+DC80 and up).

    Raises InputError where it cannot be read, is no plain file, or has more than ``at_most`` bytes.
    """
    try:
        handle = os.open(file, _FLAGS)
    except (OSError, ValueError) as error:
        raise InputError(f"{file.name} cannot be read", field="path") from error
    try:
        status = os.fstat(handle)
        if not stat.S_ISREG(status.st_mode):
            raise InputError(f"{file.name} is no plain file", field="path")
        if status.st_size > at_most:
            raise InputError(f"{file.name} has {status.st_size:,} bytes; the limit is {at_most:,}", field="path")
    except InputError:
        os.close(handle)
        raise
    with os.fdopen(handle, "rb") as stream:
        errors = "surrogateescape" if not encoding.startswith("utf-16") else "replace"
        decoder = codecs.getincrementaldecoder(encoding)(errors)
        while piece := stream.read(_PIECE_BYTES):
            yield decoder.decode(piece)
        yield decoder.decode(b"", final=True)
