"""Reasons against keeping a proposed statement although its words were said: how they were said, and what came of it.

Whether anybody said it at all, and how far he is to be trusted, is ``grounding.py``.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from enum import StrEnum
from functools import cache, lru_cache

from backstory.domain.extract.sentences import sentences
from backstory.domain.grounding import LEAST_SUPPORT
from backstory.domain.provenance import Origin, is_injectable
from backstory.domain.statements import replies, wording
from backstory.domain.telling_words import denies
from backstory.domain.text import analyse, analyse_query
from backstory.domain.utterance import Utterance


class Objection(StrEnum):
    """Why a statement is not kept."""

    UNSURE = "asked or guessed"
    PASSING = "news of the moment"
    FOR_ASSISTANTS = "an order to assistants"
    REFUSED = "proposed, and refused by the user"
    DENIED = "said not to be so"


def objection(text: str, utterances: Sequence[Utterance]) -> Objection | None:
    """What speaks against a statement about a conversation; None for nothing.

    Meant for what a model proposes. Nothing is ``REFUSED`` or ``DENIED`` of a statement that itself denies something:
    that a way was refused is worth knowing.
    """
    if wording.is_for_assistants(text):
        return Objection.FOR_ASSISTANTS
    if wording.is_question(text) or wording.is_guess(text):
        return Objection.UNSURE
    if wording.is_passing_state(text):
        return Objection.PASSING
    said = [one for one in utterances if is_injectable(one.origin) and not one.is_echo and one.tool is None]
    if denies(text):
        return None
    return Objection.REFUSED if _is_refused(text, said) else _unclaimed(text, said)


def _is_refused(text: str, said: Sequence[Utterance]) -> bool:
    """Whether everybody who said it was refused by what the user typed next, or the user took it back himself."""
    typed = _typed_by_turn(said)
    if any(_throws_out(reply, text) for reply in typed.values()):
        return True
    saying = [one for one in said if _share(text, one.text) >= LEAST_SUPPORT]
    return bool(saying) and all(_answer_refuses(one, typed, text) for one in saying)


def _answer_refuses(one: Utterance, typed: Mapping[int, str], text: str) -> bool:
    """Whether the next words of the user refuse it, with no number or name that the statement has taken from them."""
    reply = typed.get(one.turn + 1, "")
    names = {term.token for term in analyse_query(reply) if term.is_name and term.weight == 1.0}
    if not names.isdisjoint(analyse(text)):
        return False
    if one.origin is Origin.USER:
        return _second_thought().match(reply) is not None
    return replies.is_rejection(reply)


def _throws_out(typed: str, text: str) -> bool:
    """Whether the user wants something gone that the statement has in use."""
    if _gone().search(text):
        return False
    names = {
        term.token for term in analyse_query(text) if term.weight == 1.0 and (term.is_name or len(term.token) >= 4)
    }
    refused = replies.is_rejection(typed)
    return any(
        not names.isdisjoint(analyse(found["what"]))
        for found in _throwing_out().finditer(typed)
        if refused or found["firmly"]
    )


def _unclaimed(text: str, said: Sequence[Utterance]) -> Objection | None:
    """What is wrong with all the sentences that speak of just this: they ask or guess, or say that it is not so."""
    found: Objection | None = None
    for one in said:
        for sentence in [one.text] if one.is_code else sentences(one.text):
            if _share(text, sentence) < LEAST_SUPPORT:
                continue
            if denies(replies.without_reply(sentence)):
                found = Objection.DENIED
            elif wording.is_question(sentence) or wording.is_guess(sentence):
                found = found or Objection.UNSURE
            else:
                return None
    return found


def _share(text: str, said: str) -> float:
    """The share of a text's telling words that stand in another, from 0 to 1."""
    terms = [term for term in analyse_query(text) if term.weight == 1.0]
    there = _tokens(said)
    return sum(term.token in there for term in terms) / len(terms) if terms else 0.0


@lru_cache(maxsize=2048)
def _tokens(text: str) -> frozenset[str]:
    return frozenset(analyse(text))


def _typed_by_turn(said: Sequence[Utterance]) -> dict[int, str]:
    typed: dict[int, str] = {}
    for one in said:
        if one.origin is Origin.USER:
            typed[one.turn] = f"{typed[one.turn]}\n{one.text}" if one.turn in typed else one.text
    return typed


@cache
def _throwing_out() -> re.Pattern[str]:
    return re.compile(
        r"\b(?:(?P<firmly>drop|remove|throw|get rid of|don['\u2019]?t use|stop using)|no|without|not)\s+"
        r"(?:the |any |a |that )?(?P<what>[\w.@/+-]+)(?= out\b|[.,;:!]| and\b| or\b| either\b|$)",
        re.IGNORECASE | re.MULTILINE,
    )


@cache
def _second_thought() -> re.Pattern[str]:
    return re.compile(
        r"\s*(?:hm+|ugh|oh|ah|ok)?[.,! ]*(?:no,? wait|wait|scratch that|on second thoughts?|never ?mind"
        r"|i was wrong|forget (?:it|that)"
        r"|nein,? warte|warte|doch nicht)\b",
        re.IGNORECASE,
    )


@cache
def _gone() -> re.Pattern[str]:
    return re.compile(
        r"\b(?:drop\w*|remov\w*|gone|no longer|reject\w*|refus\w*|abandon\w*|instead|replac\w*|thrown?|exclud\w*"
        r"|entfernt|statt)\b",
        re.IGNORECASE,
    )
