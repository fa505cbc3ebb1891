"""WordPiece for uncased BERT models: text in, piece ids out. Pure; which model wants the ids is not known here.

Gives the ids of the reference tokenizer (clean, separate CJK, strip accents, lower, split at punctuation, then the
longest matching pieces), except that ``[SEP]`` and its like in a text are read as plain text, never as markers.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from unicodedata import category, normalize

CLASSIFY, SEPARATE, UNKNOWN = "[CLS]", "[SEP]", "[UNK]"
MAX_WORD_CHARS = 100
"""A longer word counts as unknown, as in the reference tokenizer."""

# str.split() and \s also take U+001C to U+001F and U+0085, which BERT drops as control characters instead.
_CHUNK = re.compile("[^ \t\n\r\u00a0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000]+")
_ASCII_WORD = re.compile(r"[!-/:-@\[-`{-~]|[^!-/:-@\[-`{-~]+")
_ASCII_PUNCTUATION = frozenset("!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~")
_DROPPED = frozenset(("Cc", "Cf", "Co", "Cs"))
_DROP_ASCII_CONTROLS = dict.fromkeys((*range(0x20), 0x7F))
_IDEOGRAPHS = re.compile(
    "([\u4e00-\u9fff\u3400-\u4dbf\uf900-\ufaff"
    "\U00020000-\U0002a6df\U0002a700-\U0002b73f\U0002b740-\U0002b81f\U0002b920-\U0002ceaf\U0002f800-\U0002fa1f])"
)


def parse_vocabulary(text: str) -> dict[str, int]:
    """Read a word list, one piece a line; a piece's id is its line number, from 0."""
    pieces = text.removesuffix("\n").split("\n")
    return dict(zip(pieces, range(len(pieces)), strict=True))


class WordPiece:
    """A tokenizer over one vocabulary, which must hold ``[CLS]``, ``[SEP]`` and ``[UNK]`` (else KeyError)."""

    def __init__(self, vocabulary: Mapping[str, int]) -> None:
        self._ids = vocabulary
        self._first, self._last = vocabulary[CLASSIFY], vocabulary[SEPARATE]
        self._unknown = vocabulary[UNKNOWN]

    def encode(self, text: str, *, max_pieces: int) -> list[int]:
        """The ids of a text between its two markers, ``max_pieces`` (2 or more) in all; what is beyond is cut.

        Reads only as far into the text as it must. A text without words gives the two markers alone.
        """
        ids = [self._first]
        for word in _words(text):
            ids.extend(self._pieces(word))
            if len(ids) >= max_pieces:
                break
        return [*ids[: max_pieces - 1], self._last]

    def encode_words(self, text: str, *, max_pieces: int) -> tuple[list[int], list[str], list[int]]:
        """Like ``encode``, with the words of the text and how many pieces each has.

        A word that the limit cuts keeps the pieces that fit; the ids are those of ``encode``.
        """
        room = max_pieces - 2
        ids, words, sizes = [self._first], list[str](), list[int]()
        for word in _words(text):
            pieces = self._pieces(word)[:room]
            if not pieces:
                break
            ids.extend(pieces)
            words.append(word)
            sizes.append(len(pieces))
            room -= len(pieces)
        return [*ids, self._last], words, sizes

    def _pieces(self, word: str) -> list[int]:
        """Greedy: the longest piece that starts the word, then the longest that goes on; all or unknown."""
        if (whole := self._ids.get(word)) is not None:
            return [whole]
        if len(word) > MAX_WORD_CHARS:
            return [self._unknown]
        ids: list[int] = []
        start = 0
        while start < len(word):
            for end in range(len(word), start, -1):
                piece = word[start:end] if start == 0 else "##" + word[start:end]
                if (found := self._ids.get(piece)) is not None:
                    break
            else:
                return [self._unknown]
            ids.append(found)
            start = end
        return ids


def _words(text: str) -> Iterator[str]:
    for match in _CHUNK.finditer(text):
        chunk = match.group()
        if chunk.isascii():
            yield from _ASCII_WORD.findall(chunk.translate(_DROP_ASCII_CONTROLS).lower())
        else:
            yield from _fold(chunk).split()


def _fold(chunk: str) -> str:
    """Clean, strip accents and lower; a space on both sides of each ideograph and each punctuation mark."""
    cleaned = "".join(char for char in chunk if char != "\ufffd" and category(char) not in _DROPPED)
    apart = _IDEOGRAPHS.sub(r" \1 ", cleaned)
    # Lowered one by one: str.lower() on the whole would write a final sigma, which the reference does not.
    folded = (char.lower() for char in normalize("NFD", apart) if category(char) != "Mn")
    return "".join(f" {char} " if _is_punctuation(char) else char for char in folded)


def _is_punctuation(char: str) -> bool:
    return char in _ASCII_PUNCTUATION or category(char)[0] == "P"
