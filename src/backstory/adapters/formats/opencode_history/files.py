"""The files in which OpenCode kept its history before it had a database: one for each session, message and part."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from backstory.adapters.formats.opencode_history.source import ToldMessage
from backstory.adapters.formats.outside_files import (
    Json,
    Unfit,
    entries,
    is_folder,
    is_id,
    is_plain,
    json_of,
    read_file,
)
from backstory.codecs.opencode import moment
from backstory.domain.interchange import Unreadable
from backstory.errors import InputError
from backstory.ports.formats import ReadLimits

_JSON = ".json"


class Files:
    """A ``storage`` folder: ``session/PROJECT/SESSION.json``, ``message/SESSION/MESSAGE.json`` and
    ``part/MESSAGE/PART.json``. The names count, not the ids in the files."""

    def __init__(self, folder: Path, limits: ReadLimits) -> None:
        self._folder = folder
        self._limits = limits

    def sessions(self) -> Iterator[Json | Unreadable]:
        """Memory for one path and time of each session."""
        projects = [path for path in entries(self._folder / "session") if is_folder(path)]
        paths = [path for project in projects for path in entries(project, ends=_JSON) if is_plain(path)]
        if len(paths) > self._limits.files:
            raise InputError(f"{self._folder} has more than {self._limits.files:,} sessions", field="path")
        dated = []
        for path in paths:
            try:
                dated.append((_created(self._object(path)), path))
            except Unfit as problem:
                yield Unreadable(where=self._where(path), reason=str(problem))
        for _, path in sorted(dated):
            try:
                yield self._object(path)
            except Unfit as problem:
                yield Unreadable(where=self._where(path), reason=str(problem))

    def infos(self, session: str) -> Iterator[Json]:
        for path in self._message_paths(session):
            try:
                yield self._object(path)
            except Unfit:
                continue  # the messages themselves say so

    def messages(self, session: str) -> Iterator[ToldMessage | Unreadable]:
        """By the names of the files, which begin with the time: OpenCode's ids grow with it."""
        for path in self._message_paths(session):
            try:
                info = self._object(path) | {"sessionID": session}
            except Unfit as problem:
                yield Unreadable(where=self._where(path), reason=str(problem))
                continue
            yield self._told(info, path.stem)

    def remarks(self) -> Iterator[str]:
        yield from ()

    def close(self) -> None:
        """Nothing is kept open."""

    def _message_paths(self, session: str) -> list[Path]:
        folder = self._folder / "message" / session
        return [path for path in entries(folder, ends=_JSON) if is_plain(path)] if _is_name(session, folder) else []

    def _told(self, info: Json, message: str) -> ToldMessage:
        parts: list[Json] = []
        problems: list[Unreadable] = []
        folder = self._folder / "part" / message
        for path in entries(folder, ends=_JSON) if is_folder(folder) else ():
            try:
                parts.append(self._object(path))
            except Unfit as problem:
                problems.append(Unreadable(where=self._where(path), reason=str(problem)))
        return ToldMessage(info=info, parts=parts, problems=tuple(problems))

    def _object(self, path: Path) -> dict[str, Json]:
        """What a file says, under the id that is its name. Raises Unfit."""
        value = json_of(read_file(path, at_most=self._limits.record_bytes))
        if not isinstance(value, dict) or not is_id(path.stem):
            raise Unfit("not what OpenCode writes")
        return value | {"id": path.stem}

    def _where(self, path: Path) -> str:
        return path.relative_to(self._folder).as_posix()


def _is_name(session: str, folder: Path) -> bool:
    """Whether an id is the name of a folder and no path that leads elsewhere."""
    return folder.name == session and session not in ("", ".", "..") and is_folder(folder)


def _created(info: dict[str, Json]) -> float:
    times = info.get("time")
    created = moment(times.get("created")) if isinstance(times, dict) else None
    return created.timestamp() if created else 0.0
