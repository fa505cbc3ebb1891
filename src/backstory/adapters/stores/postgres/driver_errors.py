"""The driver's errors in our words. When they are raised is in ``connection.py`` and ``opening.py``.

What the driver says names hosts and users, so it stays in ``__cause__``, for the log; our words name neither.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

import psycopg

from backstory.adapters.stores.postgres.bounded import ServerSilent
from backstory.errors import BackstoryError, InputError, StoreBusy, StoreDamaged, StoreError, StoreUnavailable

_GONE = "has lost its tables; the next use looks again what is there"
_UNREACHABLE = "cannot be reached; check that its server runs, and the address"
_LEADERLESS = "cannot be used: no server takes writes right now; try again"
_SILENT = "has not answered in time; nothing was written"

# SQLSTATE, or its class of two characters: https://www.postgresql.org/docs/current/errcodes-appendix.html
_MEANINGS: dict[str, tuple[type[StoreError], str]] = {
    "25006": (StoreUnavailable, "is read-only; nothing was written"),
    "28": (StoreUnavailable, "refused the user or the password"),
    "3D000": (StoreUnavailable, "has no database of the name in its address"),
    "40": (StoreBusy, "is busy: others were writing the same for too long; nothing was written"),
    "3F000": (StoreUnavailable, _GONE),
    "42P01": (StoreUnavailable, _GONE),
    "42501": (StoreUnavailable, "does not allow this to its user; grant it the rights, or ask the owner of the schema"),
    "53100": (StoreUnavailable, "could not be written: the disk is full. Nothing of this change was kept"),
    "53300": (StoreBusy, "has no connection left; close others, or allow more"),
    "53": (StoreUnavailable, "is out of memory or of another resource; nothing was written"),
    "55P03": (StoreBusy, "is busy: another process has been writing for too long"),
    "57014": (StoreBusy, "did not answer in time; nothing was written"),
    "57": (StoreUnavailable, "is shutting down or starting; the same call works later"),
    "58": (StoreUnavailable, "could not be read or written: the system reports an error"),
    "08": (StoreUnavailable, _UNREACHABLE),
    "XX001": (StoreDamaged, "is damaged; restore a backup"),
    "XX002": (StoreDamaged, "has a damaged index; rebuild it with REINDEX"),
}  # fmt: skip
# What the client says where a failed connection has no SQLSTATE; the server's words may be in another language.
_SIGNS = (
    ("password", "28"),
    ("authentication", "28"),
    ("no pg_hba.conf entry", "28"),
    ("too many", "53300"),
    ("remaining connection slots", "53300"),
    ("starting up", "57"),
    ("shutting down", "57"),
    ("read-only", "25006"),
    ("in hot standby mode", "25006"),
)


@contextlib.contextmanager
def in_our_words(*, seeks_writer: bool = False) -> Iterator[None]:
    """Turn what the driver raises into errors of ours. ``seeks_writer``: connections are only made to a server that
    takes writes, so that there is none where one is read-only.

    A text with half a character (a lone surrogate) or NUL in it has no place in Postgres: InputError.
    """
    try:
        yield
    except BackstoryError:
        raise
    except psycopg.Error as error:
        raise translated(error, seeks_writer=seeks_writer) from error
    except UnicodeEncodeError as error:
        half = f"U+{ord(error.object[error.start]):04X}"
        raise InputError(
            f"the text contains half a character ({half}), which no store can hold", field="text"
        ) from error
    except OSError as error:
        raise StoreUnavailable(f"the Postgres store {_UNREACHABLE}") from error


def translated(error: psycopg.Error, *, seeks_writer: bool = False) -> BackstoryError:
    """What the driver's error means."""
    if isinstance(error, ServerSilent):
        return StoreUnavailable(f"the Postgres store {_SILENT}")
    state = error.sqlstate or _state_of(error)
    if state in ("22021", "22P05"):
        return InputError("the text contains a NUL character, which Postgres cannot hold", field="text")
    if state == "54000":
        return InputError("an id, a key or a label is too long for an index of Postgres", field="text")
    if state == "25006" and seeks_writer:
        return StoreUnavailable(f"the Postgres store {_LEADERLESS}")
    for code in (state, state[:2]):
        if code in _MEANINGS:
            kind, meaning = _MEANINGS[code]
            return kind(f"the Postgres store {meaning}")
    return StoreError(f"the Postgres store failed (SQLSTATE {state or 'unknown'}); the log of its server tells more")


def _state_of(error: psycopg.Error) -> str:
    text = str(error).lower()
    if isinstance(error, psycopg.DataError) and "nul" in text:  # found by the driver, before anything was sent
        return "22021"
    if not isinstance(error, psycopg.OperationalError):
        return ""
    if "database" in text and "does not exist" in text:
        return "3D000"
    return next((state for sign, state in _SIGNS if sign in text), "08")
