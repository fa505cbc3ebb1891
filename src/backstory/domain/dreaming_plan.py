"""Which of a model's proposals become edits of memories: the rules of what a dream may touch.

What somebody stated, what a person keeps (pinned, confirmed by the user), and what is disputed is never edited. A claim
against it stands beside it, and both are marked as disputed.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from backstory.domain.admission import TextLimits
from backstory.domain.contradiction import flagged
from backstory.domain.dreaming import Talk
from backstory.domain.dreaming_facts import (
    EVIDENCE_CHARS,
    Fact,
    Found,
    Refusal,
    checked,
    distilled,
    evidence_against,
)
from backstory.domain.dreaming_known import Known, share, words
from backstory.domain.dreaming_lineage import made_from
from backstory.domain.history import Edit
from backstory.domain.ids import MemoryId, ProjectId, SessionId
from backstory.domain.lifecycle import confirm, forget, supersede
from backstory.domain.memory import Active, Memory, Sensitivity, Source, Times, Visibility, starting_weight
from backstory.domain.near_duplicates import Verdict, compare
from backstory.domain.proposals import Proposals, ProposedFact
from backstory.domain.provenance import Origin, Provenance, is_injectable, lowest, trust
from backstory.domain.said_words import is_detail, said_words
from backstory.domain.scope import Viewer, visible
from backstory.domain.succession import succeed
from backstory.domain.truncation import truncate_chars

SPOKEN_OF = 0.5
"""Share of a memory's telling words that the user or the agent must have used before it is dropped on their word."""
ABOUT_THE_SAME = 0.34
"""Share of a new fact's telling words, in the memory and the evidence against it, that makes it the other side."""
MAX_MESSAGES = 20
"""Of the evidence of one memory: an update adds to what is there."""
NO_LONGER_HOLDS = "no longer holds, as was said in a session"


@dataclass(frozen=True, slots=True, kw_only=True)
class Desk:
    """Where and as whom a dream writes. ``made_by`` is the model, or ``rules``; ``new_id`` gives a fresh id, and
    ``offered`` are the memories that the agent was shown in the session."""

    project: ProjectId
    session: SessionId
    now: datetime
    made_by: str
    limits: TextLimits
    new_id: Callable[[], str]
    offered: tuple[Memory, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """The edits of one dream, and how many proposals are not carried out, by reason. A memory stands in at most one
    edit. ``review`` are facts that are kept for a person to look at: what supports them is text from outside."""

    edits: tuple[Edit, ...]
    refused: Mapping[Refusal, int]
    review: int = 0


def planned(
    proposals: Proposals, found: Found, *, shown: Mapping[str, Memory], known: Known, talk: Talk, desk: Desk
) -> Plan:
    """Decide about every proposal. ``shown`` are the memories that the model knew, by the names it knew them by."""
    dream = _Dream(shown, known, talk, desk)
    for fact in found.facts:
        dream.add(fact)
    for memory, fact in found.again:
        dream.confirm(memory, fact)
    for key, text in proposals.update:
        dream.update(key, text, proposals.cited.get(key, ()))
    for key in proposals.delete:
        dream.drop(key)
    for key, evidence in proposals.disputed:
        dream.dispute(key, evidence)
    refused = Counter(dream.refused)
    refused.update(found.refused)
    refused[Refusal.CONTRADICTORY] += len(proposals.contradictory)
    refused[Refusal.UNKNOWN] += proposals.skipped
    refused[Refusal.NEEDS_A_PERSON] += len(proposals.review)
    return Plan(
        edits=(*dream.added.values(), *dream.changed.values()),
        refused={reason: count for reason, count in refused.items() if count},
        review=sum(not is_injectable(edit.after.origin) for edit in dream.added.values()),
    )


class _Dream:
    """The edits that were decided on so far."""

    def __init__(self, shown: Mapping[str, Memory], known: Known, talk: Talk, desk: Desk) -> None:
        self.added: dict[MemoryId, Edit] = {}
        self.changed: dict[MemoryId, Edit] = {}
        self.refused: list[Refusal] = []
        self._shown = shown
        self._known = known
        self._talk = talk
        self._desk = desk

    def add(self, fact: Fact) -> Memory:
        memory = _memory(fact, self._desk)
        self.added[memory.id] = Edit(before=None, after=memory)
        return memory

    def confirm(self, memory: Memory, fact: Fact) -> None:
        """The user said again what had been distilled; what somebody stated needs no confirmation by a dream."""
        if memory.id not in self.changed and is_ours(memory, distilled(fact.origin), self._desk):
            self._change(memory, confirm(memory, now=self._desk.now))

    def update(self, key: str, text: str, sources: Sequence[str]) -> None:
        old = self._open(key)
        fact = checked(ProposedFact(text=text, sources=tuple(sources)), self._talk, limits=self._desk.limits)
        if old is None or isinstance(fact, Refusal):
            self.refused += [fact] if isinstance(fact, Refusal) else []
        elif said_words(fact.text) == said_words(old.content):
            self.refused.append(Refusal.KNOWN)
        elif not is_ours(old, fact.stored_origin, self._desk):
            self._stand_against(old, fact)
        elif old.visibility is Visibility.GLOBAL and fact.origin is not Origin.USER:
            self.refused.append(Refusal.OUTRANKED)
        elif is_rewording(old.content, fact.text):
            self._reword(old, fact)
        else:
            self._replace(old, fact)

    def drop(self, key: str) -> None:
        """What no longer holds goes, if it was distilled, and if the user or the agent spoke of it at all."""
        old = self._open(key)
        if old is None:
            return
        said = words("\n".join(utterance.text for utterance in self._talk.trusted()))
        if not is_ours(old, Origin.AGENT, self._desk) or old.visibility is Visibility.GLOBAL:
            self.refused.append(Refusal.OUTRANKED)
        elif share(old.content, said) < SPOKEN_OF:
            self.refused.append(Refusal.UNSUPPORTED)
        else:
            self._change(old, forget(old, now=self._desk.now, reason=NO_LONGER_HOLDS))

    def dispute(self, key: str, evidence: str) -> None:
        old = self._open(key)
        shown = None if old is None else evidence_against(evidence, self._talk)
        if old is not None and shown is None:
            self.refused.append(Refusal.UNSUPPORTED)
        elif old is not None and shown is not None:
            self._flag(old, shown, against=self._other_side(old, shown))

    def _open(self, key: str) -> Memory | None:
        """The memory of that name, if it can still be decided about in this dream."""
        memory = self._shown.get(key)
        if memory is None:
            self.refused.append(Refusal.UNKNOWN)
        elif memory.id in self.changed:
            self.refused.append(Refusal.CONTRADICTORY)
        elif not isinstance(memory.status, Active):
            self.refused.append(Refusal.DISPUTED)
        elif memory.sensitivity is not Sensitivity.NORMAL or not _is_here(memory, self._desk):
            self.refused.append(Refusal.OUTRANKED)
        else:
            return memory
        return None

    def _stand_against(self, old: Memory, fact: Fact) -> None:
        """What contradicts a statement is kept beside it, and the statement marked; unless outside text says so."""
        if not is_injectable(fact.origin):
            self.refused.append(Refusal.OUTRANKED)
            return
        same = self._known.repeated(fact.text, said_at=fact.said_at, origin=fact.origin)
        new = next((edit.after for edit in self.added.values() if _same(edit.after.content, fact.text)), None)
        if same is None and new is None:
            new = self.add(replace(fact, kind=old.kind, wide=old.visibility is Visibility.GLOBAL))
        other = new or same
        self._flag(old, truncate_chars(fact.text, EVIDENCE_CHARS), against=None if other is None else other.id)

    def _flag(self, old: Memory, evidence: str, *, against: MemoryId | None) -> None:
        """Mark a statement as disputed, and what the dream adds against it: neither is believed alone."""
        now = self._desk.now
        self._change(old, flagged(old, evidence=evidence, against=against, now=now))
        if against in self.added:
            new = flagged(self.added[against].after, evidence=old.content, against=old.id, now=now)
            self.added[against] = Edit(before=None, after=new)

    def _other_side(self, old: Memory, evidence: str) -> MemoryId | None:
        """The new fact that says what the evidence says, if there is one."""
        said = words(f"{evidence}\n{old.content}")
        sides = [edit.after for edit in self.added.values() if is_injectable(edit.after.origin)]
        best = max(sides, key=lambda memory: share(memory.content, said), default=None)
        return best.id if best is not None and share(best.content, said) >= ABOUT_THE_SAME else None

    def _reword(self, old: Memory, fact: Fact) -> None:
        """The same statement in more or better words: it stays the memory that it is."""
        known = dict.fromkeys((*old.provenance.messages, *fact.messages))
        after = replace(
            confirm(old, now=self._desk.now) if fact.origin is Origin.USER else old,
            content=fact.text,
            origin=lowest((old.origin, fact.stored_origin)),
            provenance=replace(old.provenance, messages=tuple(known)[-MAX_MESSAGES:], extracted_at=self._desk.now),
        )
        if self._known.repeated(fact.text, said_at=fact.said_at, origin=fact.origin) is not None:
            self.refused.append(Refusal.KNOWN)
            return
        self._change(old, replace(after, times=replace(after.times, updated=self._desk.now)))

    def _replace(self, old: Memory, fact: Fact) -> None:
        """Another statement takes its place; what held before is kept as superseded."""
        if self._known.repeated(fact.text, said_at=fact.said_at, origin=fact.origin) is not None:
            self.refused.append(Refusal.KNOWN)
            return
        same = next((edit.after for edit in self.added.values() if _same(edit.after.content, fact.text)), None)
        new = same or _memory(replace(fact, kind=old.kind), self._desk)
        now = self._desk.now
        new = succeed(new, old, visibility=None, lifetime_named=False, otherwise_until=now + timedelta(days=1))
        self.added[new.id] = Edit(before=None, after=new)
        self._change(old, supersede(old, by=new.id, now=now))

    def _change(self, before: Memory, after: Memory) -> None:
        self.changed[before.id] = Edit(before=before, after=after)


def is_ours(memory: Memory, origin: Origin, desk: Desk) -> bool:
    """Whether a dream that speaks with ``origin`` may change a memory: one that was distilled itself, is here, open,
    neither pinned nor disputed, and no more trusted."""
    return (
        memory.source is Source.DREAMED
        and isinstance(memory.status, Active)
        and memory.sensitivity is Sensitivity.NORMAL
        and not memory.pinned
        and _is_here(memory, desk)
        and trust(memory.origin) <= trust(origin)
    )


def is_rewording(old: str, new: str) -> bool:
    """Whether a text says what the old one said, in other or more words: every number, name and path is still in it."""
    if compare(old, new).verdict is Verdict.DIFFERENT:
        return False
    details = {word for word in said_words(old) if is_detail(word)}
    return details <= set(said_words(new))


def _is_here(memory: Memory, desk: Desk) -> bool:
    return visible(memory, Viewer(project=desk.project, session=desk.session))


def _same(one: str, other: str) -> bool:
    return said_words(one) == said_words(other)


def _memory(fact: Fact, desk: Desk) -> Memory:
    return Memory(
        id=MemoryId(desk.new_id()),
        content=fact.text,
        kind=fact.kind,
        visibility=fact.visibility,
        project=desk.project,
        session=desk.session,
        origin=fact.stored_origin,
        source=Source.DREAMED,
        confidence=fact.confidence,
        weight=starting_weight(Source.DREAMED),
        provenance=Provenance(
            session=desk.session,
            messages=fact.messages[-MAX_MESSAGES:],
            derived_from=made_from(fact.text, fact.origin, desk.offered),
            agent=desk.made_by,
            extracted_at=desk.now,
        ),
        times=Times(learned=desk.now, updated=desk.now, confirmed=desk.now),
    )
