"""Which sentences of a prompt ask to be remembered, and what exactly they ask to keep. No model is involved.

The words that ask are in ``triggers.py``, code and quotations in ``markup.py``, questions in ``request.py``. Masking
``<private>`` text inside a captured content, limits of size, and storing it are not done here.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from itertools import islice
from typing import NamedTuple

from backstory.domain.markup import INLINE_FILL, Page, plain, read_page, unwrap
from backstory.domain.memory import Kind
from backstory.domain.passage import closing_bracket, following_block_end, following_paragraph_end, paragraph_end
from backstory.domain.pasted_text import stretches
from backstory.domain.request import next_matter, request_end
from backstory.domain.triggers import find_cues, stems_in

MIN_CONTENT_CHARS = 3
"""Letters and digits, outside private regions, below which there is nothing worth keeping."""
MOST_CAPTURED = 50
"""Requests of one text; a person asks for a few. A pasted text that asks for thousands is no person's."""
MOST_CHARS = 2_000_000
"""Of a text, up to which it is looked at: more than a model reads at once."""
_MOST_LOOKED_UP = 100  # requests that are looked up in the whole text, one after the other
_MOST_CUES = 10_000  # places that are read closely; 20 to 100 µs each


@dataclass(frozen=True, slots=True, kw_only=True)
class Captured:
    """One thing a person asked to keep: verbatim, with a guess at its kind and the words that asked for it."""

    content: str
    kind: Kind
    trigger: str


class _Cue(NamedTuple):
    """Words that may ask: their clause begins at ``start``, what follows them at ``end``, at most up to ``limit``."""

    start: int
    end: int
    limit: int
    link: str
    opening: str
    polite: bool
    marks: str
    words: str


def capture(text: str) -> list[Captured]:
    """Find what the text of one user message asks to remember, in the order of the text.

    A request stands at the start of a clause: "please remember that ...", "don't forget: ...", "keep in mind ...", and
    the like in some twenty languages. Questions, negations, statements about somebody's memory, and whatever is code,
    quoted, private or pasted are no requests. The content runs to the end of its paragraph or list item, to the next
    request, to a question of its own, or to a task for now ("Now list ..."); a list or block after a closing colon
    belongs to it. Its characters are kept as typed, ``<private>`` regions included. A prompt in double quotes of its
    host is read without them. What follows a line that announces another's text ("this is from their readme:") is
    theirs, requests and all.

    The first ``MOST_CAPTURED`` are returned, and only the first ``MOST_CHARS`` characters are looked at: up to the last
    paragraph that ends within them, so that none is kept in part.

    Never raises. Linear in the length of the text, below 0.2 s for a million characters; the most hostile takes 1.5 s.
    """
    typed = unwrap(_beginning(text))
    found = _found(typed)
    return _without_announced(found, typed)[:MOST_CAPTURED] if found else []


def _beginning(text: str) -> str:
    if len(text) <= MOST_CHARS:
        return text
    end = text.rfind("\n\n", 0, MOST_CHARS)
    return text[: end if end > 0 else MOST_CHARS]


def _found(typed: str) -> list[Captured]:
    """Requests in order, one more than are looked up at most."""
    stems = stems_in(plain(typed))
    if not stems:
        return []
    page = read_page(typed)
    found = (_read(page, cue) for cue in islice(_cues(page, stems), _MOST_CUES))
    return list(islice((captured for captured in found if captured is not None), _MOST_LOOKED_UP + 1))


def _without_announced(found: list[Captured], typed: str) -> list[Captured]:
    """Leave out what only a text asks that the user showed; a block that a request of theirs ends with stays."""
    if "\n" not in typed:  # a text is announced on a line before it
        return found
    told = [(stretch.text, stretch.text.casefold(), stretch.shown) for stretch in stretches(typed)]
    if len(found) > _MOST_LOOKED_UP:
        return _found("\n".join(text for text, _, is_shown in told if not is_shown))
    shown = [
        item
        for item in found
        if any(
            is_shown and item.content in text and item.trigger.casefold() in folded for text, folded, is_shown in told
        )
        and not any(not is_shown and item.content in text for text, _, is_shown in told)
    ]
    return [item for item in found if item not in shown]


def guess_kind(content: str) -> Kind:
    """The kind of a statement by its wording; the first rule that fits decides, ``fact`` when none does.

    Looks at the first 2,000 characters. Meant for text whose author named no kind; a guess, not a judgement.
    """
    beginning = content[:2000].replace("\u2019", "'")
    return next((kind for kind, pattern in _kind_rules() if pattern.search(beginning)), Kind.FACT)


def _cues(page: Page, stems: list[str]) -> Iterator[_Cue]:
    """The cues in order; each may reach to where the next one begins."""
    matches = find_cues(page.skeleton, stems)
    following = next(matches, None)
    while following is not None:
        match, following = following, next(matches, None)
        limit = following.start() + 1 if following is not None else len(page.source)
        names = ("other", "veto", "strict", "colon", "that", "to", "bare")
        words = match.span("english" if match["other"] is None else "other")
        yield _Cue(
            start=match.start(),
            end=match.end(),
            limit=limit,
            link=next(name for name in names if match[name] is not None),
            opening=match.group()[0],
            polite=match["polite"] is not None,
            marks=match["marks"] or match["inner"] or "",
            words=" ".join(page.source[slice(*words)].split()).rstrip(" :,*_-\uff1a\uff0c\u3001\u2013\u2014"),
        )


def _read(page: Page, cue: _Cue) -> Captured | None:
    """What a cue asks to keep; None when it turns out to be no request, or there is nothing to keep."""
    if cue.link == "veto" or _is_reported(page, cue):
        return None
    end = _text_end(page, cue)
    taken = request_end(page.skeleton[cue.end : end], link=cue.link, polite=cue.polite)
    if taken is None:
        return None
    end = _before_torn_region(page, cue.end, _with_block(page, cue, cue.end + taken))
    if not _says_something(page.spoken[cue.end : end]):
        return None
    content = _trim(page.source[cue.end : end], marks=cue.marks, cut=cue.end < end == cue.limit < len(page.source))
    return Captured(content=content, kind=guess_kind(content), trigger=cue.words)


def _text_end(page: Page, cue: _Cue) -> int:
    """End of the running text that belongs to a cue."""
    end = paragraph_end(page, cue.end, cue.limit)
    if cue.opening == "(":
        end = closing_bracket(page, cue.end, end)
    return next_matter(page.skeleton, cue.end, end)


def _with_block(page: Page, cue: _Cue, end: int) -> int:
    """Take in what a closing colon announces: a list or block; after a colon alone, also the next paragraph."""
    if not page.skeleton.startswith("\n", end):
        return end
    text = page.source[cue.end : end].rstrip().rstrip("*_")
    nothing_yet = not text and cue.link in ("colon", "strict", "other")
    if not (nothing_yet or text.endswith((":", "\uff1a"))):
        return end
    block = following_block_end(page, end, cue.limit)
    if block is not None:
        return block
    return following_paragraph_end(page, end, cue.limit) if nothing_yet else end


def _before_torn_region(page: Page, start: int, end: int) -> int:
    """Leave out the first half of a private region that goes on behind the content: alone it may not look private."""
    goes_on = re.compile(rf"\s*{INLINE_FILL}").match(page.spoken, end)
    if not goes_on or not page.spoken[start:end].rstrip().endswith(INLINE_FILL):
        return end
    return start + len(page.spoken[start:end].rstrip(INLINE_FILL + " \t\r\n"))


def _trim(content: str, *, marks: str, cut: bool) -> str:
    """Take off what is not content: blanks, the other half of emphasis, courtesy, the join to the next request."""
    content = content.strip()
    if cut:
        content = content.rstrip(" \t\r\n,;:(\u2014\u2013-")
    if marks and content.endswith(marks) and content.count(marks) % 2:
        content = content.removesuffix(marks).rstrip()
    tail = _courtesy().search(content, max(len(content) - 40, 0))
    if tail:
        content = content[: tail.start()]
    return content.rstrip(",;").rstrip()


@cache
def _courtesy() -> re.Pattern[str]:
    return re.compile(
        r"(?:,|(?<=[.!]))\s+(?:please|pls|thanks|thank you|thx|cheers|ok|okay|got it|alright)[.!?]*$", re.IGNORECASE
    )


def _says_something(text: str) -> bool:
    """Whether there are enough letters and digits, and more than the value of a setting (``remember: true``)."""
    enough = len(list(islice(re.finditer(r"[^\W_]", text), MIN_CONTENT_CHARS))) == MIN_CONTENT_CHARS
    return enough and text.strip().lower() not in ("true", "false", "null", "none", "yes", "off")


def _is_reported(page: Page, cue: _Cue) -> bool:
    """Whether the cue is what somebody says or writes: "translate: remember that ...", "he said, remember that ..."."""
    if cue.opening not in ":,\uff1a":
        return False
    before = page.skeleton[max(cue.start - 120, 0) : cue.start]
    sentence = re.split(r"[.!?](?=\s)|\n", before)[-1]
    return (_told_just_before() if cue.opening == "," else _told_somewhere()).search(sentence) is not None


@cache
def _told_just_before() -> re.Pattern[str]:
    return re.compile(r"\b(?:said|says|wrote|writes|asked|told|replied|answered|reads)(?: \w+)?$")


@cache
def _told_somewhere() -> re.Pattern[str]:
    return re.compile(
        r"\b(?:translate|say|says|said|saying|print|prints|echo|write|writes|wrote|written|reads|rename|named|titled|title"
        r"|message|text|phrase|string|comments?|heading|headline|label|prompt|subject|outputs?|description|quot(?:e|es|ing)"
        r"|sentence|words?|trigger|example|copy|caption|tooltip|placeholder|button|banner|asked|asks|told|tells"
        r"|übersetze|traduci|traduis|traduce|переведи)\b|翻译"
    )


@cache
def _kind_rules() -> tuple[tuple[Kind, re.Pattern[str]], ...]:
    """From the most telling wording to the weakest; preference, decision, blocker and pattern come in that order."""
    return tuple(
        (kind, re.compile(rf"\b(?:{'|'.join(wordings)})\b", re.IGNORECASE)) for kind, wordings in _WORDINGS.items()
    )


_WORDINGS = {
    Kind.USER: (
        r"my (?:first |last |full |user ?)?name is",
        r"my (?:time ?zone|pronouns|job|role) (?:is|are)",
        r"call me",
        r"(?:i am|i'm) (?:an?|the|based|colou?r|new) [a-z]+",
        r"i (?:work|live) (?:at|as|for|in|on)",
    ),
    Kind.PREFERENCE: (
        r"prefer(?:s|red|ences?)?",
        r"i(?:'d| would) rather",
        r"i (?:really |always |usually )?(?:like|love|hate|want)",
        r"i (?:do not|don't|dont) (?:like|want)",
        r"my favou?rite|dislikes?",
        r"bevorzuge|préfère|prefiero|preferisco|prefiro|предпочитаю",
    ),
    Kind.DECISION: (
        r"decide[ds]?|decisions?",
        r"we(?:'ve| have)? (?:chose|chosen|picked|agreed|settled on|went with|standardi[sz]ed)",
        r"we(?:'ve| have)? (?:switched|moved|migrated|dropped|replaced)",
        r"(?:was|were|is|are|got) (?:dropped|replaced|removed|retired|rejected)",
        r"instead of|in favou?r of|no longer|any ?more|moved (?:from|off)",
        r"entschieden|décidé|decidido|deciso|решили",
    ),
    Kind.BLOCKER: (
        r"block(?:ed|ers?|ing|s)",
        r"on hold|waiting (?:for|on)|stuck",
        r"(?:is|are) (?:still )?(?:down|broken)",
        r"(?:cannot|can't) [^.]{0,60} until",
    ),
    Kind.LEARNING: (
        r"learn(?:ed|t|ing)?|lesson|gotcha|work-?around",
        r"turn(?:s|ed) out|root cause|caused? by|due to|came from|fixed by",
        r"the (?:fix|cause|reason|culprit) (?:is|was)",
        r"(?:was|were|fails?|failed|broke|crashe[sd])\b[^.]{0,80} because",
    ),
    Kind.PATTERN: (r"patterns?|conventions?|always|never|naming",),
    Kind.WORKFLOW: (
        r"(?:before|after) (?:(?:every|each|any|the|you|a) )?(?:commit|push|merg|deploy|releas|rebas|review)\w*",
        r"squash(?:-?\w+)?|rebase|pull requests?|PRs?|approvals?|reviews?|release branch(?:es)?",
        r"rollback|runbook|steps",
        r"deploy(?:s|ments?)? (?:on|only|every|happen)",
        r"first [^.\n]{1,80} then",
    ),
    Kind.ENVIRONMENT: (
        r"ports?|localhost|env(?:ironment)?s?|staging|cluster|host(?:s|name)?|docker|runner|shell|VPN",
        r"(?:is|are) (?:not )?installed",
        r"arm64|x86(?:_64)?|macos|linux|windows",
        r"(?:node|python|jdk|java|go|ruby|pg|postgres|php) \d+",
    ),
    Kind.STATUS: (r"currently|in progress|wip|as of", r"(?:is|are) (?:done|finished|pending|under way)"),
}
