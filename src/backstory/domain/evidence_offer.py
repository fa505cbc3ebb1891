"""What was said earlier and may be quoted beside a prompt that asked for nothing: the gate for evidence.

The prompt's form is judged in ``evidence_asked.py``; the signs are read in ``evidence_signs.py``.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from backstory.domain.conversation import Role
from backstory.domain.evidence import BY_WORDS, WITH_MEANING, explain_evidence, score_messages
from backstory.domain.evidence_passages import EvidencePassage, PassageNumber
from backstory.domain.evidence_signs import PassageSigns
from backstory.domain.ids import MessageId
from backstory.domain.memory import Memory
from backstory.domain.provenance import Origin
from backstory.domain.small_talk import SMALL_TALK
from backstory.domain.text import QueryTerm, analyse_query, normalise

MOST_OFFERED = 3
QUOTED = "quoted instead: "
NOTHING_SAID = "no earlier session here holds any of its words"
_TELLING = 3
_SOURCE = r"message (.+?) of session .+? \(\d+% sure"


@dataclass(frozen=True, slots=True, kw_only=True)
class OfferGate:
    """A logistic model: what each sign of a passage adds to the log-odds that it answers, and how sure one must be.

    ``brevity`` weighs how far the prompt falls short of five words that are more than small talk: a logarithm, at most
    0. Others are quoted beside the best that reach the share ``beside_best`` of its score: the first answers 30 % of
    the labelled questions, one of three 70 %.
    """

    start: float
    near: float = 0.0
    coverage: float = 0.0
    session_words: float = 0.0
    together: float = 0.0
    brevity: float = 0.0
    sure: float
    beside_best: float = 0.6


# Fitted by ``python -m bench fit-offer`` and rounded; the method and the figures are in docs/adr/0012.
GATE_WITH_MEANING = OfferGate(start=-6.5, near=9.9, coverage=4.1, together=3.6, brevity=1.0, sure=0.4)
GATE_BY_WORDS = OfferGate(start=-5.2, coverage=4.3, session_words=3.0, together=2.9, brevity=1.9, sure=0.5)
ENOUGH_WORDS = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class OfferedPassage:
    """A passage to be quoted, how sure the gate is that it answers (0 to 1), and why."""

    passage: EvidencePassage
    confidence: float
    reasons: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class EvidenceOffer:
    """Passages to be quoted, best first; or none and why."""

    passages: tuple[OfferedPassage, ...] = ()
    silent_because: str | None = None


def is_quotable(passage: EvidencePassage) -> bool:
    """Whether a passage may be quoted unasked: a user's or the assistant's own words.

    Not what a tool gave, what was merely thought, or what stands in a sub-agent's session, where no user speaks.
    """
    return passage.kind == "text" and passage.role in (Role.USER, Role.ASSISTANT) and not passage.by_sub_agent


def repeats(message: MessageId, text: str, memories: Iterable[Memory]) -> bool:
    """Whether a message is where one of the memories comes from, or its text says one in the same words.

    A file may claim any message as the source of what it brings, and that a single letter is private: of a memory from
    elsewhere only a statement of ``_TELLING`` words or more counts.
    """
    said = normalise(text)
    return any(_repeats(message, said, memory) for memory in memories)


def _repeats(message: MessageId, said: str, memory: Memory) -> bool:
    is_said = normalise(memory.content) in said
    if memory.origin in (Origin.IMPORTED, Origin.PEER):
        return is_said and sum(term.weight == 1.0 for term in analyse_query(memory.content)) >= _TELLING
    return is_said or message in memory.provenance.messages


def told_quotes(items: Sequence[OfferedPassage]) -> str:
    """What is kept beside a block of quotes: where each is from, how sure it is, and why; ``quoted_messages`` reads
    it."""
    told = (
        f"message {item.passage.message} of session {item.passage.session} "
        f"({item.confidence:.0%} sure, {', '.join(item.reasons)})"
        for item in items
    )
    return f"{QUOTED}{'; '.join(told)}"


def quoted_messages(told: str | None) -> list[MessageId]:
    """The messages that a block quotes, from what is kept beside it (``told_quotes``); none where it quotes none."""
    _, quoted, sources = (told or "").partition(QUOTED)
    return [MessageId(name) for name in re.findall(_SOURCE, sources)] if quoted else []


def offer(
    terms: Sequence[QueryTerm], signs: Sequence[PassageSigns], passages: Mapping[PassageNumber, EvidencePassage]
) -> EvidenceOffer:
    """Let through what surely answers. ``terms`` are the prompt's; ``signs`` those of ``passages``, in the order of the
    sessions. The gate judges the best message; at most ``MOST_OFFERED`` are quoted, none of them left far behind."""
    if not signs:
        return EvidenceOffer(silent_because=NOTHING_SAID)
    with_meaning = any(sign.cosine is not None for sign in signs)
    gate = GATE_WITH_MEANING if with_meaning else GATE_BY_WORDS
    scores = score_messages(signs, WITH_MEANING if with_meaning else BY_WORDS)
    best, brevity = scores[0], brevity_of(terms)
    sure = confidence(best.best, gate, brevity=brevity)
    if sure < gate.sure:
        return EvidenceOffer(silent_because=_too_weak(best.best, sure, gate))
    near = [score.best for score in scores if score.total >= gate.beside_best * best.total]
    return EvidenceOffer(
        passages=tuple(
            OfferedPassage(
                passage=passages[sign.passage],
                confidence=confidence(sign, gate, brevity=brevity),
                reasons=explain_evidence(sign),
            )
            for sign in near[:MOST_OFFERED]
        )
    )


def confidence(signs: PassageSigns, gate: OfferGate, *, brevity: float) -> float:
    """How likely a passage with these signs answers, in [0, 1]. One that shares only small talk does not."""
    if not signs.telling:
        return 0.0
    odds = (
        gate.start
        + gate.near * (signs.cosine or 0.0)
        + gate.coverage * signs.coverage
        + gate.session_words * signs.session_words
        + gate.together * signs.together
        + gate.brevity * brevity
    )
    return 1.0 / (1.0 + math.exp(-odds))


def brevity_of(terms: Sequence[QueryTerm]) -> float:
    """How far a prompt falls short of ``ENOUGH_WORDS`` that ask for something: 0 or less."""
    asked = sum(term.weight for term in terms if term.token not in SMALL_TALK)
    return math.log((1.0 + min(asked, ENOUGH_WORDS)) / (1.0 + ENOUGH_WORDS))


def _too_weak(best: PassageSigns, sure: float, gate: OfferGate) -> str:
    near = "" if best.cosine is None else f"meaning {best.cosine:.2f}, "
    return (
        f"what was said earlier is too far: {near}{best.coverage:.0%} of the words;"
        f" {sure:.0%} sure (needed {gate.sure:.0%})"
    )
