"""Markdown that people wrote as notes or instructions, cut into statements: one for each bullet or short paragraph."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

SHORT_CHARS = 1500
"""A longer paragraph is prose rather than a statement: told, not taken."""

_HEADING = re.compile(r" {0,3}(#{1,6})(?:\s+(.*?))?(?:\s+#+)?\s*")
_BULLET = re.compile(r"(\s*)(?:[-*+]|\d{1,9}[.)])\s+(?=\S)(.*)")
_FENCE = re.compile(r"\s*(`{3,}|~{3,})")
_RULE = re.compile(r" {0,3}(?:(?:-\s*){3,}|(?:\*\s*){3,}|(?:_\s*){3,}|=+)")
_BOLD_TITLE = re.compile(r"\*\*([^*\n]{1,100}?):?\*\*:?")  # a paragraph in bold letters is a heading to its author
_BELOW_ALL = 7
_COMMENT = re.compile(r"<!--.*?(?:-->|\Z)", re.DOTALL)
_TAB_WIDTH = 4
_MARK_MAX_CHARS = 1000  # of a heading or rule: a longer line is none, and would take long to be told so


@dataclass(frozen=True, slots=True, kw_only=True)
class Statement:
    """What a bullet or paragraph says, the headings it stands under from the highest on, and its line."""

    text: str
    headings: tuple[str, ...]
    line: int


@dataclass(slots=True)
class _Open:
    """The statement that is being read. ``lead`` is the sentence that announced its list."""

    line: int
    is_bullet: bool = False
    indent: int = 0
    lead: str = ""
    lines: list[str] = field(default_factory=list)


def statements(text: str) -> Iterator[Statement]:
    """The statements in their order. Comments, rules and the front matter are none. A sentence that ends with a colon
    goes before each bullet of the list it announces; code belongs to what stands before it; bullets below a bullet
    stay with it."""
    text = _COMMENT.sub(lambda comment: "\n" * comment[0].count("\n"), _without_front_matter(text))
    yield from _Reading().read(text)


class _Reading:
    def __init__(self) -> None:
        self._headings: list[tuple[int, str]] = []
        self._open: _Open | None = None
        self._lead = ""
        self._fence = ""
        self._was_blank = False

    def read(self, text: str) -> Iterator[Statement]:
        for number, line in enumerate(text.splitlines(), start=1):
            yield from self._line(number, line.rstrip())
        yield from self._close()

    def _line(self, number: int, line: str) -> Iterator[Statement]:
        if self._in_code(number, line):
            return
        if not line.strip():
            self._was_blank = True
            return
        was_blank, self._was_blank = self._was_blank, False
        is_long = len(line) > _MARK_MAX_CHARS
        heading, bullet = None if is_long else _HEADING.fullmatch(line), _BULLET.fullmatch(line)
        if heading or (not is_long and _RULE.fullmatch(line)):
            yield from self._close()
            self._lead = ""
            if heading:
                self._under(len(heading[1]), (heading[2] or "").strip())
        elif bullet:
            yield from self._bullet(number, bullet, line)
        elif self._open and (not was_blank or (self._open.is_bullet and line[:1].isspace())):
            self._open.lines.append(line.strip())
        else:
            yield from self._close()
            self._lead = ""
            self._open = _Open(line=number, lines=[line.strip()])

    def _in_code(self, number: int, line: str) -> bool:
        """Take a line of a code block, and the lines that open and close one, as they are."""
        mark = _FENCE.match(line)
        if not self._fence and not mark:
            return False
        if self._open is None:
            self._open = _Open(line=number)
        self._open.lines.append(line)
        if not self._fence:
            self._fence = mark[1] if mark else ""
        elif mark and mark[1].startswith(self._fence) and line.strip() == mark[1]:
            self._fence = ""
            self._was_blank = True  # what follows is a paragraph of its own
        return True

    def _bullet(self, number: int, bullet: re.Match[str], line: str) -> Iterator[Statement]:
        indent = len(bullet[1].expandtabs(_TAB_WIDTH))
        if self._open and self._open.is_bullet and indent > self._open.indent:
            self._open.lines.append(" " * (indent - self._open.indent) + line.strip())
            return
        if self._open and not self._open.is_bullet and self._open.lines[-1].endswith(":"):
            self._lead = " ".join(self._open.lines)
            self._open = None
        yield from self._close()
        self._open = _Open(line=number, is_bullet=True, indent=indent, lead=self._lead, lines=[bullet[2].strip()])

    def _under(self, level: int, title: str) -> None:
        self._headings = [known for known in self._headings if known[0] < level]
        if title:
            self._headings.append((level, title))

    def _close(self) -> Iterator[Statement]:
        said, self._open = self._open, None
        if said is None:
            return
        text = _joined(said.lines)
        if not said.is_bullet and (title := _BOLD_TITLE.fullmatch(text)):
            self._under(_BELOW_ALL, title[1].strip())
            return
        if said.lead:
            text = f"{said.lead} {text}"
        if any(char.isalnum() for char in text):
            yield Statement(text=text, headings=tuple(title for _, title in self._headings), line=said.line)


def _joined(lines: list[str]) -> str:
    """The lines of a paragraph as one; those of code and of lists below stay lines."""
    joined = lines[0]
    in_code = bool(_FENCE.match(lines[0]))
    for line in lines[1:]:
        fence = bool(_FENCE.match(line))
        apart = in_code or fence or _BULLET.fullmatch(line) or _BULLET.fullmatch(joined.splitlines()[-1])
        joined += f"\n{line}" if apart else f" {line}"
        in_code = in_code != fence
    return joined


def _without_front_matter(text: str) -> str:
    if not text.startswith("---"):
        return text
    lines = text.splitlines()
    end = next((at for at, line in enumerate(lines[1:], start=1) if line.strip() in ("---", "...")), None)
    return text if end is None or lines[0].strip() != "---" else "\n" * (end + 1) + "\n".join(lines[end + 1 :])
