"""One backend: an object for each port it stands behind."""

from __future__ import annotations

from dataclasses import dataclass

from backstory.ports.conversation import ConversationStore
from backstory.ports.evidence import EvidenceIndex
from backstory.ports.index import TextIndex, VectorIndex
from backstory.ports.store import MemoryStore, ProjectRegistry


@dataclass(frozen=True, slots=True, kw_only=True)
class Backend:
    """Everything that is kept, behind its ports. Closing ``memories`` closes all of it."""

    memories: MemoryStore
    text: TextIndex
    vectors: VectorIndex
    conversations: ConversationStore
    evidence: EvidenceIndex
    projects: ProjectRegistry
