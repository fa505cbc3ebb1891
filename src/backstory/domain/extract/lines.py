"""Lines that could stand in a digest, the choice of those that fit, and the line in front of them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC
from functools import reduce
from itertools import groupby

from backstory.domain.conversation import Message
from backstory.domain.extract.sentences import cut_at_word, same_words
from backstory.domain.extract.signs import decision_start

EXTRACT = "extract-1"
"""What stands in the place of a model's name where a digest was made without one."""
SENTENCE_CHARS = 240
GAP = " … "
CHANGED, SEEN = "Changed files: ", "Seen files: "

_HEAD = re.compile(
    r"\[extract of (?P<count>\d+) messages?(?:, (?P<start>[\d-]{10} [\d:]{5})(?: to (?P<end>[\d: -]{5,16}))? UTC)?\]"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Piece:
    """A part of a line. ``line`` and ``place`` give its order; pieces of one line stand together behind ``label``.

    Places of neighbours differ by 2 at most.
    """

    line: int
    place: int
    label: str
    text: str
    value: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Span:
    """How many messages an extract stands for, and from when to when, in minutes of UTC (``2026-03-02 10:00``)."""

    messages: int
    start: str = ""
    end: str = ""

    @staticmethod
    def of(messages: Sequence[Message]) -> Span:
        """The span of messages, in their order."""
        times = [message.created_at.astimezone(UTC).strftime("%Y-%m-%d %H:%M") for message in messages]
        return Span(messages=len(messages), start=min(times, default=""), end=max(times, default=""))

    @staticmethod
    def read(line: str) -> Span | None:
        """The span that a digest's first line tells; None for any other line."""
        found = _HEAD.fullmatch(line.strip())
        if found is None:
            return None
        start = found["start"] or ""
        end = found["end"] or start
        if len(end) == 5:
            end = f"{start[:10]} {end}"
        return Span(messages=int(found["count"]), start=start, end=end)

    @staticmethod
    def together(spans: Sequence[Span]) -> Span:
        """One span from the first beginning to the last end."""
        return reduce(Span._and, spans)

    def _and(self, other: Span) -> Span:
        starts, ends = list(filter(None, (self.start, other.start))), list(filter(None, (self.end, other.end)))
        count = self.messages + other.messages
        return Span(messages=count, start=min(starts, default=""), end=max(ends, default=""))

    def head(self) -> str:
        """The first line of a digest."""
        end = self.end.removeprefix(self.start[:11])
        until = f" to {end}" if self.end != self.start else ""
        when = f", {self.start}{until} UTC" if self.start else ""
        return f"[extract of {self.messages} message{'' if self.messages == 1 else 's'}{when}]"


def shortened(sentence: str, limit: int = SENTENCE_CHARS) -> str:
    """A sentence of at most ``limit`` characters: from the clause that decides something, if that comes late."""
    if len(sentence) <= limit:
        return sentence
    before = decision_start(sentence)
    clause = max(sentence.rfind(mark, 0, before) for mark in (", ", "; ", ": ", " – ", " - ", "，"))
    if clause > limit // 2:
        sentence = "…" + sentence[clause + 1 :].strip()
    return cut_at_word(sentence, limit)


def chosen(pieces: Iterable[Piece], room: int) -> list[Piece]:
    """The most telling pieces that fit into ``room`` characters, in their order; none says the same as another."""
    kept: list[Piece] = []
    said: set[str] = set()
    begun: set[int] = set()
    for piece in sorted(pieces, key=_rank):
        words = same_words(piece.text)
        # A new line costs its break and its label, another piece of a line at most the sign for a gap.
        cost = len(piece.text) + (len(GAP) if piece.line in begun else len(piece.label) + 1)
        if cost > room or not words or words in said:
            continue
        said.add(words)
        begun.add(piece.line)
        kept.append(piece)
        room -= cost
    return sorted(kept, key=lambda piece: (piece.line, piece.place))


def _rank(piece: Piece) -> tuple[float, int, int]:
    """Most telling for its length first; of equals the earlier."""
    return (-piece.value / (len(piece.text) + 40) ** 0.5, piece.line, piece.place)


def written(pieces: Sequence[Piece]) -> list[str]:
    """The pieces as lines; where something between two of them was left out, a sign says so."""
    lines = []
    for _, group in groupby(pieces, key=lambda piece: piece.line):
        text, place = "", 0
        for piece in group:
            if text and piece.place == place + 1:  # the rest of a sentence that was cut
                text = text.removesuffix("…")
            gap = "" if not text else " " if piece.place <= place + 2 else GAP
            text, place = (text or piece.label) + gap + piece.text, piece.place
        lines.append(text)
    return lines


def within(text: str, max_chars: int) -> str:
    """Whole lines from the beginning as far as they fit; of a first line that is longer, whole words."""
    if len(text) <= max_chars:
        return text
    end = text.rfind("\n", 0, max_chars + 1)
    return text[:end] if end > 0 else cut_at_word(text.partition("\n")[0], max_chars)


def file_line(label: str, names: Sequence[str], room: int) -> str:
    """Names of files on one line, the folder that absolute ones share told once; as many as fit, and how many more."""
    for count in range(min(len(names), room), 0, -1):
        more = f" and {len(names) - count} more" if count < len(names) else ""
        line = label + _listed(names[:count]) + more
        if len(line) <= room:
            return line
    return ""


def _listed(names: Sequence[str]) -> str:
    absolute = [name for name in names if name.startswith("/")]
    folder = _common_folder(absolute)
    if not folder:
        return ", ".join(names)
    inside = f"in {folder}: " + ", ".join(name.removeprefix(folder) for name in absolute)
    return "; ".join(filter(None, [inside, ", ".join(name for name in names if not name.startswith("/"))]))


def listed_files(line: str, label: str) -> list[str]:
    """The names on a line that ``file_line`` wrote."""
    names = re.sub(r" and \d+ more$", "", line.removeprefix(label))
    inside = re.match(r"in (/.*?/): ", names)
    if not inside:
        return [name for name in names.split(", ") if name]
    absolute, _, others = names[inside.end() :].partition("; ")
    return [inside[1] + name for name in absolute.split(", ")] + [name for name in others.split(", ") if name]


def _common_folder(names: Sequence[str]) -> str:
    """The folder that all of several absolute paths lie in, with its last slash; empty when that saves nothing."""
    if len(names) < 2:
        return ""
    first, last = min(names), max(names)
    same = next((at for at, (one, other) in enumerate(zip(first, last, strict=False)) if one != other), len(first))
    folder = first[: first.rfind("/", 0, same) + 1]
    return folder if len(folder) >= 8 else ""
