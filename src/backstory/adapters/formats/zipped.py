"""Files inside of a zip that somebody else made: found by their names, read in memory within bounds, never unpacked.

A zip is hostile until shown otherwise: names may lead out of it, sizes may lie, a few bytes may stand for gigabytes.
"""

from __future__ import annotations

import io
import stat
import struct
import zipfile
import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path, PurePosixPath

from backstory.adapters.formats.outside_files import Unfit, is_plain, opened, read_start
from backstory.errors import InputError

MOST_ENTRIES = 50_000
MOST_DIRECTORY_BYTES = 8 * 1024 * 1024
"""Of the list of entries, which is read whole; 50,000 take about 5 MiB."""
MOST_TIMES_LARGER = 200
"""How much larger than packed a file may be; texts of chats are about ten times, and no text is so of itself."""
_SMALL_BYTES = 1 << 20  # a file of few bytes may be packed as tightly as it likes
_DEEPEST = 3  # steps of a path: an export that was packed with its folder has one more
_ENCRYPTED = 0x1
_PACKINGS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)
_BEGINNINGS = (b"PK\x03\x04", b"PK\x05\x06")
_FAULTS = (zipfile.BadZipFile, zlib.error, struct.error, EOFError, RuntimeError, ValueError, OverflowError, OSError)


@dataclass(frozen=True, slots=True, kw_only=True)
class Member:
    """A file inside of a zip. ``size`` is what it says of itself; ``changed`` has no zone and is taken as UTC."""

    archive: Path
    entry: str
    size: int
    changed: datetime

    @property
    def name(self) -> str:
        """Its own name, without the folders in the zip."""
        return PurePosixPath(self.entry).name


def is_zip(path: Path) -> bool:
    """Whether a file begins as a zip does, whatever its name."""
    return is_plain(path) and read_start(path, size=4) in _BEGINNINGS


def members(path: Path) -> list[Member]:
    """The files in a zip that may be read, by their names there. Left out are folders, links, and names that lead out
    of the zip, cannot be shown, or lie deep in it. Raises InputError for a zip that is damaged or holds too much."""
    try:
        with _archive(path) as archive:
            entries = archive.infolist()
    except (Unfit, *_FAULTS) as error:
        reason = str(error) if isinstance(error, Unfit) else "damaged, or not a zip after all"
        raise InputError(f"{path.name} cannot be read: {reason}", field="place") from error
    if len(entries) > MOST_ENTRIES:
        raise InputError(
            f"{path.name} cannot be read: {len(entries):,} files in a zip; the limit is {MOST_ENTRIES:,}",
            field="place",
        )
    fit = {entry.filename: entry for entry in entries if _is_fit(entry)}
    return [
        Member(archive=path, entry=name, size=entry.file_size, changed=_changed(entry))
        for name, entry in sorted(fit.items())
    ]


def read_member(member: Member, *, at_most: int) -> bytes:
    """All of a file. Raises Unfit where it is too large, too large for what it was packed into, locked or damaged."""
    try:
        with _archive(member.archive) as archive:
            content = _unpacked(archive, member, at_most=at_most, size=at_most + 1)
    except Unfit:
        raise
    except _FAULTS as error:
        raise Unfit("damaged, or not a zip any more") from error
    if len(content) > at_most:
        raise Unfit(f"larger than {at_most:,} bytes")
    return content


def starts_of_members(wanted: Sequence[Member], *, size: int) -> Iterator[bytes]:
    """The first bytes of each of several files of one zip, whose list of entries is read once; none where a file cannot
    be read."""
    try:
        with _archive(wanted[0].archive) as archive:
            for member in wanted:
                yield _start(archive, member, size)
    except (Unfit, *_FAULTS):
        return


def zips_within(path: Path) -> list[str]:
    """The names of zips in a zip; they are not read."""
    return [member.entry for member in members(path) if member.name.lower().endswith(".zip")]


class _Bounded(io.BufferedReader):
    """A file of which nobody reads much at once until its list of entries is known: a zip that says it is huge is not
    believed."""

    is_known = False

    def read(self, size: int | None = -1, /) -> bytes:
        if self.is_known:
            return super().read(size)
        beyond = MOST_DIRECTORY_BYTES + 1
        found = super().read(min(beyond if size is None or size < 0 else size, beyond))
        if len(found) == beyond:
            raise Unfit(f"more than {MOST_DIRECTORY_BYTES:,} bytes of names in a zip")
        return found


@contextmanager
def _archive(path: Path) -> Iterator[zipfile.ZipFile]:
    with opened(path, at_most=None) as raw, _Bounded(raw) as file, zipfile.ZipFile(file) as archive:
        file.is_known = True
        yield archive


def _unpacked(archive: zipfile.ZipFile, member: Member, *, at_most: int | None, size: int) -> bytes:
    """The first ``size`` bytes of a file. Raises Unfit as ``read_member``."""
    try:
        entry = archive.getinfo(member.entry)
        _check(entry, at_most)
        with archive.open(entry) as stream:
            return stream.read(size)
    except KeyError as error:
        raise Unfit("no longer in the zip") from error
    except Unfit:
        raise
    except _FAULTS as error:
        raise Unfit("damaged in the zip") from error


def _start(archive: zipfile.ZipFile, member: Member, size: int) -> bytes:
    try:
        return _unpacked(archive, member, at_most=None, size=size)
    except Unfit:
        return b""


def _check(entry: zipfile.ZipInfo, at_most: int | None) -> None:
    if entry.flag_bits & _ENCRYPTED:
        raise Unfit("locked with a password")
    if entry.compress_type not in _PACKINGS:
        raise Unfit("packed in a way that is not read")
    if at_most is not None and entry.file_size > at_most:
        raise Unfit(f"larger than {at_most:,} bytes")
    if entry.file_size > max(_SMALL_BYTES, MOST_TIMES_LARGER * entry.compress_size):
        raise Unfit(f"more than {MOST_TIMES_LARGER} times as large as it is packed")


def _is_fit(entry: zipfile.ZipInfo) -> bool:
    name = entry.filename
    steps = name.split("/")
    is_link = stat.S_ISLNK(entry.external_attr >> 16)
    leads_out = name.startswith("/") or "\\" in name or ":" in name or not {"", ".", ".."}.isdisjoint(steps)
    return not (is_link or leads_out or len(steps) > _DEEPEST) and name.isprintable()


def _changed(entry: zipfile.ZipInfo) -> datetime:
    try:
        return datetime(*entry.date_time, tzinfo=UTC)
    except ValueError:
        return datetime.fromtimestamp(0, tz=UTC)
