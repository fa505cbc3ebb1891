"""Every error Backstory raises on purpose. What is not here is a bug.

    BackstoryError
    ├── InputError          the caller can fix it: names the field, the value and the limit
    │   └── AmbiguousMatch  several memories fit; nothing was changed
    ├── NotFound            no such memory, session or change
    ├── OutOfScope          it exists, but belongs to another project
    ├── Conflict            it changed since it was read, or cannot be undone any more
    ├── ConfigError         a setting is unknown, misspelt or has an impossible value
    ├── StoreError          the store could not do it
    │   ├── StoreUnavailable  full, read-only, missing or not reachable
    │   │   └── StoreBusy       another process has been writing for too long
    │   ├── StoreDamaged      the file is not a store, or is corrupt; it is left untouched
    │   └── SchemaTooNew      written by a newer Backstory; it is left untouched
    ├── ModelError          an embedder or a language model failed
    │   ├── ModelUnavailable  not installed, not reachable, or did not answer
    │   │   ├── ModelTimeout    no answer within the deadline
    │   │   └── CapReached      as much was spent as may be; it was not asked
    │   └── ModelOutputInvalid
    └── InstallError        a host's configuration could not be changed safely

Each class says in ``can_retry`` whether the same call may succeed later without any change by the caller.
"""

from __future__ import annotations

from collections.abc import Sequence


class BackstoryError(Exception):
    """The root; catch it to catch everything Backstory raises on purpose."""

    can_retry = False


class InputError(BackstoryError):
    """An argument is wrong.

    ``field`` is the argument's name as the caller wrote it; the message holds the offending value (or its size)
    and the limit with its unit. ``hint`` says what to do instead, when there is something to say.
    """

    def __init__(self, message: str, *, field: str, hint: str | None = None) -> None:
        super().__init__(message)
        self.field = field
        self.hint = hint


class AmbiguousMatch(InputError):
    """Several memories match where one is wanted; ``candidates`` are their ids, best first. Nothing was changed."""

    def __init__(self, message: str, *, field: str, candidates: Sequence[str]) -> None:
        super().__init__(message, field=field, hint="name one by its #number, or make the match longer")
        self.candidates = tuple(candidates)


class NotFound(BackstoryError):
    """There is no such memory, session or change. ``hint`` says where those are listed that there are."""

    def __init__(self, message: str, *, hint: str | None = None) -> None:
        super().__init__(message)
        self.hint = hint


class OutOfScope(BackstoryError):
    """The memory belongs to another project, so it can be neither changed nor superseded from here.

    Also what an agent asked for, and only a person may do. ``hint`` says what to do, where that is not to run the
    command in the other project.
    """

    def __init__(self, message: str, *, hint: str | None = None) -> None:
        super().__init__(message)
        self.hint = hint


ASK_A_PERSON = "ask the person to run it, in a terminal of their own"
"""What an agent is told to do about what only a person may."""


class Conflict(BackstoryError):
    """The memory changed between reading and writing, or a later change stands on the one to be undone."""

    can_retry = True


class ConfigError(BackstoryError):
    """A setting is unknown, misspelt or has an impossible value. ``option`` names it as the user wrote it; ``hint``
    says what to do, where that is not to look into the settings."""

    def __init__(self, message: str, *, option: str, source: str | None = None, hint: str | None = None) -> None:
        super().__init__(message)
        self.option = option
        self.source = source
        self.hint = hint


class StoreError(BackstoryError):
    """The store could not do what was asked. Nothing was half done."""


class StoreUnavailable(StoreError):
    """Full, read-only, missing, not reachable, or busy. ``hint`` says what to do, where that is not to look after the
    disk or the server."""

    can_retry = True

    def __init__(self, message: str, *, hint: str | None = None) -> None:
        super().__init__(message)
        self.hint = hint


class StoreBusy(StoreUnavailable):
    """Another process has been writing for longer than we wait. Nothing is wrong; the same call works later."""


class StoreDamaged(StoreError):
    """The file is not a Backstory store, or is corrupt. It was opened for reading only and left as it was."""


class SchemaTooNew(StoreError):
    """The store was written by a newer Backstory. It was left as it was; upgrade to open it."""


class ModelError(BackstoryError):
    """An embedder or a language model failed.

    A language model tells how many requests were ``sent`` for a question, and to how many of them no answer came that
    says what they took (``unanswered``); None where nobody counted.
    """

    sent: int | None = None
    unanswered: int | None = None


class ModelUnavailable(ModelError):
    """The model is not installed, not reachable, or did not answer in time."""

    can_retry = True


class ModelTimeout(ModelUnavailable):
    """The model did not answer within the deadline."""


class CapReached(ModelUnavailable):
    """As much was spent on language models as the settings allow, so none was asked. The message says until when."""

    sent = 0
    unanswered = 0


class ModelOutputInvalid(ModelError):
    """The model answered something that cannot be used."""


class InstallError(BackstoryError):
    """A host's configuration could not be changed without risking what is already there."""
