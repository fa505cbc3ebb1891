"""The driver's errors in our words. When they are raised is in ``connection.py`` and ``opening.py``."""

from __future__ import annotations

import contextlib
import sqlite3
from collections.abc import Iterator
from pathlib import Path

from backstory.errors import BackstoryError, InputError, StoreBusy, StoreDamaged, StoreError, StoreUnavailable

_MEANINGS = (
    ("locked", StoreBusy, "is busy: another process has been writing for too long"),
    ("locking protocol", StoreBusy, "is busy: too many processes open it at once"),
    ("busy", StoreBusy, "is busy: another process has been writing for too long"),
    ("readonly", StoreUnavailable, "is read-only; nothing was written"),
    ("full", StoreUnavailable, "could not be written: the disk is full. Nothing of this change was kept"),
    ("disk i/o error", StoreUnavailable, "could not be read or written: the disk reports an error"),
    ("unable to open", StoreUnavailable, "cannot be opened: check the path and its permissions"),
    ("not a database", StoreDamaged, "is not a database; it was left as it is"),
    ("malformed", StoreDamaged, "is damaged; it was left as it is"),
    ("could not decode", StoreDamaged, "holds text that is not UTF-8; it was left as it is"),
)


@contextlib.contextmanager
def in_our_words(path: Path) -> Iterator[None]:
    """Turn what the driver and the system raise into errors of ours.

    A text with half a character in it (a lone surrogate) has no place in SQLite: InputError.
    """
    try:
        yield
    except BackstoryError:
        raise
    except sqlite3.Error as error:
        raise _translate(error, path) from error
    except UnicodeDecodeError as error:  # of SQLite's own words: what it names stands in a damaged page
        raise StoreDamaged(f"the store {path} is damaged; it was left as it is") from error
    except UnicodeEncodeError as error:
        half = f"U+{ord(error.object[error.start]):04X}"
        raise InputError(
            f"the text contains half a character ({half}), which no store can hold", field="text"
        ) from error
    except OSError as error:
        is_blocked = isinstance(error, FileExistsError | NotADirectoryError)
        why = f"{error.filename or path.parent} is no folder" if is_blocked else error.strerror or error
        raise StoreUnavailable(f"the store {path} cannot be opened: {why}") from error


def _translate(error: sqlite3.Error, path: Path) -> StoreError:
    text = str(error).lower()
    for sign, kind, meaning in _MEANINGS:
        if sign in text:
            return kind(f"the store {path} {meaning}")
    return StoreError(f"the store {path} failed: {error}")
