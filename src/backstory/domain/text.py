"""The one analyser: text to tokens, the same for every index, so that all backends find the same things.

Finding words in the scripts of the world is in ``scripts.py``, word forms are in ``stemming.py``; ranking is elsewhere.
A query is plain text: operators, quotes, wildcards and column names have no power here.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache

from backstory.domain.scripts import bigrams, fold_accents, piece_pattern, syllable_bigrams
from backstory.domain.stemming import MAX_STEM_CHARS, stem
from backstory.domain.stopwords import MEANT_ALONE, STOP_WORDS

ANALYSER_VERSION = 1
"""Counts the changes of what ``analyse`` gives; an index made by another version has to be rebuilt."""

MAX_TOKEN_CHARS = 64
"""Longer tokens are cut here, in the index as in the query."""

PART_WEIGHT = 0.5
"""What a part of an identifier counts beside the whole: enough to find, too little to beat the exact name."""

MAX_CAMEL_PARTS = 12
"""A name with more case borders is data (base64, keys) and stays whole."""

# Names written with inner capitals that are one word: "java" must not find JavaScript, nor "git" GitHub.
_BRANDS = """
    javascript typescript coffeescript github gitlab gitops devops postgresql mysql sqlite mongodb mariadb dynamodb
    nosql graphql openai opencode openapi chatgpt youtube linkedin macos ios ipados iphone ipad ebay pytorch tensorflow
    numpy scipy pypi rabbitmq websocket websockets webassembly oauth oauth2 ipv4 ipv6 wifi latex bibtex mkdocs duckdb
    pgvector fastapi nodejs nextjs vuejs codeql webgl opengl cuda grpc wordpress paypal powershell bitbucket
"""
ONE_WORD = frozenset(_BRANDS.split())
"""Names that are one word though they have a capital inside, folded."""
_ALIASES = {"c++": "cpp", "c#": "csharp", "f#": "fsharp", ".net": "dotnet"}

# Rarely needed patterns are plain strings: ``re`` compiles and keeps them at first use, which spares every cold start.
_CONTRACTED = r"(?i)(?<=\w)'(?:s|ll|re|ve|d|m)(?!\w)"
_ELIDED = r"(?i)(?<!\w)(?:l|d|qu|j|n|s|t|m|c|jusqu|lorsqu|puisqu)'(?=\w\w)"
_INNER_APOSTROPHE = r"(?<=\w)'(?=\w)"
_THOUSANDS = r"(?<![\w.,])\d{1,3}(?:,\d{3})+(?![\w,])"
_BEFORE_SIGNED_NAME = r"[-/](?=[A-Za-z](?:\+\+|#))"
_CAPITALS = r"\b[A-Z]{2,}\b"
_DASHES = r"\.{2,}|-{2,}"
_PATH_BORDER = r"[/:\\@]+"
_WORD_BORDER = r"[-_.]+"
_VERSION = r"[vV]?[0-9]+(?:\.[0-9]+)+"
_CAMEL_BORDER = r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-rt-z]|[A-Z]s[a-z])"

Token = tuple[str, float, bool]
"""A token, its weight in a query, and whether it is a stop word."""


@dataclass(frozen=True, slots=True, kw_only=True)
class QueryTerm:
    """One token to look up. ``weight`` is 1.0 for a word or a whole name and less for a part of a name. ``is_name``
    tells the whole of a name that has parts, or a word with a digit or a sign in it: what nobody says by chance."""

    token: str
    weight: float
    is_name: bool = False


def analyse(text: str) -> list[str]:
    """The tokens of a text for an index, in order and with repeats.

    A name comes whole and then in parts: ``getUserById`` gives ``getuserbyid get user by id``. Stop words are included:
    "AND" must be findable in a text about operators. A token is folded in case and accents, has at most
    ``MAX_TOKEN_CHARS`` characters and neither whitespace nor control characters. Linear in the text.
    """
    return [token for token, _, _ in _tokens(text)]


def analyse_query(text: str) -> list[QueryTerm]:
    """The distinct tokens of a query, in order of first appearance; each of them is also in ``analyse(text)``.

    Stop words are dropped. Where nothing else is left, those that can be meant by themselves are kept: words of logic
    ("not"), and words in capitals ("IT"). A query without letters, digits and emoji gives nothing. The number of terms
    has no bound but the text's length: keep the rarest.
    """
    found: dict[str, float] = {}
    meant: dict[str, float] = {}
    names: set[str] = set()
    whole = ""
    for token, weight, is_stop in _tokens(text):
        if weight < 1.0:
            names.add(whole)
        else:
            whole = token
        if not token.isalpha():
            names.add(token)
        terms = meant if is_stop else found
        if weight > terms.get(token, 0.0):
            terms[token] = weight
    if not found:
        allowed = MEANT_ALONE | {word.casefold() for word in re.findall(_CAPITALS, text)}
        found = {token: weight for token, weight in meant.items() if token in allowed}
    return [
        QueryTerm(token=token, weight=weight, is_name=weight == 1.0 and token in names)
        for token, weight in found.items()
    ]


def normalise(text: str) -> str:
    """A form for the equality of two texts: canonical Unicode, no case, whitespace folded; signs and accents stay.

    Idempotent: C++ and C# remain two, STRASSE and Straße are one.
    """
    if not text.isascii():
        # Folding case may undo the composition and the other way round; the second round is stable.
        for _ in range(2):
            text = unicodedata.normalize("NFC", unicodedata.normalize("NFD", text).casefold())
    else:
        text = text.lower()
    return " ".join(text.split())


def _tokens(text: str) -> list[Token]:
    text = _prepare(text)
    found: list[Token] = []
    for match in piece_pattern(text).finditer(text):
        kind, piece = match.lastgroup or "word", match.group()
        found += _short_piece(kind, piece) if len(piece) <= MAX_TOKEN_CHARS else _from_piece(kind, piece)
    return found


def _prepare(text: str) -> str:
    """Take out accents, and the signs that tear words apart: apostrophes, thousands separators."""
    text = fold_accents(text)
    if "'" in text:
        text = re.sub(_INNER_APOSTROPHE, "", re.sub(_ELIDED, " ", re.sub(_CONTRACTED, "", text)))
    if "," in text:
        text = re.sub(_THOUSANDS, lambda match: match.group().replace(",", ""), text)
    if "+" in text or "#" in text:
        text = re.sub(_BEFORE_SIGNED_NAME, " ", text)
    return text


@lru_cache(maxsize=16384)
def _short_piece(kind: str, piece: str) -> tuple[Token, ...]:
    return tuple(_from_piece(kind, piece))


def _from_piece(kind: str, piece: str) -> Iterator[Token]:
    match kind:
        case "word" if piece.isalnum():
            return _from_word(piece, weight=1.0)
        case "word":
            return _from_run(piece)
        case "han":
            return _plain(bigrams(piece))
        case "hangul":
            return _from_hangul(piece)
        case "unspaced":
            return _plain(syllable_bigrams(piece))
        case "name":
            return _from_signed_name(piece)
        case _:
            return _plain([piece])


def _from_run(piece: str) -> Iterator[Token]:
    """The tokens of a run of letters, digits and joiners; dots or dashes in a row are not joiners."""
    for run in re.split(_DASHES, piece):
        name = run.strip("-_./:\\@")
        if name.isalnum():
            yield from _from_word(name, weight=1.0)
        elif name:
            yield from _from_name(name)


def _from_name(name: str) -> Iterator[Token]:
    segments = re.split(_PATH_BORDER, name)
    if len(segments) == 1:
        yield from _from_segment(name, weight=1.0)
        return
    yield _cut(name.casefold()), 1.0, False
    for segment in segments:
        segment = segment.strip("-_.")
        if segment:
            yield from _from_segment(segment, weight=PART_WEIGHT)


def _from_segment(segment: str, *, weight: float) -> Iterator[Token]:
    """The tokens of a name without path borders: ``pg-main``, ``health.base``, ``v1.2.3``, ``userStore``."""
    words = re.split(_WORD_BORDER, segment)
    if len(words) == 1:
        yield from _from_word(segment, weight=weight)
        return
    whole = segment.casefold()
    yield _cut(whole), weight, whole in STOP_WORDS
    if whole in STOP_WORDS:
        return
    if re.fullmatch(_VERSION, segment):
        if whole.startswith("v"):
            yield _cut(whole[1:]), PART_WEIGHT, False
        return
    if "." not in segment and not words[0].isdigit():
        yield _stemmed("".join(words).casefold()), PART_WEIGHT, False
    for word in words:
        yield from _from_word(word, weight=PART_WEIGHT)


def _from_word(word: str, *, weight: float) -> Iterator[Token]:
    folded = word.casefold()
    yield _stemmed(folded), weight, folded in STOP_WORDS
    if word.isascii() and not (word.islower() or word.isupper()) and folded not in ONE_WORD:
        parts = re.split(_CAMEL_BORDER, word)
        if 1 < len(parts) <= MAX_CAMEL_PARTS:
            for part in parts:
                lower = part.lower()
                yield _stemmed(lower), PART_WEIGHT, lower in STOP_WORDS


def _stemmed(word: str) -> str:
    if len(word) > MAX_STEM_CHARS or word in STOP_WORDS or not word.isalpha():
        return _cut(word)
    return stem(word)


def _cut(token: str) -> str:
    return token[:MAX_TOKEN_CHARS]


def _from_signed_name(name: str) -> Iterator[Token]:
    folded = name.casefold()
    yield folded, 1.0, False
    if alias := _ALIASES.get(folded):
        yield alias, PART_WEIGHT, False


def _from_hangul(run: str) -> Iterator[Token]:
    """The word with its particle, then pairs of syllables, among them the word without the particle."""
    yield _cut(run), 1.0, False
    if len(run) > 2:
        for pair in bigrams(run):
            yield pair, PART_WEIGHT, False


def _plain(tokens: Iterable[str]) -> Iterator[Token]:
    return ((token, 1.0, False) for token in tokens)
