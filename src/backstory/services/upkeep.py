"""Keep a store whole: verify it, make what is derived anew, back it up, bring it back, save what can be read."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from backstory.codecs.jsonl import encode_lines
from backstory.codecs.messages import encode_blob, encode_message
from backstory.errors import StoreUnavailable
from backstory.ports.backend import Backend
from backstory.ports.system import Clock
from backstory.ports.upkeep import Finding, Progress, Rebuilt, Restored, Severity, StoreUpkeep


@dataclass(frozen=True, slots=True, kw_only=True)
class Saved:
    """What could be read of a damaged store, as lines: memories as an export that ``import`` takes, messages and the
    contents that they refer to one a line. ``lost`` says in words what could not be read."""

    memories: Sequence[str]
    messages: Sequence[str]
    blobs: Sequence[str]
    lost: Sequence[str]


class Upkeep:
    """What a person does for a store. Every call raises StoreUnavailable where the backend has no upkeep."""

    def __init__(self, backend: Backend, *, clock: Clock) -> None:
        self._backend = backend
        self._clock = clock

    async def exists(self) -> bool:
        """Whether there is a store, or something in its place."""
        return await self._upkeep.exists()

    async def check(self, *, full: bool = False) -> list[Finding]:
        """Where the store breaks an invariant, the gravest first. Changes nothing. ``full`` looks at every row."""
        findings = await self._upkeep.verify(full=full)
        gravity = list(Severity)
        return sorted(findings, key=lambda found: (gravity.index(found.severity), found.invariant.number))

    async def reindex(self, *, vectors: bool = False, progress: Progress | None = None) -> Rebuilt:
        """Make words, sums, passages and the rest anew; with ``vectors`` drop all of them too, to be embedded again."""
        rebuilt = await self._upkeep.rebuild(progress=progress)
        if vectors:
            for name in await self._backend.vectors.vector_counts():
                await self._backend.vectors.drop_vectors(model_name=name)
            for name in await self._backend.evidence.vector_counts():
                await self._backend.evidence.drop_vectors(model_name=name)
        return rebuilt

    async def backup(self, to: Path, *, overwrite: bool = False) -> int:
        """Copy the store into one file; its size in bytes. The promises are those of ``StoreUpkeep.backup``."""
        return await self._upkeep.backup(to, overwrite=overwrite)

    async def restore(self, source: Path) -> Restored:
        """Replace the store by a backup. The promises are those of ``StoreUpkeep.restore``."""
        return await self._upkeep.restore(source)

    async def salvage(self) -> Saved:
        """All that can still be read, private and local-only memories too: the file is for the person alone."""
        found = await self._upkeep.salvage()
        lines = encode_lines(found.memories, projects=found.projects, exported_at=self._clock.now())
        return Saved(
            memories=list(lines),
            messages=[json.dumps(encode_message(message)) for message in found.messages],
            blobs=[json.dumps(encode_blob(blob)) for blob in found.blobs],
            lost=found.lost,
        )

    @property
    def _upkeep(self) -> StoreUpkeep:
        if self._backend.upkeep is None:
            name = self._backend.memories.capabilities.name
            raise StoreUnavailable(f"the store `{name}` can be neither checked nor copied from here")
        return self._backend.upkeep
