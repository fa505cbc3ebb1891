"""Look behind the summaries of a session: open a node, list the tree, find words in it. Reads one session only."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial

from backstory.domain.conversation import BlobHash, Message
from backstory.domain.digest import Piece, SessionDigest, Strategy
from backstory.domain.ids import MessageId, SessionId
from backstory.domain.interchange import UNVOUCHED_NOTE, is_unvouched
from backstory.domain.summary_tree import is_node_id
from backstory.domain.tree_rendering import (
    found_nodes,
    message_content,
    message_title,
    opened_leaf,
    opened_parent,
    outline,
    unknown_node,
)
from backstory.domain.tree_search import NodeTexts, search_nodes
from backstory.errors import InputError
from backstory.ports.conversation import ConversationStore
from backstory.ports.digests import DigestStore
from backstory.services.conversation import Aside, at_once

NO_TREE = "This session has no memory tree yet: all of its messages are still in the conversation."
MAX_FOUND = 10
MAX_SEARCHED_CHARS = 2_000_000
"""Of messages in one search, the newest leaves first; about a second's work."""
_SIGNS_AROUND = "[]*`\"' \t\r\n"  # as ids are written in the conversation

_log = logging.getLogger(__name__)


class TreeLookup:
    """Answers in words, for the session that asks."""

    def __init__(self, digests: DigestStore, conversations: ConversationStore, *, aside: Aside = at_once) -> None:
        """``aside`` runs the writing down of messages and the looking up of words, which take up to a second."""
        self._aside = aside
        self._digests = digests
        self._conversations = conversations

    async def outline(self, session: SessionId) -> str:
        """The nodes that no parent covers."""
        pieces, note = await self._tree(session)
        return note + outline([piece for piece in pieces if piece.active]) if pieces else NO_TREE

    async def open(self, session: SessionId, node_id: str, *, page: int = 1) -> str:
        """A leaf's messages word for word, or a parent's children.

        An unknown id is an answer. Raises InputError for what is no node id, and for a page that there is not.
        """
        wanted = _checked(node_id)
        pieces, note = await self._tree(session)
        if not pieces:
            return NO_TREE
        node = next((piece for piece in pieces if piece.id == wanted), None)
        if node is None:
            return unknown_node(wanted)
        if node.level > 0:
            return note + opened_parent(node, [piece for piece in pieces if piece.id in node.children])
        messages = await self._messages(node.sources)
        pages = await self._aside(lambda: opened_leaf(node, messages))
        if not 1 <= page <= len(pages):
            raise InputError(f"{node.id} has {len(pages)} page(s), so there is no page {page}", field="page")
        return note + pages[page - 1]

    async def find(self, session: SessionId, query: str, *, within: str | None = None) -> str:
        """The nodes whose summaries or messages have words of the query; ``within`` looks below one node only.

        Of a tool's answer that is kept in excerpts only those are searched. Raises InputError for what is no node id.
        """
        pieces, note = await self._tree(session)
        if within is not None:
            top = _checked(within)
            if pieces and all(piece.id != top for piece in pieces):
                return unknown_node(top)
            pieces = _below(top, pieces)
        if not pieces:
            return NO_TREE
        texts, unsearched = await self._texts(pieces)
        hits = await self._aside(lambda: search_nodes(texts, query, limit=MAX_FOUND))
        return note + found_nodes(hits, unsearched=unsearched)

    async def _tree(self, session: SessionId) -> tuple[tuple[Piece, ...], str]:
        """All nodes of a session, by place and the lower levels first, and what stands before them where nobody vouched
        for them."""
        digest: SessionDigest | None = await self._digests.digest(session)
        pieces = () if digest is None else digest.pieces
        nodes = (piece for piece in pieces if piece.strategy is Strategy.TREE)
        note = f"{UNVOUCHED_NOTE}\n" if digest is not None and is_unvouched(digest) else ""
        return tuple(sorted(nodes, key=lambda piece: (piece.start, piece.end, piece.level))), note

    async def _texts(self, pieces: Sequence[Piece]) -> tuple[list[NodeTexts], int]:
        """The nodes with the texts behind them, and of how many leaves those were left out."""
        texts: list[NodeTexts] = []
        unsearched, room = 0, MAX_SEARCHED_CHARS
        for node in reversed(pieces):
            messages = await self._conversations.find_messages(node.sources) if node.sources and room > 0 else []
            unsearched += bool(node.sources and room <= 0)
            behind = await self._aside(partial(_behind, node, messages)) if messages else ()
            room -= sum(len(text) for _, text in behind)
            texts.append(NodeTexts(node=node, behind=behind))
        return texts, unsearched

    async def _messages(self, ids: Sequence[MessageId]) -> Mapping[MessageId, Message]:
        """The messages as they were told, with all that was set apart from them for its size."""
        return {message.id: await self._whole(message) for message in await self._conversations.find_messages(ids)}

    async def _whole(self, message: Message) -> Message:
        names = {blob.hash for part in message.parts for blob in part.blobs if blob.media_type.startswith("text/")}
        contents = {name: content for name in names if (content := await self._content(name)) is not None}
        return await self._aside(partial(_with_contents, message, contents)) if contents else message

    async def _content(self, name: BlobHash) -> bytes | None:
        from backstory.domain.blob import content_of

        blob = await self._conversations.blob(name)
        try:
            return None if blob is None else await self._aside(partial(content_of, blob))
        except ValueError as error:
            _log.warning("event=blob_damaged reason=%s", error)
            return None


def _behind(node: Piece, messages: Sequence[Message]) -> tuple[tuple[str, str], ...]:
    """The messages of a leaf with their titles."""
    return tuple(
        (message_title(message, node.sources.index(message.id) + 1), message_content(message)) for message in messages
    )


def _with_contents(message: Message, contents: Mapping[BlobHash, bytes]) -> Message:
    from backstory.domain.excerpt import whole_part

    return replace(message, parts=tuple(whole_part(part, contents) for part in message.parts))


def _checked(node_id: str) -> str:
    wanted = node_id.strip(_SIGNS_AROUND)
    if not is_node_id(wanted):
        raise InputError(f"{node_id[:60]!r} is no node id", field="node_id", hint="ids look like node0_001")
    return wanted


def _below(top: str, pieces: Sequence[Piece]) -> tuple[Piece, ...]:
    by_id = {piece.id: piece for piece in pieces}
    found: set[str] = set()
    waiting = [top]
    while waiting:
        name = waiting.pop()
        if name in by_id and name not in found:
            found.add(name)
            waiting += by_id[name].children
    return tuple(piece for piece in pieces if piece.id in found)
