"""The store for tests and trials: everything in dictionaries, gone when the process ends."""

from __future__ import annotations

from backstory.adapters.stores.memory.conversation import InMemoryConversations
from backstory.adapters.stores.memory.digests import InMemoryDigests
from backstory.adapters.stores.memory.doubts import InMemoryDoubts
from backstory.adapters.stores.memory.dreams import InMemoryDreams
from backstory.adapters.stores.memory.erasing import InMemoryEraser
from backstory.adapters.stores.memory.evidence import InMemoryEvidenceIndex
from backstory.adapters.stores.memory.keepsakes import InMemoryKeepsakes, KeepsakeKey
from backstory.adapters.stores.memory.ledger import InMemoryLedger
from backstory.adapters.stores.memory.memories import InMemoryMemories
from backstory.adapters.stores.memory.projects import InMemoryProjects
from backstory.adapters.stores.memory.search import InMemoryTextIndex, InMemoryVectorIndex
from backstory.adapters.stores.memory.upkeep import InMemoryUpkeep
from backstory.domain.digest import SessionDigest
from backstory.domain.dream_state import DreamState
from backstory.domain.ids import SessionId
from backstory.domain.interchange import Keepsake
from backstory.ports.backend import Backend

__all__ = ["open_memory_store"]


def open_memory_store() -> Backend:
    """A new, empty backend."""
    digests: dict[SessionId, SessionDigest] = {}
    dreams: dict[SessionId, DreamState] = {}
    keepsakes: dict[KeepsakeKey, Keepsake] = {}
    conversations = InMemoryConversations(digests, dreams, keepsakes)
    memories = InMemoryMemories(conversations)
    projects = InMemoryProjects(memories, conversations)
    return Backend(
        memories=memories,
        text=InMemoryTextIndex(memories),
        vectors=InMemoryVectorIndex(memories),
        conversations=conversations,
        evidence=InMemoryEvidenceIndex(conversations),
        projects=projects,
        ledger=InMemoryLedger(),
        digests=InMemoryDigests(digests),
        dreams=InMemoryDreams(memories, dreams),
        doubts=InMemoryDoubts(memories),
        keepsakes=InMemoryKeepsakes(keepsakes),
        upkeep=InMemoryUpkeep(memories, conversations, projects),
        eraser=InMemoryEraser(memories, conversations, digests, dreams, keepsakes),
    )
