"""How far a passage reaches: to the end of its paragraph or list item, or over the list or block that follows it."""

from __future__ import annotations

import re
from functools import cache

from backstory.domain.markup import BLOCK_FILL, Page

_BLANKS = r"(?>[^\S\n]*)"
_MARKER = r"(?:[-*+\u2022]|\d{1,4}[.)]|[a-z][.)])[^\S\n]"


def paragraph_end(page: Page, start: int, limit: int) -> int:
    """Where the paragraph or list item that holds ``start`` ends: before a line that is blank or begins something."""
    match = _stop().search(page.skeleton, start, limit)
    return match.start() if match else limit


def following_block_end(page: Page, start: int, limit: int) -> int | None:
    """End of the list, fence or quotation that begins on the next line that is not blank; None when none does.

    ``start`` is the end of the passage before it. When that passage is a list item, only a deeper list counts.
    """
    line = _next_line(page, start, limit)
    if line in page.blocks:
        return min(page.blocks[line], limit)
    return _list_end(page, line, limit, indent=_item_indent(page, start) + 1)


def following_paragraph_end(page: Page, start: int, limit: int) -> int:
    """End of the paragraph that begins on the next line that is not blank."""
    return paragraph_end(page, _next_line(page, start, limit), limit)


def closing_bracket(page: Page, start: int, limit: int) -> int:
    """Where the round bracket that was opened before ``start`` closes; ``limit`` when it does not."""
    depth = 1
    for match in re.compile("[()]").finditer(page.skeleton, start, limit):
        depth += 1 if match.group() == "(" else -1
        if depth == 0:
            return match.start()
    return limit


@cache
def _stop() -> re.Pattern[str]:
    return re.compile(rf"\n{_BLANKS}(?=\n|{BLOCK_FILL}|{_MARKER}|#{{1,6}}\s|[-*_=]{{3,}}{_BLANKS}(?:\n|$))")


def _next_line(page: Page, start: int, limit: int) -> int:
    match = re.compile(rf"(?>(?:{_BLANKS}\n)*)").match(page.skeleton, start, limit)
    return match.end() if match else start


def _item_indent(page: Page, position: int) -> int:
    """Indentation of the list item on the line of ``position``, in characters; -1 when it is no list item."""
    line = page.skeleton.rfind("\n", 0, position) + 1
    match = re.compile(rf"({_BLANKS}){_MARKER}").match(page.skeleton, line, position)
    return len(match.group(1)) if match else -1


def _list_end(page: Page, line: int, limit: int, *, indent: int) -> int | None:
    """End of a list whose items are indented by at least ``indent``, with indented lines and blocks between them."""
    item = rf"[^\S\n]{{{indent},}}{_MARKER}"
    deeper = rf"[^\S\n]{{{max(indent, 2)},}}(?=[^\s{BLOCK_FILL}])"
    first = re.compile(rf"{item}[^\n]*").match(page.skeleton, line, limit)
    if first is None:
        return None
    more = re.compile(rf"(?:\n(?>(?:{_BLANKS}\n)*)(?:{item}|{deeper}|\t)[^\n]*)*")
    end = first.end()
    while (grown := more.match(page.skeleton, end, limit)) is not None:
        end = grown.end()
        block = page.blocks.get(end + 1)
        if block is None or not page.source[end + 1 : end + 3].isspace():
            break
        end = min(block, limit)
    return end
