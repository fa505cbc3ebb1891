"""Claude Code's transcripts as records to be taken in: sessions, their messages, and their sub-agents as sessions."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

from backstory.adapters.formats.claude_code.places import (
    AGENT,
    PROJECTS,
    home,
    is_at_home,
    is_transcript,
    store_at,
    transcripts,
)
from backstory.adapters.formats.outside_files import Json, Unfit, is_id, is_plain, json_of, lines, named
from backstory.codecs.claude_code import HOST, Transcript, is_conversation, title_of, when
from backstory.domain.conversation import Message, Session, typed_text
from backstory.domain.ids import SessionId
from backstory.domain.interchange import (
    IMPORTED_HOST,
    ForeignMessages,
    ForeignRecord,
    ForeignSession,
    Remark,
    Unreadable,
    is_imported,
)
from backstory.errors import InputError
from backstory.ports.formats import FoundStore, ReadLimits

BATCH_MESSAGES = 50
TITLE_CHARS = 100
_PATH_MAX_CHARS = 4096
_TITLE_MARKS = (b"summary", b"itle")


class ClaudeCodeTranscripts:
    """The word ``claude-code`` stands for the transcripts of whoever runs this; sessions from there have the host that
    live ones have. Those from a path have the host of imported ones."""

    name = HOST

    def find(self, place: str) -> Sequence[FoundStore]:
        """One store: the folder or file of transcripts at a place."""
        root = home() if place == self.name else named(place)
        store = home() / PROJECTS if place == self.name else store_at(root)
        if store is None or not store.exists():
            return []
        label = store.relative_to(root).as_posix() if store != root else ""
        return [FoundStore(format=self.name, place=str(store), label=label)]

    def read(self, store: FoundStore, *, limits: ReadLimits) -> Iterator[ForeignRecord]:
        """Every session with its messages; a sub-agent's session after the one that called it."""
        path = Path(store.place)
        if not path.exists():
            raise InputError(f"{store.place} does not exist", field="path")
        host = HOST if is_at_home(path) else f"{IMPORTED_HOST}{HOST}"
        reading = _Reading(root=path if path.is_dir() else path.parent, host=host, limits=limits)
        files = 0
        for project in transcripts(path):
            seen: set[str] = set()
            for file in project:
                files += 1
                if files > limits.files:
                    raise InputError(f"{store.place} has more than {limits.files:,} transcripts", field="path")
                yield from reading.file(file, seen)
        yield from reading.remarks()


@dataclass(slots=True, kw_only=True)
class _Conversation:
    """One that a file tells: the session's own, or a sub-agent's among its lines."""

    session: Session
    transcript: Transcript
    batch: list[Message] = field(default_factory=list)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Overview:
    """What a file says of its session: when it began and was last added to, its folder, its title."""

    first: Json
    began: datetime
    ended: datetime
    directory: str
    title: str | None


class _Reading:
    """One reading of one store."""

    def __init__(self, *, root: Path, host: str, limits: ReadLimits) -> None:
        self._root = root
        self._host = host
        self._limits = limits
        self._skipped: Counter[str] = Counter()
        self._doubles = 0

    def file(self, path: Path, seen: set[str]) -> Iterator[ForeignRecord]:
        """One transcript. ``seen`` are the messages of its project's folder that were told already."""
        where = path.relative_to(self._root).as_posix()
        try:
            overview = self._overview(path)
            if overview is None:
                if is_plain(path) and not is_transcript(path):
                    self._skipped["files without a message"] += 1
                return
            yield from self._conversations(path, where, overview, seen)
        except Unfit as problem:
            yield Unreadable(where=where, reason=str(problem))

    def remarks(self) -> Iterator[Remark]:
        if self._skipped:
            told = ", ".join(f"{count} {kind}" for kind, count in sorted(self._skipped.items()))
            yield Remark(where="transcripts", text=f"passed over, since nothing was said in them: {told}")
        if self._doubles:
            text = f"{self._doubles} messages stand in two sessions, of which one goes on from the other: told once"
            yield Remark(where="transcripts", text=text)

    def _conversations(self, path: Path, where: str, overview: _Overview, seen: set[str]) -> Iterator[ForeignRecord]:
        main = self._main(path, overview)
        if main is None:
            yield Unreadable(where=where, reason="its name is no session's id")
            return
        yield _opened(main, where)
        agents = _Agents(self, main.session)
        for number, line in self._lines(path):
            at = f"{where}, line {number}"
            if isinstance(line, str):
                yield Unreadable(where=at, reason=line)
            elif line.get("uuid") is not None and not is_id(line["uuid"]):
                yield Unreadable(where=at, reason="its id is none")
            elif line.get("uuid") in seen:
                self._doubles += is_conversation(line)
            else:
                seen.update(filter(None, [line.get("uuid")]))
                conversation, is_new = agents.of(line) or (main, False)
                if is_new:
                    yield _opened(conversation, where)
                yield from self._take(line, conversation, where, at)
        for conversation in (main, *agents.known.values()):
            conversation.batch += conversation.transcript.finish()
            self._skipped.update(conversation.transcript.skipped)
            if conversation.batch:
                yield _batch(conversation, where)

    def _take(self, line: Json, conversation: _Conversation, where: str, at: str) -> Iterator[ForeignRecord]:
        try:
            conversation.batch += conversation.transcript.take(line)
        except RecursionError:
            yield Unreadable(where=at, reason="JSON nested too deep")
        if len(conversation.batch) >= BATCH_MESSAGES:
            yield _batch(conversation, where)

    def _lines(self, path: Path) -> Iterator[tuple[int, Json | str]]:
        """The lines that are JSON objects; a sentence for those that are not. A last line that was cut off is passed
        over: the rest of it has not been written yet."""
        cut: tuple[int, str] | None = None
        for number, line in lines(path, at_most=self._limits.file_bytes, line_bytes=self._limits.record_bytes):
            if cut is not None:
                yield cut
                cut = None
            if line is None:
                yield number, f"longer than {self._limits.record_bytes:,} bytes"
                continue
            if not line.strip():
                continue
            try:
                value = json_of(line)
            except Unfit as problem:
                cut = (number, str(problem))
                continue
            yield number, value if isinstance(value, dict) else "not what Claude Code writes"
        if cut is not None:
            self._skipped["half-written last lines"] += 1

    def _overview(self, path: Path) -> _Overview | None:
        """Reads the file once, of which only its titles and its first and last message are taken apart; None where
        there is no message in it."""
        first: Json = None
        last: bytes = b""
        title = None
        for _, line in lines(path, at_most=self._limits.file_bytes, line_bytes=self._limits.record_bytes):
            if not line:
                continue
            if first is None or any(mark in line[:300] for mark in _TITLE_MARKS):
                value = _value(line)
                title = (title_of(value) if isinstance(value, dict) else None) or title
                first = first if first is not None or not is_conversation(value) else value
            if b'"timestamp"' in line and b'"uuid"' in line and line.rstrip().endswith(b"}"):
                last = line
        if first is None:
            return None
        began = when(first) or datetime.fromtimestamp(0, tz=UTC)
        newest = _value(last)
        ended = (when(newest) if isinstance(newest, dict) else None) or began
        cwd = first.get("cwd")
        directory = cwd if isinstance(cwd, str) and cwd.isprintable() and len(cwd) <= _PATH_MAX_CHARS else ""
        return _Overview(
            first=first, began=began, ended=max(began, ended), directory=directory, title=title or _asked(first)
        )

    def _main(self, path: Path, overview: _Overview) -> _Conversation | None:
        number, parent = path.stem, None
        if number.startswith(AGENT):
            parent = overview.first.get("sessionId")
            number = f"{parent}.{number}"
        if not is_id(number) or (parent is not None and not is_id(parent)):
            return None
        return self.conversation(number, parent, overview)

    def conversation(self, number: str, parent: str | None, overview: _Overview) -> _Conversation:
        """A new conversation, of which nothing was said yet."""
        session = Session(
            id=SessionId(number),
            project=None,
            host=self._host,
            directory=overview.directory,
            parent=None if parent is None else SessionId(parent),
            title=overview.title,
            created_at=overview.began,
            updated_at=overview.ended,
        )
        transcript = Transcript(session.id, child=parent is not None, began=overview.began)
        return _Conversation(session=session, transcript=transcript)


class _Agents:
    """The sub-agents whose lines stand among those of the session that called them, as in older versions."""

    def __init__(self, reading: _Reading, caller: Session) -> None:
        self._reading = reading
        self._caller = caller
        self._chains: dict[str, str] = {}
        self.known: dict[str, _Conversation] = {}

    def of(self, line: Json) -> tuple[_Conversation, bool] | None:
        """The conversation of a sub-agent's line, and whether it begins with it; None for the session's own line, and
        in a file that is a sub-agent's as a whole."""
        if line.get("isSidechain") is not True or self._caller.parent is not None or not is_conversation(line):
            return None
        key = self._chain(line)
        is_new = key not in self.known
        if is_new:
            began = when(line) or self._caller.created_at
            overview = _Overview(
                first=line, began=began, ended=began, directory=self._caller.directory, title=_asked(line)
            )
            self.known[key] = self._reading.conversation(f"{self._caller.id}.{AGENT}{key}", self._caller.id, overview)
        return self.known[key], is_new

    def _chain(self, line: Json) -> str:
        """Which sub-agent it is: the one that the line names, or the line it all began with."""
        agent = line.get("agentId")
        if is_id(agent):
            return str(agent)
        uuid = str(line["uuid"])
        self._chains[uuid] = self._chains.get(str(line.get("parentUuid")), uuid)
        return self._chains[uuid]


def _opened(conversation: _Conversation, where: str) -> ForeignSession:
    session = conversation.session
    heard = not is_imported(session)
    return ForeignSession(session=session, place=session.directory or None, where=where, heard=heard)


def _batch(conversation: _Conversation, where: str) -> ForeignMessages:
    messages, conversation.batch = tuple(conversation.batch), []
    return ForeignMessages(session=conversation.session.id, messages=messages, where=where)


def _asked(line: Json) -> str | None:
    """The first line of what a message says, as a title."""
    messages = Transcript(SessionId(""), child=False, began=datetime.fromtimestamp(0, tz=UTC))
    said = [typed_text(message).strip() for message in (*messages.take(line), *messages.finish())]
    start = next((text.splitlines()[0] for text in said if text), "")
    return (start if len(start) <= TITLE_CHARS else start[: TITLE_CHARS - 1] + "…") or None


def _value(line: bytes) -> Json:
    try:
        return json_of(line)
    except Unfit:
        return None
