"""Reads the stores of opencode-plugin-git-memory: a memory for each record, however often that stands in them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from backstory.adapters.formats.folder_walk import folders_below
from backstory.adapters.formats.git_memory.layout import (
    DEFAULT_NAMESPACE,
    FOLDER,
    MEMORY_BRANCHES,
    MEMORY_REFS,
    Kind,
    file_key,
    kind_of,
    namespace_of,
    sources,
)
from backstory.adapters.formats.git_memory.lines import Form, json_record, read_json, read_lines
from backstory.adapters.formats.git_memory.records import FORMAT, id_number, id_of, memory_of
from backstory.adapters.formats.git_memory.source import SourceFile, source_files
from backstory.adapters.formats.kept_json import kept_text
from backstory.adapters.formats.outside_files import Unfit
from backstory.adapters.stores.gitbranch.tree import parse_ts
from backstory.codecs.logfmt import Line, Record
from backstory.domain.ids import MemoryId
from backstory.domain.interchange import ForeignMemory, ForeignRecord, Keepsake, Remark, Unreadable
from backstory.errors import InputError
from backstory.ports.formats import FoundStore, ReadLimits


class GitMemoryReader:
    """Repositories, bundles, exports and the ancestor's files. What stands in one folder is one store."""

    name = FORMAT

    def find(self, place: str) -> Sequence[FoundStore]:
        """Folders with any of them, or the one file that the place is."""
        file = Path(place).expanduser()
        if kind_of(file) is not None:
            return [FoundStore(format=FORMAT, place=str(file))]
        found: list[FoundStore] = []
        inner: set[Path] = set()
        for label, folder in folders_below(place):
            kinds = () if folder in inner else tuple(sources(folder))
            if kinds:
                inner |= {path for _, path in kinds}
                found.append(FoundStore(format=FORMAT, place=str(folder), label=label))
        return found

    def read(self, store: FoundStore, *, limits: ReadLimits) -> Iterator[ForeignRecord]:
        """The records, each once; after those of a file, what stands in it in which order."""
        place = Path(store.place)
        reading = _Reading(store=store.label, project=_project(place))
        for file in source_files(place, limits):
            if isinstance(file, Unreadable):
                reading.problems.append(file)
            else:
                reading.add(file, limits)
        yield from reading.records()


@dataclass(slots=True)
class _File:
    """A file as it was read."""

    file: SourceFile
    form: Form
    lines: list[Line]
    entries: list[Any] = field(default_factory=list)


@dataclass(slots=True, kw_only=True)
class _Reading:
    """A store on its way in: what was taken away from it is known before what is there, and does not come in.

    The lines that tell of it stay as they are: they are the store's own account.
    """

    store: str
    project: str | None
    files: list[_File] = field(default_factory=list)
    gone: set[MemoryId] = field(default_factory=set)
    seen: dict[MemoryId, Record] = field(default_factory=dict)
    empty: set[MemoryId] = field(default_factory=set)
    problems: list[Unreadable] = field(default_factory=list)

    def add(self, source: SourceFile, limits: ReadLimits) -> None:
        """A file of the store."""
        try:
            form, lines = _parsed(source)
        except Unfit as error:
            self.problems.append(Unreadable(where=source.where, reason=str(error)))
            return
        for number, line in enumerate(lines, 1):
            if len(line.text) > limits.record_bytes:
                self._problem(source, number, f"longer than {limits.record_bytes:,} characters")
                lines[number - 1] = Line(text="")
            elif line.problem is not None:
                self._problem(source, number, line.problem)
            elif line.deletion is not None:
                self._note_gone(line.deletion.record)
        self.files.append(_File(source, form, lines))

    def records(self) -> Iterator[ForeignRecord]:
        """All of it."""
        for file in self.files:
            for number, line in enumerate(file.lines, 1):
                where = f"{file.file.where}, line {number}"
                if line.record is not None:
                    yield from self._record(file, line.record, where)
                elif line.text:
                    file.entries.append({"text": line.text})
            if _is_written_back(file.file):
                yield self._kept(file)
        yield from self.problems

    def _record(self, file: _File, record: Record, where: str) -> Iterator[ForeignRecord]:
        try:
            memory = memory_of(record, namespace=_namespace(file.file))
        except InputError as error:
            file.entries.append({"record": json_record(record)})
            yield Unreadable(where=where, reason=str(error))
            return
        if not record.content.strip():
            file.entries.append({"record": json_record(record)})
            if memory.id not in self.empty:
                self.empty.add(memory.id)
                yield Remark(where=where, text="a record without text is no memory; kept for an export")
            return
        first = self.seen.setdefault(memory.id, record)
        same = (first.issue, first.tags) == (record.issue, record.tags)
        number = id_number(memory.id)
        labels = {"id": number, "issue": record.issue, "tags": list(record.tags)}
        file.entries.append(number if same else labels)
        if first is record and memory.id not in self.gone:
            yield ForeignMemory(memory=memory, place=self.project, where=where)

    def _note_gone(self, record: Record) -> None:
        with suppress(InputError):  # a line without the time of its record takes none away
            self.gone.add(id_of(record, parse_ts(record.ts)))

    def _kept(self, file: _File) -> Keepsake:
        source = file.file
        told = {
            "kind": source.kind.value, "source": source.source, "ref": source.ref, "path": source.path,
            "form": file.form.value, "ends": source.text[len(source.text.rstrip()) :], "lines": file.entries,
        }  # fmt: skip
        key = file_key(source.source, source.ref, source.path)
        return Keepsake(format=FORMAT, store=self.store, key=key, text=kept_text(told))

    def _problem(self, source: SourceFile, number: int, reason: str) -> None:
        self.problems.append(Unreadable(where=f"{source.where}, line {number}", reason=reason))


def _parsed(source: SourceFile) -> tuple[Form, list[Line]]:
    if source.kind is Kind.EXPORT and source.path.endswith((".json", ".jsonl")):
        form = Form.JSON if source.path.endswith(".json") else Form.JSONL
        return form, read_json(source.text, form)
    is_plugins = source.kind is Kind.EXPORT or source.ref.startswith((MEMORY_REFS, MEMORY_BRANCHES))
    return read_lines(source.text, ancestor_first=not is_plugins)


def _is_written_back(source: SourceFile) -> bool:
    """Whether an export writes this file again: what stands on other branches is somebody's own work."""
    return not source.ref or source.ref.startswith((MEMORY_REFS, MEMORY_BRANCHES))


def _namespace(source: SourceFile) -> str:
    return namespace_of(source.ref) if source.ref else DEFAULT_NAMESPACE


def _project(place: Path) -> str | None:
    """The repository that a store stands in; None for files that came from anywhere."""
    inner = Path(FOLDER).parts
    folder = place.parents[1] if place.parts[-2:] == inner else place
    return str(folder) if (folder / ".git").exists() else None
