"""Cut text into sentences and headlines, in any language, so that no path, number or version is torn apart."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from backstory.domain.small_talk import SMALL_TALK
from backstory.domain.stemming import stem
from backstory.domain.truncation import truncate_chars

_LINE_MARK = re.compile(r"\s*(?:(?:[-*+•–]|#{1,6}|>|\d{1,3}[.)])\s+)*(?:\[[ xX]\]\s+)?")
_FENCE = re.compile(r"\s*(?:```|~~~)")
_RULE = re.compile(r"[\W_]*")
_END = re.compile(r"(?<![.!?…])[.!?…]++[\"'”’»)\]*_]*+\s++(?=\S)|(?<![。！？｡])[。！？｡]++[\"”’」』）]*+\s*+(?=\S)")
# "e.g. this", "am 3. März", "v. Chr.": a full stop that ends no sentence.
_NO_END = re.compile(
    r"(?:(?:^|[\s(„\"'])(?:[^\W\d_]|\d{1,4}|(?:[^\W\d_]\.)+[^\W\d_]|etc|vs|cf|approx|incl|resp|bzw|bspw|ca|evtl|ggf"
    r"|usw|nr|no|dr|mr|mrs|ms|prof|fig|vol))\.$",
    re.IGNORECASE,
)
_GREETING = re.compile(
    r"(?:hi|hello|hey|good (?:morning|evening|afternoon)|thanks?|thank you|great (?:job|work)|well done|nice work"
    r"|hallo|guten \w+|danke|vielen dank|bonjour|salut|merci|hola|gracias|buenos \w+|ciao|grazie|olá|obrigad[oa])\b"
    r"(?!.*\b(?:but|aber|mais|pero)\b)|(?:你好|谢谢|こんにちは|ありがとう|привет|спасибо)",
    re.IGNORECASE,
)
_SCAN_CHARS = 60_000
"""Of one text: its first two thirds and its end are looked at; nobody types more."""


def sentences(text: str) -> list[str]:
    """The sentences of a text in order, without list marks, headings' signs, rulers and fenced code."""
    return [sentence for line in _prose_lines(_looked_at(text)) for sentence in _split(line)]


def fenced_lines(text: str) -> list[str]:
    """The lines of a text that stand in fences: pasted code and logs."""
    return [line for line, fenced in _lines(_looked_at(text)) if fenced]


def headline(text: str, limit: int) -> str:
    """The beginning of a text, word for word: whole sentences as long as they fit, else the first cut at a word.

    Greetings and thanks in front are skipped when more follows.
    """
    said = sentences(text)
    kept = ""
    for sentence in said[top_sentence(said) :]:
        longer = f"{kept} {sentence}".strip()
        if len(longer) > limit:
            break
        kept = longer
    return kept or (cut_at_word(said[top_sentence(said)], limit) if said else "")


def top_sentence(said: Sequence[str]) -> int:
    """Which of some sentences says what it is about: the first that is more than a greeting, thanks or praise."""
    return next((at for at, sentence in enumerate(said) if not (is_small_talk(sentence) or _greets(sentence))), 0)


def _greets(sentence: str) -> bool:
    return len(sentence) <= 60 and _GREETING.match(sentence) is not None


def cut_at_word(text: str, limit: int) -> str:
    """At most ``limit`` characters, cut between words and marked so; inside a word only where it is longer itself."""
    if len(text) <= limit:
        return text
    if limit <= 1:
        return ""
    whole = truncate_chars(text, limit - 1)
    if not text[len(whole)].isspace():
        gap = max(whole.rfind(" "), whole.rfind("\t"))
        whole = whole[:gap] if gap > 0 and len(whole) - gap <= max(80, limit // 2) else whole
    return whole.rstrip(" \t,;:([{–-") + "…"


def is_small_talk(text: str) -> bool:
    """Whether a text only keeps the conversation going."""
    words = re.findall(r"[^\W\d_][\w']*|\d+", text.lower())
    return len(words) <= 8 and all(stem(word) in SMALL_TALK for word in words)


def same_words(text: str) -> str:
    """What two texts have in common when they say the same: letters and digits, no case."""
    return re.sub(r"[\W_]+", " ", text.casefold()).strip()


def _looked_at(text: str) -> str:
    if len(text) <= _SCAN_CHARS:
        return text
    return f"{text[: _SCAN_CHARS * 2 // 3]}\n{text[-_SCAN_CHARS // 3 :]}"


def _lines(text: str) -> Iterator[tuple[str, bool]]:
    fenced = False
    for line in text.splitlines():
        if _FENCE.match(line):
            fenced = not fenced
        else:
            yield line, fenced


def _prose_lines(text: str) -> Iterator[str]:
    for line, fenced in _lines(text):
        if not fenced:
            said = " ".join(_LINE_MARK.sub("", line, count=1).replace("**", "").split())
            if said and not _RULE.fullmatch(said):
                yield said


def _split(line: str) -> Iterator[str]:
    start = 0
    for end in _END.finditer(line):
        if not _NO_END.search(line, max(start, end.start() - 24), end.start() + 1):
            yield line[start : end.end()].strip()
            start = end.end()
    yield line[start:].strip()
