"""Memories that disagree: list them with their evidence, flag them, and settle which of them holds."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import assert_never

from backstory.domain.admission import TextLimits, admit
from backstory.domain.change_plan import ChangePlan
from backstory.domain.contradiction import contradicts, flagged, may_question, resolved
from backstory.domain.conversation import typed_text
from backstory.domain.draft import Draft, as_reason, as_successor, memory_from
from backstory.domain.history import Action, Author, Change, Edit
from backstory.domain.ids import ChangeId, MemoryId
from backstory.domain.lifecycle import supersede
from backstory.domain.memory import Conflicted, Memory, stricter
from backstory.domain.provenance import Origin
from backstory.domain.restatement import is_current, readers, said_again
from backstory.domain.scope import Viewer, may_change, visible
from backstory.domain.selection import Selection
from backstory.domain.settlement import KeepBoth, KeepThis, SayInstead, Settlement, check_may_decide, keep_one
from backstory.domain.source_sentence import sentence_about
from backstory.domain.statement_form import statement_form
from backstory.errors import InputError, OutOfScope
from backstory.ports.backend import Backend
from backstory.ports.system import Clock, IdSource
from backstory.services.reference import Reference
from backstory.services.repercussions import Repercussions
from backstory.services.said_once import known_as
from backstory.services.source import source_of

MOST_LISTED = 1000


@dataclass(frozen=True, slots=True, kw_only=True)
class Side:
    """One side of a conflict: the memory, and the sentence that it comes from, where that is known: in which session
    it was said and when."""

    memory: Memory
    sentence: str | None = None
    session: str | None = None
    at: datetime | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenConflict:
    """Two memories that disagree, the newer first; or one that its evidence speaks against (``other`` None).

    ``evidence`` is in what they differ, from the first one's side, or what became of what it was made from.
    """

    one: Side
    other: Side | None
    evidence: str
    since: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Settled:
    """What settling did, or would do where ``change`` is None."""

    edits: tuple[Edit, ...]
    change: Change | None


class Conflicts:
    """Disagreements between memories, and decisions about them."""

    def __init__(
        self, backend: Backend, reference: Reference, *, clock: Clock, ids: IdSource, limits: TextLimits
    ) -> None:
        self._backend = backend
        self._store = backend.memories
        self._reference = reference
        self._repercussions = Repercussions(backend.memories, backend.text)
        self._clock = clock
        self._ids = ids
        self._limits = limits

    async def conflicts(self, viewer: Viewer, *, limit: int = 50) -> list[OpenConflict]:
        """What is in conflict as far as the viewer sees, each pair once, the latest first.

        A side that the viewer may not see is left out; so is one that is not believed any more.
        """
        now = self._clock.now()
        selection = Selection(viewer=viewer, now=now, states=frozenset({"conflicted"}))
        memories = await self._store.select(selection, limit=MOST_LISTED)
        pairs: dict[frozenset[MemoryId], Memory] = {}
        for memory in sorted(memories, key=_since, reverse=True):
            pairs.setdefault(frozenset({memory.id, _against(memory) or memory.id}), memory)
        return [await self._opened(memory, viewer, now) for memory in list(pairs.values())[:limit]]

    async def flag(
        self, ref: str, other: str | None, *, evidence: str, viewer: Viewer, author: Author, reason: str | None = None
    ) -> Change | None:
        """Put two memories in question, ``other`` by ``ref``; or ``ref`` alone, by its evidence.

        None where nothing changes: both are in question already, or somebody decided to keep both. What the user or the
        agent said is not put in question by outside text. Raises as ``Reference.find_changeable``, and InputError for
        memories that are for other readers: flagging would tell some of what only the others may know.
        """
        now, evidence = self._clock.now(), as_reason(evidence) or ""
        one = await self._reference.find_changeable(ref, viewer)
        plan = ChangePlan()
        if other is None:
            plan.plan(one, flagged(one, evidence=evidence, against=None, now=now))
            return await self._commit(Action.CONFLICT, plan, viewer=viewer, author=author, reason=reason)
        against = await self._reference.find_changeable(other, viewer, field="other")
        if one.id == against.id or readers(one) != readers(against):
            raise InputError(f"#{one.n} and #{against.n} are not for the same readers", field="other")
        if await self._repercussions.kept_both(one, against):
            return None
        words = contradicts(one, against)
        told = evidence or (words.told if words else "")
        told_back = evidence or (words.turned.told if words else "")
        if may_question(against.origin, one):
            plan.plan(one, flagged(one, evidence=told, against=against.id, now=now))
        if may_question(one.origin, against):
            plan.plan(against, flagged(against, evidence=told_back, against=one.id, now=now))
        return await self._commit(Action.CONFLICT, plan, viewer=viewer, author=author, reason=reason)

    async def resolve(
        self,
        ref: str,
        settlement: Settlement,
        *,
        viewer: Viewer,
        author: Author,
        reason: str | None = None,
        dry_run: bool = False,
    ) -> Settled:
        """Settle the conflict of a memory, and of all that it is in conflict with; one change.

        Whoever decides confirms what stays: for a person it counts as the user's word from then on. Only a person
        decides against what the user said. Raises as ``Reference.find_changeable``; InputError where there is no
        conflict, or where readers would lose what they know; OutOfScope where it is not theirs to decide.
        """
        now = self._clock.now()
        memory = await self._reference.find_changeable(ref, viewer)
        others = await self._others(memory, viewer, now)
        if not others and not isinstance(memory.status, Conflicted):
            raise InputError(
                f"memory #{memory.n} is in no conflict", field="id", hint="`backstory conflicts` lists them"
            )
        plan = ChangePlan()
        match settlement:
            case KeepThis():
                check_may_decide(others, author)
                keep_one(memory, others, plan, author=author, now=now)
            case KeepBoth():
                if others:  # a guess that stands beside the user's word is no longer questioned by it
                    check_may_decide([memory, *others], author)
                for each in (memory, *others):
                    plan.name(each, replace(resolved(each), times=replace(each.times, confirmed=now)))
            case SayInstead():
                await self._say_instead(settlement, [memory, *others], plan, viewer=viewer, author=author, now=now)
            case _:
                assert_never(settlement)
        await self._repercussions.follow(plan, viewer=viewer, now=now)
        if dry_run:
            return Settled(edits=plan.edits, change=None)
        change = await self._commit(Action.RESOLVE, plan, viewer=viewer, author=author, reason=reason)
        assert change is not None  # a date moves at least
        return Settled(edits=change.edits, change=change)

    async def _say_instead(
        self,
        instead: SayInstead,
        sides: Sequence[Memory],
        plan: ChangePlan,
        *,
        viewer: Viewer,
        author: Author,
        now: datetime,
    ) -> None:
        text = admit(instead.text, field="with", limits=self._limits).text
        said = next((side for side in sides if statement_form(side.content) == statement_form(text)), None)
        if said is not None:
            others = [side for side in sides if side.id != said.id]
            check_may_decide(others, author)
            keep_one(said, others, plan, author=author, now=now)
            return
        check_may_decide(sides, author)
        origin = Origin.USER if author is Author.USER else Origin.AGENT
        provenance = replace(instead.provenance, derived_from=())
        draft = Draft(content=text, origin=origin, kind=sides[0].kind, provenance=provenance)
        new_id = MemoryId(self._ids.new_id())
        new = memory_from(draft, text, memory_id=new_id, viewer=viewer, now=now)
        for side in sides:
            new = replace(
                as_successor(new, side, draft, now=now), sensitivity=stricter(new.sensitivity, side.sensitivity)
            )
        known = await known_as(new, self._store, now=now)
        if known is None:
            plan.add(new)
        else:
            new = known
            plan.plan(known, said_again(known, new, now=now))
        for side in sides:
            plan.plan(side, supersede(side, by=new.id, now=now))

    async def _others(self, memory: Memory, viewer: Viewer, now: datetime) -> list[Memory]:
        """The believed memories that one is in conflict with, whichever of them says so. Raises OutOfScope for one that
        cannot be changed from here."""
        named = _against(memory)
        known = await self._store.get([named]) if named else {}
        selection = Selection(viewer=replace(viewer, all_projects=False), now=now, against=memory.id)
        found = [*known.values(), *await self._store.select(selection, limit=MOST_LISTED)]
        others = {other.id: other for other in found if is_current(other, now)}
        for other in others.values():
            if not may_change(other, viewer):
                raise OutOfScope(f"what #{memory.n} is in conflict with cannot be changed from here")
        return list(others.values())

    async def _opened(self, memory: Memory, viewer: Viewer, now: datetime) -> OpenConflict:
        assert isinstance(memory.status, Conflicted)
        against = memory.status.against
        other = None if against is None else (await self._store.get([against])).get(against)
        if other is not None and not (visible(other, viewer) and is_current(other, now)):
            other = None
        return OpenConflict(
            one=await self._side(memory, viewer),
            other=None if other is None else await self._side(other, viewer),
            evidence=memory.status.evidence,
            since=memory.status.since,
        )

    async def _side(self, memory: Memory, viewer: Viewer) -> Side:
        source = await source_of(memory, self._backend.conversations, viewer)
        for message in source.messages:
            if message.removed_at is None and (said := sentence_about(typed_text(message), memory.content)):
                return Side(memory=memory, sentence=said, session=message.session, at=message.created_at)
        session = None if source.session is None else source.session.id
        return Side(memory=memory, session=session, at=memory.times.learned)

    async def _commit(
        self, action: Action, plan: ChangePlan, *, viewer: Viewer, author: Author, reason: str | None
    ) -> Change | None:
        if not plan.edits:
            return None
        return await self._store.commit(
            Change(
                id=ChangeId(self._ids.new_id()),
                at=self._clock.now(),
                author=author,
                action=action,
                edits=plan.edits,
                reason=as_reason(reason),
                session=viewer.session,
            )
        )


def _against(memory: Memory) -> MemoryId | None:
    return memory.status.against if isinstance(memory.status, Conflicted) else None


def _since(memory: Memory) -> tuple[datetime, int]:
    assert isinstance(memory.status, Conflicted)
    return memory.status.since, memory.n
