"""OpenCode's history as records to be taken in: evidence only, without what we put there ourselves."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path

from backstory.adapters.formats.opencode_history.database import Database
from backstory.adapters.formats.opencode_history.files import Files
from backstory.adapters.formats.opencode_history.places import at_home, home, is_at_home, stores_at
from backstory.adapters.formats.opencode_history.server import Server, is_address
from backstory.adapters.formats.opencode_history.source import History, ToldMessage
from backstory.adapters.formats.outside_files import Json, is_folder, is_id, named
from backstory.codecs.opencode import HOST, is_helper_message, is_helper_titled, to_message, to_session
from backstory.domain.conversation import Message, Session
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
BATCH_CHARS = 2_000_000
_PATH_MAX_CHARS = 4096
_UNDATED = datetime.fromtimestamp(0, tz=UTC)


class OpenCodeHistory:
    """The word ``opencode`` stands for the history of whoever runs this; sessions from there have the host that live
    ones have. Those from a path or an address have the host of imported ones."""

    name = HOST

    def find(self, place: str) -> Sequence[FoundStore]:
        """Databases and folders below OpenCode's data folder (for ``opencode``) or below a path; an ``http`` address
        as it stands."""
        if is_address(place):
            return [FoundStore(format=self.name, place=place)]
        if place == self.name:
            return [FoundStore(format=self.name, place=str(path), label=_label(path, home())) for path in at_home()]
        root = named(place)
        return [FoundStore(format=self.name, place=str(path), label=_label(path, root)) for path in stores_at(root)]

    def read(self, store: FoundStore, *, limits: ReadLimits) -> Iterator[ForeignRecord]:
        """Every session, the oldest first, with all its messages. Cost: about 0.1 s for 1,000 messages."""
        own = not is_address(store.place) and is_at_home(Path(store.place))
        host = HOST if own else f"{IMPORTED_HOST}{HOST}"
        with closing(_history(store.place, limits)) as history:
            yield from _Reading(history, host).records()


class _Reading:
    """One reading of one store."""

    def __init__(self, history: History, host: str) -> None:
        self._history = history
        self._host = host
        self._helpers: set[str] = set()

    def records(self) -> Iterator[ForeignRecord]:
        for info in self._history.sessions():
            if isinstance(info, Unreadable):
                yield info
            else:
                yield from self._session(info)
        if self._helpers:
            count = len(self._helpers)
            yield Remark(
                where="helper sessions", text=f"{count} in which Backstory asked the model something: left out"
            )
        yield from (Remark(where="OpenCode", text=text) for text in self._history.remarks())

    def _session(self, info: Json) -> Iterator[ForeignRecord]:
        session = _session_of(info, self._host)
        if session is None:
            yield Unreadable(where="a session", reason="not what OpenCode writes")
        elif self._is_helper(info):
            self._helpers.add(session.id)
        else:
            where = f"session {session.id}"
            heard = not is_imported(session)
            yield ForeignSession(session=session, place=_place(session.directory), where=where, heard=heard)
            yield from self._messages(session, where)

    def _messages(self, session: Session, where: str) -> Iterator[ForeignRecord]:
        batch: list[Message] = []
        chars = 0
        for told in self._history.messages(session.id):
            if isinstance(told, Unreadable):
                yield told
                continue
            yield from told.problems
            message = _message_of(told, session)
            if message is None:
                yield Unreadable(where=f"{where}, a message", reason="not what OpenCode writes")
                continue
            batch.append(message)
            chars += sum(len(part.text) + len(part.detail or "") for part in message.parts)
            if len(batch) >= BATCH_MESSAGES or chars >= BATCH_CHARS:
                yield ForeignMessages(session=session.id, messages=tuple(batch), where=where)
                batch, chars = [], 0
        if batch:
            yield ForeignMessages(session=session.id, messages=tuple(batch), where=where)

    def _is_helper(self, info: Json) -> bool:
        """Whether a session only asked something for us: by its title or its agent, and no person talked there. A
        child of one is one."""
        if info.get("parentID") in self._helpers:
            return True
        titled = is_helper_titled(info)
        asked = False
        for message in self._history.infos(info["id"]):
            if is_helper_message(message):
                asked = True
            elif message.get("role") == "user":
                return False
            elif not titled and not asked:
                return False  # a helper's first message is its question
        return titled or asked


def _history(place: str, limits: ReadLimits) -> History:
    if is_address(place):
        return Server(place, limits)
    path = Path(place)
    if is_folder(path):
        return Files(path, limits)
    if not path.exists():
        raise InputError(f"{place} does not exist", field="path")
    return Database(path, limits)


def _session_of(info: Json, host: str) -> Session | None:
    if not isinstance(info, dict) or not is_id(info.get("id")):
        return None
    if not is_id(info.get("parentID")):
        info = info | {"parentID": None}
    return to_session(info, project=None, directory="", now=_UNDATED, host=host)


def _message_of(told: ToldMessage, session: Session) -> Message | None:
    parts = [part for part in told.parts if isinstance(part, dict) and is_id(part.get("id"))]
    try:
        return to_message(told.info, parts, child=session.parent is not None, now=session.created_at)
    except RecursionError:  # read, but too deep to be written
        return None


def _place(directory: str) -> str | None:
    return directory if directory.isprintable() and 0 < len(directory) <= _PATH_MAX_CHARS else None


def _label(path: Path, root: Path) -> str:
    label = path.relative_to(root).as_posix() if path.is_relative_to(root) else path.name
    return "" if label == "." else label
