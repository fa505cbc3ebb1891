"""Whether what was quoted, or is about to be, may be shown: its message stands, and nothing of it is withheld.

Finding quotes is ``evidence_quotes.py``; emptying the blocks that may not stay is ``context_block.py``.
"""

from __future__ import annotations

from collections.abc import Iterable

from backstory.domain.conversation import FrozenBlock, Message
from backstory.domain.erasure import ERASED
from backstory.domain.evidence_offer import quoted_messages, repeats
from backstory.domain.ids import MessageId, ProjectId, SessionId
from backstory.domain.scope import Viewer
from backstory.ports.conversation import Archive
from backstory.ports.store import MemoryStore
from backstory.ports.system import Clock
from backstory.services.withheld import withheld_memories

_MOST_WITHHELD = 1000
"""Of each kind that a quote is held against; where there are more, nothing is quoted."""


class QuotesTakenBack:
    """Holds quotes against what was taken back, removed or withheld since."""

    def __init__(self, memories: MemoryStore, archive: Archive, *, clock: Clock) -> None:
        self._memories = memories
        self._archive = archive
        self._clock = clock

    async def among(self, blocks: Iterable[FrozenBlock]) -> list[FrozenBlock]:
        """Those of the blocks that quote what no model is to be shown any more: its message was taken back, removed or
        erased since, or a memory made of it was forgotten, or made private or local-only. Raises what the store raises.

        Reads nothing where no block quotes anything.
        """
        quoting: dict[SessionId, list[tuple[FrozenBlock, list[MessageId]]]] = {}
        for block in blocks:
            if block.text and (quoted := quoted_messages(block.silent_because)):
                quoting.setdefault(block.session, []).append((block, quoted))
        gone: list[FrozenBlock] = []
        for session, items in quoting.items():
            named = dict.fromkeys(name for _, quoted in items for name in quoted)
            standing = await self.standing(named, shown_in=session)
            gone += [block for block, quoted in items if ERASED in block.text or not standing.issuperset(quoted)]
        return gone

    async def standing(self, messages: Iterable[MessageId], *, shown_in: SessionId | None) -> set[MessageId]:
        """Those of the messages that may be quoted in a session. Nobody knows later which passage of one was quoted, so
        each is judged as a whole."""
        standing: set[MessageId] = set()
        for project, told in (await self._by_project(messages)).items():
            place = Viewer(project=project, session=shown_in)
            withheld = await withheld_memories(self._memories, place, now=self._clock.now(), most=_MOST_WITHHELD)
            if withheld is not None:
                standing |= {message.id for message in told if not repeats(message.id, _whole(message), withheld)}
        return standing

    async def _by_project(self, messages: Iterable[MessageId]) -> dict[ProjectId | None, list[Message]]:
        """The messages that are kept and were not taken back, by the project of their session."""
        found = [item for item in await self._archive.find_messages(list(messages)) if item.removed_at is None]
        sessions = {name: await self._archive.session(name) for name in {message.session for message in found}}
        told: dict[ProjectId | None, list[Message]] = {}
        for message in found:
            session = sessions[message.session]
            told.setdefault(None if session is None else session.project, []).append(message)
        return told


def _whole(message: Message) -> str:
    return "\n".join(part.text for part in message.parts if part.kind == "text")
