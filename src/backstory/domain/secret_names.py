"""Secrets that are told by their name: ``DB_PASS=...``, ``"apiKey": "..."``, "the admin password is ...".

How a value looks is judged in ``secret_values``; here it is found, and weighed with what stands around it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum
from typing import NamedTuple

from backstory.domain.secret_shapes import Span
from backstory.domain.secret_values import (
    has_letter_and_digit,
    is_chosen_password,
    is_identifier_hash,
    is_opaque,
    is_reference,
    is_stand_in,
)

_GAP = r"[ \t\u00a0\u200b-\u200d\u2060\u3000\ufeff]"  # blanks, also the ones nobody sees

# Searched in the lower-cased text. "pass" and "key" end many other words, so what stands before them is checked.
_NAME = re.compile(
    r"(?P<password>password|passwd|passphrase|passcode|passwort|kennwort|wachtwoord|contraseña|contrasena|senha"
    r"|mot de passe|пароль|密码|密碼|口令|パスワード|비밀번호|pwd|pw|pass)"
    r"|(?P<strong>private[ _-]?key[ _-]?id"
    r"|(?:api|access|secret|private|signing|encryption|master|account|service|auth|consumer|app|client"
    r"|webhook|deploy|admin|storage|subscription|license|session|bot|refresh|bearer|personal)"
    r"[ _-]?(?:access[ _-]?|auth[ _-]?)?(?:key|token|secret)|secret|credential)"
    r"|(?P<weak>token|key)"
)
_AFTER_NAME = (
    r"s?(?:[_-]?(?:prod|production|staging|stage|dev|test|live|old|new|main|primary|secondary|[0-9]{1,2}))?"
    r"(?![a-z0-9_])"
)
# What stands between a name and its value: "=", ">" of an element, "for the staging database is", or just a blank.
_LINK = re.compile(
    rf"""{_AFTER_NAME}(?:
        (?P<sign>["'`*_\])\\]{{0,4}}{_GAP}{{0,8}}(?::=|=>|={{1,3}}|:|：|＝|->|→|\|)[*_]{{0,2}}{_GAP}{{0,8}}[*]{{0,2}})
      | (?P<element>["']?>)
      | ["'`*]{{0,2}}(?P<says>
            (?:{_GAP}{{1,8}}(?:for|of|to|on|at|in|für|von|zum|zur)(?:{_GAP}{{1,8}}[\w./@#'-]{{1,40}}){{1,5}}?)?
            {_GAP}{{1,8}}(?:is|was|are|ist|lautet|war|est|es|é)(?:{_GAP}{{1,8}}(?:now|still|set{_GAP}to|jetzt))?:?
        )?{_GAP}{{1,8}}
      | (?P<cjk>{_GAP}{{0,2}}(?:是|为|為|は|이|은|는){_GAP}{{0,2}}(?=[\x21-\x7e“「]))
    )(?P<next_line>(?:[|>][+-]?)?[ \t]*\r?\n[ \t]*)?""",
    re.VERBOSE,
)
_QUOTES = {'"': '"', "'": "'", "`": "`", "“": "”", "‘": "’", "«": "»", "„": "“", "「": "」"}
_OPEN = re.compile(r"""(?:[rbf](?=["']))?(?P<slashes>\\{0,3})(?P<quote>["'`“‘«„「]{3}|["'`“‘«„「])""")
_PLAIN = re.compile(r"""[^\s"'`<>“”‘’«»。，、；）】」]{1,128}""")
_TAIL = re.compile(r"""[^\s"'`<>“”‘’«»。，、；）】」]*""")
# Where an unquoted value ends early: before the next pair of a query or connection string, or an escaped line end.
_CUT = re.compile(r"""(?:[&;,|]|\\[nrt])(?=$|[\s"'\\}\])&;,|]|[\w.-]{1,40}[ ]?[=:])""")
_TRAILING = ".,;:)]}*?\u200b\u2060\ufeff"
_QUOTED_CHARS = 4096
_BEFORE_CHARS = 48
_OPTION = re.compile(r"(?:^|\s)--[\w-]*$")
_NOT_IN_NAME = re.compile(r"[^A-Za-z0-9_]")

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
_DIGIT_OR_SIGN = re.compile(r"[0-9!@#$%^&*+=?~]")
_PLAIN_WORD = re.compile(r"[a-z]+(?:-[a-z]+)*")
_OWN_NAME = re.compile(r"pass|pwd|secret|token|key|cred", re.IGNORECASE)


class _Family(Enum):
    """How much a name promises: ``password`` any word may be one, ``strong`` is secret, ``weak`` has other senses."""

    PASSWORD = "password"
    STRONG = "strong"
    WEAK = "weak"


_MIN_CHARS = {_Family.PASSWORD: 4, _Family.STRONG: 8, _Family.WEAK: 16}


class _Link(Enum):
    SIGN = "sign"
    SAYS = "says"
    SPACE = "space"
    FLAG = "flag"


class _Value(NamedTuple):
    """``text[start:end]``, what a name is linked to; quotes are not part of it."""

    start: int
    end: int
    quoted: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class _Named:
    """A value and all that speaks for or against its being a secret.

    ``identifier`` is the whole name (``DB_PASS``); ``env`` says that it is one of an environment, all capitals.
    """

    family: _Family
    identifier: str
    link: _Link
    value: str
    quoted: bool
    tight_equals: bool
    env: bool
    before: str
    follower: str


def find_named(text: str, lowered: str) -> Iterator[Span]:
    """Values after the name of a secret, in order. ``lowered`` is ``text`` in small letters, of the same length."""
    done = 0
    for name in _NAME.finditer(lowered):
        if name.start() < done or not _stands_alone(text, name):
            continue
        link = _LINK.match(lowered, name.end())
        if link is None or _leads_elsewhere(lowered, link.end()):
            continue
        value = _value_at(text, link.end())
        if value is None or not _is_secret(text, name, link, value):
            continue
        done = value.end if value.quoted else _run_end(text, value.end)
        yield Span(value.start, done, _kind(name))


def _stands_alone(text: str, name: re.Match[str]) -> bool:
    """Rule out words that merely end like a name (bypass, monkey), a lone "pass" of a test report, our own marks."""
    start, word = name.start(), name.group()
    if text.startswith("[secret:", start - 1):
        return False
    before = text[start - 1 : start]
    if word == "pass":
        return (before != "" and before in "_-") or (text[start] == "P" and before.islower())
    if word in ("pw", "key"):
        inside = before.isascii() and before.isalnum() and text[start - 2 : start - 1] != "\\"
        return not inside or (text[start].isupper() and before.islower())
    return True


def _leads_elsewhere(lowered: str, start: int) -> bool:
    """Whether the value is our own mark, or a name with a value (``password=token=...``), which has its own turn."""
    if lowered.find("[secret:", start, start + 12) != -1:
        return True
    name = _NAME.match(lowered, start)
    return name is not None and lowered[name.end() : name.end() + 1] in (":", "=")


def _kind(name: re.Match[str]) -> str:
    if name["password"]:
        return "password"
    word = name.group()
    return next((kind for ending, kind in (("key", "key"), ("token", "token")) if word.endswith(ending)), "secret")


def _named(text: str, name: re.Match[str], link: re.Match[str], value: _Value) -> _Named:
    before = text[max(name.start() - _BEFORE_CHARS, 0) : name.start()]
    identifier = _NOT_IN_NAME.split(before)[-1] + text[name.start() : name.end()]
    sign = link["sign"] or ""
    return _Named(
        family=_family(name),
        identifier=identifier,
        link=_link_kind(before, link),
        value=text[value.start : value.end],
        quoted=value.quoted,
        tight_equals="=" in sign and not any(char.isspace() for char in link.group()),
        env=identifier.isupper() and ("=" in sign or ":" in sign),
        before=before,
        follower=text[value.end : value.end + 1],
    )


def _family(name: re.Match[str]) -> _Family:
    if name["password"]:
        return _Family.PASSWORD
    return _Family.STRONG if name["strong"] else _Family.WEAK


def _link_kind(before: str, link: re.Match[str]) -> _Link:
    if link["sign"] or link["element"]:
        return _Link.SIGN
    if link["says"] or link["cjk"]:
        return _Link.SAYS
    return _Link.FLAG if _OPTION.search(before) else _Link.SPACE


def _fills_line(text: str, value: _Value) -> bool:
    """Whether a value on the line below its name is all there is on that line, so no next key and no prose."""
    end = value.end + value.quoted
    return text[end : end + 4].lstrip(" \t,;")[:1] in ("", "\r", "\n")


def _value_at(text: str, at: int) -> _Value | None:
    """The value that begins at ``at``, in quotes or up to the end of its run."""
    if opening := _OPEN.match(text, at):
        closing = _QUOTES[opening["quote"][0]] * len(opening["quote"])
        end = _closing_quote(text, opening.end(), opening["slashes"] + closing)
        if end is not None:
            return _Value(opening.end(), end, True) if end > opening.end() else None
        at = opening.end()
    plain = _PLAIN.match(text, at)
    if plain is None:
        return None
    cut = _CUT.search(text, at, plain.end())
    end = cut.start() if cut else plain.end()
    while end > at and text[end - 1] in _TRAILING:
        end -= 1
    return _Value(at, end, False) if end > at else None


def _closing_quote(text: str, start: int, closing: str) -> int | None:
    """Where the quoted value ends: at the first ``closing`` that is not escaped; None when the line has none."""
    at = start
    limit = start + _QUOTED_CHARS
    while (at := text.find(closing, at, limit)) != -1:
        escaped = len(closing) == 1 and (at - len(text[start:at].rstrip("\\")) - start) % 2 == 1
        if not escaped:
            return at if len(closing) == 3 or "\n" not in text[start:at] else None
        at += 1
    return None


def _run_end(text: str, end: int) -> int:
    """Carry an accepted value on to the end of its run when only the reading limit stopped it."""
    if end < len(text) and not _CUT.match(text, end) and text[end] not in _TRAILING:
        tail = _TAIL.match(text, end)
        return tail.end() if tail else end
    return end


def _is_secret(text: str, name: re.Match[str], link: re.Match[str], value: _Value) -> bool:
    """The cheap tests first: most names in code and prose are linked to nothing of interest."""
    if value.end - value.start < _MIN_CHARS[_family(name)]:
        return False
    if link["next_line"] is not None and not _fills_line(text, value):
        return False
    words = text[value.start : value.end]
    if not (link["sign"] or link["element"] or link["says"] or link["cjk"]) and not _DIGIT_OR_SIGN.search(words):
        return False
    if is_stand_in(words) or is_reference(words):
        return False
    named = _named(text, name, link, value)
    match named.family:
        case _Family.PASSWORD:
            return _is_password(named)
        case _Family.STRONG:
            return _is_strong_secret(named)
        case _Family.WEAK:
            return _is_weak_secret(named)


def _is_password(named: _Named) -> bool:
    value = named.value
    if named.link is _Link.SPACE:
        return len(value) >= 8 and is_chosen_password(value) and _INTERLEAVED.fullmatch(value) is not None
    if named.quoted:
        return not (re.search(r"\s", value) and _UI_TEXT.search(value))
    if named.link is _Link.SAYS:
        return is_chosen_password(value)
    return _is_assigned_password(named)


def _is_assigned_password(named: _Named) -> bool:
    """An unquoted value after ``=`` or ``:``: all with a digit or sign in it, and words where code would have none."""
    value = named.value
    if value.isdigit() or has_letter_and_digit(value):
        return True
    if not _PLAIN_WORD.fullmatch(value):
        return (named.env and named.tight_equals) or (is_chosen_password(value) and not _SNAKE_NAME.fullmatch(value))
    if _OWN_NAME.search(value):
        return False
    if named.link is _Link.FLAG:
        return False
    if named.env:
        return True
    return named.tight_equals and len(value) >= 6 and named.follower not in (",", ")")


def _is_strong_secret(named: _Named) -> bool:
    value = named.value
    if named.link is not _Link.SIGN:
        return is_opaque(value, min_chars=20 if named.link is _Link.SPACE else 12)
    if named.quoted:
        return not re.search(r"\s", value) and (is_opaque(value, min_chars=8) or _is_env_word(named))
    return is_opaque(value, min_chars=12) or (named.env and named.tight_equals)


def _is_env_word(named: _Named) -> bool:
    """A quoted word of any kind counts in an environment line; in code only if the name says "secret"."""
    return named.env and (named.tight_equals or "SECRET" in named.identifier) and not _OWN_NAME.search(named.value)


def _is_weak_secret(named: _Named) -> bool:
    words = _WORD_CHARS.findall(named.before)
    if (words and words[-1].lower() in _NEUTRAL) or "public" in named.identifier.lower():
        return False
    if is_identifier_hash(named.value) and not _may_be_hexadecimal(named):
        return False
    return is_opaque(named.value, min_chars=20 if named.link is _Link.SPACE else 16)


def _may_be_hexadecimal(named: _Named) -> bool:
    """Bare "key" and "token" with a UUID or digest mostly name a row, a file or a commit; "datadog_key" does not."""
    if len(named.value) == 36 and "-" in named.value:
        return False
    return named.link is _Link.SAYS or named.identifier.lower() != "key"
