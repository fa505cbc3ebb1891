"""Whether a value that stands by the name of a secret is one: weighed with its name and what stands around it.

How a value looks by itself is judged in ``secret_values.py``; it is found in ``secret_names.py``.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import Enum

from backstory.domain.secret_values import has_letter_and_digit, is_chosen_password, is_identifier_hash, is_opaque

# "cache key", "next page token": names of things that guard nothing.
_NEUTRAL = frozenset(
    re.findall(
        r"\w+",
        """
    public pub publishable primary foreign sort partition cache idempotency lookup object dict hash map translation
    route routing composite unique index row column node react list item query next page continuation cursor sync
    cancellation cancel design stop eos bos pad end start first last max min registry shard group dedup deduplication
    message event trace correlation request
    """,
    )
)
_UI_TEXT = re.compile(
    r"\b(?:password|passwort|your|must|enter|required|invalid|please|the|is|are|characters|forgot|token|key)\b",
    re.IGNORECASE,
)
_WORD_CHARS = re.compile(r"[A-Za-z][a-z]*|[A-Z]+")
_SNAKE_NAME = re.compile(r"[A-Za-z]+(?:_[A-Za-z]+)+|[a-z]+(?:[A-Z][a-z]+)+|[A-Z][a-z]+(?:[A-Z][a-z]*)*")
# With no verb between: digits within letters or a sign, and not the underscores, dots and slashes of a name or path.
_INTERLEAVED = re.compile(r"(?=.*[A-Za-z][0-9]+[A-Za-z]|.*\w[!@#$%^&*+=?~])[^_./\\]+")
_PLAIN_WORD = re.compile(r"[a-z]+(?:-[a-z]+)*")
_OWN_NAME = re.compile(r"pass|pwd|secret|token|key|cred", re.IGNORECASE)


class Family(Enum):
    """How much a name promises: ``password`` any word may be one, ``strong`` is secret, ``weak`` has other senses."""

    PASSWORD = "password"
    STRONG = "strong"
    WEAK = "weak"


class Link(Enum):
    SIGN = "sign"
    SAYS = "says"
    SPACE = "space"
    FLAG = "flag"


@dataclass(frozen=True, slots=True, kw_only=True)
class Named:
    """A value and all that speaks for or against its being a secret.

    ``identifier`` is the whole name (``DB_PASS``); ``env`` says that it is one of an environment, all capitals.
    """

    family: Family
    identifier: str
    link: Link
    value: str
    quoted: bool
    tight_equals: bool
    env: bool
    before: str
    follower: str


def is_password(named: Named) -> bool:
    value = named.value
    if named.link is Link.SPACE:
        return len(value) >= 8 and is_chosen_password(value) and _INTERLEAVED.fullmatch(value) is not None
    if named.quoted:
        return not (re.search(r"\s", value) and _UI_TEXT.search(value))
    if named.link is Link.SAYS:
        return is_chosen_password(value)
    return _is_assigned_password(named)


def _is_assigned_password(named: Named) -> bool:
    """An unquoted value after ``=`` or ``:``: all with a digit or sign in it, and words where code would have none."""
    value = named.value
    if value.isdigit() or has_letter_and_digit(value):
        return True
    if not _PLAIN_WORD.fullmatch(value):
        return (named.env and named.tight_equals) or (is_chosen_password(value) and not _SNAKE_NAME.fullmatch(value))
    if _OWN_NAME.search(value):
        return False
    if named.link is Link.FLAG:
        return False
    if named.env:
        return True
    return named.tight_equals and len(value) >= 6 and named.follower not in (",", ")")


def is_strong_secret(named: Named) -> bool:
    value = named.value
    if named.link is not Link.SIGN:
        return is_opaque(value, min_chars=20 if named.link is Link.SPACE else 12)
    if named.quoted:
        return not re.search(r"\s", value) and (is_opaque(value, min_chars=8) or _is_env_word(named))
    return is_opaque(value, min_chars=12) or (named.env and named.tight_equals)


def _is_env_word(named: Named) -> bool:
    """A quoted word of any kind counts in an environment line; in code only if the name says "secret"."""
    return named.env and (named.tight_equals or "SECRET" in named.identifier) and not _OWN_NAME.search(named.value)


def is_weak_secret(named: Named) -> bool:
    words = _WORD_CHARS.findall(named.before)
    if (words and words[-1].lower() in _NEUTRAL) or "public" in named.identifier.lower():
        return False
    if is_identifier_hash(named.value) and not _may_be_hexadecimal(named):
        return False
    return is_opaque(named.value, min_chars=20 if named.link is Link.SPACE else 16)


def _may_be_hexadecimal(named: Named) -> bool:
    """Bare "key" and "token" with a UUID or digest mostly name a row, a file or a commit; "datadog_key" does not."""
    if len(named.value) == 36 and "-" in named.value:
        return False
    return named.link is Link.SAYS or named.identifier.lower() != "key"
