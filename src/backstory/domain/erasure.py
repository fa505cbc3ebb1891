"""Taking texts out for good: which writings of a text count as it, what stands in its place, in which bytes it might
still hide. Values only; where texts are kept is the stores' affair.
"""

from __future__ import annotations

import json
import re
import unicodedata
from collections.abc import Callable, Sequence

from backstory.domain.erasure_encodings import ENCODED_RUN, encoded_patterns
from backstory.domain.memory import Deleted, Memory

ERASED = "[erased]"
"""What stands in the place of a text that is gone."""
ERASED_REASON = "erased for good"

MIN_WITHIN_CHARS = 8
"""A memory of fewer characters is taken out where it is a whole text, not where it stands within another one: most
short texts are words of every language."""
MIN_ASKED_CHARS = 4
"""The least that a person may ask to take out of everything."""

Rewrite = Callable[[str], str]
"""A text as it is kept from now on; the very same text where nothing is to be changed. Doing it twice does no more."""

_ENTITIES = {"&": "amp", "<": "lt", ">": "gt", '"': "quot", "'": "apos"}
_ESCAPES = {"\b": "b", "\f": "f", "\n": "n", "\r": "r", "\t": "t"}
# JSON in JSON in JSON: an escape has 1, 3 or 7 backslashes, and a backslash is 8. Bounded, since a text may be nothing
# but backslashes.
_BACKSLASHES = r"\\{1,7}"
_BLANK = rf"(?:\s|{_BACKSLASHES}[nrtf]|{_BACKSLASHES}u00(?:0[9-d]|a0|20))"
_END = ".!?"
_SIGNS = re.compile(r"[sS]{2}|\\+.?|.", re.DOTALL)


def is_erased(memory: Memory) -> bool:
    """Whether nothing is left of a memory but that there was one."""
    return memory.content == ERASED and isinstance(memory.status, Deleted) and memory.status.reason == ERASED_REASON


def eraser_of(texts: Sequence[str]) -> Rewrite:
    """What puts ``ERASED`` in the place of each of the texts, in any letter case and spacing, in either composition of
    Unicode, and escaped for JSON or XML, however often; a full stop at the end may be missing. And in other signs, see
    ``erasure_encodings``.

    A text of fewer than ``MIN_WITHIN_CHARS`` is only found where nothing stands around it. Longer texts come first, so
    that what holds another one goes as a whole. Linear, but for texts that repeat themselves: 0.1 s for a megabyte.
    """
    whole = {_plain(text) for text in texts}
    within = sorted((text for text in set(texts) if size(text) >= MIN_WITHIN_CHARS), key=lambda text: -len(text))
    return _rewriting(within, whole - {""})


def asked_eraser_of(text: str) -> Rewrite:
    """The same for one text that a person named: it goes wherever it stands, however short it is.

    Raises ValueError for one of no ``size``, which would stand between any two characters.
    """
    if not size(text):
        raise ValueError("there is nothing in the text to look for")
    return _rewriting([text], set())


def size(text: str) -> int:
    """How many characters of a text have to be found for it to be found; blanks in a row are one, and stops at its end
    are none."""
    return len(" ".join(_plain(text).split()))


def _rewriting(within: Sequence[str], whole: set[str]) -> Rewrite:
    plain = _one_of([_pattern(_plain(text)) for text in within])
    encoded = _one_of([pattern for text in within for pattern in encoded_patterns(_plain(text))])
    folded = {_folded(text) for text in whole}

    def rewrite(text: str) -> str:
        if len(text) < MIN_WITHIN_CHARS + 8 and _folded(_plain(text)) in folded:
            return ERASED
        if encoded is not None:  # first: a shorter text must not be taken out of the middle of a longer one's
            kept = re.sub(ENCODED_RUN, lambda run: encoded.sub(ERASED, run[0]), text)
            text = text if kept == text else kept
        return text if plain is None else plain.sub(ERASED, text)

    return rewrite


def _one_of(patterns: Sequence[str]) -> re.Pattern[str] | None:
    return re.compile("|".join(patterns), re.IGNORECASE) if patterns else None


def _plain(text: str) -> str:
    return unicodedata.normalize("NFC", text).strip().rstrip(_END).rstrip()


def _folded(text: str) -> str:
    return " ".join(text.casefold().split())


def _pattern(text: str) -> str:
    """The pattern of a text without blanks at its ends, for ``re.IGNORECASE``."""
    first, *others = text.split() or [""]
    return _word(first) + "".join(map(_blanks_and_word, others))


def _blanks_and_word(word: str) -> str:
    """A word with all that stands before it. One that begins with a backslash may look like a blank: it takes what
    comes first, and keeps it."""
    return f"(?>{_BLANK}+?{_word(word)})" if word[0] == "\\" else f"{_BLANK}++{_word(word)}"


def _word(word: str) -> str:
    return "".join(map(_sign, _SIGNS.findall(word)))


def _sign(char: str) -> str:
    """One character as it is, or escaped; two s, which are also ß; or a run of backslashes, with what comes behind it.
    Letters and digits of ASCII have no other form worth a look.

    No two ways may match the same text: a search that fails at its end would try all combinations of them.
    """
    if char[0] == "\\":
        behind = char.lstrip("\\")
        count = len(char) - len(behind)
        run = rf"\\{{{count},{8 * count}}}"
        return f"(?>{run}{_sign(behind)})" if behind else run  # which of the two a backslash is of is all the same
    if len(char) == 2:
        return _sign("ß")
    if char.isascii() and (char.isalnum() or char in "_-"):
        return char
    plain = re.escape(char)
    ways = [rf"\\{{0,7}}{plain}" if char in "\"/'" else plain]
    if char in _ENTITIES:
        ways += [f"&{_ENTITIES[char]};", f"&#0*{ord(char)};", f"&#x0*{ord(char):x};"]
    if char in _ENTITIES or not char.isascii():
        ways.append(_escaped(char))
    folded, apart = char.casefold(), unicodedata.normalize("NFD", char)
    ways += {way.casefold(): re.escape(way) for way in (folded, apart) if len(way) > 1}.values()
    if apart != char:
        ways.append("".join(part if part.isascii() else _escaped(part) for part in apart))
    return ways[0] if len(ways) == 1 else f"(?:{'|'.join(ways)})"


def _escaped(char: str) -> str:
    """The pattern of a character that JSON writes in escapes of four digits."""
    units = char.encode("utf-16-be", "surrogatepass")
    return "".join(rf"{_BACKSLASHES}u{units[at]:02x}{units[at + 1]:02x}" for at in range(0, len(units), 2))


def raw_forms(text: str) -> list[bytes]:
    """In which bytes a text may lie on a disk: UTF-8, UTF-16 and JSON, in both compositions of Unicode.

    To be compared without regard to the case of ASCII letters. Empty for a blank text. Other signs are in
    ``erasure_encodings``.
    """
    forms: dict[bytes, None] = {}
    stripped = text.strip()
    if not stripped:
        return []
    for composed in dict.fromkeys((stripped, *(unicodedata.normalize(form, stripped) for form in ("NFC", "NFD")))):
        escaped = [json.dumps(composed, ensure_ascii=ascii_only)[1:-1] for ascii_only in (False, True)]
        twice = [json.dumps(once, ensure_ascii=True)[1:-1] for once in escaped]
        for written in (composed, *escaped, *twice):
            forms[written.encode("utf-8", "surrogatepass")] = None
        forms[composed.encode("utf-16-le", "surrogatepass")] = None
        forms[composed.encode("utf-16-be", "surrogatepass")] = None
    return list(forms)
