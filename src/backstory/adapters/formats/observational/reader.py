"""Reads the stores of opencode-observational-memory: a session with its notes for each state."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from backstory.adapters.formats.folder_walk import folders_below, project_of
from backstory.adapters.formats.kept_json import DOCUMENT_BYTES, bounded_json, kept_text, settings_kept
from backstory.adapters.formats.observational.layout import (
    CONFIG,
    INNER,
    STATES,
    is_session_name,
    state_files,
    states_of,
)
from backstory.adapters.formats.observational.state import (
    FORMAT,
    SESSION,
    UPDATED,
    checked,
    digest_of,
    kept_of,
    moment,
    unknown_fields,
)
from backstory.adapters.formats.opencode_ids import time_of_id
from backstory.adapters.formats.outside_files import Unfit, read_file, text_of
from backstory.domain.admission import admit_evidence
from backstory.domain.conversation import Session
from backstory.domain.ids import SessionId
from backstory.domain.interchange import (
    IMPORTED_HOST,
    ForeignDigest,
    ForeignRecord,
    ForeignSession,
    Keepsake,
    Remark,
    Unreadable,
)
from backstory.errors import InputError
from backstory.ports.formats import FoundStore, ReadLimits

Json = Mapping[str, Any]


class ObservationalReader:
    """Folders of states. Messages are not in them: the plugin left those to its host."""

    name = FORMAT

    def find(self, place: str) -> Sequence[FoundStore]:
        """Folders that hold ``om-state``, or states themselves where they are kept elsewhere."""
        found: list[FoundStore] = []
        states: list[Path] = []
        for label, folder in folders_below(place):
            if folder not in states and (path := states_of(folder)) is not None:
                states.append(path)
                found.append(FoundStore(format=FORMAT, place=str(folder), label=label))
        return found

    def read(self, store: FoundStore, *, limits: ReadLimits) -> Iterator[ForeignRecord]:
        """Each state as a session without messages, its notes, and its other fields."""
        root = Path(store.place)
        folder = states_of(root)
        if folder is None:
            raise InputError(f"{store.place} is no store of opencode-observational-memory", field="place")
        if folder != root:
            yield from settings_kept(root / CONFIG, format_name=FORMAT, store=store.label)
        place = project_of(root if folder != root else root.parent, inner=INNER)
        for number, path in enumerate(state_files(folder)):
            where = path.relative_to(root).as_posix()
            if number >= limits.files:
                yield Unreadable(where=STATES, reason=f"more than {limits.files:,} files")
                return
            if not is_session_name(path.stem):
                yield Unreadable(where=where, reason="the file's name is no session's id")
                continue
            yield from _records(path, where=where, store=store.label, place=place, limits=limits)


def _records(path: Path, *, where: str, store: str, place: str | None, limits: ReadLimits) -> Iterator[ForeignRecord]:
    text = None
    try:
        text = text_of(read_file(path, at_most=min(limits.record_bytes, limits.file_bytes, DOCUMENT_BYTES)))
        told = bounded_json(text)
        if not isinstance(told, dict):
            raise Unfit("it is no JSON object")
    except Unfit as error:
        yield Unreadable(where=where, reason=f"{error}; kept aside" if text is not None else str(error))
        if text is not None:
            kept = kept_text({"text": admit_evidence(text)})
            yield Keepsake(format=FORMAT, store=store, key=f"file:{path.stem}", text=kept)
        return
    ends = text[len(text.rstrip()) :]
    yield from _state(told, path, where=where, store=store, place=place, ends=ends)


def _state(told: Json, path: Path, *, where: str, store: str, place: str | None, ends: str) -> Iterator[ForeignRecord]:
    session = SessionId(path.stem)
    state, wrong = checked(told)
    yield from _remarks(told, wrong, path, where)
    written = datetime.fromtimestamp(path.lstat().st_mtime, UTC)
    at = moment(state.get(UPDATED)) or written
    yield ForeignSession(
        session=Session(
            id=session,
            project=None,
            host=f"{IMPORTED_HOST}{FORMAT}",
            directory=place or "",
            created_at=time_of_id(session, before=at) or at,
            updated_at=at,
        ),
        place=place,
        where=where,
    )
    yield ForeignDigest(digest=digest_of(state, session=session, otherwise=at), where=where)
    kept = kept_text(kept_of(told, state, ends=ends))
    yield Keepsake(format=FORMAT, store=store, key=f"state:{session}", text=kept, session=session)


def _remarks(told: Json, wrong: Sequence[str], path: Path, where: str) -> Iterator[Remark]:
    if wrong:
        yield Remark(where=where, text=f"{', '.join(wrong)} of another type than the plugin writes: taken as missing")
    if unknown := unknown_fields(told):
        yield Remark(where=where, text=f"{len(unknown)} fields that the plugin does not know: kept for an export")
    if isinstance(told.get(SESSION), str) and told[SESSION] != path.stem:
        yield Remark(where=where, text="it names another session than the file does; the file's name counts")
