"""ChatGPT: its list of memories as proposals, and the conversations of a data export as sessions."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime
from pathlib import Path

from backstory.adapters.formats.assistant_lists import read_list
from backstory.adapters.formats.chat_exports import ChatSession, chat_files, chats, left_packed
from backstory.adapters.formats.outside_files import Json, is_id, is_plain, named, words
from backstory.adapters.formats.proposals import NEVER, moment
from backstory.adapters.formats.zipped import is_zip
from backstory.domain.conversation import Message, Part, Role, Session
from backstory.domain.ids import MessageId, PartId, SessionId
from backstory.domain.interchange import IMPORTED_HOST, ForeignRecord
from backstory.ports.formats import FoundStore, ReadLimits

_MARK = b'"mapping"'
_UNSAID = frozenset({"user_editable_context", "model_editable_context", "system_error"})


class ChatGpt:
    """Found where conversations of an export stand. A list of memories looks like any other text, so it is read only
    where this format is named."""

    name = "chatgpt"

    def find(self, place: str) -> Sequence[FoundStore]:
        path = named(place)
        return [FoundStore(format=self.name, place=str(path))] if chat_files(path, mark=_MARK) else []

    def read(self, store: FoundStore, *, limits: ReadLimits) -> Iterator[ForeignRecord]:
        path = Path(store.place)
        files = chat_files(path, mark=_MARK)
        if not files and (is_plain(path) or not path.is_dir()) and not is_zip(path):
            yield from read_list(path, self.name, limits=limits)
            return
        yield from left_packed(path)
        yield from chats(files, _conversation, limits=limits)


def _conversation(told: Json) -> ChatSession | None:
    """The branch of a conversation that is shown last; what was said in others is left out."""
    number = next((told.get(name) for name in ("conversation_id", "id") if is_id(told.get(name))), None)
    mapping = told.get("mapping")
    if number is None or not isinstance(mapping, dict):
        return None
    began = moment(told.get("create_time")) or NEVER
    session = Session(
        id=SessionId(number),
        project=None,
        host=f"{IMPORTED_HOST}{ChatGpt.name}",
        directory="",
        title=words(told.get("title")),
        created_at=began,
        updated_at=max(began, moment(told.get("update_time")) or began),
    )
    messages = [_message(node, session.id, began) for node in _branch(mapping, told.get("current_node"))]
    return ChatSession(session=session, messages=[message for message in messages if message is not None])


def _branch(mapping: dict[str, Json], last: Json) -> list[Json]:
    """The nodes from the first to the last, each once."""
    nodes: list[Json] = []
    passed: set[str] = set()
    while isinstance(last, str) and last not in passed and isinstance(node := mapping.get(last), dict):
        passed.add(last)
        nodes.append(node)
        last = node.get("parent")
    return nodes[::-1]


def _message(node: Json, session: SessionId, began: datetime) -> Message | None:
    told = node.get("message")
    author = told.get("author") if isinstance(told, dict) else None
    role = author.get("role") if isinstance(author, dict) else None
    number = told.get("id") if isinstance(told, dict) else None
    if role not in ("user", "assistant", "tool") or not is_id(number):
        return None
    at = moment(told.get("create_time")) or began
    parts = _parts(told, str(number), author)
    if not parts:
        return None
    metadata = told.get("metadata")
    model = words(metadata.get("model_slug")) if isinstance(metadata, dict) else None
    speaker = Role.USER if role == "user" else Role.ASSISTANT
    return Message(
        id=MessageId(str(number)), session=session, role=speaker, model=model, created_at=at, completed_at=at,
        parts=parts,
    )  # fmt: skip


def _parts(told: Json, number: str, author: Json) -> tuple[Part, ...]:
    content = told.get("content")
    if not isinstance(content, dict) or content.get("content_type") in _UNSAID:
        return ()
    text = _text(content)
    if not text.strip():
        return ()
    if author.get("role") == "tool":
        return (Part(id=PartId(f"{number}-0"), kind="tool", tool=words(author.get("name")) or "tool", text=text),)
    kind = "reasoning" if content.get("content_type") in ("thoughts", "reasoning_recap") else "text"
    metadata = told.get("metadata")
    hidden = isinstance(metadata, dict) and bool(metadata.get("is_visually_hidden_from_conversation"))
    to_tool = told.get("recipient") not in (None, "all")
    return (Part(id=PartId(f"{number}-0"), kind=kind, text=text, synthetic=hidden or to_tool),)


def _text(content: Json) -> str:
    pieces: list[str] = []
    for piece in content.get("parts") or content.get("thoughts") or [content]:
        if isinstance(piece, str):
            pieces.append(piece)
        elif isinstance(piece, dict):
            said = next(
                (words(piece.get(name)) for name in ("text", "content", "result") if words(piece.get(name))), None
            )
            pieces.append(said or f"[{words(piece.get('content_type')) or 'attachment'}]"[:80])
    return "\n".join(pieces)
