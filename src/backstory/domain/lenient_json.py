"""Find the JSON in a text that a model wrote, and read it as it was meant where only one meaning is likely.

Read although JSON forbids it: trailing and missing commas, comments, single and typographic quotes, bare keys, Python's
words, line breaks and stray quotation marks inside strings. What the values mean is for the callers to judge.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from backstory.domain.admission import clean_text

MAX_DEPTH = 64
"""Deeper nesting than anything we ask for; it keeps hostile answers linear and off the interpreter's stack."""
MAX_FALSE_STARTS = 1_000
"""Brackets that begin no JSON, after which the rest of a text is not searched: each costs time in proportion to it."""

_CLOSES = {'"': '"”', "'": "'", "“": "”“", "„": "“”", "‘": "’", "«": "»"}
_OPENING = "".join(_CLOSES)
_ESCAPED = {"n": "\n", "t": "\t", "r": "\r", "b": "", "f": "", "/": "/", "\\": "\\", '"': '"', "'": "'"}
_WORDS = {"true": True, "True": True, "false": False, "False": False}
_NOTHINGS = frozenset(("null", "None", "NaN", "nan", "undefined", "Infinity", "inf"))

_BLANK = re.compile(r"(?:[\s\ufeff]+|//[^\n]*|/\*(?:(?!\*/).)*+(?:\*/|\Z))*+", re.DOTALL)
_OPENS = re.compile(r"[\[{]")
_NUMBER = re.compile(r"[+-]?(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?")
_WORD = re.compile(r"[A-Za-z_$][\w$-]*")
_HEX = re.compile(r"[0-9a-fA-F]{4}")
_STOPS = {mark: re.compile(rf"[\\{marks}]") for mark, marks in _CLOSES.items()}
_AFTER_VALUE = re.compile(rf"\s*(?:[,\]}}]|//|/\*|\Z|\s[{_OPENING}])")
_AFTER_KEY = re.compile(r"\s*:")


class Cut(StrEnum):
    """Where the text ended: behind the value, before its closing brackets alone, or in the middle of it."""

    NO = "no"
    BRACKETS = "brackets"
    MIDDLE = "middle"


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """An object or a list in a text; ``end`` is the place behind it.

    What was cut in two (a string, a number, a key without value) is left out of ``value``.
    """

    value: object
    cut: Cut
    end: int


def find_json(text: str) -> list[Found]:
    """The objects and lists that stand in a text, in order, the outermost ones only; nothing else counts as JSON.

    Strings come cleaned: no NUL and no half characters. Of a key given twice, lists are joined and else the last one
    holds. NaN and infinities are None. Nesting beyond ``MAX_DEPTH`` makes the whole text unreadable. Never raises;
    linear in the length of the text.
    """
    found: list[Found] = []
    position = false_starts = 0
    try:
        while false_starts < MAX_FALSE_STARTS and (opening := _OPENS.search(text, position)):
            value = _read_at(text, opening.start())
            if value is None:
                position = opening.end()
                false_starts += 1
            else:
                position = value.end
                found.append(value)
    except (_TooDeepError, RecursionError):
        return []
    return found


class _TooDeepError(Exception):
    pass


class _NotJsonError(Exception):
    pass


class _CutError(Exception):
    """The text ended inside a value, of which nothing is kept."""


def _read_at(text: str, start: int) -> Found | None:
    try:
        value, end = _STRICT.raw_decode(text, start)
        return Found(value=_cleaned(value, 0), cut=Cut.NO, end=end)
    except ValueError:
        pass
    reader = _Reader(text, start)
    try:
        value = reader.value(0)
    except (_NotJsonError, _CutError):
        return None
    return Found(value=_cleaned(value, 0), cut=reader.cut, end=reader.position)


def _merged(pairs: Sequence[tuple[str, object]]) -> dict[str, object]:
    merged: dict[str, object] = {}
    for key, value in pairs:
        earlier = merged.get(key)
        if isinstance(earlier, list) and isinstance(value, list):
            earlier.extend(value)  # in place: a key that is given 10,000 times must not copy the list as often
        else:
            merged[key] = value
    return merged


_STRICT = json.JSONDecoder(strict=False, object_pairs_hook=_merged, parse_constant=lambda _: None)


def _cleaned(value: object, depth: int) -> object:
    if depth > MAX_DEPTH:
        raise _TooDeepError
    if isinstance(value, str):
        return clean_text(value)
    if isinstance(value, list):
        return [_cleaned(item, depth + 1) for item in value]
    if isinstance(value, dict):
        return {clean_text(key): _cleaned(item, depth + 1) for key, item in value.items()}
    return value


class _Reader:
    """Reads one value from ``position`` on. ``cut`` tells whether the text ended first."""

    def __init__(self, text: str, position: int) -> None:
        self.position = position
        self.cut = Cut.NO
        self._text = text

    def value(self, depth: int) -> object:
        if depth > MAX_DEPTH:
            raise _TooDeepError
        char = self._next()
        if char == "{":
            return self._object(depth)
        if char == "[":
            return self._list(depth)
        if char in _CLOSES:
            return self._string(_AFTER_VALUE)
        return self._number_or_word()

    def _list(self, depth: int) -> list[object]:
        items: list[object] = []
        self.position += 1
        while self._goes_on("]"):
            try:
                items.append(self.value(depth + 1))
            except _CutError:
                self.cut = Cut.MIDDLE
            self._separate("]")
        return items

    def _object(self, depth: int) -> dict[str, object]:
        pairs: list[tuple[str, object]] = []
        self.position += 1
        while self._goes_on("}"):
            try:
                pairs.append((self._key(), self.value(depth + 1)))
            except _CutError:
                self.cut = Cut.MIDDLE
            self._separate("}")
        return _merged(pairs)

    def _goes_on(self, closing: str) -> bool:
        """Whether another item follows; steps over the closing bracket, which may be missing at the end of the text."""
        if self.cut is not Cut.NO:
            return False
        char = self._next(or_end=True)
        if char == closing:
            self.position += 1
        elif not char:
            self.cut = Cut.BRACKETS
        return char not in (closing, "")

    def _separate(self, closing: str) -> None:
        """Step over a comma. None is needed before the end, a closing bracket or a new string."""
        char = self._next(or_end=True)
        if char == ",":
            self.position += 1
            if not self._next(or_end=True):
                self.cut = Cut.MIDDLE  # more was to come
        elif char not in (closing, "") and char not in _CLOSES:
            raise _NotJsonError

    def _key(self) -> str:
        if self._next() in _CLOSES:
            key = self._string(_AFTER_KEY)
        elif word := _WORD.match(self._text, self.position):
            self.position = word.end()
            key = word.group()
        else:
            raise _NotJsonError
        if self._next() != ":":
            raise _NotJsonError
        self.position += 1
        return key

    def _string(self, followed_by: re.Pattern[str]) -> str:
        """A string up to the closing mark behind which the JSON goes on; a mark elsewhere belongs to the text."""
        stops = _STOPS[self._text[self.position]]
        done = self.position + 1
        pieces: list[str] = []
        while stop := stops.search(self._text, done):
            pieces.append(self._text[done : stop.start()])
            if stop.group() == "\\":
                piece, done = self._escape(stop.end())
                pieces.append(piece)
            elif followed_by.match(self._text, stop.end()):
                self.position = stop.end()
                return "".join(pieces)
            else:
                pieces.append(stop.group())
                done = stop.end()
        self.position = len(self._text)
        raise _CutError

    def _escape(self, place: int) -> tuple[str, int]:
        """What an escape means, and the place behind it; one that JSON does not know stays as it is written."""
        char = self._text[place : place + 1]
        digits = _HEX.match(self._text, place + 1) if char == "u" else None
        if digits is not None:
            return chr(int(digits.group(), 16)), digits.end()
        return (_ESCAPED[char], place + 1) if char in _ESCAPED else ("\\", place)

    def _number_or_word(self) -> object:
        match = _NUMBER.match(self._text, self.position) or _WORD.match(self._text, self.position)
        if match is None:
            raise _NotJsonError
        self.position = match.end()
        if match.end() == len(self._text):
            raise _CutError
        written = match.group()
        if written in _WORDS:
            return _WORDS[written]
        if written in _NOTHINGS:
            return None
        try:
            return int(written) if written.lstrip("+-").isdigit() else float(written)
        except ValueError as error:
            raise _NotJsonError from error

    def _next(self, *, or_end: bool = False) -> str:
        """The next sign that is neither blank nor comment; at the end the empty text, or _CutError."""
        blank = _BLANK.match(self._text, self.position)
        assert blank is not None
        self.position = blank.end()
        char = self._text[self.position : self.position + 1]
        if not char and not or_end:
            raise _CutError
        return char
