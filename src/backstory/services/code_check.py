"""Hold a project's memories against its code: what names something that is gone is to be checked, and is marked so."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from itertools import chain
from pathlib import Path

from backstory.domain.anchor_findings import claims, doubt
from backstory.domain.doubt import Doubt
from backstory.domain.ids import ProjectId
from backstory.domain.memory import Memory, Visibility
from backstory.domain.scope import Audience, Viewer
from backstory.domain.selection import Selection
from backstory.ports.backend import Backend
from backstory.ports.code import CodeAnchors, Looked, Progress
from backstory.ports.system import Clock

ON_REQUEST = timedelta(minutes=2)
"""How long a look may take for a person who waits for it and sees how far it is."""
UNASKED = timedelta(seconds=20)
"""The same beside other work."""
EVERY = timedelta(hours=1)
_PAGE = 2000


@dataclass(frozen=True, slots=True, kw_only=True)
class Doubted:
    """A memory, and why it should be checked."""

    memory: Memory
    doubt: Doubt


@dataclass(frozen=True, slots=True, kw_only=True)
class CodeReport:
    """What a look found: the doubted memories by number, and how many there are in all.

    ``anchored`` are those that name something of a repository; ``undecided`` those for which the time was too short:
    what was known of them stays. ``settled`` had a doubt before and have none now. ``cannot`` and ``notes`` are those
    of ``Looked``.
    """

    doubted: tuple[Doubted, ...] = ()
    memories: int = 0
    anchored: int = 0
    anchors: int = 0
    undecided: int = 0
    settled: int = 0
    cannot: str | None = None
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class _Last:
    at: datetime
    head: str | None


class CodeCheck:
    """Looks for memories of a project that its code has left behind."""

    def __init__(self, backend: Backend, code: CodeAnchors, *, clock: Clock) -> None:
        self._backend = backend
        self._code = code
        self._clock = clock
        self._last: dict[ProjectId, _Last] = {}

    async def check(
        self, project: ProjectId, folder: Path, *, within: timedelta = ON_REQUEST, dry_run: bool = False,
        progress: Progress | None = None,
    ) -> CodeReport:  # fmt: skip
        """Hold the current memories of a project against the checkout around ``folder``, and keep what is doubted.

        Memories that hold everywhere are left alone: they may name things of any repository. Nothing is kept with
        ``dry_run``. Doubts whose reason is gone go.
        """
        memories = await self._memories(project)
        claimed = {memory.id: claims(memory) for memory in memories}
        asked = tuple(dict.fromkeys(chain.from_iterable(claimed.values())))
        looked = await self._code.look(folder, asked, within=within, progress=progress) if asked else Looked()
        now = self._clock.now()
        decided = {key for key, its in claimed.items() if looked.undecided.isdisjoint(its)}
        found = {key: said for key in decided if (said := doubt(key, claimed[key], looked.findings, now=now))}
        before = await self._backend.doubts.doubts(list(claimed))
        kept = {key: _lasting(said, before.get(key)) for key, said in found.items()}
        if not dry_run and (kept or not decided.isdisjoint(before)):
            await self._backend.doubts.replace(sorted(decided), list(kept.values()))
        known = {key: said for key, said in before.items() if key not in decided} | kept
        return CodeReport(
            doubted=tuple(Doubted(memory=memory, doubt=known[memory.id]) for memory in memories if memory.id in known),
            memories=len(memories),
            anchored=sum(map(bool, claimed.values())),
            anchors=len({claim.anchor for claim in asked}),
            undecided=len(memories) - len(decided),
            settled=len((decided & before.keys()) - kept.keys()),
            cannot=looked.cannot,
            notes=looked.notes,
        )

    async def check_if_due(self, project: ProjectId, folder: Path) -> CodeReport | None:
        """``check`` beside other work, if it is time: at the first call, then at most once in ``EVERY`` and only where
        another commit is checked out. None where it is not."""
        last, now = self._last.get(project), self._clock.now()
        if last is not None and abs(now - last.at) < EVERY:
            return None
        head = await self._code.head(folder)
        self._last[project] = _Last(at=now, head=head)
        if head is None or (last is not None and last.head == head):
            return None
        return await self.check(project, folder, within=UNASKED)

    async def _memories(self, project: ProjectId) -> list[Memory]:
        """The project's own, by number."""
        viewer = Viewer(project=project, audience=Audience.PERSON)
        selection = Selection(viewer=viewer, now=self._clock.now(), visibility=Visibility.PROJECT)
        found: list[Memory] = []
        while page := await self._backend.memories.select(selection, limit=_PAGE, offset=len(found)):
            found += page
            if len(page) < _PAGE:
                break
        return sorted(found, key=lambda memory: memory.n)


def _lasting(said: Doubt, before: Doubt | None) -> Doubt:
    """A doubt that was there already keeps the day on which it arose."""
    if before is None or (before.anchor, before.reason) != (said.anchor, said.reason):
        return said
    return replace(said, since=before.since)
