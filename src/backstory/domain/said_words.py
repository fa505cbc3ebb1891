"""What a text says, word by word, for telling whether two texts say the same: fillers gone, details to the letter.

Not for finding texts (``text.py``): here nothing is stemmed, and what could matter stays as it is written.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from functools import lru_cache

BORDER = "."
"""Stands between sentences: "Do not deploy. On Fridays test." is not "Do not deploy on Fridays. Test."."""
QUESTION = "?"
"""Ends a question, which states nothing."""
_COMMA = ","

_UNSPACED = (
    "\u0e00-\u0edf\u1000-\u109f\u1780-\u17d3\u2e80-\u30ff\u3400-\u9fff\uac00-\ud7a3\uf900-\ufaff\U00020000-\U0003fffd"
)
# Compiled at the first use, which plain ASCII never comes to: 7 ms of a cold recall.
_HAS_UNSPACED = f"[{_UNSPACED}]"
_GAP_BESIDE_UNSPACED = rf"(?<=[{_UNSPACED}])\s+|\s+(?=[{_UNSPACED}])"
_INVISIBLE = dict.fromkeys((0xAD, 0x200B, 0x2060, 0xFEFF))
_TWINS = {
    **{code: chr(code - 0xFEE0) for code in range(0xFF01, 0xFF5F)},  # full-width; NFKC would make 102 of 10² as well
    **dict.fromkeys(map(ord, "’‘ʼ"), "'"),
    **dict.fromkeys(map(ord, "“”„«»"), '"'),
    ord("。"): ". ",
    ord("｡"): ". ",
    ord("、"): ", ",
    0x3000: " ",
    ord("…"): "...",
}

_PIECE = re.compile(r"(?:`([^`\n]+)`|```([^`]*)```)([.,;:!?]*)|[^\s`]+")  # what stands between backticks is one piece
_PUNCTUATED = re.compile(r"(.*?)([.,;:!?]*)", re.DOTALL)
_BULLETS = frozenset({"-", "–", "—", "•", "·", "*"})
_MEANT_ALONE = {".": "./", "''": "''", '""': "''"}
"""Signs that say something by themselves: the folder in "lint .", an empty text."""
_THOUSANDS = re.compile(r"\d{1,3}(?:,\d{3})+")

_NUMBERS = {
    word: str(number)
    for number, word in enumerate(
        ["zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve"]
    )
}
_CONTRACTED = {
    "can't": ("can", "not"), "cannot": ("can", "not"), "won't": ("will", "not"), "shan't": ("shall", "not"),
    "it's": ("it", "is"), "that's": ("that", "is"), "there's": ("there", "is"), "here's": ("here", "is"),
}  # fmt: skip
_ENDINGS = (("n't", "not"), ("'re", "are"), ("'ve", "have"), ("'ll", "will"), ("'m", "am"))
_ONE_WORD_FOR = {
    "utilise": "use", "utilize": "use", "utilises": "uses", "utilizes": "uses",
    "benutzt": "nutzt", "verwendet": "nutzt", "benutzen": "nutzen", "verwenden": "nutzen",
}  # fmt: skip
NAMES_IN_CAPITALS = frozenset({"a", "it", "us", "who", "home", "path", "readme", "shell"})
"""Words that in capitals may be names: a plan, a department, a country, an organisation, a variable, a file."""

_OPENINGS = (("please", "note", "that"), ("note", "that"), ("remember", "that"), ("remember", "to"))
_WEIGHED = frozenset({_COMMA, "the", "please", "a", "A", "an", "always"})
_OPENING_WORDS = frozenset(opening[0] for opening in _OPENINGS)
_ALWAYS_AFTER = frozenset({"we", "you", "i", "must", "should", "please"})
_BEING_IN = (
    ("can", "be", "found", "in"), ("is", "stored", "in"), ("are", "stored", "in"), ("is", "kept", "in"),
    ("are", "kept", "in"), ("is", "located", "in"), ("are", "located", "in"), ("live", "in"), ("lives", "in"),
    ("reside", "in"), ("resides", "in"), ("is", "in"), ("are", "in"),
)  # fmt: skip
_IS_IN = "is in"
_SUBORDINATORS = frozenset(["before", "after", "when", "whenever", "if", "while", "once", "because"])
_FIXED_ORDER = frozenset(["not", "no", "never", "only", "unless", "without", "nor", "neither"])
_JOINS = frozenset(["otherwise", "or", "and", "but", "so", "else"])


def is_spaced(text: str) -> bool:
    """Whether the text is in scripts that put gaps between words."""
    return text.isascii() or re.search(_HAS_UNSPACED, text) is None


def is_detail(word: str) -> bool:
    """Whether a word, as ``said_words`` gives it, is a number, path, flag, identifier or other name by its signs."""
    return word != _IS_IN and (not word.isalpha() or word != word.lower())


@lru_cache(maxsize=4096)
def said_words(text: str) -> tuple[str, ...]:
    """The words of a text in a form that is equal for texts that say the same; ``BORDER`` stands between sentences.

    Of no account are: case of plain words, blanks, outer punctuation, articles, contractions, numbers as words, a
    leading "always", "please" or "note that", a sentence said twice in a row, "lives in" for "is stored in", and which
    of two clauses joined by "before", "if" and the like comes first. A word with a digit, a sign or a capital inside
    counts to the letter, and so does what stands between backticks. Linear in the text.
    """
    words: list[str] = []
    last: list[str] = []
    for sentence in _sentences(_prepared(text)):
        said = _without_fillers(sentence)
        if said and said != last:
            words += [BORDER, *said] if words else said
            last = said
    return tuple(words)


def _prepared(text: str) -> str:
    if text.isascii():
        return text
    text = unicodedata.normalize("NFC", text).translate(_TWINS).translate(_INVISIBLE)
    return re.sub(_GAP_BESIDE_UNSPACED, "", text)


def _sentences(text: str) -> Iterator[list[str]]:
    """Words of one sentence after the other, commas among them; a question ends with ``QUESTION``."""
    sentence: list[str] = []
    for match in _PIECE.finditer(text):
        code = match[1] or match[2]
        if code is None:
            words, ending = _from_piece(match[0])
        else:
            words, ending = tuple(f"`{word}`" if word in _WEIGHED else word for word in code.split()), _ending(match[3])
        sentence += words
        if ending == _COMMA:
            sentence.append(_COMMA)
        elif ending:
            yield [*sentence, QUESTION] if ending == QUESTION and sentence else sentence
            sentence = []
    yield sentence


@lru_cache(maxsize=8192)
def _from_piece(piece: str) -> tuple[tuple[str, ...], str]:
    """The words of a piece, and what it ends: ``BORDER``, ``QUESTION``, a comma or nothing."""
    if piece.isalpha():
        return _folded(piece), ""
    if piece in _MEANT_ALONE:
        return (_MEANT_ALONE[piece],), ""
    core, ending = _bare(piece)
    if not core or core in _BULLETS:
        return (), ending
    return _folded(core), ending


def _bare(piece: str) -> tuple[str, str]:
    """A piece without the quotes, brackets and punctuation around it; signs that may belong to a name stay."""
    ending = ""
    core = piece
    for _ in range(2):  # twice, for a full stop inside a bracket or quote
        core = core.strip("\"'")
        match = _PUNCTUATED.fullmatch(core)
        if match is not None and (match[1] or len(core) != 2):  # ".." is a folder
            core, ending = match[1], ending or _ending(match[2])
        if core.startswith("(") and (")" not in core or core.find(")") == len(core) - 1):
            core = core[1:]
        if core.endswith(")") and "(" not in core:
            core = core[:-1]
    return core, ending


def _ending(marks: str) -> str:
    if QUESTION in marks:
        return QUESTION
    if marks.startswith("...") or not marks.strip(":"):
        return ""
    return _COMMA if marks == "," else BORDER


def _folded(core: str) -> tuple[str, ...]:
    """One word as the words it stands for; a plain word in lower case, any other as it is."""
    letters = core.replace("'", "")
    if not letters.isalpha() or not (letters.islower() or letters.istitle() or letters.isupper()):
        return (core.replace(",", "") if _THOUSANDS.fullmatch(core) else core,)
    lower = core.casefold()
    if core.isupper() and lower in NAMES_IN_CAPITALS:
        return (core,)
    if lower in _CONTRACTED:
        return _CONTRACTED[lower]
    if "'" in lower:
        for ending, word in _ENDINGS:
            if lower.endswith(ending):
                return (lower.removesuffix(ending), word)
    return (_NUMBERS.get(lower) or _ONE_WORD_FOR.get(lower) or lower,)


def _without_fillers(sentence: list[str]) -> list[str]:
    if sentence and sentence[0] in _OPENING_WORDS:
        sentence = sentence[next((len(words) for words in _OPENINGS if tuple(sentence[: len(words)]) == words), 0) :]
    said: list[str] = []
    for place, word in enumerate(sentence):
        if word not in _WEIGHED:
            said.append(word)
            continue
        before = said[-1] if said else ""
        after = sentence[place + 1] if place + 1 < len(sentence) else ""
        if word != _COMMA:
            said += [] if _is_filler(word, before=before, after=after) else [word]
        elif before in ("no", "not"):
            said[-1] += _COMMA  # "No, tests run" is not "No tests run"
        elif after in _JOINS:
            said.append(_COMMA)
    return _clauses_in_order(_with_one_word_for_being_in(said))


def _is_filler(word: str, *, before: str, after: str) -> bool:
    match word:
        case "the" | "please":
            return True
        case "a":
            return bool(after)
        case "A":
            return bool(after) and not before
        case "an":
            return bool(after) and after[0].lower() in "aeiouh8"
        case "always":
            return not before or before in _ALWAYS_AFTER
    return False


def _with_one_word_for_being_in(words: list[str]) -> list[str]:
    if "in" not in words:
        return words
    said: list[str] = []
    for word in words:
        said.append(word)
        if word == "in":
            length = next((len(phrase) for phrase in _BEING_IN if tuple(said[-len(phrase) :]) == phrase), 0)
            if 0 < length < len(said):  # something is said to be there
                said[-length:] = [_IS_IN]
    return said


def _clauses_in_order(words: list[str]) -> list[str]:
    """Each clause, up to a comma and a joining word, with its subordinate part first; commas are gone."""
    if _COMMA not in words:
        return _subordinate_first(words)
    ordered: list[str] = []
    clause: list[str] = []
    for word in [*words, _COMMA]:
        if word == _COMMA:
            ordered += _subordinate_first(clause)
            clause = []
        else:
            clause.append(word)
    return ordered


def _subordinate_first(clause: list[str]) -> list[str]:
    """A clause with one subordinate part, turned; one with a negation stays, since its reach depends on the order."""
    if _SUBORDINATORS.isdisjoint(clause):
        return clause
    places = [place for place, word in enumerate(clause) if word in _SUBORDINATORS]
    if len(places) != 1 or places[0] == 0 or not _FIXED_ORDER.isdisjoint(clause):
        return clause
    end = len(clause) - (clause[-1] == QUESTION)
    return clause[places[0] : end] + clause[: places[0]] + clause[end:]
