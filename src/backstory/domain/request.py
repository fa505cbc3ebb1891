"""Whether words that follow "remember" are told as a fact or rule, or are a question, a memory or a mere thing.

English word order only; other languages say it by their conjunctions (``triggers.py``) and question marks.
"""

from __future__ import annotations

import re
from functools import cache

_QUESTION_MARKS = "?\uff1f\u061f"
_FINITE = (
    "is|are|was|were|am|isn't|aren't|wasn't|weren't|has|have|had|hasn't|haven't|must|mustn't|should|shouldn't|shall|can"
    "|cannot|can't|may|might|will|won't|would|could|does|do|don't|doesn't|did|didn't|needs|requires|uses|runs|lives"
    "|goes|expects|returns|belongs|means|contains|comes|stays|takes|wants|prefers|depends|breaks|works|fails|happens"
)
_SUBJECTS = "i|we|you|he|she|it|they|there|this|these|those"
_NOT_AFTER_POINTING_THAT = (
    f"{_SUBJECTS}|a|an|the|my|our|your|his|her|its|their|all|every|each|no|any|some|both|most|nothing|nobody|everything"
    "|everyone|anything|if|when|whenever|while|unless|until|after|before|because|since|although|as|what|whatever|how"
    "|where|who|which|in|on|at|for|from|to|with|without|during|under|over|by|only|not|never|always|and|or|you're|we're"
    "|i'm|it's|there's|don't"
)
_BREAKS = "when|if|so|and|but|which|that|who|where|because|after|before|between|while|how|what|why|about"
_ASKS = (
    "can|could|would|will|do|does|did|is|are|was|were|should|shall|may|have|has"
    "|what|why|how|when|where|which|who|whose|whom"
)
_TASKS = (
    "list|show|tell|give|explain|describe|summari[sz]e|find|search|look|read|open|check|review|fix|debug|write|add|create"
    "|make|build|implement|refactor|rename|remove|delete|update|change|run|test|commit|push|continue|start|help|do"
)
"""What one asks for at once. `use`, `deploy` or `call` may as well go on telling how things are done from now on."""
_ONE_THING = (
    "the|a|an|all|both|my|our|your|its|his|her|their|this|that|these|those|it|them|me|us|what|which|how|why|where"
    "|whether|if|at|for|into|through|up"
)
"""What follows such a word where it is a task. Without one it may be a name: "Now test runs take a minute"."""
_RULE = (
    "always|never|only|every|each|everything|everywhere|whenever|when|before|after|instead|from now on|going forward"
    "|by default|in future|in the future"
)
"""Words of a rule: "Let's run the linter before a push" is to be kept."""


def request_end(said: str, *, link: str, polite: bool) -> int | None:
    """How much of ``said`` a request takes up, in characters; None when it is no request.

    ``said`` is what follows the cue, from a skeleton; ``link`` is one of ``colon, that, to, bare, strict, other``
    (see ``triggers.cue_pattern``); ``polite`` tells that the cue began as a question (can you). A polite request ends
    with its question mark.
    """
    stop = _sentence_stop().search(said)
    sentence = said[: stop.start()] if stop else said
    asks = stop is not None and stop.group() in _QUESTION_MARKS
    if link == "colon":
        return len(said)
    if link == "that" and not _is_told(sentence):
        return None
    if link == "bare" and not _is_bare_statement(sentence):
        return None
    if not asks or stop is None or _tag().search(sentence[-24:]):
        return len(said)
    if polite and (link == "to" or _is_clause(sentence)):
        return stop.start()
    return None


def next_matter(said: str, start: int, limit: int) -> int:
    """Where, after its first sentence or line, a text turns to a question of its own or to a task for now ("Now list
    the ..."); ``limit`` when it does not. "Then ..." and "Please ..." go on: they may be a step or a rule to keep. So
    does what may be no task: to keep a sentence too many does less harm than to lose one."""
    turns = [match for pattern in (_later_question(), _later_task()) if (match := pattern.search(said, start, limit))]
    return min((match.start("gap") for match in turns), default=limit)


@cache
def _sentence_stop() -> re.Pattern[str]:
    return re.compile(r"[.!?\u2026](?=[\s\"'\u201d)\]*_]|$)|[\u3002\uff01\uff1f\u061f\u0964]")


@cache
def _later_question() -> re.Pattern[str]:
    lead = r"(?:(?:and|but|so|now|then|ok|okay|also|please|oh)\b,?[^\S\n]+)?"
    return re.compile(rf"(?:[.!\u2026][\"'\u201d)\]]*|(?=\n))(?P<gap>(?>\s+)){lead}(?:{_ASKS})\b[^.!?\n]*\?(?=\s|$)")


@cache
def _later_task() -> re.Pattern[str]:
    let = r"let(?:'s|\u2019s|[^\S\n]us)[^\S\n]+"
    now = rf"(?:(?:and|but|so|ok|okay)\b,?[^\S\n]+)?(?:now\b,?[^\S\n]+(?:please[^\S\n]+)?(?:{let})?|{let})"
    task = rf"(?:{_TASKS})[^\S\n]+(?:{_ONE_THING})\b(?![^.!?\n]*\b(?:{_RULE})\b)"
    return re.compile(rf"(?:[.!\u2026][\"'\u201d)\]]*|(?=\n))(?P<gap>(?>\s+)){now}{task}")


@cache
def _tag() -> re.Pattern[str]:
    """A question mark that only asks for consent."""
    return re.compile(r",\s(?:ok|okay|please|alright|all right|got it|understood|will you|would you)\s*$")


def _is_told(sentence: str) -> bool:
    """Tell "remember that all dates are UTC" from "remember that day we ..." and "remember that bug"."""
    if _recollection().match(sentence) or _mere_time().fullmatch(sentence.strip()):
        return False
    return not (_pointed_thing().fullmatch(sentence.strip()) and not _is_clause(sentence))


@cache
def _recollection() -> re.Pattern[str]:
    return re.compile(
        r"\s*(?:one )?(?:time|day|week|weekend|night|moment|one|guy|incident)\s+"
        r"(?:i|we|you|he|she|they|it|when|where|that|with|who|the)\b"
    )


@cache
def _mere_time() -> re.Pattern[str]:
    return re.compile(
        r"(?:for )?(?:later|next time|now|me|us|too|as well|please|always|forever|the future|future \w+)"
        r"|from now on|in (?:the )?future"
    )


@cache
def _pointed_thing() -> re.Pattern[str]:
    """One word, alone or with a place: that password, that choice in localStorage."""
    return re.compile(r"[a-z'-]+(?:\s+(?:in|from|about|of|for|on|at)\s[^\n]*)?")


def _is_clause(sentence: str) -> bool:
    """Whether words after "that" have a subject and a verb of their own, as far as their beginning shows."""
    words = _words(sentence, 9)
    if not words:
        return False
    if words[0] in _word_set(_NOT_AFTER_POINTING_THAT):
        return len(words) > 1
    if any(word in _word_set(_FINITE) for word in words[1:]):
        return True
    return any(re.fullmatch(r"[a-z]+(?:[^s']s|ed)", word) is not None for word in words[:2])


def _is_bare_statement(sentence: str) -> bool:
    """Whether words right after "remember" state something: we use pnpm, the port is 8443, the deploy steps: ..."""
    words = _words(sentence, 8)
    if len(words) < 2 or words[0] in ("me", "us", "him", "them"):
        return False
    if words[0] not in _word_set(_BREAKS) and sentence.rstrip().endswith((":", "\uff1a")):
        return True
    if words[0] in ("not", "never", "always") or re.fullmatch(r"(?:i|we|he|she|they)(?:'\w+)?", words[0]):
        return True
    for word in words:
        if word in _word_set(_BREAKS):
            return False
        if word in _word_set(_FINITE):
            return True
    return False


def _words(sentence: str, count: int) -> list[str]:
    """The first words, up to a comma."""
    return re.findall(r"[^\W_][\w'-]*", re.split(r"[,;:(]", sentence[:400], maxsplit=1)[0])[:count]


@cache
def _word_set(alternatives: str) -> frozenset[str]:
    return frozenset(alternatives.split("|"))
