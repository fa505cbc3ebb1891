"""Writes stores of opencode-memory-tree, as its own code writes them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from backstory.adapters.formats.js_json import stringify
from backstory.adapters.formats.kept_json import kept_object
from backstory.adapters.formats.memory_tree.items import buffer_record, detail_record, details_text
from backstory.adapters.formats.memory_tree.layout import (
    BUFFER,
    CONFIG,
    DATA,
    FORMAT,
    INDEX,
    META,
    NODES,
    SESSIONS,
    SINGLE,
    SYNTHETIC,
    holds_others_data,
    is_session_name,
)
from backstory.adapters.formats.memory_tree.nodes import node_record, node_text
from backstory.adapters.formats.memory_tree.outline import as_told, buffer_outline, index_record
from backstory.adapters.formats.written_files import FolderDraft
from backstory.domain.conversation import Message
from backstory.domain.digest import Piece, Strategy
from backstory.domain.ids import MessageId
from backstory.domain.interchange import Keepsake
from backstory.domain.summary_tree import is_node_id
from backstory.errors import InputError
from backstory.ports.formats import Exported, Told, Written

Json = Mapping[str, Any]


class MemoryTreeWriter:
    """A folder for each session with messages. Those of a session that was digested otherwise are all in its buffer."""

    name = FORMAT

    def write(self, exported: Exported, target: Path) -> Written:
        """The store in the folder ``target``, whose ``data`` is replaced as a whole. Raises InputError where that is
        somebody else's."""
        if holds_others_data(target):
            raise InputError(f"{target / DATA} is not memory-tree's; export into another folder", field="target")
        written, left_out = Written(), Counter[str]()
        kept = {k.session: kept_object(k.text) for k in exported.keepsakes if k.key.startswith("session:")}
        with FolderDraft(target, whole=(DATA,)) as draft:
            for told in exported.sessions:
                tree = _Tree(told, kept.get(told.session.id, {}))
                if tree.folder is None:
                    left_out["sessions whose id cannot be the name of a folder"] += 1
                    continue
                if tree.is_empty:
                    left_out["sessions without a message"] += 1
                    continue
                for path, text in tree.files().items():
                    draft.put(f"{tree.folder}/{path}", text.encode("utf-8", "replace"))
                left_out["leaves without their messages, which are no longer kept"] += tree.emptied
                written.sessions += 1
            for path, text in _as_they_were(exported.keepsakes).items():
                if target / path not in draft.files:
                    draft.put(path, text.encode("utf-8", "replace"))
        left_out["memories, since the format holds sessions only"] += len(exported.memories)
        written.files = draft.files
        written.left_out = [f"{count} {what}" for what, count in left_out.items() if count]
        return written


class _Tree:
    """One session as a tree's files. ``emptied`` counts leaves whose messages are gone."""

    def __init__(self, told: Told, kept: Json) -> None:
        key = kept.get("tree")
        self.key = key if isinstance(key, str) and key else str(told.session.id)
        self.folder = _folder(self.key)
        self.emptied = 0
        self._kept = kept
        self._messages = [message for message in told.messages if message.removed_at is None]
        pieces = () if told.digest is None else told.digest.pieces
        self._pieces = [piece for piece in pieces if piece.strategy is Strategy.TREE]
        self._prompt = None if told.digest is None else told.digest.state.system_prompt

    @property
    def is_empty(self) -> bool:
        """Whether there is nothing to write."""
        return not self._messages and not self._pieces

    def files(self) -> dict[str, str]:
        """The texts of the files by their path in the tree's folder."""
        by_id = {message.id: message for message in self._messages}
        files = {}
        if (meta := self._meta()) is not None:
            files[META] = stringify(meta, indent=2)
        if (index := as_told(_object(self._kept.get("index")), index_record(self._pieces))) is not None:
            files[INDEX] = stringify(index, indent=2)
        for piece in self._pieces:
            files[f"{NODES}/{piece.id}.json"] = stringify(self._node(piece, by_id), indent=2)
        buffer = stringify(self._buffer(by_id), indent=2)
        files[BUFFER] = stringify({self.key: {"recent_buffer": buffer}}, indent=2)
        return files

    def _meta(self) -> Json | None:
        """The system prompt; no file where there was none and none is known."""
        more = self._kept.get("meta", {})
        if self._prompt is None and (more is None or not more):
            return None
        return {"system_prompt": self._prompt or "", **(more if isinstance(more, Mapping) else {})}

    def _node(self, piece: Piece, by_id: Mapping[MessageId, Message]) -> Json:
        beside = _object(_object(self._kept.get("nodes"), {}).get(piece.id), {})
        details = beside.get("details")
        if details is None and not piece.level:
            found = [by_id[source] for source in piece.sources if source in by_id]
            details = details_text([detail_record(message, self._beside(message)) for message in found])
            if piece.sources and not found:
                details, self.emptied = None, self.emptied + 1
        return node_record(piece, key=self.key, details=details, beside=beside)

    def _buffer(self, by_id: Mapping[MessageId, Message]) -> Sequence[Json]:
        nodes = {piece.id: piece for piece in self._pieces}
        order = as_told(_object(self._kept.get("buffer")), buffer_outline(self._pieces, self._messages))
        items: list[Json] = []
        for name in order if isinstance(order, list) else ():
            if name in nodes:
                items.append(_node_item(nodes[name]))
            elif name in by_id:
                items.append(buffer_record(by_id[name], self._beside(by_id[name])))
        return items

    def _beside(self, message: Message) -> Json:
        beside: Json = _object(_object(self._kept.get("messages"), {}).get(message.id), {})
        return beside


def _node_item(piece: Piece) -> Json:
    return {
        "role": "user",
        "content": node_text(piece),
        "_node_id": piece.id,
        "_span": piece.end - piece.start + 1,
        "original_id": f"{SYNTHETIC}{piece.id}",
    }


def _folder(key: str) -> str | None:
    """The folder of a tree in the store; None where its key cannot be a folder's name."""
    if key == SINGLE:
        return DATA
    return f"{DATA}/{SESSIONS}/{key}" if is_session_name(key) else None


def _as_they_were(keepsakes: Sequence[Keepsake]) -> Mapping[str, str]:
    """The settings, and files that could not be read, by path in the store."""
    found: dict[str, str] = {}
    for keepsake in keepsakes:
        kind, _, rest = keepsake.key.partition(":")
        key, _, path = rest.rpartition(":")
        folder, text = _folder(key), kept_object(keepsake.text).get("text")
        if not isinstance(text, str):
            continue
        if kind == CONFIG:
            found[CONFIG] = text
        elif kind == "file" and folder is not None and _is_tree_file(path):
            found[f"{folder}/{path}"] = text
    return found


def _is_tree_file(path: str) -> bool:
    node = path.removeprefix(f"{NODES}/").removesuffix(".json")
    return path in (META, INDEX, BUFFER) or (path == f"{NODES}/{node}.json" and is_node_id(node))


def _object(value: object, otherwise: Json | None = None) -> Any:
    return value if isinstance(value, Mapping) else otherwise
