"""Which sentences of a prompt ask to be remembered, and what exactly they ask to keep. No model is involved.

The words that ask are in ``triggers.py``, code and quotations in ``markup.py``. Masking ``<private>`` text inside a
captured content, limits of size and storing it are not done here.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from itertools import islice, pairwise

from backstory.domain.markup import BLOCK_FILL, Page, read_page, unwrap
from backstory.domain.memory import Kind
from backstory.domain.triggers import all_stems, cue_pattern

MIN_CONTENT_CHARS = 3
"""Letters and digits, outside private regions, below which there is nothing worth keeping."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Captured:
    """One thing a person asked to keep: verbatim, with a guess at its kind and the words that asked for it."""

    content: str
    kind: Kind
    trigger: str


@dataclass(frozen=True, slots=True)
class _Cue:
    """A place in a page where a request may stand: the clause begins at ``start``, what follows at ``end``."""

    start: int
    end: int
    link: str
    opening: str
    polite: bool
    marks: str
    trigger: str


def capture(text: str) -> list[Captured]:
    """Find what the text of one user message asks to remember, in the order of the text.

    A request stands at the start of a clause ("please remember that ...", "don't forget: ...", "keep in mind ...",
    and the like in some twenty languages). Questions, negations, statements about somebody's memory, and whatever is
    code, quoted, private or pasted are no requests. The content runs to the end of its paragraph or list item, or to
    the next request; a list or block after a closing colon belongs to it. Characters are kept as typed, including
    ``<private>`` regions. A prompt that a host wrapped in double quotes is read without them.

    Empty text gives an empty list; nothing raises. Linear: below 0.2 s for a million characters.
    """
    typed = unwrap(text)
    lowered = typed.lower()
    if not any(stem in lowered for stem in all_stems()):
        return []
    page = read_page(typed)
    cues = [*_cues(page), None]
    found = (
        _read(page, cue, len(page.source) if following is None else following.start)
        for cue, following in pairwise(cues)
        if cue is not None
    )
    return [captured for captured in found if captured is not None]


def _cues(page: Page) -> Iterator[_Cue]:
    for match in cue_pattern().finditer(page.skeleton):
        group = "english" if match["english"] is not None else "other"
        yield _Cue(
            start=match.start() + 1,
            end=match.end(),
            link=match.lastgroup or group if group == "other" else _link(match),
            opening=match.group()[0],
            polite=match["polite"] is not None,
            marks=match["marks"] or "",
            trigger=" ".join(page.source[match.start(group) : match.end(group)].split()).rstrip(" :,-*_"),
        )


def _link(match: re.Match[str]) -> str:
    return next(name for name in ("veto", "strict", "colon", "that", "to", "bare") if match[name] is not None)


def _read(page: Page, cue: _Cue, limit: int) -> Captured | None:
    """What a cue asks to keep; None when it turns out to be no request or there is nothing to keep."""
    if cue.link == "veto" or _is_reported(page, cue):
        return None
    end = _text_end(page, cue, limit)
    if not _is_request(cue, page.skeleton[cue.end : end]):
        return None
    end = _with_block(page, cue, end, limit)
    content = _trim(page.source[cue.end : end], cue, at_limit=end == limit < len(page.source))
    if not _says_something(page, content, cue.end):
        return None
    return Captured(content=content, kind=guess_kind(content), trigger=cue.trigger)
