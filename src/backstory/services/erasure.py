"""Erase for good: what would go, doing it, proving it by a search of all bytes, and a receipt without a word of it.

Secrets that got in before today's rules are looked for in ``secrets_sweep.py``; hiding a memory that may come back is
``Remember.forget``.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace

from backstory.domain.erasure import (
    ERASED,
    ERASED_REASON,
    MIN_ASKED_CHARS,
    Rewrite,
    asked_eraser_of,
    eraser_of,
    is_erased,
    size,
)
from backstory.domain.erasure_encodings import forms_of
from backstory.domain.history import Author
from backstory.domain.ids import ChangeId, MemoryId
from backstory.domain.memory import Deleted, Memory
from backstory.domain.scope import Audience, Viewer
from backstory.domain.selection import EVERY_STATE, Selection
from backstory.errors import ASK_A_PERSON, InputError, OutOfScope, StoreUnavailable
from backstory.ports.backend import Backend
from backstory.ports.erasing import Cleaned, Eraser, Erasure, Found, Progress, Receipt, Trace
from backstory.ports.system import Clock, IdSource
from backstory.services.reference import Reference
from backstory.services.remember import Remember

_MANY = 1_000_000
_QUOTES = 20
_RECEIPTS = 1000
_BESIDE_CHARS = 40

ELSEWHERE = (
    "backups and exports that were made to other places, and clones of either: what is brought back from one is back",
    "what was sent to a model's provider, and OpenCode's own record of its sessions",
)
"""Where nothing of ours can reach, whatever the store."""

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class Quote:
    """A few words around something that would go. For a person only."""

    place: str
    where: str
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What an erasure would do. ``memories`` go as a whole; ``texts`` are what is taken out wherever it stands: every
    text that they ever had, and the one that was asked for. ``places`` counts the other texts that hold one of them,
    ``quotes`` shows some. ``derived`` were made from the memories, and stay where they do not quote them."""

    memories: tuple[Memory, ...]
    texts: tuple[str, ...]
    asked: str | None
    places: dict[str, int]
    quotes: tuple[Quote, ...]
    derived: tuple[Memory, ...]

    @property
    def is_empty(self) -> bool:
        """Whether nothing in the store would change."""
        return not self.places and all(is_erased(memory) for memory in self.memories)


class Erasing:
    """Every call raises StoreUnavailable where the store cannot erase, OutOfScope for whoever is not a person."""

    def __init__(
        self, backend: Backend, reference: Reference, remember: Remember, *, clock: Clock, ids: IdSource
    ) -> None:
        self._backend = backend
        self._reference = reference
        self._remember = remember
        self._clock = clock
        self._ids = ids

    async def plan(
        self, refs: Sequence[str], *, text: str | None, viewer: Viewer, progress: Progress | None = None
    ) -> Plan:
        """What would go. Changes nothing. Raises InputError for a text that is too short or is nothing but our mark,
        NotFound and OutOfScope as ``Reference``; forgotten memories are found too, by number or id."""
        _check_person(viewer)
        asked = None if text is None else _checked(text)
        if not refs and asked is None:
            raise InputError("nothing is named", field="ref", hint="name memories, or give --text")
        memories = {memory.id: memory for memory in [await self._named(ref, viewer) for ref in refs]}
        texts = [text for memory in memories.values() for text in await self._texts_of(memory)]
        rewrite = _rewrite(texts, asked)
        counts: Counter[str] = Counter()
        quotes: list[Quote] = []
        whole: list[MemoryId] = []

        def told(found: Found) -> None:
            if found.place == "memories" and found.where in memories:
                return
            if found.place == "memories" and found.after.strip() == ERASED:
                whole.append(MemoryId(found.where))
            counts[found.place] += 1
            if len(quotes) < _QUOTES:
                quotes.append(Quote(place=found.place, where=found.where, text=around(found.before, found.after)))

        await self._eraser.look(rewrite, told, progress=progress)
        memories |= await self._backend.memories.get(whole)
        return Plan(
            memories=tuple(memories.values()),
            texts=tuple(texts),
            asked=asked,
            places=dict(counts),
            quotes=tuple(quotes),
            derived=await self._derived_from(set(memories), viewer),
        )

    async def erase(
        self, plan: Plan, *, viewer: Viewer, author: Author, copies: bool = False, progress: Progress | None = None
    ) -> Receipt | None:
        """Do it; None where there was nothing to do, and none of it was found in the bytes either.

        What it had replaced becomes current again first, as when it is forgotten. Killed at any moment, the same call
        or ``finish`` does the rest. ``copies`` removes the copies of the store that are known.
        """
        _check_person(viewer, author)
        current = [memory.id for memory in plan.memories if not isinstance(memory.status, Deleted)]
        if current:
            await self._remember.forget(current, viewer=viewer, author=author)
        erasure = Erasure(
            id=ChangeId(self._ids.new_id()),
            at=self._clock.now(),
            memories=tuple(memory.id for memory in plan.memories),
            rewrite=_rewrite(plan.texts, plan.asked),
            reason=ERASED_REASON,
        )
        places = await self._eraser.erase(erasure, progress=progress)
        cleaned = await self._eraser.clean(copies=copies)
        texts = [text for text in (*plan.texts, plan.asked) if text]
        traces = await self._eraser.scan(texts) if texts else []
        if not places and not traces:
            await self._settle(cleaned)
            return None
        receipt = Receipt(
            id=erasure.id,
            at=erasure.at,
            reason=erasure.reason,
            memories=erasure.memories,
            places=places,
            remains=(*what_remains(cleaned), *_said_otherwise(plan)),
            traces=tuple(traces),
            forms=forms_of(texts),
            finished=cleaned.finished,
        )
        await self._eraser.note(receipt)
        await self._settle(cleaned)
        log.info("event=erased id=%s memories=%d traces=%d", receipt.id, len(receipt.memories), len(traces))
        return receipt

    async def finish(self, *, viewer: Viewer, copies: bool = False) -> list[Receipt]:
        """Clean up what erasures have left that were killed or had to wait for others; their receipts as they are
        now. Nothing is done where there are none, unless ``copies`` are to be removed."""
        _check_person(viewer)
        waiting = [receipt for receipt in await self._eraser.receipts(limit=_RECEIPTS) if not receipt.finished]
        if not waiting and not copies:
            return []
        return await self._settle(await self._eraser.clean(copies=copies))

    async def receipts(self, *, viewer: Viewer, limit: int = _RECEIPTS) -> list[Receipt]:
        """What was erased, newest first."""
        _check_person(viewer)
        return await self._eraser.receipts(limit=limit)

    async def _settle(self, cleaned: Cleaned) -> list[Receipt]:
        """Note in every receipt that waits for it how far the cleaning came."""
        settled = []
        for receipt in await self._eraser.receipts(limit=_RECEIPTS):
            if not receipt.finished:
                now = _settled(receipt, cleaned)
                await self._eraser.note(now)
                settled.append(now)
        return settled

    async def _named(self, ref: str, viewer: Viewer) -> Memory:
        memory = await self._reference.find(ref, viewer, field="ref", deleted=True)
        self._reference.check_changeable(memory, viewer)
        return memory

    async def _texts_of(self, memory: Memory) -> list[str]:
        """Every text that a memory has and had."""
        texts = [] if is_erased(memory) else [memory.content]
        for change in await self._backend.memories.history(memory=memory.id, limit=_MANY):
            for edit in change.edits:
                states = [edit.after] if edit.before is None else [edit.before, edit.after]
                texts += [state.content for state in states if state.id == memory.id and not is_erased(state)]
        return list(dict.fromkeys(texts))

    async def _derived_from(self, erased: set[MemoryId], viewer: Viewer) -> tuple[Memory, ...]:
        wide, now, states = replace(viewer, all_projects=True), self._clock.now(), EVERY_STATE - {"deleted"}
        found: dict[MemoryId, Memory] = {}
        for memory_id in sorted(erased):
            selection = Selection(viewer=wide, now=now, states=states, derived_from=memory_id)
            found |= {memory.id: memory for memory in await self._backend.memories.select(selection, limit=_MANY)}
        return tuple(memory for memory in found.values() if memory.id not in erased)

    @property
    def _eraser(self) -> Eraser:
        return eraser_in(self._backend)


def eraser_in(backend: Backend) -> Eraser:
    """The eraser of a store. Raises StoreUnavailable where it has none."""
    if backend.eraser is None:
        name = backend.memories.capabilities.name
        raise StoreUnavailable(f"the store `{name}` cannot erase and prove it; `forget` hides a memory")
    return backend.eraser


def what_remains(cleaned: Cleaned) -> tuple[str, ...]:
    """Where it may still be after a cleaning, in sentences; copies by name."""
    copies = tuple(f"the copy {copy}; `--backups` removes it" for copy in cleaned.copies)
    return (*copies, *cleaned.remains, *ELSEWHERE)


def clean_of_traces(receipt: Receipt) -> bool:
    """Whether the store's own bytes were searched and nothing was found, copies that are named apart."""
    return receipt.finished and not own_traces(receipt)


def own_traces(receipt: Receipt) -> list[Trace]:
    """What was found in the store itself, not in copies of it."""
    return [trace for trace in receipt.traces or () if not trace.beside]


def around(before: str, after: str) -> str:
    """A few characters around the first place where two texts differ, on one line, as it was before."""
    at = next((n for n, (a, b) in enumerate(zip(before, after, strict=False)) if a != b), min(len(before), len(after)))
    start, end = max(0, at - _BESIDE_CHARS), at + 2 * _BESIDE_CHARS
    cut = " ".join(before[start:end].split())
    return f"{'…' if start else ''}{cut}{'…' if end < len(before) else ''}"


def _settled(receipt: Receipt, cleaned: Cleaned) -> Receipt:
    """A receipt after another cleaning. Where that is finished, what a search had found before it is no news any more,
    and nobody knows what to search for again."""
    is_old_news = cleaned.finished and bool(receipt.traces)
    last = ELSEWHERE[-1]
    after = receipt.remains.index(last) + 1 if last in receipt.remains else len(receipt.remains)
    return replace(
        receipt,
        finished=cleaned.finished,
        remains=(*what_remains(cleaned), *receipt.remains[after:]),
        traces=None if is_old_news else receipt.traces,
        forms=() if is_old_news else receipt.forms,
    )


def _said_otherwise(plan: Plan) -> tuple[str, ...]:
    """What nobody can find by its words: what a memory was made from, and what was made from it."""
    told = []
    sessions = {m.provenance.session: None for m in plan.memories if m.provenance.session and m.provenance.messages}
    for session in sessions:
        told.append(f"session {session}, if it was said there in other words; `backstory session {session}` shows it")
    for memory in plan.derived:
        told.append(f"#{memory.n}, which was derived from it in other words; `backstory show {memory.n}` shows it")
    return tuple(told)


def _rewrite(texts: Sequence[str], asked: str | None) -> Rewrite:
    of_memories = eraser_of(texts)
    if asked is None:
        return of_memories
    of_asked = asked_eraser_of(asked)
    return lambda text: of_asked(of_memories(text))


def _checked(text: str) -> str:
    if size(text) < MIN_ASKED_CHARS:
        raise InputError(
            f"the text has {size(text)} characters, without stops at its end; it would be taken out wherever it "
            f"stands, so at least {MIN_ASKED_CHARS} are needed",
            field="text",
        )
    if text.strip().casefold() in ERASED:
        raise InputError("that is what stands in the place of erased texts", field="text")
    return text


def _check_person(viewer: Viewer, author: Author = Author.USER) -> None:
    if viewer.audience is not Audience.PERSON or author is not Author.USER:
        raise OutOfScope("only a person at the command line can erase for good", hint=ASK_A_PERSON)
