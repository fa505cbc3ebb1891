"""Which arguments ask for less to happen: a dry run, a confirmation that is withheld, a bound, a narrower reach.

A tool that has no such argument must not act as if it had not been given.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

_HUMP = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")

DRY_RUN = frozenset(
    {
        "dry_run", "dryrun", "dry", "preview", "preview_only", "simulate", "simulated", "simulation", "pretend",
        "what_if", "whatif", "noop", "no_op", "plan_only", "check_only", "validate_only", "test_only", "test_run",
    }
)  # fmt: skip
"""Names of one switch: only say what would happen."""

_HOLDING = DRY_RUN | {
    "ask", "ask_first", "ask_user", "confirm_first", "require_confirmation", "requires_confirmation",
    "require_approval", "requires_approval", "needs_approval", "interactive", "propose", "proposal", "draft",
    "pending", "read_only", "readonly", "no_write", "no_save", "no_store", "if_missing", "if_absent",
    "if_not_exists", "private", "local", "local_only", "secret", "sensitive", "confidential", "temporary", "ephemeral",
}  # fmt: skip
"""Switches that hold back when they are on."""

_DOING = frozenset(
    {
        "confirm", "confirmed", "confirmation", "approve", "approved", "apply", "execute", "commit", "perform", "run",
        "write", "save", "store", "persist", "import", "keep", "enabled", "permanent", "public", "shared",
    }
)  # fmt: skip
"""Switches that hold back when they are off."""

_AMOUNTS = frozenset({"count", "top", "top_k", "first", "take"})
_AMOUNT = frozenset({"limit", "max", "maximum"})
"""Words of a name; whatever the value is, it is a bound, where there are several things to bound."""

_NARROWING = frozenset(
    {
        "only", "except", "exclude", "excluding", "excluded", "without", "skip", "filter", "filters", "unless", "until",
        "ttl", "expires", "expire", "expiry", "lifetime", "visibility", "sensitivity", "privacy", "audience",
    }
)  # fmt: skip
"""Words of a name; its value narrows, unless it says that it does not."""

_WIDE = frozenset(
    {
        "none", "null", "never", "default", "all", "any", "everyone", "public", "shared", "project", "team", "global",
        "normal",
    }
)  # fmt: skip

_HOLDING_WORDS = frozenset({"private", "local_only", "local", "secret", "temporary", "ephemeral", "session"})
"""Values that hold back, as in ``level: private``, unless the argument says where something comes from."""

_ORIGINS = frozenset(
    {"source", "origin", "agent", "author", "provider", "environment", "env", "host", "client", "model"}
)
_OFF = frozenset({"false", "no", "off", "0"})


def plain(name: str) -> str:
    """``expiresInHours`` and ``expires-in-hours`` as ``expires_in_hours``."""
    return _HUMP.sub("_", str(name)).replace("-", "_").lower()


def asks_for_less(name: str, value: object, *, of_many: bool, deep: int = 3) -> bool:
    """Whether an argument that a tool does not have may be meant to hold it back; ``of_many`` where several things are
    done, which a number may bound. What is not given asks nothing, nor does the protocol's own ``_meta``. Objects are
    looked into, ``deep`` of them within each other."""
    if value is None or value == "" or (isinstance(value, list | Mapping) and not value):
        return False
    if isinstance(value, Mapping) and (name == "_meta" or not deep):
        return False
    name = _joined(name).lstrip("_")
    words = frozenset(name.split("_"))
    if isinstance(value, Mapping):
        inner = (asks_for_less(str(each), given, of_many=of_many, deep=deep - 1) for each, given in value.items())
        return bool(words & _NARROWING) or any(inner)
    if name in _DOING:
        return _is_off(value)
    if name in _HOLDING:
        return not _is_off(value)
    if name in _AMOUNTS or words & _AMOUNT:
        return of_many and value is not False
    if words & _NARROWING:
        return not (_is_off(value) or (isinstance(value, str) and _joined(value) in _WIDE))
    said = _joined(value) if isinstance(value, str) else ""
    return said in DRY_RUN or (said in _HOLDING_WORDS and name not in _ORIGINS)


def _is_off(value: object) -> bool:
    return value == 0 or (isinstance(value, str) and value.strip().lower() in _OFF)


def _joined(text: str) -> str:
    return plain(text.strip()).replace(" ", "_")
