"""What leaves the store: stores of another format, each with what came from it, or everything as lines of our own.

What may leave is decided here: nothing local-only, private memories and forgotten ones if a person asks for them.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Container, Coroutine, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol, TypeVar

from backstory.domain.conversation import Message, Session
from backstory.domain.ids import SessionId
from backstory.domain.interchange import IMPORTED_HOST, Keepsake, is_unvouched
from backstory.domain.memory import Memory, Sensitivity
from backstory.domain.scope import Viewer, may_read
from backstory.domain.selection import EVERY_STATE, WITH_SUPERSEDED, Selection, selects
from backstory.ports.backend import Backend
from backstory.ports.formats import Exported, Told
from backstory.ports.store import Order
from backstory.ports.system import Clock
from backstory.services.imported_texts import STORE

PAGE = 500
_ALL = 1 << 31

T = TypeVar("T")


class Run(Protocol):
    """Runs a coroutine to its end; writers are plain functions, and ask for sessions one by one while they write."""

    def __call__(self, coroutine: Coroutine[Any, Any, T], /) -> T: ...  # Any: nothing is sent in, nothing is yielded


@dataclass(frozen=True, slots=True, kw_only=True)
class ExportPolicy:
    """What a person asked for. ``whole_stores``: what came from a store of another product goes back to it whatever
    project it is in; the rest is what the viewer sees."""

    forgotten: bool = False
    private: bool = False
    whole_stores: bool = False

    @property
    def states(self) -> frozenset[str]:
        """The states of memories that are exported."""
        return EVERY_STATE if self.forgotten else WITH_SUPERSEDED | {"expired"}

    def lets_out(self, memory: Memory) -> bool:
        """Whether a memory may leave."""
        if memory.sensitivity is Sensitivity.PRIVATE:
            return self.private
        return memory.sensitivity is Sensitivity.NORMAL


class Exporting:
    """Exports out of one store."""

    def __init__(self, backend: Backend, *, clock: Clock) -> None:
        self._backend = backend
        self._clock = clock

    async def stores(self, format_name: str, viewer: Viewer, policy: ExportPolicy, *, run: Run) -> list[Exported]:
        """What each store of a format is to hold, by label.

        What came from a store goes back to it. All else that the viewer sees goes to the main one: that without a
        label, or the only one. ``run`` is used while a writer reads sessions.
        """
        memories = await self._memories(format_name, viewer, policy)
        keepsakes: defaultdict[str, list[Keepsake]] = defaultdict(list)
        for keepsake in await self._backend.keepsakes.kept(format_name):
            keepsakes[keepsake.store].append(keepsake)
        sessions = await self._sessions(format_name, viewer, policy, keepsakes)
        labels = sorted({*memories, *keepsakes, *sessions} - {None}, key=str)
        main = labels[0] if len(labels) == 1 and labels[0] is not None else ""
        projects = dict(await self._backend.projects.projects())
        found: list[Exported] = []
        for label in sorted({label for label in labels if label is not None} | {main}):
            own = [*memories.get(label, ()), *(memories.get(None, ()) if label == main else ())]
            told = [*sessions.get(label, ()), *(sessions.get(None, ()) if label == main else ())]
            if not (own or told or keepsakes.get(label)):
                continue
            gone = {memory.id for memory in own} | {session.id for session in told}
            beside = [
                one for one in keepsakes.get(label, ()) if goes_along(one, gone, whole_stores=policy.whole_stores)
            ]
            own.sort(key=lambda memory: (memory.times.learned, memory.n))
            kept_back: list[str] = []
            found.append(
                Exported(
                    label=label,
                    memories=own,
                    sessions=self._told(told, format_name, kept_back, run),
                    projects={str(name): project for name, project in projects.items()},
                    keepsakes=beside,
                    kept_back=kept_back,
                )
            )
        return found

    async def _memories(self, format_name: str, viewer: Viewer, policy: ExportPolicy) -> dict[str | None, list[Memory]]:
        """The memories by the label of the store that they came from; None for all others."""
        wide = replace(viewer, all_projects=viewer.all_projects or policy.whole_stores)
        seen = Selection(viewer=viewer, now=self._clock.now(), states=policy.states)
        found: defaultdict[str | None, list[Memory]] = defaultdict(list)
        for memory in await self._select(replace(seen, viewer=wide)):
            if policy.lets_out(memory):
                label = store_of(memory, format_name)
                if label is not None or wide == viewer or selects(seen, memory):
                    found[label].append(memory)
        return found

    async def _select(self, selection: Selection) -> Sequence[Memory]:
        # in one go: between two pages another process could forget a memory, and the next page would skip one
        return await self._backend.memories.select(selection, limit=_ALL, order=Order.OLDEST)

    async def _sessions(
        self, format_name: str, viewer: Viewer, policy: ExportPolicy, keepsakes: dict[str, list[Keepsake]]
    ) -> dict[str | None, list[Session]]:
        """The sessions by the label of their store; None for those that did not come from one of this format."""
        labels = {one.session: label for label, kept in keepsakes.items() for one in kept if one.session is not None}
        found: defaultdict[str | None, list[Session]] = defaultdict(list)
        for session in await self._backend.conversations.sessions(limit=_ALL):
            came = session.host == IMPORTED_HOST + format_name
            if (came and policy.whole_stores) or may_read(session, viewer):
                found[labels.get(session.id, "") if came else None].append(session)
        for sessions in found.values():
            sessions.sort(key=lambda session: (session.created_at, session.id))
        return found

    def _told(self, sessions: Iterable[Session], format_name: str, kept_back: list[str], run: Run) -> Iterator[Told]:
        """The sessions. A digest that nobody vouched for goes back to the product that it came from, and into no other
        one's store: nothing there would say whose words it is."""
        for session in sessions:
            messages = run(self._messages(session.id))
            digest = run(self._backend.digests.digest(session.id))
            if digest is not None and is_unvouched(digest) and session.host != IMPORTED_HOST + format_name:
                kept_back.append(f"the digest of session {session.id}: it came from a file that nobody vouched for")
                digest = None
            yield Told(session=session, messages=messages, digest=digest)

    async def _messages(self, session: SessionId) -> list[Message]:
        found: list[Message] = []
        while page := await self._backend.conversations.messages(session, limit=PAGE, offset=len(found)):
            found += page
        return found


def goes_along(keepsake: Keepsake, gone: Container[str], *, whole_stores: bool) -> bool:
    """Whether a keepsake leaves: one of a memory or a session with that, one of a whole store with all of it."""
    if keepsake.memory is None and keepsake.session is None:
        return whole_stores
    return all(name is None or name in gone for name in (keepsake.memory, keepsake.session))


def store_of(memory: Memory, format_name: str) -> str | None:
    """The label of the store that a memory came from; None where it came from none of that format."""
    source = memory.provenance
    return source.raw.get(STORE, "") if source.origin_system == format_name else None
