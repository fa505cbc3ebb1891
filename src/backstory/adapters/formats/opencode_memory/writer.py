"""Stores of opencode-memory written: ``store.json``, with the state and the summary beside it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from backstory.adapters.formats.opencode_memory.entries import NAME, milliseconds
from backstory.adapters.formats.opencode_memory.exported import Exportable, exportable, in_version_2
from backstory.adapters.formats.opencode_memory.json_text import Json, js_text
from backstory.adapters.formats.opencode_memory.keeping import STATE, STORE, SUMMARY, Kept, kept_of, page_of
from backstory.adapters.formats.written_files import FolderDraft
from backstory.domain.memory import Deleted, Memory
from backstory.ports.formats import Exported, Written

_NEW_STATE = '{\n  "sessions": {},\n  "inProgress": {}\n}'


class OpencodeMemoryWriter:
    """Writes stores of version 2; one that came in as version 1 stays one as long as that can say all of it."""

    name = NAME

    def write(self, exported: Exported, target: Path) -> Written:
        """As ``FormatWriter.write``. ``target`` is the folder, or the ``store.json`` in it."""
        kept = kept_of(exported.keepsakes)
        written = Written()
        entries = self._entries(exported, kept, written)
        forgotten = self._forgotten(exported.memories, kept)
        head = _head(kept, entries, forgotten=forgotten, left_out=written.left_out)
        folder = target.parent if target.name == STORE else target
        with FolderDraft(folder) as draft:
            draft.put(STORE, _bytes(js_text(head)))
            if kept.is_new or kept.state is not None:
                draft.put(STATE, _bytes(_NEW_STATE if kept.state is None else kept.state))
            page = kept.page if not forgotten or kept.page == "" else None
            if page != "":
                draft.put(SUMMARY, _bytes(page_of(head) if page is None else page))
        written.files += draft.files
        written.memories = len(entries)
        return written

    def _entries(self, exported: Exported, kept: Kept, written: Written) -> list[Exportable]:
        place = {id_: at for at, id_ in enumerate(kept.order)}
        order = sorted(exported.memories, key=lambda memory: place.get(memory.id, len(place)))
        found = []
        for memory in order:
            entry = exportable(memory, exported.projects)
            if isinstance(entry, str):
                written.left_out.append(f"#{memory.n} is left out: {entry}")
            else:
                found.append(entry)
        return found

    def _forgotten(self, memories: Sequence[Memory], kept: Kept) -> bool:
        """Whether an entry of the store has gone for good, whose words its summary may repeat."""
        return bool(
            {*kept.order} - {*kept.quiet} - {memory.id for memory in memories if not isinstance(memory.status, Deleted)}
        )


def _head(kept: Kept, entries: Sequence[Exportable], *, forgotten: bool, left_out: list[str]) -> dict[str, Json]:
    """All of ``store.json``. When it was updated is moved on only where something changed."""
    head = dict(kept.head)
    version = 2 if any(entry.needs_version_2 for entry in entries) else kept.version
    head["entries"] = [entry.entry if version == kept.version else in_version_2(entry.entry) for entry in entries]
    changes = [milliseconds(entry.changed) for entry in entries if entry.changed is not None]
    was = head.get("updatedAt")
    if changes and (not isinstance(was, int | float) or max(changes) > was):
        head["updatedAt"] = max(changes)
    if version != kept.version:
        head["version"] = version
        left_out.append("the store is written in version 2: version 1 cannot say all that is known now")
    if forgotten and head.get("summary"):
        head["summary"] = ""
        left_out.append("the summary is left out: it may repeat what was forgotten")
    return head


def _bytes(text: str) -> bytes:
    return text.encode("utf-8", "replace")
