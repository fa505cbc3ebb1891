"""Secrets that are told by their name: ``DB_PASS=...``, ``"apiKey": "..."``, "the admin password is ...".

How a value looks is judged in ``secret_values``; here it is found, and weighed with what stands around it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from backstory.domain.secret_shapes import Span
from backstory.domain.secret_values import (
    is_reference,
    is_stand_in,
)
from backstory.domain.secret_weighing import Family, Link, Named, is_password, is_strong_secret, is_weak_secret

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
_DIGIT_OR_SIGN = re.compile(r"[0-9!@#$%^&*+=?~]")


_MIN_CHARS = {Family.PASSWORD: 4, Family.STRONG: 8, Family.WEAK: 16}


class _Value(NamedTuple):
    """``text[start:end]``, what a name is linked to; quotes are not part of it."""

    start: int
    end: int
    quoted: bool


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


def _named(text: str, name: re.Match[str], link: re.Match[str], value: _Value) -> Named:
    before = text[max(name.start() - _BEFORE_CHARS, 0) : name.start()]
    identifier = _NOT_IN_NAME.split(before)[-1] + text[name.start() : name.end()]
    sign = link["sign"] or ""
    return Named(
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


def _family(name: re.Match[str]) -> Family:
    if name["password"]:
        return Family.PASSWORD
    return Family.STRONG if name["strong"] else Family.WEAK


def _link_kind(before: str, link: re.Match[str]) -> Link:
    if link["sign"] or link["element"]:
        return Link.SIGN
    if link["says"] or link["cjk"]:
        return Link.SAYS
    return Link.FLAG if _OPTION.search(before) else Link.SPACE


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
        case Family.PASSWORD:
            return is_password(named)
        case Family.STRONG:
            return is_strong_secret(named)
        case Family.WEAK:
            return is_weak_secret(named)
