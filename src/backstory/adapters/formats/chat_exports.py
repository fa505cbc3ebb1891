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
from backstory.adapters.formats.zipped import Member, is_zip, members, read_member, starts_of_members, zips_within
from backstory.domain.conversation import Message, Session
from backstory.domain.interchange import ForeignMessages, ForeignRecord, ForeignSession, Remark, Unreadable
from backstory.ports.formats import ReadLimits

File = Path | Member
"""A file of an export, on the disk or in the zip that it came in."""

BATCH_MESSAGES = 50
_START_BYTES = 64 * 1024
_NAME = "conversations"


@dataclass(frozen=True, slots=True, kw_only=True)
class ChatSession:
    """A conversation with its messages, oldest first."""

    session: Session
    messages: Sequence[Message]


def export_files(path: Path) -> list[File]:
    """The JSON files of an export: the path itself, those in a folder, or those in a zip. Raises InputError for a zip
    that cannot be read."""
    if is_zip(path):
        return [member for member in members(path) if member.name.endswith(".json")]
    found = [path] if is_plain(path) else entries(path, ends=".json") if is_folder(path) else []
    return [file for file in found if file.name.endswith(".json") and is_plain(file)]


def content_of(file: File, *, at_most: int) -> bytes:
    """All of a file. Raises Unfit as ``read_file`` and ``read_member``."""
    return read_member(file, at_most=at_most) if isinstance(file, Member) else read_file(file, at_most=at_most)


def that_begin(files: Sequence[File], fits: Callable[[bytes], bool]) -> list[File]:
    """The files, all on the disk or all in one zip, of which as much fits as tells what a file is."""
    packed = [file for file in files if isinstance(file, Member)]
    starts = starts_of_members(packed, size=_START_BYTES) if packed else iter(())
    found: list[File] = [file for file, start in zip(packed, starts, strict=False) if fits(start)]
    return found + [file for file in files if isinstance(file, Path) and fits(read_start(file, size=_START_BYTES))]


def chat_files(path: Path, *, mark: bytes) -> list[File]:
    """The files of conversations at a path: itself, or ``conversations*.json`` in a folder or zip. ``mark`` is a field
    that every conversation has near its beginning."""
    named = [file for file in export_files(path) if file.name.startswith(_NAME)]
    return that_begin(named, lambda start: _is_list_of(start, mark))


def left_packed(path: Path) -> Iterator[Remark]:
    """A word on the zips in a zip: they may be attachments."""
    within = zips_within(path) if is_zip(path) else []
    if within:
        counted = f"{len(within)} zips" if len(within) > 1 else "a zip"
        yield Remark(where=within[0][:100], text=f"{counted} inside of the zip, not read")


def chats(
    files: Sequence[File], conversation: Callable[[Json], ChatSession | None], *, limits: ReadLimits
) -> Iterator[ForeignRecord]:
    """The conversations of the files as sessions. Memory for one file's text and one conversation."""
    for file in files:
        try:
            text = text_of(content_of(file, at_most=limits.file_bytes))
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


def _is_list_of(start: bytes, mark: bytes) -> bool:
    start = start.removeprefix(b"\xef\xbb\xbf").lstrip()
    return start.startswith(b"[") and mark in start
