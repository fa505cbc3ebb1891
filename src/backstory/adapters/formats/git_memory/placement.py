"""Which memory stands in which file of an export: where it came from, as it was there; a new one where new ones go."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from backstory.adapters.formats.git_memory.layout import (
    DEFAULT_NAMESPACE,
    DELETIONS,
    MEMORY_REFS,
    Kind,
    file_key,
    is_memory_file,
    is_memory_ref,
    is_namespace,
    is_source_name,
)
from backstory.adapters.formats.git_memory.lines import (
    Form,
    joined,
    record_of_json,
    written_deletion,
    written_line,
)
from backstory.adapters.formats.git_memory.records import deletion_of, id_of_number, record_of
from backstory.adapters.formats.kept_json import bounded_json, kept_object
from backstory.adapters.formats.outside_files import Unfit
from backstory.codecs.logfmt import Record
from backstory.domain.ids import MemoryId
from backstory.domain.interchange import Keepsake
from backstory.domain.memory import Active, Conflicted, Memory
from backstory.errors import InputError

Json = Mapping[str, Any]


@dataclass(slots=True, kw_only=True)
class PlacedFile:
    """A file of an export: which source and ref it is in, its name there, and its lines. ``known`` are the memories
    that have a line in it, ``gone`` those of them that are believed no more."""

    kind: Kind
    source: str
    ref: str
    path: str
    form: Form = Form.PLUGIN
    ends: str = "\n"
    lines: list[str] = field(default_factory=list)
    known: set[str] = field(default_factory=set)
    gone: list[Memory] = field(default_factory=list)

    @property
    def text(self) -> str:
        """What stands in it."""
        return joined(self.lines, self.form, self.ends)


class Placement:
    """The files that keepsakes tell of, filled with what the memories say now. ``unfit`` counts memories that no line
    can hold."""

    def __init__(self, memories: Iterable[Memory], keepsakes: Sequence[Keepsake]) -> None:
        self._memories = {memory.id: memory for memory in memories}
        self.unfit = 0
        self.files: list[PlacedFile] = []
        taken: set[tuple[Kind, str]] = set()
        for keepsake in keepsakes:
            file = self._file(kept_object(keepsake.text)) if keepsake.key.startswith("file:") else None
            if file is None or keepsake.key != file_key(file.source, file.ref, file.path):
                continue
            if file.kind in (Kind.WORK_TREE, Kind.EXPORT) and (file.kind, file.path) in taken:
                continue  # one file cannot be two
            taken.add((file.kind, file.path))
            self.files.append(file)
        self._tell_what_is_gone()

    @property
    def unplaced(self) -> list[Memory]:
        """Memories without a line anywhere, by time."""
        known = {name for file in self.files for name in file.known}
        return [memory for name, memory in self._memories.items() if name not in known]

    @property
    def newest_s(self) -> int:
        """When the newest of the memories was written, in seconds since 1970: commits bear no other date."""
        return max((int(memory.times.updated.timestamp()) for memory in self._memories.values()), default=0)

    def group(self, kind: Kind, source: str, ref: str) -> dict[str, PlacedFile]:
        """The files of one ref or folder, by their names."""
        return {file.path: file for file in self.files if (file.kind, file.source, file.ref) == (kind, source, ref)}

    def add_by_day(self, memories: Iterable[Memory], kind: Kind, source: str, ref: str) -> None:
        """Put memories at the end of their days' files, and what is gone at the end of the deletions."""
        files = self.group(kind, source, ref)
        form = next((file.form for file in files.values()), Form.PLUGIN)
        for memory in memories:
            path = f"{record_of(memory).ts.partition('T')[0]}.logfmt" if _is_current(memory) else DELETIONS
            if not is_memory_file(path):
                self.unfit += 1
                continue
            if path not in files:
                files[path] = PlacedFile(kind=kind, source=source, ref=ref, path=path, form=form)
                self.files.append(files[path])
            self._append(files[path], memory)

    def add_listing(self, memories: Sequence[Memory], path: str, form: Form) -> None:
        """An export of memories: those that are believed by time, then, in lines, what is gone."""
        file = next((known for known in self.files if known.kind is Kind.EXPORT and known.path == path), None)
        if file is None:
            file = PlacedFile(kind=Kind.EXPORT, source=path, ref="", path=path, form=form, ends="")
            self.files.append(file)
        current = [memory for memory in memories if _is_current(memory)]
        gone = [memory for memory in memories if not _is_current(memory)] if form is Form.PLUGIN else []
        for memory in [*sorted(current, key=lambda memory: record_of(memory).ts), *gone]:
            self._append(file, memory)

    def _file(self, told: Json) -> PlacedFile | None:
        names = [told.get(name) for name in ("kind", "source", "ref", "path", "form", "ends")]
        if not all(isinstance(name, str) for name in names):
            return None
        kind, source, ref, path, form, ends = map(str, names)
        if kind not in set(Kind) or form not in set(Form) or not _is_safe(Kind(kind), source, ref, path):
            return None
        ends = "" if ends.strip() else ends
        file = PlacedFile(kind=Kind(kind), source=source, ref=ref, path=path, form=Form(form), ends=ends)
        lines = told.get("lines")
        for entry in lines if isinstance(lines, list) else ():
            self._take(file, entry)
        return file

    def _take(self, file: PlacedFile, entry: object) -> None:
        """One line as it was: of a memory by its id, perhaps with other labels, or as it stood there."""
        told: Json = entry if isinstance(entry, Mapping) else {"id": entry}
        if isinstance(text := told.get("text"), str):
            if file.form is Form.JSON and not _is_json(text):
                self.unfit += 1
            else:
                file.lines.append(text)
        elif isinstance(told.get("record"), Mapping):
            record = record_of_json(told["record"])
            self._write(file, record) if isinstance(record, Record) else None
        elif (memory := self._memories.get(id_of_number(told.get("id")) or MemoryId(""))) is not None:
            file.known.add(memory.id)
            if _is_current(memory):
                self._write(file, _relabelled(record_of(memory), told))
            else:
                file.gone.append(memory)

    def _tell_what_is_gone(self) -> None:
        """What had a line of a record, and is no longer believed, is told in the deletions beside it."""
        groups: defaultdict[tuple[Kind, str, str], list[PlacedFile]] = defaultdict(list)
        for file in self.files:
            if file.kind is not Kind.EXPORT:
                groups[file.kind, file.source, file.ref].append(file)
        for (kind, source, ref), files in groups.items():
            gone = {memory.id: memory for file in files for memory in file.gone}
            self.add_by_day(gone.values(), kind, source, ref)

    def _append(self, file: PlacedFile, memory: Memory) -> None:
        file.known.add(memory.id)
        deletion = deletion_of(memory)
        try:
            if deletion is not None:
                file.lines.append(written_deletion(deletion, file.form))
            else:
                file.lines.append(written_line(record_of(memory), file.form))
        except InputError:
            self.unfit += 1

    def _write(self, file: PlacedFile, record: Record) -> None:
        try:
            file.lines.append(written_line(record, file.form))
        except InputError:
            self.unfit += 1


def ref_of(memory: Memory) -> str:
    """The ref that a memory goes to which came from none."""
    name = memory.namespace if is_namespace(memory.namespace) else DEFAULT_NAMESPACE
    return f"{MEMORY_REFS}{name}"


def _is_current(memory: Memory) -> bool:
    return isinstance(memory.status, Active | Conflicted)


def _is_json(text: str) -> bool:
    try:
        bounded_json(text)
    except Unfit:
        return False
    return True


def _relabelled(record: Record, told: Json) -> Record:
    if "issue" not in told and "tags" not in told:
        return record
    issue, tags = told.get("issue"), told.get("tags")
    listed = tuple(tag for tag in tags if isinstance(tag, str)) if isinstance(tags, list) else ()
    return replace(record, issue=issue if isinstance(issue, str) else None, tags=listed)


def _is_safe(kind: Kind, source: str, ref: str, path: str) -> bool:
    """Whether names from a keepsake stay inside the export: keepsakes travel, too."""
    if not is_source_name(source) or (ref and not is_memory_ref(ref)):
        return False
    return path == source if kind is Kind.EXPORT else is_memory_file(path)
