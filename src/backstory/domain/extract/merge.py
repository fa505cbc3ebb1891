"""One digest made of several, denser than they are: extracts, or what a model wrote."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from backstory.domain.extract.digest import ASSISTANT, USER
from backstory.domain.extract.lines import (
    CHANGED,
    GAP,
    SEEN,
    SENTENCE_CHARS,
    Piece,
    Span,
    chosen,
    file_line,
    listed_files,
    shortened,
    within,
    written,
)
from backstory.domain.extract.sentences import is_small_talk, sentences
from backstory.domain.extract.signs import weight
from backstory.domain.transcript import outside_text

_SHARE = 0.8  # of what is merged: a parent spares something
_LEAST_CHARS = 400
_FILES_SHARE = 0.2
_DECLINE = 0.8  # how much less the next best piece of one text counts, so that every text has its say
_HEAD = "[extract of earlier notes]"


def extract_merge(texts: Sequence[str], *, max_chars: int = 1600) -> str:
    """What several digests tell, in at most ``max_chars`` characters, in their order and in their words.

    Every text has its say; what stands in two of them is said once, lists of files become one. The first line says
    that it is an extract. Where all texts together are shorter, they come back a line each. Empty when they are.
    """
    told = [line for text in texts for raw in outside_text(text).splitlines() if (line := " ".join(raw.split()))]
    if not told:
        return ""
    plain = "\n".join(told)
    room = min(max_chars, max(_LEAST_CHARS, int(len(plain) * _SHARE)))
    spans = [span for line in told if (span := Span.read(line)) is not None]
    head = Span.together(spans).head() if len(spans) == len(texts) else _HEAD
    merged = "\n".join([head, *_lines(texts, told, room - len(head) - 1)])
    return within(plain if len(plain) <= len(merged) else merged, max_chars)


def _lines(texts: Sequence[str], told: Sequence[str], room: int) -> list[str]:
    names = {label: _files(told, label) for label in (CHANGED, SEEN)}
    changed = file_line(CHANGED, names[CHANGED], int(room * _FILES_SHARE))
    pieces = [piece for at, text in enumerate(texts) for piece in _pieces(text, at)]
    lines = written(chosen(pieces, room - len(changed) - 1))
    room -= sum(len(line) + 1 for line in lines)
    changed = file_line(CHANGED, names[CHANGED], room - 1) or changed
    seen = [name for name in names[SEEN] if name not in names[CHANGED]]
    return [*lines, *filter(None, (changed, file_line(SEEN, seen, room - len(changed) - 2)))]


def _files(told: Sequence[str], label: str) -> list[str]:
    names = (name for line in told if line.startswith(label) for name in listed_files(line, label))
    return list(dict.fromkeys(names))


def _pieces(text: str, number: int) -> list[Piece]:
    """The pieces of one text; the best counts as it is, each further one a little less."""
    lines = enumerate(outside_text(text).splitlines())
    found = [piece for at, line in lines for piece in _of_line(line.strip(), number * 100_000 + at)]
    found.sort(key=lambda piece: -piece.value)
    return [replace(piece, value=max(piece.value - _DECLINE * rank, 0.1)) for rank, piece in enumerate(found)]


def _of_line(line: str, at: int) -> Iterator[Piece]:
    if line.startswith((CHANGED, SEEN)) or Span.read(line) is not None or line == _HEAD:
        return
    label = next((label for label in (USER, ASSISTANT) if line.startswith(label)), "")
    said = line.removeprefix(label)
    if not label and len(said) <= SENTENCE_CHARS:  # a command and its outcome, or a note of one line
        yield Piece(line=at, place=0, label="", text=said, value=2.0 + weight(said))
        return
    pieces = [sentence for part in said.split(GAP) for sentence in sentences(part)]
    for place, sentence in enumerate(pieces):
        first = {USER: 6.0, ASSISTANT: 0.5}.get(label, 3.0) if place == 0 else 0.5
        if is_small_talk(sentence):
            first = 0.1
        yield Piece(line=at, place=2 * place, label=label, text=shortened(sentence), value=first + weight(sentence))
