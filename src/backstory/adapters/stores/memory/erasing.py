"""The Eraser of the store in dictionaries. Its bytes are those of the process: what can be reached is searched."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import partial
from typing import TYPE_CHECKING, Any

from backstory.adapters.stores.memory.conversation import InMemoryConversations
from backstory.adapters.stores.memory.keepsakes import KeepsakeKey
from backstory.adapters.stores.memory.memories import InMemoryMemories
from backstory.domain.conversation import Part
from backstory.domain.digest import SessionDigest
from backstory.domain.dream_state import DreamState
from backstory.domain.history import WITHDRAWN, Action, Author, Change, Edit
from backstory.domain.ids import ChangeId, MemoryId, MessageId, SessionId
from backstory.domain.interchange import Keepsake
from backstory.ports.erasing import Cleaned, Erasure, Found, Progress, Receipt, Trace

if TYPE_CHECKING:
    from backstory.domain.blob import Blob
    from backstory.domain.erasure import Rewrite

_EVER = datetime.min.replace(tzinfo=UTC)  # when nothing is erased


@dataclass(frozen=True, slots=True, kw_only=True)
class _Rewritten:
    """One text that changes, and how to change it."""

    found: Found
    apply: Callable[[], object]


class InMemoryEraser:
    """The Eraser over dictionaries."""

    def __init__(
        self,
        memories: InMemoryMemories,
        conversations: InMemoryConversations,
        digests: dict[SessionId, SessionDigest],
        dreams: dict[SessionId, DreamState],
        keepsakes: dict[KeepsakeKey, Keepsake],
    ) -> None:
        self._memories = memories
        self._conversations = conversations
        self._digests = digests
        self._dreams = dreams
        self._keepsakes = keepsakes
        self._receipts: dict[ChangeId, Receipt] = {}

    async def look(self, rewrite: Rewrite, told: Callable[[Found], None], *, progress: Progress | None = None) -> None:
        for item in self._rewritten(frozenset(), rewrite, _EVER):
            told(item.found)
        if progress is not None:
            progress(len(self._memories.rows))

    async def erase(self, erasure: Erasure, *, progress: Progress | None = None) -> Mapping[str, int]:
        changes = list(self._rewritten(frozenset(erasure.memories), erasure.rewrite, erasure.at))
        for item in changes:
            item.apply()
        masked = [MemoryId(item.found.where) for item in changes if item.found.place == "memories"]
        self._let_go({*erasure.memories, *masked}, erasure.rewrite)
        await self._tell_history(erasure, masked)
        places = dict(Counter(item.found.place for item in changes))
        if places:
            await self.note(
                Receipt(id=erasure.id, at=erasure.at, reason=erasure.reason, memories=erasure.memories, places=places)
            )
        return places

    async def clean(self, *, copies: bool) -> Cleaned:
        return Cleaned(finished=True, remains=("the memory of this process, until it ends",))

    async def scan(self, texts: Sequence[str]) -> list[Trace]:
        from backstory.adapters.stores.byte_search import ByteSearch

        search = ByteSearch(texts)
        tables = {**self._tables(), "memories": self._memories.rows, "history": dict(enumerate(self._history))}
        tables["attachments"] = {name: _content(blob) for name, blob in tables["attachments"].items()}
        counts = {name: search.count_in(repr(table).encode("utf-8", "surrogatepass")) for name, table in tables.items()}
        return [Trace(where=f"{name} of this process", count=count) for name, count in counts.items() if count]

    async def receipts(self, *, limit: int) -> list[Receipt]:
        return sorted(self._receipts.values(), key=lambda receipt: (receipt.at, receipt.id), reverse=True)[:limit]

    async def note(self, receipt: Receipt) -> None:
        self._receipts[receipt.id] = receipt

    @property
    def _history(self) -> list[Change]:
        return self._memories.changes_kept()

    def _tables(self) -> dict[str, dict[Any, Any]]:  # Any: keys and values differ by place
        summaries, doubts = self._memories.summaries, self._memories.doubts
        tables = self._conversations.tables()
        tables |= {"digests": self._digests, "dreaming": self._dreams, "summaries": summaries, "doubts": doubts}
        tables["keepsakes"] = self._keepsakes
        return tables

    def _let_go(self, shown: set[MemoryId], rewrite: Rewrite) -> None:
        self._conversations.withdraw_showing(sorted(shown), because=WITHDRAWN)
        for project, summary in list(self._memories.summaries.items()):
            if not shown.isdisjoint(summary.sources):
                del self._memories.summaries[project]
        for name in shown:
            self._memories.doubts.pop(name, None)
        for key in [key for key, kept in self._keepsakes.items() if kept.memory in shown]:
            del self._keepsakes[key]

    async def _tell_history(self, erasure: Erasure, masked: Sequence[MemoryId]) -> None:
        """One change by which each memory has another revision, so that no earlier state can be written back."""
        states = [self._memories.rows[name] for name in masked]
        if states:
            edits = tuple(Edit(before=state, after=state) for state in states)
            change = Change(
                id=erasure.id, at=erasure.at, author=Author.USER, action=Action.MASK, edits=edits, reason=erasure.reason
            )
            await self._memories.commit(change)
            for state in states:
                self._memories.text_since[state.id] = state.revision + 1  # no vector of it counts any more

    def _rewritten(self, erased: frozenset[str], rewrite: Rewrite, at: datetime) -> Iterator[_Rewritten]:
        from backstory.codecs.erasure import changed_text, rewritten_value, without

        for memory in list(self._memories.rows.values()):
            if (left := without(memory, erased, rewrite, at=at)) is not memory:
                before, after = changed_text(memory, left)
                yield _setting(self._memories.rows, memory.id, left, "memories", memory.id, before, after)
        for number, change in enumerate(list(self._history)):
            if (new := _without(change, erased, rewrite, at)) != change:
                yield _setting(self._history, number, new, "history", change.id, repr(change), repr(new))
        for place, table in self._tables().items():
            for key, value in list(table.items()):
                if place == "messages":
                    yield from self._part(value, rewrite)
                elif place == "attachments":
                    yield from self._blob(value, rewrite)
                elif (kept := rewritten_value(value, rewrite)) is not value:
                    yield _setting(table, key, kept, place, str(key), repr(value), repr(kept))

    def _part(self, told: tuple[MessageId, SessionId, Part], rewrite: Rewrite) -> Iterator[_Rewritten]:
        from backstory.codecs.erasure import rewritten_detail

        message, session, part = told
        detail = None if part.detail is None else rewritten_detail(part.detail, rewrite)
        new = replace(part, text=rewrite(part.text), detail=detail)
        if new != part:
            found = Found(place="messages", where=message, before=part.text, after=new.text)
            yield _Rewritten(found=found, apply=partial(self._put_part, (message, session, new)))

    def _put_part(self, told: tuple[MessageId, SessionId, Part]) -> None:
        self._conversations.tables()["messages"][told[2].id] = told
        self._conversations.erased.add(told[2].id)

    def _blob(self, blob: Blob, rewrite: Rewrite) -> Iterator[_Rewritten]:
        from backstory.domain.attached_text import kept_bytes

        content = _content(blob)
        kept = kept_bytes(content, rewrite)
        if kept is not None and kept != content:
            before, after = content.decode("utf-8", "replace"), kept.decode("utf-8", "replace")
            found = Found(place="attachments", where=blob.hash, before=before, after=after)
            yield _Rewritten(found=found, apply=partial(self._put_blob, blob, kept))

    def _put_blob(self, old: Blob, content: bytes) -> None:
        from backstory.codecs.erasure import rewritten_text
        from backstory.domain.blob import make_blob
        from backstory.domain.excerpt import excerpt_anew

        blob, whole = make_blob(content), content.decode("utf-8", "replace")
        blobs = self._conversations.tables()["attachments"]
        del blobs[old.hash]
        blobs[blob.hash] = blob

        def anew(text: str) -> str:
            return excerpt_anew(text, old.hash, blob.hash, whole)

        for message, session, part in list(self._conversations.tables()["messages"].values()):
            if any(ref.hash == old.hash for ref in part.blobs):
                refs = tuple(blob.ref(ref.media_type) if ref.hash == old.hash else ref for ref in part.blobs)
                detail = None if part.detail is None else rewritten_text(part.detail, anew)
                self._put_part((message, session, replace(part, text=anew(part.text), detail=detail, blobs=refs)))


def _without(change: Change, erased: frozenset[str], rewrite: Rewrite, at: datetime) -> Change:
    from backstory.codecs.erasure import erased_key, without

    edits = tuple(
        Edit(
            before=None if edit.before is None else without(edit.before, erased, rewrite, at=at),
            after=without(edit.after, erased, rewrite, at=at),
        )
        for edit in change.edits
    )
    key = erased_key(change.id) if change.key is not None and rewrite(change.key) != change.key else change.key
    return replace(change, edits=edits, reason=None if change.reason is None else rewrite(change.reason), key=key)


def _content(blob: Blob) -> bytes:
    from backstory.domain.blob import content_of

    return content_of(blob)


def _setting(
    held: Any, key: Any, value: Any, place: str, where: str, before: str, after: str
) -> _Rewritten:  # Any: a list or a mapping of any kind
    found = Found(place=place, where=where, before=before, after=after)
    return _Rewritten(found=found, apply=lambda: held.__setitem__(key, value))
