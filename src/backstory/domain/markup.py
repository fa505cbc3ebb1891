"""Where in a prompt a person speaks, and where they only show something: code, quotations, logs, private text.

What the remaining words mean is ``capture.py``; masking private text before it is stored is ``redaction.py``.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from typing import NamedTuple

from backstory.domain.shown_code import Span, block_comments, code_spans, fences, shown_lines

BLOCK_FILL = "\x0e"
"""Stands for each character of a masked block that owns its lines (fence, block quote, log, patch)."""
INLINE_FILL = "\x0f"
"""Stands for each masked character inside running text (code span, quotation, element, private region)."""


class Page(NamedTuple):
    """A text and its skeleton, character for character at the same places.

    ``source`` is the text behind one line break, so that every line starts after one. ``skeleton`` is the source in
    lower case, with plain apostrophes, and with everything that is shown rather than said replaced by a fill; line
    breaks stay. ``spoken`` is the source with only the private regions replaced. ``blocks`` gives for the start of each
    masked block its end.
    """

    source: str
    skeleton: str
    spoken: str
    blocks: Mapping[int, int]


def unwrap(text: str) -> str:
    """Take off the pair of double quotes in which a host wraps a whole prompt; other text comes back as it is.

    ``opencode run`` quotes an argument that has blanks and writes its inner quotes as ``\\"``; so an inner quote
    without the backslash means that the outer two are no pair.
    """
    inner = text.strip()
    if len(inner) < 3 or inner[0] != '"' or inner[-1] != '"' or inner[-2] == "\\":
        return text
    inner = inner[1:-1]
    if inner.count('"') != inner.count('\\"'):
        return text
    return inner.replace('\\"', '"')


def read_page(text: str) -> Page:
    """Mask what is shown rather than said. Linear in the length of the text; never raises.

    A fence or a private region that is never closed runs to the end; an open quotation mark hides nothing.
    """
    source = "\n" + text
    spoken = _fill(source, _private(source), INLINE_FILL)
    fenced = list(fences(spoken))
    rest = _fill(spoken, fenced, BLOCK_FILL)
    comments = list(block_comments(rest))
    rest = _fill(rest, comments, BLOCK_FILL)
    lines = [match.span() for match in shown_lines().finditer(rest)]
    rest = _fill(rest, lines, BLOCK_FILL)
    rest = _fill(rest, code_spans(rest), INLINE_FILL)
    blocks: list[Span] = []
    inline: list[Span] = []
    for span in _merge([*_html_comments(rest), *_elements(rest)]):
        (blocks if _owns_its_lines(rest, span) else inline).append(span)
    rest = _fill(_fill(rest, blocks, BLOCK_FILL), inline, INLINE_FILL)
    rest = _fill(rest, _quotations(rest), INLINE_FILL)
    return Page(
        source=source,
        skeleton=plain(rest),
        spoken=spoken,
        blocks=dict([*fenced, *comments, *lines, *blocks]),
    )


def _fill(text: str, spans: Iterable[Span], fill: str) -> str:
    """Replace the spans (in order, apart) by ``fill``, keeping line breaks and the length."""
    pieces: list[str] = []
    done = 0
    for start, end in spans:
        pieces.append(text[done:start])
        pieces.append("\n".join(fill * len(line) for line in text[start:end].split("\n")))
        done = end
    pieces.append(text[done:])
    return "".join(pieces)


def _merge(spans: Iterable[Span]) -> list[Span]:
    """The spans in order, with those that touch or overlap joined."""
    merged: list[Span] = []
    for start, end in sorted(spans):
        if merged and start <= merged[-1][1]:
            merged[-1] = (merged[-1][0], max(end, merged[-1][1]))
        else:
            merged.append((start, end))
    return merged


def plain(text: str) -> str:
    """Lower case, plain apostrophes, blanks for invisible characters; the length never changes."""
    lowered = text.lower()
    if len(lowered) != len(text):  # some letters grow: a capital I with a dot becomes two characters
        lowered = "".join(low if len(low := char.lower()) == 1 else char for char in text)
    for odd, plain in _PLAIN:
        lowered = lowered.replace(odd, plain)
    return lowered


_PLAIN = (
    ("\u2019", "'"),
    ("\u02bc", "'"),
    ("\u00b4", "'"),
    ("\uff07", "'"),
    ("\u200b", " "),
    ("\u2060", " "),
    ("\ufeff", " "),
)


def _private(text: str) -> Iterator[Span]:
    """Outermost private regions, by the rules of ``redaction.strip_private``.

    A tag alone in inline code is only named, unless a closing tag shows that a region was meant.
    """
    depth = start = 0
    named: int | None = None
    for tag in _private_tag().finditer(text):
        if depth == 0 and text[tag.start() - 1] == "`" and text.startswith("`", tag.end()):
            if named is None and not tag["close"]:
                named = tag.start()
        elif not tag["close"]:
            start = start if depth else tag.start()
            depth += 1
        elif depth:
            depth -= 1
            if depth == 0:
                yield start, tag.end()
                named = None
        elif named is not None:
            yield named, tag.end()
            named = None
    if depth:
        yield start, len(text)


@cache
def _private_tag() -> re.Pattern[str]:
    return re.compile(r"<\s{0,8}(?P<close>/?)\s{0,8}private(?:\s[^<>]*)?>", re.IGNORECASE)


def _html_comments(text: str) -> Iterator[Span]:
    """Comments; one that is never closed hides the rest of its line."""
    done = text.find("<!--")
    while done >= 0:
        end = text.find("-->", done + 4)
        if end < 0:
            newline = text.find("\n", done)
            yield done, newline if newline >= 0 else len(text)
            return
        yield done, end + 3
        done = text.find("<!--", end + 3)


def _elements(text: str) -> Iterator[Span]:
    """Angle-bracket elements that have both tags, with all between; an opening tag alone is just a name."""
    stack: list[tuple[str, int]] = []
    depth: dict[str, int] = {}
    for match in _tag().finditer(text):
        name = match.group("name").lower()
        if match.group("slash"):
            while depth.get(name):
                opened, start = stack.pop()
                depth[opened] -= 1
                if opened == name:
                    yield start, match.end()
                    break
        elif text[match.end() - 2] != "/":
            stack.append((name, match.start()))
            depth[name] = depth.get(name, 0) + 1


@cache
def _tag() -> re.Pattern[str]:
    return re.compile(r"<(?P<slash>/?)(?P<name>[A-Za-z][\w:.-]*)(?:\s[^<>]*)?/?>")


def _owns_its_lines(text: str, span: Span) -> bool:
    start, end = span
    return text[start - 1] == "\n" and (end >= len(text) or text[end] in "\r\n")


def _quotations(text: str) -> Iterator[Span]:
    """What stands between quotation marks, less a final stop, which still ends the sentence around it."""
    for match in _quotation().finditer(text):
        start, end = match.start() + 1, match.end() - 1
        if text[end - 1] in ".!?":
            end -= 1
        if start < end:
            yield start, end


@cache
def _quotation() -> re.Pattern[str]:
    """Each alternative stops at the next mark of its own family, so an unclosed mark costs only the way to the next.

    A straight mark opens after a blank or a bracket and closes before a non-word; 5" and don't are no quotations.
    """
    before = r"(?<![^\s(\[{=:,\u2014\u2013-]"
    return re.compile(
        "|".join(
            (
                rf'"{before}")(?=[^\s"])(?>[^"]*)(?<!\s)"(?!\w)',
                rf"'{before}')(?=\w)(?>[^'\n]*(?:(?<=\w)'(?=\w)[^'\n]*)*)(?<!\s)'(?!\w)",
                r"\u201c(?>[^\u201c\u201d]*)\u201d",
                r"\u201e(?>[^\u201e\u201c\u201d]*)[\u201c\u201d]",
                r"\u2018(?>[^\u2018\u2019\n]*(?:\u2019(?=\w)[^\u2018\u2019\n]*)*)\u2019(?!\w)",
                r"\u00ab(?>[^\u00ab\u00bb]*)\u00bb",
                r"\u00bb(?>[^\u00ab\u00bb]*)\u00ab",
                r"\u300c(?>[^\u300c\u300d]*)\u300d",
                r"\u300e(?>[^\u300e\u300f]*)\u300f",
            )
        )
    )
