"""Which statements are taken back, or replaced by later ones."""

from __future__ import annotations

import re
from functools import cache

from backstory.domain.statements.replies import is_rejection
from backstory.domain.text import analyse_query

_ABOUT_IT = 0.5  # of a statement's telling words, that a refusal and what it refuses must speak of
_SAME_SUBJECT = 0.6  # of the longer one's telling words without numbers and names
_LEAST_SHARED = 3


def takes_back(typed: str, before: str, statement: str) -> bool:
    """Whether the user's words correct a statement: they refuse, or name a change, and speak of nearly the same."""
    if not (is_rejection(typed) or _changes().search(typed)):
        return False
    said, own = _words(f"{typed} {before}" if is_rejection(typed) else typed), _words(statement)
    return len(said & own) >= _ABOUT_IT * len(own)


def holds(kept: str, statement: str) -> bool:
    """Whether a kept text has all telling words of a statement."""
    return _words(statement) <= _words(kept)


def replaces(later: str, earlier: str) -> bool:
    """Whether a later statement says something else about the same: other numbers or names, or the whole once more."""
    if holds(later, earlier):
        return True
    new, old = _words(later), _words(earlier)
    new_names, old_names = _names(later), _names(earlier)
    plain_new, plain_old = new - new_names, old - old_names
    same = plain_new & plain_old
    if len(same) < _LEAST_SHARED or len(same) < _SAME_SUBJECT * max(len(plain_new), len(plain_old)):
        return False
    return bool(old_names - new_names) and bool(new_names - old_names)


def _words(text: str) -> frozenset[str]:
    return frozenset(term.token for term in analyse_query(text) if term.weight == 1.0)


def _names(text: str) -> frozenset[str]:
    return frozenset(term.token for term in analyse_query(text) if term.weight == 1.0 and term.is_name)


@cache
def _changes() -> re.Pattern[str]:
    return re.compile(
        r"\b(?:instead|no longer|not any ?more|(?:i|that|it) was wrong|scratch that|forget (?:that|it|the)"
        r"|(?:change|switch)\b.{0,60}\bto"
        r"|drop|remove|undo|revert|doch (?:nicht|lieber)|stattdessen|vergiss)\b",
        re.IGNORECASE,
    )
