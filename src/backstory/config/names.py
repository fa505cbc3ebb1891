"""Names nobody knows: the error, with the name that was probably meant."""

from __future__ import annotations

from collections.abc import Iterable

from backstory.config.values import place
from backstory.errors import ConfigError

_COMPARED_CHARS = 100
"""Names are cut to this length before they are compared: difflib takes quadratic time."""
_NEAR = 0.7
"""Likeness from which a name is offered; two slips in a name of eight letters still reach it."""


def unknown(written: str, known: Iterable[str], *, source: str) -> ConfigError:
    """The error for a name that is not in ``known``, with what was probably meant."""
    names = tuple(known)
    near = nearest(written, names)
    inside = next((name for name in names if name.startswith(f"{written}.")), None)
    if inside is not None:
        reason = f"this is a group, not a setting such as {inside}; in a file, write its settings under [{written}]"
    elif near is not None:
        reason = f"there is no such setting; did you mean {near}?"
    else:
        reason = "there is no such setting; `backstory config` lists all"
    return ConfigError(f"{place(written, source)}: {reason}", option=written, source=source)


def nearest(written: str, known: Iterable[str]) -> str | None:
    """The known name most like ``written``, whatever its case, dashes or underscores; None if none is near.

    Group and last part must both be alike; failing that, a last part that only one known name has will do.
    """
    names = tuple(known)
    group, leaf = _parts(written[:_COMPARED_CHARS])
    likeness = {name: min(_likeness(group, _parts(name)[0]), _likeness(leaf, _parts(name)[1])) for name in names}
    best = max(names, key=likeness.__getitem__)
    if likeness[best] >= _NEAR:
        return best
    same_leaf = [name for name in names if _likeness(leaf, _parts(name)[1]) >= _NEAR]
    return same_leaf[0] if len(same_leaf) == 1 else None


def _parts(name: str) -> tuple[str, str]:
    group, _, leaf = name.lower().replace("_", "").replace("-", "").rpartition(".")
    return group, leaf


def _likeness(one: str, other: str) -> float:
    from difflib import SequenceMatcher  # only to report an error

    return SequenceMatcher(None, one, other).ratio()
