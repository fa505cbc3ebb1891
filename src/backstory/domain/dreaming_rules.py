"""What is proposed without a model: what somebody plainly stated, as ``statements`` finds it."""

from __future__ import annotations

from backstory.domain.dreaming import Talk
from backstory.domain.proposals import ProposedFact
from backstory.domain.statements import stated


def by_rules(talk: Talk) -> tuple[ProposedFact, ...]:
    """The plain statements of a talk, each with the messages in which it was made."""
    return tuple(
        ProposedFact(
            text=fact.text,
            type=fact.kind.value,
            scope=fact.visibility.value,
            confidence=fact.confidence,
            sources=fact.messages,
        )
        for fact in stated(talk.utterances)
    )
