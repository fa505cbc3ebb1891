"""What a language model answered, before anybody believes it: its own words, or the reason why there are none to use.

Reading facts and proposals out of it is ``proposals.py``; observations and summaries are ``digest_answers.py``.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from enum import StrEnum
from functools import cache


class Finish(StrEnum):
    """Why a model stopped: done, out of room, held back by its provider, wanting a tool, or nobody said."""

    STOP = "stop"
    LENGTH = "length"
    FILTERED = "filtered"
    TOOL_CALL = "tool_call"
    UNKNOWN = "unknown"


class Reason(StrEnum):
    """Why an answer cannot be used."""

    EMPTY = "empty"
    NO_TEXT = "no_text"
    NOT_JSON = "not_json"
    NOT_STRUCTURED = "not_structured"
    WRONG_KIND = "wrong_kind"
    TRUNCATED = "truncated"
    REFUSAL = "refusal"
    PROVIDER_NOTICE = "provider_notice"
    ECHO = "echo"
    TOO_LONG = "too_long"
    TOO_SHORT = "too_short"
    OFF_TASK = "off_task"
    TOOL_CALL = "tool_call"
    PLACEHOLDER = "placeholder"


@dataclass(frozen=True, slots=True, kw_only=True)
class Unusable:
    """Nothing of the answer may be stored, and what it was asked about stays unprocessed.

    ``can_retry``: the same question may fare better later, without anybody's doing.
    """

    reason: Reason
    can_retry: bool = True


def own_words(raw: str | None, *, finish: Finish) -> str | Unusable:
    """The answer without the model's reasoning, trimmed; never empty."""
    said = (raw or "").strip("\ufeff \t\r\n")
    text = _without_reasoning(said)
    if text:
        return text
    if finish is Finish.FILTERED:
        return Unusable(reason=Reason.REFUSAL)
    if finish is Finish.TOOL_CALL:
        return Unusable(reason=Reason.TOOL_CALL)
    return Unusable(reason=Reason.NO_TEXT if said else Reason.EMPTY)


def json_values(raw: str | None, *, finish: Finish) -> list[object] | Unusable:
    """The objects and lists of an answer, in order; at least one, each complete. See ``lenient_json`` for repairs.

    Closing brackets that a model forgot are added only when it says that it was done. One that fails to end makes the
    whole answer unusable, also when another stands before it: that may be an example it repeated. A lone error object
    is the provider's, not the model's.
    """
    text = own_words(raw, finish=finish)
    if isinstance(text, Unusable):
        return text
    if _is_page(text):
        return Unusable(reason=Reason.PROVIDER_NOTICE)
    from backstory.domain.lenient_json import Cut, find_json

    found = find_json(_unwrapped(text))
    if not found:
        return instead_of_answer(text) or Unusable(reason=Reason.NOT_JSON)
    if any(one.cut is Cut.MIDDLE or (one.cut is Cut.BRACKETS and finish is not Finish.STOP) for one in found):
        return Unusable(reason=Reason.TRUNCATED)
    values = [one.value for one in found]
    return _provider_error(values) or values


def instead_of_answer(text: str) -> Unusable | None:
    """Whether a text without the form asked for is a refusal, or words of the provider rather than of the model."""
    if _is_page(text):
        return Unusable(reason=Reason.PROVIDER_NOTICE)
    start = _plain(text[:_NOTICE_CHARS])
    if _billing().match(start):
        return Unusable(reason=Reason.PROVIDER_NOTICE, can_retry=False)
    if _notice().match(start):
        return Unusable(reason=Reason.PROVIDER_NOTICE)
    if _refusal().match(start):
        return Unusable(reason=Reason.REFUSAL)
    return _error_object(text)


def _error_object(text: str) -> Unusable | None:
    """Whether all of a text is the JSON by which a server says that it failed."""
    inner = without_fence(text.strip())
    if not inner.startswith("{"):
        return None

    try:
        return _provider_error([json.loads(inner)])
    except (ValueError, RecursionError):
        return None


def without_fence(text: str) -> str:
    """The text inside a Markdown fence that encloses all of it; a fence that was never closed counts."""
    fence = re.match(r"(`{3,}|~{3,})[^\n`]*\n", text)
    if fence is None:
        return text
    return text[fence.end() :].rstrip().removesuffix(fence.group(1)).strip()


_NOTICE_CHARS = 300
_MAX_THOUGHTS = 100  # in a row; each costs time in proportion to the text
_ERROR_KEYS = frozenset(("error", "errors", "type", "status", "code", "message", "detail", "request_id"))


def _without_reasoning(text: str) -> str:
    """Take off thoughts in front of the answer. Tags behind the start of an answer are part of what it says."""
    for _ in range(_MAX_THOUGHTS):
        opening = _thought().search(text)
        if opening is None:
            return text
        before = text[: opening.start()]
        if "{" in before or "[" in before or "<" in before:
            return text
        if opening.group("close"):  # some templates swallow the opening tag
            text = text[opening.end() :].lstrip()
            continue
        end = _end_of_thought(text, opening)
        if end is None:
            return before.strip()
        text = (before + text[end:]).strip()
    return text


def _end_of_thought(text: str, opening: re.Match[str]) -> int | None:
    depth = 0
    for tag in _thought().finditer(text, opening.start()):
        if tag.group("name").lower() == opening.group("name").lower():
            depth += -1 if tag.group("close") else 1
        if depth == 0:
            return tag.end()
    return None


@cache
def _thought() -> re.Pattern[str]:
    return re.compile(r"<(?P<close>/?)(?P<name>think|thinking|thought|reasoning|reflection)>", re.IGNORECASE)


def _unwrapped(text: str) -> str:
    """The text inside when an answer is one JSON string that holds JSON; any other text as it is."""
    if not text.startswith('"'):
        return text

    try:
        inner = json.loads(text)
    except (ValueError, RecursionError):
        return text
    return str(inner)


def _provider_error(values: list[object]) -> Unusable | None:
    only = values[0]
    if len(values) > 1 or not isinstance(only, dict) or not only.keys() & {"error", "errors"}:
        return None
    if only.keys() - _ERROR_KEYS or not (only.get("error") or only.get("errors")):
        return None
    billing = re.search(r"billing|credit|payment|insufficient_quota", str(only), re.IGNORECASE)
    return Unusable(reason=Reason.PROVIDER_NOTICE, can_retry=billing is None)


def _is_page(text: str) -> bool:
    return text[:20].lower().startswith(("<!doctype", "<html"))


def _plain(text: str) -> str:
    return text.strip().lower().replace("’", "'")


@cache
def _billing() -> re.Pattern[str]:
    return re.compile(
        r"(?:(?:api )?error:? ?)?(?:your (?:credit|account|prepaid) balance|insufficient (?:credit|funds|quota|balance)"
        r"|(?:your )?(?:payment|subscription|free trial|billing)[^.\n]{0,60}(?:required|expired|ended|failed|past due)"
        r"|you (?:have )?(?:run|ran) out of credits?)"
    )


@cache
def _notice() -> re.Pattern[str]:
    limits = r"(?:usage|rate|request|message|token|weekly|daily|monthly|session|5-hour)"
    return re.compile(
        rf"(?:(?:api )?error[: ]+(?:\d{{3}}[: ]*)?)?(?:(?:you've|you have) (?:hit|reached|exceeded|used)\b"
        rf"|(?:[\w-]+ )?{limits} limit (?:was |has been )?(?:reached|exceeded|hit)\b|too many requests\b"
        r"|quota exceeded|(?:the )?(?:server|service|model|api|engine)(?: is| was)?(?: currently| temporarily)*"
        r" (?:overloaded|unavailable|at capacity|not available)|\d{3} (?:bad gateway|service unavailable|gateway time"
        r"-?out|internal server error|too many requests)|(?:bad gateway|internal server error|overloaded)\W*$)"
    )


@cache
def _refusal() -> re.Pattern[str]:
    cannot = r"i(?:'m| am)? (?:can't|cannot|can not|won't|will not|unable to|not able to|not comfortable)"
    acts = (
        r"(?:help|assist|comply|provide|fulfil|do that|do this|continue|access|process|see|summari[sz]e|compress|with)"
    )
    return re.compile(
        r"(?:(?:sure|of course|certainly|okay|ok|hello|hi)\b[!,. ]*(?:there[!,. ]*)?)?"
        rf"(?:(?:i'm|i am) (?:so |very |really )?sorry\b|sorry[,. ]|my apologies|i apologi[sz]e|as an? (?:ai|large)\b"
        rf"|(?:unfortunately,? )?{cannot}[^.\n]{{0,20}}\b{acts}"
        r"|please (?:provide|share|paste|send|give|supply|let me)\b"
        r"|(?:could|can|would) you (?:please )?(?:provide|share|paste|send|give|clarify)\b"
        r"|i (?:don't|do not) (?:see|have) (?:any|a|the|access|enough)\b"
        r"|(?:it (?:looks|seems) like |there (?:is|was) )(?:no|there)\b[^.\n]{0,40}(?:provided|to (?:compress|summari))"
        r"|es tut mir leid|entschuldigung|je suis désolé|désolé|lo siento|mi dispiace|sinto muito|desculpe"
        r"|申し訳|抱歉|对不起|很抱歉)"
    )
