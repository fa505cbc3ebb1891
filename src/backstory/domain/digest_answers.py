"""What a model made of a conversation: observations in tags, or a summary in plain words; checked, or refused.

Refusing is cheap, since the conversation is still there and the question is asked again; a wrong digest replaces it.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache

from backstory.domain.answers import Finish, Reason, Unusable, instead_of_answer, own_words, without_fence

MIN_SIGNS = 8
"""Letters and digits a summary has at least, once its source is longer than ``SHORT_SOURCE_CHARS``."""
SHORT_SOURCE_CHARS = 80
ECHOED_SHARE = 0.6
"""Of the source's lines: a summary that repeats more of them word for word has not summarised."""
_TELLING_CHARS = 12  # shorter lines come back by chance


@dataclass(frozen=True, slots=True, kw_only=True)
class ObservedText:
    """What an observer noted; ``observations`` is empty when there was nothing to note."""

    observations: str
    current_task: str | None = None
    suggested_response: str | None = None


def read_observations(raw: str | None, *, finish: Finish = Finish.UNKNOWN) -> ObservedText | Unusable:
    """The text in ``<observations>``, in all of them if there are several, and in the two tags beside it.

    A closing tag may be missing when the model says it was done. ``<skip/>`` alone is nothing to note; no tag at all
    is not an answer.
    """
    text = own_words(raw, finish=finish)
    if isinstance(text, Unusable):
        return text
    blocks = [block for block in _tag_blocks().finditer(text) if block["name"].lower() == "observations"]
    if not blocks:
        if _skip().fullmatch(without_fence(text)):
            return ObservedText(observations="")
        return instead_of_answer(text) or Unusable(reason=Reason.NOT_STRUCTURED)
    if finish is not Finish.STOP and any(not block["closed"] for block in _tag_blocks().finditer(text)):
        return Unusable(reason=Reason.TRUNCATED)
    noted = [inner for block in blocks if (inner := _inner(block))]
    return ObservedText(
        observations="\n".join(noted),
        current_task=_beside(text, "current"),
        suggested_response=_beside(text, "suggested"),
    )


def read_summary(
    raw: str | None, *, source: str, instruction: str = "", finish: Finish = Finish.UNKNOWN
) -> str | Unusable:
    """The summary of ``source``, without fence, tags and label: shorter than its source, and in other words.

    ``instruction`` is what the model was told; an answer that repeats how it begins is an echo.
    """
    text = own_words(raw, finish=finish)
    if isinstance(text, Unusable):
        return text
    text = _bare(text)
    if finish is Finish.LENGTH:
        return Unusable(reason=Reason.TRUNCATED)
    wrong = instead_of_answer(text)
    if wrong is not None:
        return wrong
    reason = _fault(text, source=source.strip(), instruction=instruction.strip())
    return text if reason is None else Unusable(reason=reason)


def _fault(text: str, *, source: str, instruction: str) -> Reason | None:
    if len(source) > SHORT_SOURCE_CHARS and sum(char.isalnum() for char in text) < MIN_SIGNS:
        return Reason.TOO_SHORT
    if not text:
        return Reason.EMPTY
    if _is_echo(text, source=source, instruction=instruction):
        return Reason.ECHO
    if len(text) >= len(source):
        return Reason.TOO_LONG
    return Reason.OFF_TASK if _carries_on().match(text) else None


def _is_echo(text: str, *, source: str, instruction: str) -> bool:
    told = instruction.partition("\n")[0].strip()
    if len(told) >= 2 * _TELLING_CHARS and told in text:
        return True
    lines = [line for raw in source.splitlines() if len(line := raw.strip()) >= _TELLING_CHARS]
    answered = {line.strip() for line in text.splitlines()}
    repeated = sum(line in answered or (len(lines) < 3 and line in text) for line in lines)
    return bool(lines) and repeated > ECHOED_SHARE * len(lines)


def _bare(text: str) -> str:
    text = without_fence(text)
    tagged = re.fullmatch(r"<summary[^<>]*>(.*?)(?:</summary>)?\s*", text, re.DOTALL | re.IGNORECASE)
    text = tagged.group(1).strip() if tagged else text
    return _label().sub("", text, count=1).strip()


def _beside(text: str, name: str) -> str | None:
    inner = [_inner(block) for block in _tag_blocks().finditer(text) if block["name"].lower().startswith(name)]
    return next(filter(None, inner), None)


def _inner(block: re.Match[str]) -> str:
    text = block["inner"].strip()
    return text if block["closed"] else re.sub(r"\s*`{3,}\s*\Z", "", text)


@cache
def _tag_blocks() -> re.Pattern[str]:
    """Each of our tags with what is in it, up to its end, the next of our opening tags, or the end of the text."""
    names = r"observations|current[-_]task|suggested[-_](?:response|continuation)"
    return re.compile(
        rf"<(?P<name>{names})(?:\s[^<>]*)?>"
        rf"(?P<inner>(?:(?!</(?P=name)\s*>|<(?:{names})(?:\s[^<>]*)?>).)*+)"
        r"(?P<closed></(?P=name)\s*>)?",
        re.DOTALL | re.IGNORECASE,
    )


@cache
def _skip() -> re.Pattern[str]:
    return re.compile(r"<skip\s*/?>(?:\s*</skip>)?", re.IGNORECASE)


@cache
def _label() -> re.Pattern[str]:
    return re.compile(
        r"\A(?:sure|okay|ok)?[!,. ]*(?:here(?:'s| is|’s) (?:a |the |your )?(?:\w+ )?summary[^:\n]{0,60}:"
        r"|#{1,6} +summary[^\n]{0,40}\n|[*_]{0,2}summary[*_]{0,2}:[*_]{0,2})\s*",
        re.IGNORECASE,
    )


@cache
def _carries_on() -> re.Pattern[str]:
    return re.compile(r"(?:i will|i'll|i’ll|let me|let's|i am going to|i'm going to)\b", re.IGNORECASE)
