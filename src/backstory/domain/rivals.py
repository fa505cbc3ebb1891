"""Words that clash where one stands in another's place: values of one kind, rivals, contraries; and the verbs after
which a value is said. For ``contradiction.py``."""

from __future__ import annotations

import re
from enum import StrEnum

from backstory.domain.said_words import is_detail


class ValueKind(StrEnum):
    """What sort of value a word is; only two of one sort clash."""

    NUMBER = "number"
    PATH = "path"
    NAME = "name"


_NUMBER = re.compile(r"[-+~<>=v$€£]{0,2}\d[\w.:%/+-]*")
_QUANTITY = re.compile(r"([-+]?\d+(?:\.\d+)?)([a-z%µ]*)")

_RIVALS = """
    npm/pnpm/yarn/bun pip/pipenv/poetry/uv/conda tabs/spaces dark/light single/double merge/rebase/squash lf/crlf
    metric/imperial jest/vitest/mocha unittest/pytest black/yapf/ruff maven/gradle camelcase/snakecase/kebabcase
    monday/tuesday/wednesday/thursday/friday/saturday/sunday
    mondays/tuesdays/wednesdays/thursdays/fridays/saturdays/sundays
    january/february/march/april/june/july/august/september/october/november/december
    hourly/daily/nightly/weekly/monthly/yearly english/german/french/spanish/italian/portuguese
    main/master/develop/trunk utc/cet/cest/est/pst/gmt debug/info/warning red/green/blue/amber
    snake_case/camelCase/kebab-case second/minute/hour/day/week/month/year
"""
_CONTRARIES = """
    always/never before/after on/off enable/disable enabled/disabled enables/disables allow/deny allow/forbid
    allows/forbids allows/denies allowed/forbidden allowed/denied include/exclude includes/excludes open/closed
    true/false with/without above/below over/under locked/unlocked required/optional required/forbidden
    ascending/descending like/dislike likes/dislikes likes/hates like/hate prefer/avoid prefers/avoids
    use/avoid uses/avoids safe/unsafe valid/invalid active/inactive keep/drop keep/delete keeps/drops keeps/deletes
    accept/reject accepts/rejects mutable/immutable automatic/manual automatically/manually synchronous/asynchronous
    sync/async present/absent works/fails encrypted/unencrypted case-sensitive/case-insensitive
    public/private signed/unsigned
"""
_QUALITIES = """
    on off enabled disabled allowed denied forbidden open closed true false locked unlocked required optional ascending
    descending safe unsafe valid invalid active inactive mutable immutable automatic manual automatically manually
    synchronous asynchronous sync async present absent encrypted unencrypted case-sensitive case-insensitive public
    private signed unsigned above below over under before after with without
"""


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


def _groups(text: str) -> dict[str, frozenset[str]]:
    found: dict[str, set[str]] = {}
    for group in text.split():
        words = group.split("/")
        for word in words:
            found.setdefault(word, set()).update(other for other in words if other != word)
    return {word: frozenset(others) for word, others in found.items()}


RIVALS = _groups(_RIVALS)
"""Each word with those of which a project, or a person, has one at a time."""
CONTRARIES = _groups(_CONTRARIES)
"""Each word with those that cannot be true where it is; unlike in ``opposites.py``, both may not hold at once."""
QUALITIES = _words(_QUALITIES)
"""Contraries that say nothing where they only tell which thing is meant: public endpoints, private endpoints."""
NEGATIONS = _words("not no never nicht kein keine keinen nie niemals pas jamais nunca não")

_UNITS = {
    "ms": ("s", 0.001), "millisecond": ("s", 0.001), "milliseconds": ("s", 0.001),
    "s": ("s", 1.0), "sec": ("s", 1.0), "second": ("s", 1.0), "seconds": ("s", 1.0),
    "m": ("s", 60.0), "min": ("s", 60.0), "minute": ("s", 60.0), "minutes": ("s", 60.0),
    "h": ("s", 3600.0), "hour": ("s", 3600.0), "hours": ("s", 3600.0),
    "d": ("s", 86400.0), "day": ("s", 86400.0), "days": ("s", 86400.0),
    "week": ("s", 604800.0), "weeks": ("s", 604800.0), "month": ("month", 1.0), "months": ("month", 1.0),
    "year": ("month", 12.0), "years": ("month", 12.0), "%": ("%", 1.0), "percent": ("%", 1.0),
    "b": ("B", 1.0), "kb": ("B", 1e3), "mb": ("B", 1e6), "gb": ("B", 1e9), "tb": ("B", 1e12),
    "kib": ("B", 2.0**10), "mib": ("B", 2.0**20), "gib": ("B", 2.0**30),
}  # fmt: skip
_COUNTED = _words("times retries attempts workers replicas threads items rows requests lines characters columns")


def rivals(one: str, other: str) -> bool:
    """Whether the words are rivals."""
    return other.lower() in RIVALS.get(one.lower(), frozenset())


def is_unit(word: str) -> bool:
    """Whether a number before this word is a quantity, whatever else is said."""
    return word.lower() in _UNITS or word in _COUNTED


def kind_of_value(words: tuple[str, ...], *, names: frozenset[str]) -> ValueKind | None:
    """What sort of value these words are together; None for those that are none. ``names`` are words written with a
    capital inside a sentence."""
    if not words:
        return None
    if _NUMBER.fullmatch(words[0]) and all(is_unit(word) for word in words[1:]):
        return ValueKind.NUMBER
    if len(words) == 1 and is_detail(words[0]):
        return ValueKind.PATH if "/" in words[0] or re.search(r"\.[a-z]{1,5}$", words[0]) else ValueKind.NAME
    return ValueKind.NAME if all(word in names for word in words) else None


def same_quantity(one: tuple[str, ...], other: tuple[str, ...]) -> bool:
    """Whether two values are one amount in other units: 60 minutes and 1 hour."""
    amount = _amount(one)
    return amount is not None and amount == _amount(other)


def measured_in(words: tuple[str, ...]) -> frozenset[str]:
    """What a value is counted or measured in: time, bytes, requests; nothing for a bare number."""
    found = set[str]()
    for word in words:
        amount = _QUANTITY.fullmatch(word.lower())
        unit = amount[2] if amount is not None else word.lower()
        if unit in _UNITS:
            found.add(_UNITS[unit][0])
        elif unit in _COUNTED:
            found.add(unit)
    return frozenset(found)


def _amount(words: tuple[str, ...]) -> tuple[str, float] | None:
    match = _QUANTITY.fullmatch(words[0].lower())
    if match is None or len(words) > 2:
        return None
    unit = match[2] or (words[1].lower() if len(words) == 2 else "")
    if match[2] and len(words) == 2:
        return None
    if not unit:
        return "", float(match[1])
    if unit not in _UNITS:
        return None
    base, factor = _UNITS[unit]
    return base, round(float(match[1]) * factor, 9)


def _forms(bases: str) -> frozenset[str]:
    plain = bases.split()
    return frozenset([*plain, *(f"{base}{'es' if base.endswith(('s', 'sh', 'ch', 'x')) else 's'}" for base in plain)])


EXACT_VERBS = _forms(
    "run listen happen start deploy live point bind expose keep retain pin last expire default set rotate begin end"
) | frozenset(["is", "=", "is in", "goes", "go"])
"""After these, in the present tense, one value holds at a time: what is said there another statement can deny."""
AMOUNT_VERBS = _forms("take allow wait retry return send store write") - {"retry", "store"} | {"has", "have"}
"""After these one number holds at a time; anything else may stand there beside others."""
IMPERATIVES = _words("ask retry limit cap log store build target close open back bill send write")
"""Verbs where they begin a sentence; elsewhere they may be nouns."""
LOOSE_VERBS = _forms("use prefer like want choose pick")
"""After these several things may be true at once, unless a role or a rival says otherwise."""
VERBS = EXACT_VERBS | AMOUNT_VERBS | LOOSE_VERBS
PREPOSITIONS = _words(
    "on at in to from by for of as via with after before every within per until under over into through about up"
)
TO_A_VALUE = _words("to at from by after every within as than via up")
ROLES = frozenset(["for", "as"])
PARTICIPLES = _words(
    "set kept built run written sent held bound hosted stored deployed owned maintained served mounted scheduled"
    " pinned limited capped named called defined configured installed located based rotated due up least most"
)
GENERIC = _words("it this that they there port version step line value number he she these those")
"""Words that name no subject by themselves."""
CHANGING = _words(
    "moved moving switched migrated changed renamed went replaced replaces removed dropped gone uninstalled retired off"
    " abandoned away over everything all completely fully finally project repo repository team last next recently today"
    " yesterday was were has been have"
)
"""Words of a sentence about a change that do not tell what was changed."""
