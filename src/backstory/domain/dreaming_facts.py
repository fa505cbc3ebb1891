"""What a model, or a rule, says was said, held against what was said: facts with their evidence, or nothing.

A fact is as trustworthy as the least trusted of what supports it, and never more than the agent that distilled it.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from enum import StrEnum

from backstory.domain.admission import TextLimits, admit, admit_evidence
from backstory.domain.dreaming import Talk
from backstory.domain.dreaming_known import Known
from backstory.domain.echo import strip_injected
from backstory.domain.grounding import LEAST_SUPPORT, Grounding, ground
from backstory.domain.ids import MessageId
from backstory.domain.memory import Kind, Memory, Visibility
from backstory.domain.proposals import ProposedFact
from backstory.domain.provenance import Origin, is_injectable, lowest, trust
from backstory.domain.said_words import said_words
from backstory.domain.statements.objections import objection
from backstory.domain.truncation import truncate_chars
from backstory.errors import InputError

MAX_FACT_CHARS = 600
"""A longer text is no single statement; blocks would cut it."""
MAX_FACTS = 40
"""New ones of one stretch: a few thousand words that hold more were copied, not distilled."""
EVIDENCE_CHARS = 500
DEFAULT_CONFIDENCE = 0.7
"""Of a fact whose confidence the model does not tell."""


class Refusal(StrEnum):
    """Why a proposal is not carried out."""

    UNSUPPORTED = "not said"
    KNOWN = "known already"
    UNFIT = "no statement that can be kept"
    OUTRANKED = "stated by somebody, or kept by a person"
    DISPUTED = "disputed already"
    CONTRADICTORY = "asked for twice, differently"
    UNKNOWN = "about a memory that was not shown"
    NEEDS_A_PERSON = "would leave nothing of what is known"
    TOO_MANY = "too many at once"


@dataclass(frozen=True, slots=True, kw_only=True)
class Fact:
    """A statement with its evidence. ``origin`` is that of what supports it, the user's own words included; ``said_at``
    is when the newest of ``messages`` was said."""

    text: str
    kind: Kind
    wide: bool
    confidence: float
    origin: Origin
    messages: tuple[MessageId, ...]
    said_at: datetime

    @property
    def visibility(self) -> Visibility:
        """Everywhere only where it was wanted so, and the user said it."""
        return Visibility.GLOBAL if self.wide and self.origin is Origin.USER else Visibility.PROJECT

    @property
    def stored_origin(self) -> Origin:
        """The origin under which it is kept: whoever distils is an agent."""
        return distilled(self.origin)


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """The facts among some proposals; ``again`` are memories, and the facts that say them again in a user's words."""

    facts: tuple[Fact, ...]
    again: tuple[tuple[Memory, Fact], ...]
    refused: tuple[Refusal, ...]


def distilled(origin: Origin) -> Origin:
    """What becomes of an origin when an agent distils what was said."""
    return Origin.AGENT if trust(origin) > trust(Origin.AGENT) else origin


def new_facts(proposed: Sequence[ProposedFact], talk: Talk, known: Known, *, limits: TextLimits) -> Found:
    """The proposed facts that were said and are new, each once, in their order.

    One that a memory says already is no fact. Somebody who repeats a memory confirms it only if it is the user: what a
    model says again, it was shown.
    """
    facts: list[Fact] = []
    again: list[tuple[Memory, Fact]] = []
    refused: list[Refusal] = []
    seen: set[tuple[str, ...]] = set()
    for proposal in proposed:
        fact = checked(proposal, talk, limits=limits)
        if isinstance(fact, Refusal):
            refused.append(fact)
        elif (memory := known.repeated(fact.text, said_at=fact.said_at, origin=fact.origin)) is not None:
            refused.append(Refusal.KNOWN)
            again += [(memory, fact)] if fact.origin is Origin.USER else []
        elif said_words(fact.text) in seen:
            refused.append(Refusal.KNOWN)
        elif len(facts) >= MAX_FACTS:
            refused.append(Refusal.TOO_MANY)
        else:
            seen.add(said_words(fact.text))
            facts.append(fact)
    return Found(facts=tuple(facts), again=tuple(again), refused=tuple(refused))


def checked(proposal: ProposedFact, talk: Talk, *, limits: TextLimits) -> Fact | Refusal:
    """A proposal as a fact with its evidence, or why it is none: nobody said it, or it cannot be kept."""
    text = _admitted(proposal.text, limits)
    if text is None or not said_words(text):
        return Refusal.UNFIT
    evidence = grounded(text, talk, talk.named(proposal.sources))
    if evidence is None:
        return Refusal.UNSUPPORTED
    if is_injectable(evidence.origin) and objection(text, talk.utterances) is not None:
        return Refusal.UNFIT
    return Fact(
        text=text,
        kind=proposal.kind(),
        wide=proposal.visibility(Visibility.PROJECT) is Visibility.GLOBAL,
        confidence=DEFAULT_CONFIDENCE if proposal.confidence is None else proposal.confidence,
        origin=evidence.origin,
        messages=evidence.messages,
        said_at=_said_at(evidence, talk),
    )


def grounded(text: str, talk: Talk, named: Collection[MessageId] = ()) -> Grounding | None:
    """What a text rests on in a stretch; None where it was not said there.

    Its origin is no better than what the whole session makes of it: what the agent says now, a tool may have said long
    before.
    """
    found = ground(text, talk.utterances, named=named)
    if found.support < LEAST_SUPPORT:
        return None
    if not talk.earlier:
        return found
    whole = ground(text, (*talk.earlier, *talk.utterances), named=found.messages)
    return replace(found, origin=lowest((found.origin, whole.origin)))


def evidence_against(text: str, talk: Talk) -> str | None:
    """A model's evidence against a memory, fit to be kept; None unless the user or the agent said so themselves."""
    cleaned = " ".join(admit_evidence(strip_injected(text)).split())
    found = grounded(cleaned, talk) if cleaned else None
    if found is None or not is_injectable(found.origin):
        return None
    return truncate_chars(cleaned, EVIDENCE_CHARS)


def _admitted(text: str, limits: TextLimits) -> str | None:
    """The text on one line, cleaned and masked; None where it cannot be kept."""
    line = " ".join(strip_injected(text).split())
    try:
        admitted = admit(line, limits=limits)
    except InputError:
        return None
    fits = len(admitted.text) <= MAX_FACT_CHARS and not admitted.secrets
    return admitted.text if fits else None


def _said_at(evidence: Grounding, talk: Talk) -> datetime:
    named = frozenset(evidence.messages)
    at = [utterance.at for utterance in talk.utterances if utterance.message in named or not named]
    return max(at)
