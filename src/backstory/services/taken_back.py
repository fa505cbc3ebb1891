"""Facts whose only source the user took back: a person is asked whether they hold, rather than that they are believed.

What takes messages back is the host's undo; the archive marks them, and ``dreaming.py`` asks here at each dream.
"""

from __future__ import annotations

import logging
from collections.abc import Collection

from backstory.domain.contradiction import flagged, stands_firm
from backstory.domain.history import Action, Author, Change, Edit
from backstory.domain.ids import ChangeId, MessageId, ProjectId, SessionId
from backstory.domain.memory import Memory, Source
from backstory.domain.scope import Audience, Viewer, may_change
from backstory.domain.selection import Selection
from backstory.errors import Conflict
from backstory.ports.conversation import Archive
from backstory.ports.store import MemoryStore
from backstory.ports.system import Clock, IdSource

SOURCE_TAKEN_BACK = "its source was taken back: the messages that it was distilled from were undone"
_PAGE = 2000

log = logging.getLogger(__name__)


class TakenBack:
    """Puts facts in question that were distilled only from messages which are taken back."""

    def __init__(self, memories: MemoryStore, archive: Archive, *, clock: Clock, ids: IdSource) -> None:
        self._memories = memories
        self._archive = archive
        self._clock = clock
        self._ids = ids

    async def question(self, session: SessionId, project: ProjectId) -> list[Change]:
        """Flag what was distilled from a session's messages that were all taken back, one change for each fact.

        Each is flagged once: one that a person keeps, or whose flag is undone, stays believed. What was confirmed since
        has another source, and stays; so does what is pinned, and what the user stands for. Nothing more is read where
        nothing was taken back; else all current memories of the project, 0.3 s for 10,000.
        """
        removed = frozenset(await self._archive.removed_ids(session))
        if not removed:
            return []
        changes = [await self._flag(memory, session) for memory in await self._made_of(removed, session, project)]
        return [change for change in changes if change is not None]

    async def _made_of(self, removed: Collection[MessageId], session: SessionId, project: ProjectId) -> list[Memory]:
        viewer = Viewer(project=project, session=session, audience=Audience.PERSON)
        selection = Selection(viewer=viewer, now=self._clock.now(), states=frozenset({"active"}))
        found: list[Memory] = []
        offset = 0
        while page := await self._memories.select(selection, limit=_PAGE, offset=offset):
            found += [memory for memory in page if _rests_on(memory, removed) and may_change(memory, viewer)]
            offset += len(page)
        return found

    async def _flag(self, memory: Memory, session: SessionId) -> Change | None:
        """None where it was flagged for this before, or somebody changed it meanwhile."""
        now = self._clock.now()
        change = Change(
            id=ChangeId(self._ids.new_id()),
            at=now,
            author=Author.SYSTEM,
            action=Action.CONFLICT,
            edits=(Edit(before=memory, after=flagged(memory, evidence=SOURCE_TAKEN_BACK, against=None, now=now)),),
            reason=SOURCE_TAKEN_BACK,
            session=session,
            key=f"taken-back:{memory.id}",
        )
        try:
            done = await self._memories.commit(change)
        except Conflict as error:
            log.info("event=not_flagged memory=%s reason=%s", memory.id, error)
            return None
        return done if done.id == change.id else None


def _rests_on(memory: Memory, removed: Collection[MessageId]) -> bool:
    """Whether a memory was distilled from these messages alone, and nobody said it again or made it theirs since."""
    messages = memory.provenance.messages
    is_kept = memory.pinned or stands_firm(memory)
    is_alone = memory.source is Source.DREAMED and memory.times.confirmed == memory.times.learned and not is_kept
    return is_alone and bool(messages) and all(message in removed for message in messages)
