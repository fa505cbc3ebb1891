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
    "if_not_exists", "private", "local", "secret", "sensitive", "confidential", "temporary", "ephemeral",
}  # fmt: skip
"""Switches that hold back when they are on."""

_DOING = frozenset(
    {
        "confirm", "confirmed", "confirmation", "approve", "approved", "apply", "execute", "commit", "perform", "run",
        "write", "save", "store", "persist", "import", "keep", "enabled", "permanent", "global", "public", "shared",
    }
)  # fmt: skip
"""Switches that hold back when they are off."""

_BOUNDS = frozenset({"count", "top", "top_k", "first", "take"})
_BOUNDING = frozenset(
    {
        "limit", "max", "maximum", "only", "except", "exclude", "excluding", "excluded", "without", "skip", "filter",
        "filters", "unless", "until", "ttl", "expires", "expire", "expiry", "lifetime", "visibility", "sensitivity",
        "privacy", "audience",
    }
)  # fmt: skip
"""Words of a name; whatever the value is, it is a bound."""

_HOLDING_WORDS = DRY_RUN | {"private", "local_only", "local", "secret", "temporary", "ephemeral", "session"}
"""Values that hold back, whatever the argument is called, as in ``mode: preview``."""


def plain(name: str) -> str:
    """``expiresInHours`` and ``expires-in-hours`` as ``expires_in_hours``."""
    return _HUMP.sub("_", str(name)).replace("-", "_").lower()


def asks_for_less(name: str, value: object, *, deep: int = 3) -> bool:
    """Whether an argument that a tool does not have may be meant to hold it back. What is not given asks nothing, nor
    does the protocol's own ``_meta``. Objects are looked into, ``deep`` of them within each other."""
    if value is None or value == "" or (isinstance(value, list | Mapping) and not value):
        return False
    if isinstance(value, Mapping):
        inner = value.items() if deep and name != "_meta" else ()
        return any(asks_for_less(str(each), given, deep=deep - 1) for each, given in inner)
    name = _joined(name).lstrip("_")
    if name in _DOING:
        return _is_off(value) or value == 0
    if name in _HOLDING:
        return not (_is_off(value) or value == 0)
    if name in _BOUNDS or not _BOUNDING.isdisjoint(name.split("_")):
        return not _is_off(value)
    return isinstance(value, str) and _joined(value) in _HOLDING_WORDS


def _is_off(value: object) -> bool:
    return value is False or (isinstance(value, str) and value.strip().lower() in ("false", "no", "off"))


def _joined(text: str) -> str:
    return plain(text.strip()).replace(" ", "_")
