"""Does a value look like a secret, or like a stand-in, a reference, a word? Where values stand is told elsewhere."""

from __future__ import annotations

import re

_UUID = re.compile(r"[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}", re.IGNORECASE)
_HEX = re.compile(r"(?:[0-9a-f]{24,}|[0-9A-F]{24,})")
_RUN = re.compile(r"[A-Za-z0-9]+")
_DIGIT = re.compile(r"[0-9]")
_LETTER = re.compile(r"[^\W\d_]")
# A border between character classes; capital to small is how words begin, so it does not count.
_BORDER = re.compile(r"(?<=[0-9])[A-Za-z]|(?<=[A-Za-z])[0-9]|(?<=[a-z])[A-Z]")
_CAPITAL_THEN_SMALL = re.compile(r"[A-Z][a-z]")

_MASKED = re.compile(
    r"\*{3}|[xX]{5}|\.{3}|…|[•·●]{3}|_{4}|#{4}|<[^<>\n]{1,60}>|\[(?:secret:|private\])|REDACTED|EXAMPLE|(?i:your)[-_. ]"
)
_ONE_CHAR = re.compile(r"(.)\1*")
_STAND_IN = re.compile(
    r"""your.*
      | (?:my|our|some|the|any|a)[-_ ]?(?:super[-_ ]?)?(?:secret|pass(?:word|wd|phrase)?|token|(?:api[-_ ]?)?key)
      | (?:change|replace|fill|edit)[-_ ]?(?:me|it|this|in|with)\b.* | (?:insert|enter|put|paste|add|use)[-_ ].*
      | (?:example|sample|dummy|placeholder|redacted|masked)(?:[-_ ].*|\d*)
      | .*[-_ ](?:here|example|placeholder|goes[-_ ]here) | x{3,} | n/?a | to[-_ ]?do | tbd | -+ | %[a-z]
      | (?:secret|password|passwd|pass|pwd|token|(?:api[-_ ]?)?key|credentials?)s?
    """,
    re.VERBOSE,
)
# Words that stand after "password:" or "token =" in code, schemas and prose without being one.
_WORDS = frozenset(
    re.findall(
        r"\w+",
        """
    none null nil undefined true false yes no on off empty blank missing unset set optional required mandatory invalid
    valid wrong incorrect correct expired revoked rotated changed unchanged unknown never always disabled enabled
    string str text bytes byte char varchar number integer int bool boolean object any void buffer secretstr unique
    value val input data prompt env environment config default auto random generated encrypted hashed hash plaintext
    hidden shared foo bar baz qux foobar self this new old same other and or not is in the field column parameter
    """,
    )
)
_REFERENCE = re.compile(
    r"""\$[({] | \$\$? [A-Za-z_]\w*$ | \$env: | %[A-Za-z_]\w*%$ | \{ | \#\{ | @\{ | \[ | <%
      | !(?:ref|sub|vault|env|secret|join|getatt|importvalue|include)\b
      | (?:op|vault|file|ssm|arn|secretsmanager|keychain|gsm|sops|awssm|env|https?|postgres(?:ql)?|mysql|redis)
        (?:\+\w+)?:
      | (?:process|import|os|env|system|deno|bun|config|settings|self|this|ctx|req|request|props|state|secrets|vars?
          |locals?|params?|args|options|opts|cfg|module|github|steps|inputs|app|user)(?:\?|!)?\.[A-Za-z_]
      | [A-Za-z_]\w*(?:(?:\.|::|->)\w+)*(?:\(|\[)
      | ~/ | \.{1,2}/ | [a-z]:\\\w
    """,
    re.VERBOSE | re.IGNORECASE,
)
_DOTTED_NAME = re.compile(r"[A-Za-z_]+(?:\.[A-Za-z_]+)+")
_UPPER_NAME = re.compile(r"[A-Z][A-Z0-9]*(?:_[A-Z0-9]+)+")
_PATH = re.compile(r"/[\w.@-]+(?:/[\w.@-]*)+")
# What "the password is ..." may go on with when it speaks of the scheme, a length, a version, an issue.
_TECHNICAL = re.compile(
    r"""(?:sha|md|base|utf|aes|rsa|ed|x|pkcs\#?|argon|bcrypt|scrypt|pbkdf|oauth|iso|rfc|tls|ssl|http|p|v)-?\d[\w.+-]*
      | (?:k8s|i18n|l10n|a11y|e2e|s3|ec2|oauth2)[\w.+-]* | \d+[-+]?[a-z]*(?:-[a-z]+)*
      | v?\d+(?:[.:/-]\d+)+\S* | [A-Z]{2,10}-\d+ | [a-z]+\d | [a-z]+-\d+
    """,
    re.VERBOSE | re.IGNORECASE,
)


def is_stand_in(value: str) -> bool:
    """Whether a value only holds a secret's place: ``changeme``, ``<your-key>``, ``xxxxx``, ``****``, our own mark."""
    folded = value.casefold().strip(" \t.,;:!?\"'`<>[](){}")
    if not folded or folded in _WORDS or _ONE_CHAR.fullmatch(folded):
        return True
    return _MASKED.search(value) is not None or _STAND_IN.fullmatch(folded) is not None


def is_reference(value: str) -> bool:
    """Whether a value says where the secret is: a variable, a call, a template, a path, a vault address."""
    if _REFERENCE.match(value) or _DOTTED_NAME.fullmatch(value) or _UPPER_NAME.fullmatch(value):
        return True
    return _PATH.fullmatch(value) is not None and not is_opaque(value, min_chars=20)


def is_identifier_hash(value: str) -> bool:
    """Whether it is a UUID or a bare digest, which name things at least as often as they guard them."""
    return _UUID.fullmatch(value) is not None or _HEX.fullmatch(value) is not None


def is_opaque(value: str, *, min_chars: int) -> bool:
    """Whether a value of at least ``min_chars`` is mostly a jumble of letters and digits, as machines make them."""
    if len(value) < min_chars:
        return False
    if _UUID.fullmatch(value):
        return True
    runs = _RUN.findall(value)
    jumbled = sum(len(run) for run in runs if _is_jumble(run))
    return jumbled > 0 and jumbled * 10 >= sum(map(len, runs)) * 6


def _is_jumble(run: str) -> bool:
    if len(run) < 6:
        return False
    borders = len(_BORDER.findall(run))
    if _DIGIT.search(run):
        return borders >= (4 if len(run) >= 16 else 2)
    return len(run) >= 20 and borders + len(_CAPITAL_THEN_SMALL.findall(run)) > len(run) * 2 // 5


def has_letter_and_digit(value: str) -> bool:
    return _DIGIT.search(value) is not None and _LETTER.search(value) is not None


def is_chosen_password(value: str) -> bool:
    """Whether a word in prose can only be a password: letters mixed with digits or signs, and no technical term."""
    if len(value) < 6 or _TECHNICAL.fullmatch(value):
        return False
    return has_letter_and_digit(value) or re.search(r"\w[!@#$%^&*+=?~]\w", value) is not None
