"""The words people and agents use for what a memory is and where it holds, ours and those of older products."""

from __future__ import annotations

from dataclasses import dataclass

from backstory.domain.memory import Kind, Visibility
from backstory.errors import InputError

_OLDER_TYPES: dict[str, tuple[Kind, Visibility | None]] = {
    "stack_fact": (Kind.FACT, Visibility.GLOBAL),
    "project_fact": (Kind.FACT, Visibility.PROJECT),
    "episodic": (Kind.EPISODIC, Visibility.GLOBAL),
    "project": (Kind.FACT, None),
    "general": (Kind.OTHER, None),
}
"""Types that say more than a kind. ``project`` and ``general`` were categories and named no visibility."""
_SHOWN_CHARS = 60


@dataclass(frozen=True, slots=True, kw_only=True)
class Classified:
    """What a type and a scope mean; None where they say nothing."""

    kind: Kind | None = None
    visibility: Visibility | None = None
    area: str | None = None


def classify(type_: str | None, scope: str | None, *, field: str = "kind") -> Classified:
    """Read a type (``decision``, ``stack_fact``, ``preferences``) and a scope (a visibility, or an area).

    Case, dashes and blanks around do not matter for words known here; an area is kept as written. A scope outweighs
    the visibility that a type implies. Blank counts as not given. Raises InputError naming ``field`` for an unknown
    type.
    """
    kind, implied = _kind(type_, field) if type_ and type_.strip() else (None, None)
    wanted = scope.strip() if scope else ""
    if not wanted:
        return Classified(kind=kind, visibility=implied)
    if wanted.lower() in tuple(Visibility):
        return Classified(kind=kind, visibility=Visibility(wanted.lower()))
    return Classified(kind=kind, visibility=implied, area=wanted)


def known_types() -> tuple[str, ...]:
    """Every word that ``classify`` takes as a type, ours first; plurals of ours are understood too."""
    return (*(kind.value for kind in Kind), *(name for name in _OLDER_TYPES if name not in set(Kind)))


def _kind(written: str, field: str) -> tuple[Kind, Visibility | None]:
    word = written.strip().lower().replace("-", "_")
    if word in _OLDER_TYPES:
        return _OLDER_TYPES[word]
    kinds = {kind.value: kind for kind in Kind}
    found = kinds.get(word) or kinds.get(word.removesuffix("s"))
    if found is not None:
        return found, None
    raise InputError(
        f"{field} is {written.strip()[:_SHOWN_CHARS]!r}; known are {', '.join(known_types())}",
        field=field,
        hint=_guess(word),
    )


def _guess(word: str) -> str | None:
    from difflib import get_close_matches  # only to report an error

    near = get_close_matches(word[:_SHOWN_CHARS], known_types(), n=1)
    return f"did you mean {near[0]}?" if near else None
