"""The lasting statements of a conversation: what the user typed, and what was proposed or found and then agreed to."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache

from backstory.domain.capture import guess_kind
from backstory.domain.extract.sentences import sentences
from backstory.domain.extract.signs import fact_count
from backstory.domain.grounding import LEAST_SUPPORT, ground
from backstory.domain.ids import MessageId
from backstory.domain.memory import Kind, Visibility
from backstory.domain.provenance import Origin, is_injectable
from backstory.domain.statements import replies, wording
from backstory.domain.statements.exchange import Exchange, exchanges
from backstory.domain.statements.withdrawal import holds, replaces, takes_back
from backstory.domain.text import analyse_query
from backstory.domain.utterance import Utterance

MAX_STATED = 40
"""Of one conversation; whoever states more dictates a document."""
_LEAST_WORDS, _MOST_WORDS = 3, 60
_LEAST_TELLING = 4  # words of a statement that can be understood alone
_LEAST_ANSWER = 2
_MOST_CHARS = 420
_STATED, _AGREED, _TOLD = 0.9, 0.8, 0.7
_ENDS = (".", "!", "?", ":", ";", "\u2026")


@dataclass(frozen=True, slots=True, kw_only=True)
class StatedFact:
    """A statement in the words in which it was made. ``messages`` are where; ``origin`` the least trusted of them."""

    text: str
    kind: Kind
    visibility: Visibility
    confidence: float
    messages: tuple[MessageId, ...]
    origin: Origin


@dataclass(frozen=True, slots=True, kw_only=True)
class _Candidate:
    pieces: tuple[str, ...]
    confidence: float
    messages: tuple[MessageId, ...]

    @property
    def text(self) -> str:
        """The pieces as sentences of one text."""
        *first, last = self.pieces
        return " ".join([*(piece if piece.endswith(_ENDS) else f"{piece}." for piece in first), last])


def stated(utterances: Sequence[Utterance]) -> tuple[StatedFact, ...]:
    """What is worth keeping, oldest first; at most ``MAX_STATED``, the newest.

    Only what the user typed, and what the assistant proposed or found and the user then agreed to, or did not refuse.
    No questions, guesses, errands or news of the moment; nothing that speaks of assistants or their memory; nothing
    that repeats outside text. What is taken back or replaced later is left out.
    """
    kept: list[_Candidate] = []
    for exchange in exchanges(utterances):
        if exchange.typed is not None:
            kept = [one for one in kept if not takes_back(exchange.typed.text, _text(exchange.before), one.text)]
        for candidate in _candidates(exchange):
            if not any(holds(one.text, candidate.text) for one in kept):
                kept = [one for one in kept if not replaces(candidate.text, one.text)]
                kept.append(candidate)
    facts = (_fact(candidate, utterances) for candidate in kept)
    return tuple(fact for fact in facts if fact is not None)[-MAX_STATED:]


def _candidates(exchange: Exchange) -> Iterator[_Candidate]:
    agreed = _agreed(exchange)
    own = _typed(exchange)
    taken = _taken(exchange) if own or agreed else []
    joined = _fitting(agreed, own, taken)
    if joined and any(not wording.points_elsewhere(piece) for piece in joined):
        sources = [
            utterance.message
            for utterance, pieces in ((exchange.before, agreed), (exchange.typed, own), (exchange.taken, taken))
            if utterance is not None and any(piece in joined for piece in pieces)
        ]
        confidence = _STATED if own and not agreed else _AGREED
        yield _Candidate(pieces=tuple(joined), confidence=confidence, messages=tuple(dict.fromkeys(sources)))
    yield from _concluded(exchange)


def _fitting(agreed: list[str], own: list[str], taken: list[str]) -> list[str]:
    """The pieces that have room together; what the user typed goes first when there is none for all."""
    for pieces in ([*agreed, *own, *taken], [*agreed, *own], [*own, *taken], own):
        if len(" ".join(pieces)) <= _MOST_CHARS:
            return pieces
    return []


def _typed(exchange: Exchange) -> list[str]:
    """What lasts of what the user typed, sentence by sentence."""
    text = _text(exchange.typed)
    answers = exchange.before is not None and (replies.is_rejection(text) or _asked(exchange.before.text))
    clauses = ((sentence, replies.without_reply(sentence)) for sentence in _clauses(text))
    return [
        clause
        for sentence, clause in clauses
        if _is_fit(sentence, clause, agreed=answers)
        and (answers or wording.is_order(clause) or not wording.is_trouble(clause))
        and (wording.is_rule(clause) or _lasts(clause, answers=answers, begins=exchange.before is None))
    ]


def _lasts(clause: str, *, answers: bool, begins: bool) -> bool:
    """Whether a user's sentence that is no rule is worth keeping: it gives a reason, answers or corrects the assistant,
    decides something or says how things are. At the beginning of a conversation the latter two tell the errand."""
    if wording.is_errand(clause):
        return False
    if wording.is_cause(clause) or (answers and _telling(clause) >= _LEAST_ANSWER):
        return True
    states = wording.is_being(clause) and (fact_count(clause) > 0 or " = " in clause)
    return not begins and (states or wording.is_decision(clause))


def _agreed(exchange: Exchange) -> list[str]:
    """What the assistant said last, of which the user's words then approve."""
    if exchange.before is None or exchange.typed is None or not replies.is_agreement(exchange.typed.text):
        return []
    found = []
    for sentence in _clauses(exchange.before.text):
        clause = replies.without_reply(sentence)
        proposal = replies.as_proposed(clause)
        states = (
            wording.is_being(clause) or wording.is_rule(clause) or wording.is_decision(clause) or proposal != clause
        )
        if _is_fit(sentence, clause, agreed=True) and states and fact_count(clause) and not wording.is_errand(proposal):
            found.append(clause)
    return found


def _taken(exchange: Exchange) -> list[str]:
    """How the assistant said again what the user wants."""
    first = next(iter(_clauses(_text(exchange.taken))), "")
    clause = replies.without_reply(first)
    return [clause] if replies.restates(first) and _is_fit(first, clause) and fact_count(clause) else []


def _concluded(exchange: Exchange) -> Iterator[_Candidate]:
    """What the assistant told at the end as a summary or a cause, where the user neither refused nor agreed."""
    if exchange.told is None or (exchange.reply is not None and _is_answered(exchange.reply.text)):
        return
    found = []
    before = ""
    for sentence in _clauses(exchange.told.text):
        clause = replies.without_reply(sentence)
        fits = _is_fit(sentence, clause) and fact_count(clause) >= 2 and not wording.points_elsewhere(clause)
        if fits and (replies.restates(sentence) or wording.is_cause(clause) or wording.is_rule(clause)):
            found += [before, clause] if before and replies.restates(sentence) else [clause]
            fits = False
        before = clause if fits else ""
    pieces = _fitting(found, [], [])
    if pieces:
        yield _Candidate(pieces=tuple(pieces), confidence=_TOLD, messages=(exchange.told.message,))


def _is_answered(reply: str) -> bool:
    return replies.is_rejection(reply) or replies.is_agreement(reply)


def _is_fit(sentence: str, clause: str, *, agreed: bool = False) -> bool:
    return (
        _LEAST_WORDS <= len(clause.split()) <= _MOST_WORDS
        and wording.is_claim(sentence, agreed=agreed)
        and not wording.is_about_agents(clause)
        and not wording.is_passing(clause)
        and not wording.dictates(clause)
    )


def _fact(candidate: _Candidate, utterances: Sequence[Utterance]) -> StatedFact | None:
    if _telling(candidate.text) < _LEAST_TELLING - (fact_count(candidate.text) > 1):
        return None
    grounding = ground(candidate.text, utterances, named=candidate.messages)
    if grounding.support < LEAST_SUPPORT or not is_injectable(grounding.origin):
        return None
    return StatedFact(
        text=candidate.text,
        kind=_kind(candidate.text),
        visibility=Visibility.GLOBAL if _is_for_everywhere(candidate.text, grounding.origin) else Visibility.PROJECT,
        confidence=candidate.confidence,
        messages=candidate.messages,
        origin=grounding.origin,
    )


def _kind(text: str) -> Kind:
    kind = guess_kind(text)
    return Kind.DECISION if kind is Kind.FACT and wording.is_decision(text) else kind


def _is_for_everywhere(text: str, origin: Origin) -> bool:
    """Whether users say of themselves how they want to work, or name all of their projects."""
    return origin is Origin.USER and _everywhere().search(text) is not None


@cache
def _everywhere() -> re.Pattern[str]:
    return re.compile(
        r"\b(?:everywhere|(?:in|for|across|of) (?:all|every|any) (?:of )?(?:my |our )?(?:projects?|repos?"
        r"|repositories|machines?)"
        r"|all my (?:projects|repos|repositories|machines)|i (?:always|never|prefer)|überall"
        r"|in allen (?:meinen )?projekten"
        r"|ich (?:bevorzuge|will immer|will nie))\b",
        re.IGNORECASE,
    )


def _asked(text: str) -> bool:
    """Whether somebody ends with a question, or with a choice."""
    said = text.rstrip().rstrip("*_)\"'")
    return said.endswith("?") or _choice().search(said[-200:]) is not None


@cache
def _choice() -> re.Pattern[str]:
    return re.compile(r"\b(?:either|entweder)\b[^.?!]*\b(?:or|oder)\b", re.IGNORECASE)


def _clauses(text: str) -> Iterable[str]:
    """Sentences; also where somebody who writes in small letters ends one with a number."""
    for sentence in sentences(text):
        yield from filter(None, (part.strip() for part in _after_number().split(sentence)))


@cache
def _after_number() -> re.Pattern[str]:
    months = "jan|feb|mär|mar|apr|mai|may|jun|jul|aug|sep|okt|oct|nov|dez|dec"
    return re.compile(rf"(?<=\d\.)\s(?=[a-z]{{2,}})(?!{months})", re.IGNORECASE)


def _telling(text: str) -> int:
    return sum(term.weight == 1.0 for term in analyse_query(text))


def _text(utterance: Utterance | None) -> str:
    return "" if utterance is None else utterance.text
