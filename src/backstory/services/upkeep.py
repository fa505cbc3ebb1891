"""Keep a store whole: verify it, make what is derived anew, back it up, bring it back, save what can be read."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from backstory.codecs.jsonl import encode_line, encode_lines
from backstory.codecs.jsonl_records import header_object, message_objects, session_object
from backstory.codecs.messages import encode_blob
from backstory.codecs.record import format_time
from backstory.domain.conversation import BlobHash, Message, Session
from backstory.domain.ids import SessionId
from backstory.errors import StoreUnavailable
from backstory.ports.backend import Backend
from backstory.ports.system import Clock
from backstory.ports.upkeep import Finding, Progress, Rebuilt, Restored, Salvage, Severity, StoreUpkeep

_LOST_HOST = "unknown"


@dataclass(frozen=True, slots=True, kw_only=True)
class Saved:
    """What could be read of a damaged store, as the lines of two exports that ``import`` takes: memories, and sessions
    with their messages and contents. ``lost`` says in words what could not be read."""

    memories: Sequence[str]
    sessions: Iterator[str]
    messages: int
    blobs: int
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
        now = self._clock.now()
        return Saved(
            memories=list(encode_lines(found.memories, projects=found.projects, exported_at=now)),
            sessions=_session_lines(found, now),
            messages=len(found.messages),
            blobs=len(found.blobs),
            lost=found.lost,
        )

    @property
    def _upkeep(self) -> StoreUpkeep:
        if self._backend.upkeep is None:
            name = self._backend.memories.capabilities.name
            raise StoreUnavailable(f"the store `{name}` can be neither checked nor copied from here")
        return self._backend.upkeep


def _session_lines(found: Salvage, now: datetime) -> Iterator[str]:
    """An export of the sessions; one of which only messages are left is made up from these. Contents that no message
    refers to any more come last, to be read by people."""
    projects = found.projects.values()
    yield encode_line(header_object(exported_at=format_time(now), holds=["sessions"], projects=projects))
    said: defaultdict[SessionId, list[Message]] = defaultdict(list)
    for message in found.messages:
        said[message.session].append(message)
    known = {session.id: session for session in found.sessions}
    contents = {blob.hash: blob for blob in found.blobs}
    kept: set[BlobHash] = set()
    for name in (*known, *(name for name in said if name not in known)):
        messages = sorted(said[name], key=lambda message: (message.created_at, message.id))
        yield encode_line(session_object(known.get(name) or _made_up(messages)))
        for message in messages:
            named = dict.fromkeys(ref.hash for part in message.parts for ref in part.blobs if ref.hash in contents)
            kept |= named.keys()
            yield from map(encode_line, message_objects(message, [contents[name] for name in named]))
    for blob in found.blobs:
        if blob.hash not in kept:
            yield encode_line({"type": "blob", **encode_blob(blob)})


def _made_up(messages: Sequence[Message]) -> Session:
    return Session(
        id=messages[0].session, project=None, host=_LOST_HOST, directory="", created_at=messages[0].created_at,
        updated_at=messages[-1].created_at,
    )  # fmt: skip
