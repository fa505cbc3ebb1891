"""Which lines of what a user sent were typed, and which were pasted or quoted: logs, code, mails, other people's words.

What a page shows by its signs (fences, block quotes, log lines) is told by ``markup.py``. Here is what needs a look at
the words before it ("this is from the readme:"), and the looks of text that machines write. In doubt it was pasted.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from typing import NamedTuple

from backstory.domain.markup import BLOCK_FILL, read_page

LONG_QUOTATION_WORDS = 8
"""A quotation of more words is somebody else's text, whoever is said to have written it."""
_GAP = "…"


class Stretch(NamedTuple):
    """Lines that belong together: typed, or shown."""

    text: str
    shown: bool


def stretches(text: str) -> list[Stretch]:
    """The typed and the shown stretches of a text, in order and none of them blank. Never raises.

    A line that announces another's text ("support wrote this:") makes all that follows in the text shown, since
    nothing tells where a paste ends. Where a line reports a few words, they come after it, and a sign stands in their
    place. Linear in the text.
    """
    joined: list[tuple[list[str], bool]] = []
    for line in _lines(text):
        if joined and (joined[-1][1] == line.shown or not line.text):
            joined[-1][0].append(line.text)
        else:
            joined.append(([line.text], line.shown))
    found = (Stretch("\n".join(lines).strip("\n"), shown) for lines, shown in joined)
    return [stretch for stretch in found if stretch.text.strip()]


def _lines(text: str) -> Iterator[Stretch]:
    page = read_page(text)
    announced = shown_before = False
    for source, skeleton in zip(page.source.split("\n")[1:], page.skeleton.split("\n")[1:], strict=True):
        bare = skeleton.strip()
        if not bare:
            yield Stretch("", announced)
        elif announced or bare.startswith(BLOCK_FILL) or _is_by_machine(source, shown_before):
            shown_before = True
            announced = announced or _mail_head().match(source) is not None
            yield Stretch(source, shown=True)
        else:
            typed, reported = _apart(source)
            yield from (Stretch(typed, shown=False), *(Stretch(words, shown=True) for words in reported))
            announced = _announcing().search(source[-_LINE_END_CHARS:]) is not None
            shown_before = False


def _is_by_machine(line: str, after_shown: bool) -> bool:
    if after_shown and line[:4].isspace():
        return True
    ending = line.rstrip()[-1:]
    if ending in (";", "{") or (ending and ending in "(=:}" and _statement_start().match(line)):
        return True
    if _machine_line().match(line) or _mail_head().match(line) or _to_assistants().match(line):
        return True
    return _quoted_line().fullmatch(line.strip()) is not None


def _apart(line: str) -> tuple[str, list[str]]:
    """A line without the words that it reports, and those words."""
    reported: list[str] = []

    def taken(found: re.Match[str]) -> str:
        before = line[max(0, found.start() - _TOLD_WITHIN_CHARS) : found.start()]
        if found.group().count(" ") < LONG_QUOTATION_WORDS and not _told_by().search(before):
            return found.group()
        reported.append(found.group().strip())
        return _GAP

    typed = _quotation().sub(taken, line)
    told = _told_after_colon().search(typed)
    if told and not typed[told.end() :].lstrip().startswith(_GAP):
        reported.append(typed[told.end() :].strip())
        typed = f"{typed[: told.end()]} {_GAP}"
    return typed, reported


_LINE_END_CHARS = 300
_TOLD_WITHIN_CHARS = 80
_QUOTATIONS = (
    r'"[^"\n]{2,}"',
    r"\u201c[^\u201c\u201d\n]+\u201d",
    r"\u201e[^\u201e\u201c\u201d\n]+[\u201c\u201d]",
    r"\u00ab[^\u00ab\u00bb\n]+\u00bb",
    r"\u00bb[^\u00ab\u00bb\n]+\u00ab",
)
_TELLS = (
    r"(?:says?|said|saying|states?|stated|wrote|writes|written|pasted|posted|sent|told|tells|claims?|claimed|reads"
    r"|replied|replies|answered|answers|asked|asks|forwarded|reported|schreib(?:t|en)|schrieb(?:en)?|sagt|sagte|sagen"
    r"|meint|meinte|écrit|disent|dit|dice|dijo|escribió)"
)
_NOT_MINE = r"(?<=[\w,\")] )(?<!\bi )(?<!\bwe )(?<!\bi've )(?<!\bi have )(?<!\bich )(?<!\bwir )"
"""Before a verb of telling: somebody tells, and it is not the user."""
_DOCUMENTS = (
    r"(?:read-?me|docs?|documentation|manual|man ?page|web ?page|page|article|blog|post|issue|ticket|e-?mails?|mails?"
    r"|message|thread|chat|slack|logs?|outputs?|errors?|exceptions?|(?:stack ?)?traces?|tracebacks?|diffs?|patch|config"
    r"|file|response|reply|answer|comments?|review|changelog|snippet|code|paste|prompt|template|nachricht|ausgabe"
    r"|fehler(?:meldung)?|protokoll|datei|anleitung)"
)


@cache
def _quotation() -> re.Pattern[str]:
    return re.compile("|".join(_QUOTATIONS))


@cache
def _quoted_line() -> re.Pattern[str]:
    """A line that is nothing but a quotation, or the first line of a longer one."""
    opened = '["\u201c\u201e\u00ab][^"\u201c\u201d\u201e\u00bb]{20,}'
    return re.compile(rf"(?:{'|'.join(_QUOTATIONS)})[.,;]?|{opened}")


@cache
def _told_by() -> re.Pattern[str]:
    return re.compile(rf"{_NOT_MINE}\b{_TELLS}\b[^.!?\n]{{0,60}}$", re.IGNORECASE)


@cache
def _told_after_colon() -> re.Pattern[str]:
    return re.compile(rf"{_NOT_MINE}\b{_TELLS}(?: \w+){{0,3}}?:(?=\s+\S)", re.IGNORECASE)


@cache
def _announcing() -> re.Pattern[str]:
    """The end of a line behind which another's text stands: "the log:", "here is their mail:", "she wrote:"."""
    pointing = r"(?:here(?:'s| is| are)|this is|these are|below|see|got|found|received|copied|pasting|from|following)"
    return re.compile(
        rf"^(?:[\w'-]+ ){{0,3}}{_DOCUMENTS}:\s*$"
        rf"|\b{pointing}\b[^.!?\n]{{0,60}}\b{_DOCUMENTS}\b[^.!?\n]{{0,40}}:\s*$"
        rf"|\b(?:got|get|see|saw|found|received|copied) (?:this|that|these)\b[^.!?\n]{{0,60}}:\s*$"
        rf"|{_NOT_MINE}\b{_TELLS}(?: [\w'-]+){{0,6}}:\s*$"
        rf"|{_NOT_MINE}\b(?:pasted|forwarded|copied|posted|wrote|sent)(?: \w+)? (?:this|that|these|it)\b"
        r"[^\n]{0,120}[:?\u2026]\s*$"
        r"|-{3,} ?(?:original|forwarded|begin)\b",
        re.IGNORECASE,
    )


@cache
def _statement_start() -> re.Pattern[str]:
    """Words with which lines of code begin."""
    return re.compile(
        r"\s*(?:import|export|from|const|let|var|(?:async )?def|class|(?:async )?function|func|fn|public|private|return"
        r"|package|SELECT|INSERT|UPDATE|DELETE|CREATE|ALTER)\s"
    )


@cache
def _to_assistants() -> re.Pattern[str]:
    """The beginning of a line that is written to assistants as such: a user says "you"."""
    who = r"(?:all |any |the )*(?:ai|llm|coding)?[ -]?(?:assistants?|agents|models|llms|ais)\b"
    return re.compile(
        rf"\W*(?:important|note|notice|attention|instructions?|message|reminder|hint)\b[^.\n]{{0,20}}\b(?:for|to) {who}"
        rf"|\W*(?:attention|dear|hey),? {who}"
        r"|\W*(?:ignore|forget|disregard) (?:all |any )?(?:of )?(?:the |your )?(?:previous|prior|earlier) instructions",
        re.IGNORECASE,
    )


@cache
def _mail_head() -> re.Pattern[str]:
    return re.compile(r"\s*(?:From|To|Cc|Sent|Date|Subject|Von|An|Gesendet|Betreff): \S")


@cache
def _machine_line() -> re.Pattern[str]:
    """The beginnings of lines that programs write: frames of a trace, data, tables, the head of a mail, a chat."""
    return re.compile(
        r"""
        \s*(?:
            at\ [\w$.<>\[\]/ ]{1,120}\( | File\ "[^"\n]+",\ line\ \d | \d{1,6}[|:]\  | npm\ (?:ERR|WARN)
          | Caused\ by: | goroutine\ \d
          | \| | [{\[<]\s*(?:$|["/!]) | [}\])];?,?\s*$ | "[\w.-]+"\s*: | [A-Z][A-Z0-9_]{2,}=\S
          | \[?\d{1,2}:\d\d(?:\s?[ap]m)?\]?\s+\S+:\s
        )
        """,
        re.VERBOSE,
    )
