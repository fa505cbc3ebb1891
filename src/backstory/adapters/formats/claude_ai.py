"""Claude's own memory, as people carry it away or as a data export has it, and the conversations of that export."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from backstory.adapters.formats.assistant_lists import read_list
from backstory.adapters.formats.chat_exports import (
    ChatSession,
    File,
    chat_files,
    chats,
    content_of,
    export_files,
    left_packed,
    that_begin,
)
from backstory.adapters.formats.markdown_statements import statements
from backstory.adapters.formats.outside_files import (
    Json,
    Unfit,
    elements,
    is_folder,
    is_id,
    named,
    text_of,
    words,
)
from backstory.adapters.formats.proposals import NEVER, changed_at, known_by, moment, proposal
from backstory.adapters.formats.zipped import Member, is_zip
from backstory.codecs.claude_code import Transcript
from backstory.domain.conversation import Message, Session
from backstory.domain.ids import SessionId
from backstory.domain.interchange import IMPORTED_HOST, ForeignRecord, Unreadable
from backstory.ports.formats import FoundStore, ReadLimits

_MARK = b'"chat_messages"'
_MEMORIES = "memories.json"
_MEMORY_MARK = b'"conversations_memory"'
_SPEAKERS = {"human": "user", "assistant": "assistant"}


class ClaudeAi:
    """Found where the conversations or memories of an export stand. A list of memories that Claude wrote out looks like
    any other text, so it is read only where this format is named."""

    name = "claude"

    def find(self, place: str) -> Sequence[FoundStore]:
        path = named(place)
        found = chat_files(path, mark=_MARK) or _memory_files(path)
        return [FoundStore(format=self.name, place=str(path))] if found else []

    def read(self, store: FoundStore, *, limits: ReadLimits) -> Iterator[ForeignRecord]:
        path = Path(store.place)
        files, memories = chat_files(path, mark=_MARK), _memory_files(path)
        if not (files or memories or is_folder(path) or is_zip(path)):
            yield from read_list(path, self.name, limits=limits)
            return
        yield from left_packed(path)
        for file in memories:
            yield from _memories(file, limits=limits)
        yield from chats(files, _conversation, limits=limits)


def _memory_files(path: Path) -> list[File]:
    named = [file for file in export_files(path) if file.name == _MEMORIES]
    return that_begin(named, lambda start: _MEMORY_MARK in start)


def _memories(file: File, *, limits: ReadLimits) -> Iterator[ForeignRecord]:
    """What Claude wrote down of all conversations, and of those of each project: every bullet and paragraph of it."""
    seen: set[str] = set()
    undated = file.changed if isinstance(file, Member) else changed_at(file)
    try:
        for _, told in elements(text_of(content_of(file, at_most=limits.file_bytes)), at_most=limits.record_bytes):
            for area, text in _texts(told):
                for said in statements(text):
                    heading = " / ".join((*area, *said.headings))
                    record = proposal(
                        ClaudeAi.name, [*area, known_by(said.text)], said.text,
                        where=f"{file.name}, line {said.line}", undated=undated, area=heading,
                    )  # fmt: skip
                    if record.memory.id not in seen:
                        seen.add(record.memory.id)
                        yield record
    except Unfit as problem:
        yield Unreadable(where=file.name, reason=str(problem))


def _texts(told: Json) -> Iterator[tuple[tuple[str, ...], str]]:
    if not isinstance(told, dict):
        return
    if text := words(told.get("conversations_memory")):
        yield (), text
    projects = told.get("project_memories")
    for project, text in projects.items() if isinstance(projects, dict) else ():
        if is_id(project) and words(text):
            yield (f"project {project}",), text


def _conversation(told: Json) -> ChatSession | None:
    number = told.get("uuid")
    if not is_id(number):
        return None
    began = moment(told.get("created_at")) or NEVER
    session = Session(
        id=SessionId(number),
        project=None,
        host=f"{IMPORTED_HOST}{ClaudeAi.name}",
        directory="",
        title=words(told.get("name")),
        created_at=began,
        updated_at=max(began, moment(told.get("updated_at")) or began),
    )
    messages: list[Message] = []
    transcript = Transcript(session.id, child=False, began=began)
    said = told.get("chat_messages")
    for item in said if isinstance(said, list) else ():
        if isinstance(item, dict) and is_id(item.get("uuid")) and item.get("sender") in _SPEAKERS:
            messages += transcript.take(_line(item))
    return ChatSession(session=session, messages=[*messages, *transcript.finish()])


def _line(item: Json) -> Json:
    """A message as Claude Code's transcripts have it; the blocks in them are the same."""
    content = item.get("content")
    return {
        "type": _SPEAKERS[item["sender"]],
        "uuid": item["uuid"],
        "timestamp": item.get("created_at"),
        "message": {"content": content if isinstance(content, list) and content else item.get("text")},
    }
