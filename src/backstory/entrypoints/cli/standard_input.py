"""Text from arguments or from standard input, whole and certainly text."""

from __future__ import annotations

import io
import sys
from collections.abc import Sequence
from typing import BinaryIO

from backstory.errors import InputError

STANDARD_INPUT = "-"
MAX_BYTES = 1024 * 1024
"""Far more than the longest memory (100,000 characters); stops an endless input."""


def text_of(words: Sequence[str], *, field: str) -> str | None:
    """What the words say, joined by blanks; what standard input says for ``-``, or for no words in a pipe.

    None for no words at a terminal. The text of standard input is taken as it is, less one line end and a byte-order
    mark. Raises InputError naming ``field`` when it is not UTF-8 text, or larger than 1 MiB.
    """
    if tuple(words) == (STANDARD_INPUT,):
        return _read(field)
    if words:
        return " ".join(words)
    return None if sys.stdin is None or sys.stdin.isatty() else _read(field)


def input_stream() -> BinaryIO:
    """Standard input as bytes; empty where it was closed before we started."""
    return io.BytesIO() if sys.stdin is None else sys.stdin.buffer


def _read(field: str) -> str:
    data = input_stream().read(MAX_BYTES + 1)
    if len(data) > MAX_BYTES:
        raise InputError(f"{field} from standard input is larger than {MAX_BYTES // 1024:,} KiB", field=field)
    if b"\0" in data:
        raise InputError(
            f"{field} from standard input is binary, not text (it holds a NUL byte)",
            field=field,
            hint="if it is UTF-16, convert it first: iconv -f UTF-16 -t UTF-8",
        )
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise InputError(
            f"{field} from standard input is not UTF-8 text (byte {error.start + 1:,})",
            field=field,
            hint="convert it first, for example: iconv -f ISO-8859-1 -t UTF-8",
        ) from None
    return text.removesuffix("\n").removesuffix("\r")
