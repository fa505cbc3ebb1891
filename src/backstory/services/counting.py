"""Count memories as recalled where a search of its own kind showed them; ``recall.py`` counts its own."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from datetime import datetime

from backstory.domain.memory import Memory
from backstory.domain.scope import Viewer
from backstory.errors import StoreError
from backstory.ports.store import MemoryStore, Use

log = logging.getLogger(__name__)


async def count_recalled(store: MemoryStore, memories: Sequence[Memory], viewer: Viewer, now: datetime) -> None:
    """Count them. A store that is full, busy or read-only can still be read: counting is left out then."""
    if not memories or store.capabilities.read_only:
        return
    shown = tuple(memory.id for memory in memories)
    try:
        await store.record_use(Use(memories=shown, at=now, session=viewer.session, surfaced=False))
    except StoreError as error:
        log.warning("event=count_skipped session=%s reason=%s", viewer.session, error)
