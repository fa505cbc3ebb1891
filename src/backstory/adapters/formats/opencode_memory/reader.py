"""The stores of opencode-memory as memories."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from backstory.adapters.formats.folder_walk import folders_below
from backstory.adapters.formats.kept_json import DOCUMENT_BYTES
from backstory.adapters.formats.opencode_memory.entries import (
    NAME,
    category_of,
    key_of,
    memory_of,
    moment,
    place_of,
)
from backstory.adapters.formats.opencode_memory.json_text import Json
from backstory.adapters.formats.opencode_memory.keeping import (
    STATE,
    STORE,
    SUMMARY,
    VERSIONS,
    Kept,
    kept_records,
    page_of,
)
from backstory.adapters.formats.opencode_memory.salvage import is_deep, salvage
from backstory.adapters.formats.outside_files import Unfit, is_plain, read_file, read_start, text_of
from backstory.domain.interchange import ForeignMemory, ForeignRecord, Remark, Unreadable
from backstory.domain.memory import Sensitivity, Tier
from backstory.errors import InputError
from backstory.ports.formats import FoundStore, ReadLimits

FOLDER_VARIABLE = "OPENCODE_MEMORY_DIR"
_USUAL = Path("~/.local/share/opencode/memory")
_HEAD_BYTES = 4096
_BESIDE_BYTES = 4 * 1024 * 1024  # of a state or summary that is kept
_SIGNS = (b'"entries"', b'"summary"', b'"version"')
_WHERE_MAX_CHARS = 60


class OpencodeMemoryReader:
    """Reads folders with a ``store.json`` of opencode-memory. A lock that was left behind does not matter."""

    name = NAME

    def find(self, place: str) -> Sequence[FoundStore]:
        """As ``FormatReader.find``. The format's name stands for the folder where the plugin has its store: that of
        ``OPENCODE_MEMORY_DIR``, else its usual one."""
        if place == self.name and not Path(place).exists():
            place = os.environ.get(FOLDER_VARIABLE) or str(_USUAL)
        path = Path(place).expanduser()
        if path.name == STORE and is_plain(path):
            return [FoundStore(format=NAME, place=str(path.resolve().parent))] if _is_store(path) else []
        found = [(label, folder) for label, folder in folders_below(place) if _is_store(folder / STORE)]
        return [FoundStore(format=NAME, place=str(folder), label=label) for label, folder in found]

    def read(self, store: FoundStore, *, limits: ReadLimits) -> Iterator[ForeignRecord]:
        """As ``FormatReader.read``. Raises InputError for a version that is not known, and for a file that is no store
        and has no entry left in it. Nothing is changed or moved in either case."""
        folder = Path(store.place)
        try:
            text = text_of(read_file(folder / STORE, at_most=min(limits.file_bytes, DOCUMENT_BYTES)))
        except Unfit as error:
            raise InputError(f"{STORE} cannot be read: {error}", field="path") from error
        found = salvage(text)
        _check_version(found.head, has_entries=bool(found.entries), damage=found.damage)
        if found.damage is not None:
            yield Unreadable(where=STORE, reason=found.damage)
        for key in [key for key, value in found.head.items() if is_deep(value)]:
            yield Unreadable(where=STORE, reason=f"its field {key[:_WHERE_MAX_CHARS]!r} is nested too deep")
            del found.head[key]
        reading = _Reading(limits=limits, kept=Kept(head=found.head, is_new=False))
        for n, entry in enumerate(found.entries, start=1):
            yield from reading.entry(n, entry)
        yield from reading.beside(folder)
        yield from kept_records(reading.kept, store.label)


@dataclass(slots=True, kw_only=True)
class _Reading:
    """One reading of a store."""

    limits: ReadLimits
    kept: Kept

    def entry(self, n: int, entry: Json) -> Iterator[ForeignRecord]:
        """One entry as a memory, or why it cannot be one."""
        where = f"entry {n}"
        text = entry.get("text") if isinstance(entry, dict) else None
        if not isinstance(text, str) or not text.strip():
            yield Unreadable(where=where, reason="it has no text")
            return
        if len(text) > self.limits.record_bytes or is_deep(entry):
            yield Unreadable(where=where, reason="it is too large, or nested too deep")
            return
        if key := key_of(entry, text)[0]:
            where = f"{where} ({key[:_WHERE_MAX_CHARS]})"
        memory = memory_of(entry, text=text)
        remarks = list(_remarks(entry))
        yield from (Remark(where=where, text=remark) for remark in remarks)
        yield ForeignMemory(memory=memory, place=place_of(entry), where=where)
        self.kept.order.append(memory.id)
        if _may_be_missing(entry, memory.sensitivity, memory.tier):
            self.kept.quiet.append(memory.id)

    def beside(self, folder: Path) -> Iterator[ForeignRecord]:
        """Take what stands beside the store, as it is."""
        for name in (STATE, SUMMARY):
            if not is_plain(folder / name):
                self.kept.page = "" if name == SUMMARY else self.kept.page
                continue
            try:
                text = text_of(read_file(folder / name, at_most=_BESIDE_BYTES))
            except Unfit as error:
                yield Remark(where=name, text=f"it cannot be read: {error}")
                continue
            if name == STATE:
                self.kept.state = text
            elif text != page_of(self.kept.head):
                self.kept.page = text


def _is_store(file: Path) -> bool:
    if not is_plain(file):
        return False
    head = read_start(file, size=_HEAD_BYTES)
    return any(sign in head for sign in _SIGNS) or any(is_plain(file.with_name(name)) for name in (STATE, SUMMARY))


def _check_version(head: dict[str, Json], *, has_entries: bool, damage: str | None) -> None:
    version = head.get("version")
    if head and version not in VERSIONS:
        known = " and ".join(map(str, VERSIONS))
        shown = version if isinstance(version, int) else "of no number"
        raise InputError(f"{STORE} has version {shown}; known are {known}. Nothing was read, and it is as it was",
                         field="path")  # fmt: skip
    if not head and not has_entries:
        raise InputError(f"{STORE} is no store of {NAME}: {damage or 'nothing is in it'}", field="path")


def _remarks(entry: dict[str, Json]) -> Iterator[str]:
    if entry.get("scope") not in ("global", "project"):
        yield "its scope is not known; it counts as its project's"
    if entry.get("scope") != "global" and place_of(entry) is None:
        yield "it names no project, and comes into the one that you are in"
    if moment(entry.get("created")) is None:
        yield "it has no date that can be read"
    if entry.get("sensitivity") not in (None, *Sensitivity):
        yield "its sensitivity is not known; it counts as private"
    if category_of(entry) == "":
        yield "it has no category; it counts as other"


def _may_be_missing(entry: dict[str, Json], sensitivity: Sensitivity, tier: Tier) -> bool:
    """Whether an export may leave it out though nobody forgot it."""
    expires = entry.get("expiresAt") is not None or tier is Tier.TEMPORARY
    return sensitivity is not Sensitivity.NORMAL or expires or entry.get("status") == "SUPERSEDED"
