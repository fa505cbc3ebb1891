"""The files of a store, wherever they are: on refs, in bundles, exports, or the ancestor's in the work tree."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from backstory.adapters.formats.git_memory.layout import FOLDER, Kind, is_memory_file, kind_of, sources
from backstory.adapters.formats.git_memory.repository import Repository, new_repository
from backstory.adapters.formats.kept_json import DOCUMENT_BYTES
from backstory.adapters.formats.outside_files import Unfit, entries, is_plain, read_file, text_of
from backstory.domain.interchange import Unreadable
from backstory.ports.formats import ReadLimits


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceFile:
    """One file of records. ``source`` is the bundle, export, repository or folder in which it stands, by its name in
    the store, ``ref`` the ref, empty where there is none, ``path`` its own name."""

    kind: Kind
    source: str
    ref: str
    path: str
    text: str

    @property
    def where(self) -> str:
        """Which file this is, for people."""
        return " ".join(filter(None, [self.source, self.ref, self.path if self.path != self.source else ""]))


def source_files(place: Path, limits: ReadLimits) -> Iterator[SourceFile | Unreadable]:
    """The files at a place that is a file or a folder, the richest sources first. All together they are no larger than
    ``limits.file_bytes``; what is beyond that is told of."""
    room = limits.file_bytes
    for number, file in enumerate(_all(place, limits)):
        if isinstance(file, Unreadable):
            yield file
            continue
        room -= len(file.text)
        if room < 0 or number >= limits.files:
            yield Unreadable(where=file.where, reason="the store is larger than may be read; the rest is left out")
            return
        yield file


def _all(place: Path, limits: ReadLimits) -> Iterator[SourceFile | Unreadable]:
    found = sources(place) if place.is_dir() else _alone(place)
    at_most = min(limits.file_bytes, DOCUMENT_BYTES)
    for kind, path in found:
        name = path.relative_to(place).as_posix() if path != place and path.is_relative_to(place) else path.name
        try:
            match kind:
                case Kind.REPOSITORY:
                    yield from _on_refs(Repository(path), kind, ".git", at_most)
                case Kind.BUNDLE:
                    yield from _in_bundle(path, name, limits)
                case Kind.WORK_TREE:
                    yield from _in_folder(path, name if name != path.name else FOLDER, at_most)
                case Kind.EXPORT:
                    text = text_of(read_file(path, at_most=at_most))
                    yield SourceFile(kind=kind, source=name, ref="", path=name, text=text)
        except Unfit as error:
            yield Unreadable(where=name, reason=str(error))


def _alone(place: Path) -> Iterator[tuple[Kind, Path]]:
    kind = kind_of(place)
    if kind is not None:
        yield kind, place


def _in_bundle(path: Path, name: str, limits: ReadLimits) -> Iterator[SourceFile | Unreadable]:
    if path.stat().st_size > limits.file_bytes:
        raise Unfit(f"larger than {limits.file_bytes:,} bytes")
    with new_repository() as repository:
        repository.fetch_bundle(path)
        found = list(_on_refs(repository, Kind.BUNDLE, name, min(limits.file_bytes, DOCUMENT_BYTES)))
        if not found:
            raise Unfit("no memories are in it, or it is cut off")
        yield from found


def _on_refs(repository: Repository, kind: Kind, name: str, at_most: int) -> Iterator[SourceFile | Unreadable]:
    files = repository.files()
    fit = [file for file in files if file.size <= at_most]
    for file in files:
        if file.size > at_most:
            yield Unreadable(where=f"{name} {file.ref} {file.name}", reason=f"larger than {at_most:,} bytes")
    for file, content in zip(fit, repository.contents(fit), strict=True):
        try:
            yield SourceFile(kind=kind, source=name, ref=file.ref, path=file.name, text=text_of(content))
        except Unfit as error:
            yield Unreadable(where=f"{name} {file.ref} {file.name}", reason=str(error))


def _in_folder(folder: Path, name: str, at_most: int) -> Iterator[SourceFile | Unreadable]:
    for path in entries(folder, ends=".logfmt"):
        if is_plain(path) and is_memory_file(path.name):
            try:
                text = text_of(read_file(path, at_most=at_most))
                yield SourceFile(kind=Kind.WORK_TREE, source=name, ref="", path=path.name, text=text)
            except Unfit as error:
                yield Unreadable(where=f"{name}/{path.name}", reason=str(error))
