"""The one door for text that is stored or sent: cleaned, freed of private passages and secrets, held to its limits."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass

from backstory.domain.labels import canonical_tag
from backstory.domain.redaction import is_fully_private, redact_secrets, strip_private
from backstory.errors import InputError

MAX_TAGS = 10
MAX_TAG_CHARS = 64

_SURROGATE_PAIR = re.compile("[\ud800-\udbff][\udc00-\udfff]")
_SURROGATE = re.compile("[\ud800-\udfff]")
# Terminal sequences (ECMA-48): control sequences; strings such as titles and links up to their end mark; short forms.
# None of them takes in a "<" that may begin a private tag; "<" and a digit is how terminals report the mouse.
_TERMINAL = re.compile(
    r"(?:\x1b\[|\x9b)(?:<(?=[0-9]))?[0-;=>?]*[ -/]*[@-~]"
    r"|(?:\x1b[\]PX^_]|[\x90\x98\x9d-\x9f])[^\x07\x1b\x9c<]*(?:\x07|\x1b\\|\x9c)"
    r"|\x1b[ -/]*[0-;=-~]"
)
# ESC and BEL wait for the terminal sequences they belong to.
_EARLY_CONTROL = re.compile(r"[\x00-\x06\x08\x0b\x0c\x0e-\x1a\x1c-\x1f\x7f]")
_CONTROL = re.compile(r"[\x07\x1b\x80-\x9f]")
_ANY_CONTROL = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f]")
# Not in labels: controls, halves of characters, line and paragraph breaks, marks that turn the reading direction.
_NOT_IN_LABELS = frozenset(("Cc", "Cs", "Zl", "Zp"))
_DIRECTION = frozenset("\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")


@dataclass(frozen=True, slots=True, kw_only=True)
class TextLimits:
    """Bounds in Python characters, both inclusive, on the text as it will be stored."""

    min_chars: int = 1
    max_chars: int = 4000


@dataclass(frozen=True, slots=True, kw_only=True)
class Admitted:
    """Text fit to be stored. ``secrets`` names the kinds masked, in order; ``private_removed`` tells of a mask."""

    text: str
    secrets: tuple[str, ...]
    private_removed: bool


def admit(text: str, *, field: str = "content", limits: TextLimits) -> Admitted:
    """Make ``text`` fit to be stored, in the Unicode form and with the blanks it came in.

    Admitting what was admitted changes nothing. Private passages are masked before secrets, and both before the length
    counts; blanks at the ends do not count towards the minimum. Raises InputError, naming ``field``, size and limit,
    when the text is empty, all blank, all private, too short or too long. Never cuts.
    """
    cleaned = clean_text(text)
    _refuse_blank(cleaned, field)
    if is_fully_private(cleaned):
        raise InputError(f"{field} is all private; nothing of it is stored", field=field)
    public = strip_private(cleaned)
    _refuse_blank(public, field)
    # Checked before the search for secrets too, which bounds its cost.
    _refuse_long(public, field, limits.max_chars)
    redacted = redact_secrets(public)
    _refuse_long(redacted.text, field, limits.max_chars)
    size = len(redacted.text.strip())
    if size < limits.min_chars:
        raise InputError(f"{field} is {_chars(size)}; the minimum is {limits.min_chars}", field=field)
    return Admitted(text=redacted.text, secrets=redacted.secrets, private_removed=public != cleaned)


def admit_evidence(text: str) -> str:
    """The same for archived messages: cleaned and masked, of any length, possibly empty. Never raises."""
    return redact_secrets(strip_private(clean_text(text))).text


def clean_text(text: str) -> str:
    """Remove what no terminal, database or JSON reader should meet; cleaning twice changes nothing.

    NUL, terminal sequences (colours, titles, links) and control characters other than tab, line feed and carriage
    return go. Two surrogates that form a character become that character, lone ones U+FFFD.
    """
    if _ANY_CONTROL.search(text):
        text = _CONTROL.sub("", _TERMINAL.sub("", _EARLY_CONTROL.sub("", text)))
    if _SURROGATE.search(text):
        text = _SURROGATE.sub("\ufffd", _SURROGATE_PAIR.sub(_combine, text))
    return text


def _combine(pair: re.Match[str]) -> str:
    return pair.group().encode("utf-16-le", "surrogatepass").decode("utf-16-le")


def admit_label(text: str, *, field: str, max_chars: int) -> str:
    """Make a tag, area, issue or name fit to be stored: one line, trimmed, composed (NFC).

    Raises InputError for an empty or too long label and for control characters, line breaks, lone surrogates,
    direction marks, private tags and secrets. The message never repeats a secret.
    """
    label = unicodedata.normalize("NFC", text).strip()
    _refuse_blank(label, field)
    if bad := next((char for char in label if _is_unfit(char)), None):
        raise InputError(f"{field} contains U+{ord(bad):04X}, which a label must not", field=field)
    _refuse_long(label, field, max_chars)
    if strip_private(label) != label:
        raise InputError(f"{field} contains a private tag", field=field)
    if secrets := redact_secrets(label).secrets:
        raise InputError(f"{field} contains a secret ({secrets[0]})", field=field)
    return label


def admit_tags(tags: Sequence[str]) -> tuple[str, ...]:
    """Admit each tag, in order, the second of two equal ones dropped: at most 10, each of at most 64 characters."""
    distinct = tuple(dict.fromkeys(map(canonical_tag, tags)))
    if len(distinct) > MAX_TAGS:  # before each is looked at: there may be very many
        raise InputError(f"tags has {len(distinct)} entries; the limit is {MAX_TAGS}", field="tags")
    return tuple(admit_label(tag, field="tags", max_chars=MAX_TAG_CHARS) for tag in distinct)


def _is_unfit(char: str) -> bool:
    return char in _DIRECTION or unicodedata.category(char) in _NOT_IN_LABELS


def _refuse_blank(text: str, field: str) -> None:
    if not text:
        raise InputError(f"{field} is empty", field=field)
    if not text.strip():
        raise InputError(f"{field} is blank: {_chars(len(text))} of white space only", field=field)


def _refuse_long(text: str, field: str, limit: int) -> None:
    if len(text) > limit:
        raise InputError(f"{field} is {_chars(len(text))}; the limit is {limit}", field=field)


def _chars(count: int) -> str:
    return f"{count} character" if count == 1 else f"{count} characters"
