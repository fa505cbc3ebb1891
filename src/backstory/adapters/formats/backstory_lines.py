"""Our own format read from a file: JSON lines, as ``backstory export`` writes them (docs/reference/jsonl-format.md)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from backstory.adapters.formats.outside_files import Unfit, entries, is_folder, is_plain, lines, read_start
from backstory.codecs.jsonl import WHOLE_VERSION, BadLine, Header, decode_header
from backstory.codecs.jsonl_records import foreign_records
from backstory.domain.interchange import ForeignRecord
from backstory.errors import InputError
from backstory.ports.formats import FoundStore, ReadLimits

NAME = "backstory"
_ANY_SIZE = 1 << 50  # the lines are read one by one, so that a file may be of any size
_HEADER_BYTES = 4_000_000


class BackstoryLines:
    """Reads exports of this product, of each version."""

    name = NAME

    def find(self, place: str) -> Sequence[FoundStore]:
        """An export that the place names, or those in the folder that it names."""
        path = Path(place).resolve()
        if is_plain(path):
            return [FoundStore(format=NAME, place=str(path))] if header_of(path) else []
        files = entries(path, ends=".jsonl") if is_folder(path) else []
        return [
            FoundStore(format=NAME, place=str(file), label=file.name)
            for file in files
            if is_plain(file) and header_of(file)
        ]

    def read(self, store: FoundStore, *, limits: ReadLimits) -> Iterator[ForeignRecord]:
        """The records in the order of the lines."""
        yield from foreign_records(_texts(Path(store.place), limits))


def names_projects(store: FoundStore) -> bool:
    """Whether an export says where its projects are, so that each record can be left in its own."""
    header = header_of(Path(store.place))
    return header is not None and header.version == WHOLE_VERSION


def header_of(path: Path) -> Header | None:
    """The header of an export; None where the file is none."""
    first = read_start(path, size=_HEADER_BYTES).lstrip(b"\xef\xbb\xbf \r\n").partition(b"\n")[0]
    try:
        return decode_header(first.decode("utf-8"))
    except (InputError, UnicodeDecodeError):
        return None


def _texts(path: Path, limits: ReadLimits) -> Iterator[str | BadLine]:
    """The lines; one that is not UTF-8, or too long, as what is wrong with it."""
    try:
        for number, line in lines(path, at_most=_ANY_SIZE, line_bytes=limits.record_bytes):
            if line is None:
                yield BadLine(f"longer than {limits.record_bytes:,} bytes")
                continue
            try:
                yield line.decode("utf-8-sig" if number == 1 else "utf-8")
            except UnicodeDecodeError:
                yield BadLine("not UTF-8")
    except Unfit as error:
        raise InputError(f"the file cannot be read: {error}", field="place") from error
