"""Reads the stores of opencode-memory-tree: a session for each tree, with its messages, its nodes, and what is left."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any

from backstory.adapters.formats.folder_walk import folders_below, project_of
from backstory.adapters.formats.kept_json import kept_text, settings_kept
from backstory.adapters.formats.memory_tree.files import TreeFiles, read_tree
from backstory.adapters.formats.memory_tree.items import Item, buffer_item, leaf_item, parsed_details, timed
from backstory.adapters.formats.memory_tree.layout import (
    CONFIG,
    DATA,
    FORMAT,
    INNER,
    SINGLE,
    TreeFolder,
    data_of,
    is_session_name,
    tree_folders,
)
from backstory.adapters.formats.memory_tree.nodes import level_of, node_record, piece_of, placed, told_otherwise
from backstory.adapters.formats.memory_tree.outline import buffer_outline, index_record
from backstory.adapters.formats.opencode_ids import time_of_id
from backstory.domain.conversation import Message, Session
from backstory.domain.digest import DigestState, Piece, SessionDigest, Strategy
from backstory.domain.ids import MessageId, SessionId
from backstory.domain.interchange import (
    IMPORTED_HOST,
    ForeignDigest,
    ForeignMessages,
    ForeignRecord,
    ForeignSession,
    Keepsake,
    Remark,
    Unreadable,
)
from backstory.errors import InputError
from backstory.ports.formats import FoundStore, ReadLimits

Json = Mapping[str, Any]
_AT_ONCE = 200  # messages of one record


class MemoryTreeReader:
    """Per-session trees, and the one tree of all sessions that came before them."""

    name = FORMAT

    def find(self, place: str) -> Sequence[FoundStore]:
        """Stores by what stands in their files, whatever their folders are called."""
        found: list[FoundStore] = []
        data: list[Path] = []
        for label, folder in folders_below(place):
            if any(folder.is_relative_to(path) for path in data):
                continue
            if (path := data_of(folder)) is not None:
                data.append(path)
                found.append(FoundStore(format=FORMAT, place=str(folder), label=label))
        return found

    def read(self, store: FoundStore, *, limits: ReadLimits) -> Iterator[ForeignRecord]:
        """Each tree as a session. Its messages have the ids and parts that the store kept, and the times that those
        tell of."""
        root = Path(store.place)
        data = data_of(root)
        if data is None:
            raise InputError(f"{store.place} is no store of opencode-memory-tree", field="place")
        if data.name == DATA:
            yield from settings_kept(root / CONFIG, format_name=FORMAT, store=store.label)
        place = project_of(root if data != root else root.parent, inner=INNER)
        for number, tree in enumerate(tree_folders(data)):
            if number >= limits.files:
                yield Unreadable(where=tree.where, reason=f"more than {limits.files:,} sessions")
                return
            if tree.key != SINGLE and not is_session_name(tree.key):
                yield Unreadable(where=tree.where, reason="the folder's name is no session's id")
                continue
            reading = _Reading(tree=tree, files=read_tree(tree, limits), store=store.label, place=place)
            yield from reading.records()


@dataclass(slots=True, kw_only=True)
class _Reading:
    """One tree on its way in. ``sources`` are the messages of leaves; ``raw`` what the buffer holds, by id."""

    tree: TreeFolder
    files: TreeFiles
    store: str
    place: str | None
    items: dict[MessageId, Item] = field(default_factory=dict)
    sources: dict[str, list[MessageId]] = field(default_factory=dict)
    raw: list[str] = field(default_factory=list)

    def records(self) -> Iterator[ForeignRecord]:
        """The session, its messages, its digest, and what is kept beside them; problems first."""
        yield from self.files.problems
        if self.files.is_empty:
            yield from self._aside(None)
            return
        yield from self._collect()
        session = self._session_id()
        messages = timed(
            list(self.items.values()), session=session, started=self._started(session), before=self.files.written_at
        )
        yield ForeignSession(session=self._session(session, messages), place=self.place, where=self.tree.where)
        for start in range(0, len(messages), _AT_ONCE):
            batch = tuple(messages[start : start + _AT_ONCE])
            yield ForeignMessages(session=session, messages=batch, where=self.tree.where)
        digest = self._digest(session, messages)
        yield ForeignDigest(digest=digest, where=self.tree.where)
        yield self._kept(session, messages, digest)
        yield from self._aside(session)

    def _collect(self) -> Iterator[ForeignRecord]:
        """The messages of the leaves by their place, then those of the buffer."""
        leaves = [(name, told) for name, told in self.files.nodes.items() if not level_of(name)]
        for name, told in sorted(leaves, key=lambda leaf: _start(leaf[1])):
            text = told.get("details")
            records = parsed_details(text) if isinstance(text, str) else None
            if records is None:
                if text is not None:
                    yield Unreadable(where=f"{self.tree.where}/nodes/{name}.json", reason="its details cannot be read")
                continue
            items = [leaf_item(record, self._derived(name, number)) for number, record in enumerate(records)]
            self.sources[name] = [item.id for item in items]
            for item in items:
                self.items.setdefault(item.id, item)
        for number, record in enumerate(self.files.buffer):
            node = record.get("_node_id")
            name = str(node)
            if node is None:
                item = buffer_item(record, self._derived("raw", number))
                if item.id in self.items:
                    where = f"{self.tree.where}/buffer-states.json"
                    yield Remark(where=where, text=f"item {number} is in it, or in a leaf, already")
                self.items.setdefault(item.id, item)
                name = item.id
            self.raw.append(name)

    def _derived(self, name: str, number: int) -> str:
        key = self.tree.key if self.tree.key != SINGLE else f"{FORMAT}-{SINGLE}"
        return f"{key}-{name}-{number:03d}"

    def _session_id(self) -> SessionId:
        """The session's; the one tree of all sessions is told from another project's by its first message."""
        if self.tree.key != SINGLE:
            return SessionId(self.tree.key)
        first = next(iter(self.items), "")
        beginning = "\n".join([first, *(part.text for item in list(self.items.values())[:1] for part in item.parts)])
        digest = hashlib.sha256(beginning.encode("utf-8", "surrogatepass")).hexdigest()
        return SessionId(f"{FORMAT}-{SINGLE}-{digest[:16]}")

    def _started(self, session: SessionId) -> datetime:
        """When the session began, as its id tells, or the first message that tells, or else its files."""
        before = self.files.written_at
        told = (moment for item in self.items.values() if (moment := time_of_id(item.id, before=before) or item.at))
        return time_of_id(session, before=before) or next(told, before)

    def _session(self, session: SessionId, messages: Sequence[Message]) -> Session:
        return Session(
            id=session,
            project=None,
            host=f"{IMPORTED_HOST}{FORMAT}",
            directory=self.place or "",
            created_at=messages[0].created_at if messages else self.files.written_at,
            updated_at=messages[-1].created_at if messages else self.files.written_at,
        )

    def _digest(self, session: SessionId, messages: Sequence[Message]) -> SessionDigest:
        from backstory.adapters.tokens import token_counter

        count = token_counter().count
        by_id = {message.id: message for message in messages}
        at = messages[-1].created_at if messages else self.files.written_at
        pieces: list[Piece] = []
        for name, told in self.files.nodes.items():
            sources = self.sources.get(name, [])
            said = [part.text for source in sources for part in by_id[source].parts]
            piece = piece_of(
                told, session=session, sources=sources, source_tokens=sum(map(count, said)) + 4 * len(sources), at=at
            )
            pieces += [piece] if piece is not None else []
        flagless = frozenset(
            name for name, told in self.files.nodes.items() if "parent_id" not in told or "is_active" not in told
        )
        prompt = None if self.files.meta is None else self.files.meta.get("system_prompt")
        state = DigestState(
            session=session,
            strategy=Strategy.TREE,
            system_prompt=prompt if isinstance(prompt, str) else None,
            updated_at=at,
        )
        return SessionDigest(state=state, pieces=tuple(placed(pieces, without_flags=flagless)))

    def _kept(self, session: SessionId, messages: Sequence[Message], digest: SessionDigest) -> Keepsake:
        """Whatever of the files does not follow from what came in; an outline where the order is another one."""
        kept: dict[str, Any] = {"tree": self.tree.key}
        nodes = {piece.id: beside for piece in digest.pieces if (beside := self._node_beside(piece, messages))}
        beside = {name: item.beside for name, item in self.items.items() if item.beside}
        files = self.files
        if files.meta is None or tuple(files.meta) != ("system_prompt",):
            kept["meta"] = None if files.meta is None else {k: v for k, v in files.meta.items() if k != "system_prompt"}
        derived = index_record(digest.pieces)
        if files.index != derived:
            kept["index"] = {"was": derived, "told": files.index}
        outline = buffer_outline(digest.pieces, messages)
        if outline != self.raw:
            kept["buffer"] = {"was": outline, "told": self.raw}
        kept |= {"nodes": nodes} if nodes else {}
        kept |= {"messages": beside} if beside else {}
        return Keepsake(
            format=FORMAT, store=self.store, key=f"session:{self.tree.key}", text=kept_text(kept), session=session
        )

    def _node_beside(self, piece: Piece, messages: Sequence[Message]) -> dict[str, Any]:
        told = self.files.nodes[piece.id]
        record = node_record(piece, key=self.tree.key, details=None, beside={})
        beside = told_otherwise(record, told)
        if piece.id not in self.sources and told.get("details") is not None:
            beside["details"] = told["details"]
        return beside

    def _aside(self, session: SessionId | None) -> Iterator[Keepsake]:
        for path, text in self.files.aside.items():
            yield Keepsake(
                format=FORMAT,
                store=self.store,
                key=f"file:{self.tree.key}:{path}",
                text=kept_text({"text": text}),
                session=session,
            )


def _start(told: Json) -> tuple[int, str]:
    start, name = told.get("round_start"), told.get("id")
    return (start if isinstance(start, int) else 0), str(name)
