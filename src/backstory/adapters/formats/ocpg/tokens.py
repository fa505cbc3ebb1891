"""The words of an SQL script, one after the other, and the lines of data between its statements.

Knows where a string ends, and nothing of what a statement means. Only a little of the script is held at a time.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from enum import Enum, auto
from typing import NamedTuple

_WITH_ESCAPES = r"'(?:[^'\\]++|\\.|'')*+'"
_PLAIN = r"'[^']*+(?:''[^']*+)*+'"
_KINDS = r"""\s*+(?:(?P<blank>--[^\n]*+\n|\Z)
    |(?P<escaped>[eE]{escapes})
    |(?P<string>[nNbBxX]?{string})
    |(?P<quoted>"[^"]*+(?:""[^"]*+)*+")
    |(?P<torn>/\*|--|\$(?:[^\W\d]\w*)?\$|[eEnNbBxX]?'|"|[uU]&['"])
    |(?P<word>[^\W\d][\w$]*+)
    |(?P<number>[.]?[0-9][0-9.eE]*+)
    |(?P<sign>.))"""


def _tokens(string: str) -> re.Pattern[str]:
    return re.compile(_KINDS.format(escapes=_WITH_ESCAPES, string=string), re.DOTALL | re.VERBOSE)


_STANDARD, _OLD = _tokens(_PLAIN), _tokens(_WITH_ESCAPES)
_ESCAPE = re.compile(r"''|\\(?:([0-7]{1,3})|x([0-9A-Fa-f]{1,2})|u([0-9A-Fa-f]{4})|U([0-9A-Fa-f]{8})|(.))", re.DOTALL)
_LETTERS = {"b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t"}
_NUMBERED = re.compile(r"\\(?:\+([0-9A-Fa-f]{6})|([0-9A-Fa-f]{4})|(\\))")
_PAIR = re.compile("[\ud800-\udbff][\udc00-\udfff]")
_COMMENTS = ("--", "/*")
_AHEAD = 8  # characters that have to be there for what begins here to be told apart


class Mark(Enum):
    """What a token is. ``LONG`` stands for a text beyond the limit, ``TORN`` for one that the end of the file cuts."""

    WORD = auto()
    NAME = auto()
    TEXT = auto()
    NUMBER = auto()
    SIGN = auto()
    LONG = auto()
    TORN = auto()


class Token(NamedTuple):
    """A piece of a script. ``text`` is what it says: words in lower case, strings and names without quotes."""

    mark: Mark
    text: str = ""


class Tokens:
    """The tokens of a script. Texts beyond ``at_most`` characters are passed over without being held.

    ``standard`` False is for a script in whose plain strings a backslash has power.
    """

    def __init__(self, pieces: Iterator[str], *, at_most: int) -> None:
        self._pieces = pieces
        self._at_most = at_most
        self._buffer = ""
        self._position = 0
        self._is_complete = False
        self.standard = True

    def next(self) -> Token | None:
        """The next token; None at the end."""
        while True:
            kind, text = self._match()
            if kind == "blank" and not text:
                return None
            if kind == "torn":
                opened = self._rest_of(text)
                if opened is not None:
                    return opened
            elif kind != "blank":
                return self._token(kind, text)

    def line(self) -> Token | None:
        """All up to the next line end, which is passed over; None at the end of the script."""
        mark, pending = Mark.TEXT, 0
        while (end := self._buffer.find("\n", self._position + pending)) < 0:
            pending = len(self._buffer) - self._position
            if pending > self._at_most:
                mark, pending, self._position = Mark.LONG, 0, len(self._buffer)
            if not self._more():
                text, self._position = self._buffer[self._position :], len(self._buffer)
                return Token(Mark.TORN, text) if text or mark is Mark.LONG else None
        text = "" if mark is Mark.LONG else self._buffer[self._position : end].removesuffix("\r")
        self._position = end + 1
        return Token(mark, text)

    def _match(self) -> tuple[str, str]:
        """The kind of what comes next and its text, which is passed over."""
        pattern = _STANDARD if self.standard else _OLD
        while True:
            match = pattern.match(self._buffer, self._position)
            assert match is not None  # one of the kinds takes any character
            assert match.lastgroup is not None
            is_sure = match.end() + _AHEAD <= len(self._buffer)
            if is_sure or len(self._buffer) - self._position > 2 * self._at_most or not self._more():
                self._position = match.end()
                return match.lastgroup, match[match.lastgroup]

    def _more(self) -> bool:
        """Read on, and let go of what was passed over; whether there was more."""
        wanted = max(1, len(self._buffer) - self._position)  # doubling, so that a long text is looked at a few times
        read: list[str] = []
        while wanted > 0 and not self._is_complete:
            piece = next(self._pieces, None)
            self._is_complete = piece is None
            if piece:
                read.append(piece)
                wanted -= len(piece)
        if read:
            self._buffer = "".join([self._buffer[self._position :], *read])
            self._position = 0
        return bool(read)

    def _token(self, kind: str, text: str) -> Token:
        match kind:
            case "word":
                return Token(Mark.WORD, text.lower())
            case "number":
                return Token(Mark.NUMBER, text)
            case "sign":
                return Token(Mark.SIGN, text)
            case _ if len(text) > self._at_most:
                return Token(Mark.LONG)
            case "quoted":
                return Token(Mark.NAME, text[1:-1].replace('""', '"'))
            case _:
                return Token(Mark.TEXT, self._said(text[: text.index("'") + 1], text[text.index("'") + 1 : -1]))

    def _rest_of(self, opener: str) -> Token | None:
        """What a text says whose end was not in sight; None for a comment."""
        ends, depth, mark = self._ends(opener), 1, Mark.TEXT
        seen = 0  # characters after the position in which no end is
        while depth > 0:
            match = ends.search(self._buffer, self._position + seen)
            if match is None or match.end() == len(self._buffer):
                left = len(self._buffer) - self._position
                seen = match.start() - self._position if match else max(seen, left - len(opener))
                if left > self._at_most:
                    mark, seen, self._position = Mark.LONG, 0, self._position + seen
                if self._more():
                    continue
                if match is None:
                    self._position = len(self._buffer)
                    return None if opener in _COMMENTS else Token(Mark.TORN)
            seen = match.end() - self._position
            depth += 1 if match.group() == "/*" else -1 if match.group(1) else 0
        body = self._buffer[self._position : self._position + seen]
        self._position += seen
        if opener in _COMMENTS:
            return None
        return Token(Mark.LONG) if mark is Mark.LONG or len(body) > self._at_most else self._closed(opener, body)

    def _closed(self, opener: str, body: str) -> Token:
        if opener.startswith("$"):
            return Token(Mark.TEXT, body.removesuffix(opener))
        body = body[:-1]
        if opener[0] in "uU":
            body = _PAIR.sub(_combined, _NUMBERED.sub(_by_number, body.replace(opener[-1] * 2, opener[-1])))
        if opener.endswith('"'):
            return Token(Mark.NAME, body.replace('""', '"'))
        return Token(Mark.TEXT, body if opener[0] in "uU" else self._said(opener, body))

    def _said(self, opener: str, body: str) -> str:
        if opener[0] in "eE" or not self.standard:
            return unescaped(body)
        return body.replace("''", "'")

    def _ends(self, opener: str) -> re.Pattern[str]:
        """What ends a text, which is group 1, or may be taken for its end."""
        if opener == "/*":
            return re.compile(r"/\*|(\*/)")
        if opener == "--":
            return re.compile("(\n)")
        if opener.startswith("$"):
            return re.compile(f"({re.escape(opener)})")
        if opener.endswith('"'):
            return re.compile('""|(")')
        if opener[0] in "eE" or not self.standard:
            return re.compile(r"\\.|''|(')", re.DOTALL)
        return re.compile("''|(')")


def unescaped(text: str) -> str:
    """What the inside of a string with escapes says. Bytes named by number count as UTF-8."""
    if "\\" not in text:
        return text.replace("''", "'")
    said = _PAIR.sub(_combined, _ESCAPE.sub(_escape, text))
    try:
        return said.encode("utf-8", "surrogateescape").decode("utf-8", "surrogateescape")
    except UnicodeEncodeError:  # half a character, which whoever takes the text has to judge
        return said


def _escape(match: re.Match[str]) -> str:
    octal, hexadecimal, short, long, letter = match.groups()
    if letter is not None:
        return _LETTERS.get(letter, letter)
    if octal is not None or hexadecimal is not None:
        code = int(octal, 8) & 0xFF if octal is not None else int(hexadecimal, 16)
        return chr(code) if code < 0x80 else chr(0xDC00 + code)
    return _character(short or long) if short or long else "'"


def _by_number(match: re.Match[str]) -> str:
    long, short, backslash = match.groups()
    return "\\" if backslash else _character(long or short)


def _character(digits: str) -> str:
    code = int(digits, 16)
    return chr(code) if code <= 0x10FFFF else "\ufffd"


def _combined(pair: re.Match[str]) -> str:
    return pair.group().encode("utf-16-le", "surrogatepass").decode("utf-16-le")
