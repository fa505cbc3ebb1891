"""Conversations of chat products, exported as lists in JSON files: each becomes a session."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from backstory.adapters.formats.outside_files import (
    Json,
    Unfit,
    elements,
    entries,
    is_folder,
    is_plain,
    read_file,
    read_start,
    text_of,
)
from backstory.domain.conversation import Message, Session
from backstory.domain.interchange import ForeignMessages, ForeignRecord, ForeignSession, Unreadable
from backstory.ports.formats import ReadLimits

BATCH_MESSAGES = 50
_START_BYTES = 64 * 1024
_NAME = "conversations"


@dataclass(frozen=True, slots=True, kw_only=True)
class ChatSession:
    """A conversation with its messages, oldest first."""

    session: Session
    messages: Sequence[Message]


def chat_files(path: Path, *, mark: bytes) -> list[Path]:
    """The files of conversations at a path: itself, or ``conversations*.json`` in a folder. ``mark`` is a field that
    every conversation has near its beginning."""
    candidates = [path] if is_plain(path) else entries(path, ends=".json") if is_folder(path) else []
    named = [file for file in candidates if file.name.startswith(_NAME) and file.suffix == ".json" and is_plain(file)]
    return [file for file in named if _is_list_of(file, mark)]


def chats(
    files: Sequence[Path], conversation: Callable[[Json], ChatSession | None], *, limits: ReadLimits
) -> Iterator[ForeignRecord]:
    """The conversations of the files as sessions. Memory for one file's text and one conversation."""
    for file in files:
        try:
            text = text_of(read_file(file, at_most=limits.file_bytes))
            for number, told in elements(text, at_most=limits.file_bytes):
                yield from _records(told, f"{file.name}, entry {number}", conversation)
        except Unfit as problem:
            yield Unreadable(where=file.name, reason=str(problem))


def _records(told: Json, where: str, conversation: Callable[[Json], ChatSession | None]) -> Iterator[ForeignRecord]:
    chat = conversation(told) if isinstance(told, dict) else None
    if chat is None:
        yield Unreadable(where=where, reason="not a conversation")
        return
    yield ForeignSession(session=chat.session, place=None, where=where)
    for start in range(0, len(chat.messages), BATCH_MESSAGES):
        batch = tuple(chat.messages[start : start + BATCH_MESSAGES])
        yield ForeignMessages(session=chat.session.id, messages=batch, where=where)


def _is_list_of(file: Path, mark: bytes) -> bool:
    start = read_start(file, size=_START_BYTES).removeprefix(b"\xef\xbb\xbf").lstrip()
    return start.startswith(b"[") and mark in start
