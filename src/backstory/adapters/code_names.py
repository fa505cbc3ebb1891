"""Finding names and flags in many files at once: one pass over each, whatever the number of names."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator

_WORD = re.compile(rb"[A-Za-z_]\w{2,}")
_PIECE_BYTES = 1 << 16
_DECLARES = frozenset(
    b"def class func fn function fun const let var val struct interface trait type enum module object".split()
)
_BEFORE_NAME = 20  # bytes in which that is looked for
_FEW = 8  # names that are found faster one by one


class NamesInCode:
    """Names and flags to look for; ``$`` before a name does not matter, since languages differ in it."""

    def __init__(self, names: Iterable[str], flags: Iterable[str]) -> None:
        self._names = {name.replace("$", "").encode(): name for name in names}
        self._flags = {flag: _Flag(flag) for flag in flags}

    def in_code(self, data: bytes) -> set[str]:
        """Those that a file holds, flags in any of the forms in which programs write them."""
        return self._names_in(data) | {text for text, flag in self._flags.items() if flag.is_in(data)}

    def in_old_code(self, data: bytes) -> set[str]:
        """Those that a file held: a flag only where it was this program's own, not one handed to another."""
        return self._names_in(data) | {text for text, flag in self._flags.items() if flag.is_defined_in(data)}

    def _names_in(self, data: bytes) -> set[str]:
        """Piece by piece: while a pattern is matched no other thread runs, and one may have to answer a prompt."""
        if len(self._names) <= _FEW:
            return {name for word, name in self._names.items() if next(_places(data, word), None) is not None}
        found: set[str] = set()
        start = 0
        while start < len(data):
            end = data.find(b"\n", start + _PIECE_BYTES)
            end = len(data) if end < 0 else end
            found.update(self._names[word] for word in self._names.keys() & set(_WORD.findall(data, start, end)))
            start = end + 1
        return found

    def without(self, found: Collection[str]) -> None:
        """Look for these no more."""
        self._names = {word: name for word, name in self._names.items() if name not in found}
        self._flags = {text: flag for text, flag in self._flags.items() if text not in found}

    def __bool__(self) -> bool:
        return bool(self._names or self._flags)


class _Flag:
    def __init__(self, text: str) -> None:
        bare = text.removeprefix("--")
        parts = bare.split("-")
        forms = [text, bare, "_".join(parts), parts[0] + "".join(part.capitalize() for part in parts[1:])]
        quoted = [f"{quote}{bare}{quote}" for quote in "\"'`"]  # a single word is everywhere unless it is quoted
        written = forms if len(parts) > 1 else [text, *quoted, f":{bare}"]
        either = b"|".join(re.escape(form.encode()) for form in dict.fromkeys(written))
        self._needle = parts[0].encode()
        self._written = re.compile(rb"(?<![\w-])(?:%b)(?![\w-])" % either)
        self._defined = re.compile(rb"[\"'`]%b(?![\w-])|%b[)|]" % (re.escape(text.encode()), re.escape(text.encode())))

    def is_in(self, data: bytes) -> bool:
        return self._needle in data and self._written.search(data) is not None

    def is_defined_in(self, data: bytes) -> bool:
        return self._needle in data and self._defined.search(data) is not None


def defines(data: bytes, name: str) -> bool:
    """Whether a file declares a name, in the way of most languages."""
    before = (data[max(0, place - _BEFORE_NAME) : place].split() for place in _places(data, name.encode()))
    return any(words and words[-1] in _DECLARES for words in before)


def _places(data: bytes, word: bytes) -> Iterator[int]:
    """Where a word stands by itself."""
    place = data.find(word)
    while place >= 0:
        end = place + len(word)
        if not _in_word(data[max(0, place - 1) : place]) and not _in_word(data[end : end + 1]):
            yield place
        place = data.find(word, end)


def _in_word(sign: bytes) -> bool:
    return sign.isalnum() or sign == b"_"
