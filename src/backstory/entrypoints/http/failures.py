"""The table: which error of ours is which problem. What a store or a model says about itself is for the log alone."""

from __future__ import annotations

import logging
from collections.abc import Mapping

from pydantic import ValidationError

from backstory.entrypoints.http.problems import Problem
from backstory.errors import (
    AmbiguousMatch,
    BackstoryError,
    Conflict,
    InputError,
    ModelError,
    NotFound,
    OutOfScope,
    StoreError,
)

log = logging.getLogger(__name__)

_VALUE_CHARS = 60
_RETRY_AFTER = [(b"retry-after", b"1")]
_KINDS: Mapping[type[BackstoryError], str] = {
    AmbiguousMatch: "conflict",
    InputError: "invalid",
    NotFound: "not-found",
    OutOfScope: "out-of-scope",
    Conflict: "conflict",
    StoreError: "unavailable",
    ModelError: "unavailable",
    BackstoryError: "internal",
}


def problem_of(error: BackstoryError) -> Problem:
    """What a client is told of an error of ours."""
    kind = next(_KINDS[cls] for cls in type(error).__mro__ if cls in _KINDS)
    if kind in ("unavailable", "internal"):
        log.error("event=request_failed kind=%s reason=%s", type(error).__name__, error)
        told = "Nothing was stored or changed. The user can run `backstory doctor` to see why."
        return Problem(kind=kind, detail=told, headers=_RETRY_AFTER if error.can_retry else [])
    return Problem(
        kind=kind,
        detail=str(error),
        name=error.field if isinstance(error, InputError) else None,
        hint=error.hint if isinstance(error, InputError) else None,
        candidates=error.candidates if isinstance(error, AmbiguousMatch) else (),
    )


def unexpected(error: Exception) -> Problem:
    """What a client is told of a bug; the log has it whole."""
    log.error("event=request_broke", exc_info=error)
    return Problem(kind="internal", detail="The log of the server has it.")


def invalid(error: ValidationError) -> Problem:
    """Which field is wrong, what stands there and what may stand there."""
    found = error.errors(include_url=False)
    first = found[0]
    name = ".".join(str(step) for step in first["loc"]) or "body"
    limits = [f"{key} {value}" for key, value in first.get("ctx", {}).items() if isinstance(value, int | float | str)]
    detail = "; ".join(f"{'.'.join(map(str, item['loc'])) or 'body'}: {item['msg']}" for item in found[:10])
    is_missing = first["type"] == "missing"
    return Problem(
        kind="invalid",
        detail=detail[:1_000],
        name=name[:200],
        value=None if is_missing else repr(first["input"])[:_VALUE_CHARS],
        limit=", ".join(limits)[:200] or None,
    )
