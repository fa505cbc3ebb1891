"""The table: which error ends a command with which exit code, and what people are told to do about it.

Every entrypoint says failures from this table. The page ``docs/reference/exit-codes.md`` is made from it.
"""

from __future__ import annotations

from dataclasses import dataclass

from backstory.errors import (
    AmbiguousMatch,
    BackstoryError,
    ConfigError,
    Conflict,
    InputError,
    InstallError,
    ModelError,
    NotFound,
    OutOfScope,
    SchemaTooNew,
    StoreBusy,
    StoreDamaged,
    StoreError,
    StoreUnavailable,
)

UNEXPECTED = 1
USAGE = 2
INTERRUPTED = 130
"""128 + SIGINT, as shells count it."""
BROKEN_PIPE = 141
"""128 + SIGPIPE: the reader of the output went away."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """How one class of errors is said. ``advice`` is for errors that bring no hint of their own."""

    error: type[BackstoryError]
    exit_code: int
    meaning: str
    advice: str | None = None


RULES = (
    Rule(error=InputError, exit_code=USAGE, meaning="An argument, an option or the text given is wrong."),
    Rule(
        error=NotFound,
        exit_code=3,
        meaning="There is no such memory, session or change.",
        advice="`backstory list` shows the memories of this project, `backstory history` the changes",
    ),
    Rule(
        error=OutOfScope,
        exit_code=4,
        meaning="It exists, but belongs to another project or session, or may not be replaced from here.",
        advice="run the command in that project, or name its folder with --project",
    ),
    Rule(
        error=AmbiguousMatch,
        exit_code=5,
        meaning="The text fits several memories where one is wanted. Nothing was changed.",
    ),
    Rule(
        error=Conflict,
        exit_code=5,
        meaning="It changed since it was read, or a later change stands on the one to be undone.",
        advice="`backstory history` shows what happened; then try again",
    ),
    Rule(
        error=ConfigError,
        exit_code=6,
        meaning="A setting is unknown, misspelt or has an impossible value.",
        advice="`backstory config --help` says where settings come from, and how to change your own",
    ),
    Rule(
        error=StoreError,
        exit_code=7,
        meaning="The store could not do what was asked.",
    ),
    Rule(
        error=StoreUnavailable,
        exit_code=7,
        meaning="The store is full, read-only, missing or not reachable.",
        advice="check its disk, the permissions of its folder or its server, then try again",
    ),
    Rule(
        error=StoreBusy,
        exit_code=7,
        meaning="Another process has been writing to the store for too long.",
        advice="try again in a moment; nothing is wrong with the store",
    ),
    Rule(
        error=StoreDamaged,
        exit_code=8,
        meaning="The file is not a store of Backstory, or is corrupt. It was left as it is.",
        advice="`backstory restore` a backup; without one, `backstory check --salvage FILE` saves what can be read",
    ),
    Rule(
        error=SchemaTooNew,
        exit_code=9,
        meaning="The store was written by a newer Backstory. It was left as it is.",
        advice="upgrade Backstory",
    ),
    Rule(
        error=ModelError,
        exit_code=10,
        meaning="An embedder or a language model is missing, does not answer, or answers nonsense.",
        advice="`backstory status` says which model is used; recall works by words without one",
    ),
    Rule(
        error=InstallError,
        exit_code=11,
        meaning="A host's configuration could not be changed without risking what is there.",
    ),
    Rule(
        error=BackstoryError,
        exit_code=UNEXPECTED,
        meaning="Something else failed.",
    ),
)
_BY_CLASS = {rule.error: rule for rule in RULES}


@dataclass(frozen=True, slots=True, kw_only=True)
class Failure:
    """A failure as it is told: on a terminal as sentences, with ``--json`` as an object.

    ``field`` is the argument or setting that is at fault; ``candidates`` are the ids of memories that fit.
    """

    type: str
    message: str
    exit_code: int
    field: str | None = None
    hint: str | None = None
    candidates: tuple[str, ...] = ()

    def as_json(self) -> dict[str, object]:
        """The object under ``error``; ``candidates`` only where there are some."""
        told: dict[str, object] = {
            "type": self.type,
            "message": self.message,
            "field": self.field,
            "hint": self.hint,
            "exit_code": self.exit_code,
        }
        return told | ({"candidates": list(self.candidates)} if self.candidates else {})


def rule_for(error: BackstoryError) -> Rule:
    """The rule of the nearest class that has one."""
    return next(_BY_CLASS[cls] for cls in type(error).__mro__ if cls in _BY_CLASS)


def failure_of(error: BackstoryError) -> Failure:
    """What is told about an error of ours."""
    rule = rule_for(error)
    return Failure(
        type=type(error).__name__,
        message=str(error),
        exit_code=rule.exit_code,
        field=_field(error),
        hint=getattr(error, "hint", None) or rule.advice,
        candidates=error.candidates if isinstance(error, AmbiguousMatch) else (),
    )


def _field(error: BackstoryError) -> str | None:
    match error:
        case InputError():
            return error.field
        case ConfigError():
            return error.option
        case _:
            return None
