"""One backend: an object for each port it stands behind."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from backstory.ports.conversation import ConversationStore
from backstory.ports.evidence import EvidenceIndex
from backstory.ports.index import TextIndex, VectorIndex
from backstory.ports.store import MemoryStore, ProjectRegistry

if TYPE_CHECKING:  # some milliseconds each that a recall would pay for nothing
    from backstory.ports.digests import DigestStore
    from backstory.ports.doubts import DoubtStore
    from backstory.ports.dreams import DreamStore
    from backstory.ports.erasing import Eraser
    from backstory.ports.keepsakes import KeepsakeStore
    from backstory.ports.ledger import Ledger
    from backstory.ports.upkeep import StoreUpkeep


@dataclass(frozen=True, slots=True, kw_only=True)
class Backend:
    """Everything that is kept, behind its ports. Closing ``memories`` closes all of it. ``upkeep`` is None where a
    backend cannot verify and copy itself, ``eraser`` where it cannot prove that something is gone."""

    memories: MemoryStore
    text: TextIndex
    vectors: VectorIndex
    conversations: ConversationStore
    evidence: EvidenceIndex
    projects: ProjectRegistry
    ledger: Ledger
    digests: DigestStore
    dreams: DreamStore
    doubts: DoubtStore
    keepsakes: KeepsakeStore
    upkeep: StoreUpkeep | None = None
    eraser: Eraser | None = None
