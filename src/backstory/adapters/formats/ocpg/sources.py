"""ocpg's rows in files: in a script, or in CSV files. Both say what they hold in the same words, as ``database``."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain
from pathlib import Path

from backstory.adapters.formats.ocpg.characters import encoding_of, pieces
from backstory.adapters.formats.ocpg.csv_text import Record, records
from backstory.adapters.formats.ocpg.script import Script
from backstory.adapters.formats.ocpg.tables import MEMORIES, NEEDED, RECALLS, Data, Event, Table, Trouble
from backstory.adapters.formats.ocpg.tokens import Tokens
from backstory.adapters.formats.outside_files import is_plain
from backstory.errors import InputError
from backstory.ports.formats import ReadLimits

EMBEDDINGS = "embeddings"
CSV_FILES = {MEMORIES: "memories.csv", RECALLS: "memory_recalls.csv", EMBEDDINGS: "embeddings.csv"}
"""The file of each table, all beside one another."""
_NEEDED = NEEDED | {EMBEDDINGS: frozenset({"id", "embedding"})}
_CUSTOM = "PGDMP"
"""What a dump in the format of ``pg_restore`` begins with."""


def of_script(file: Path, *, limits: ReadLimits) -> Iterator[Event]:
    """What a script puts into ocpg's tables. Raises InputError where it cannot be read at all."""
    texts = pieces(file, _encoding(file), at_most=limits.file_bytes)
    first = next(texts, "")
    if first.startswith(_CUSTOM):
        raise InputError(
            f"{file.name} is in the format of pg_restore", field="path",
            hint=f"make a script of it: pg_restore -f memories.sql {file.name}",
        )  # fmt: skip
    yield from Script(Tokens(chain((first,), texts), at_most=limits.record_bytes))


def of_csv(folder: Path, *, limits: ReadLimits) -> Iterator[Event]:
    """What the CSV files in a folder hold: the memories, and what stands beside them. Raises InputError as above."""
    for table, name in CSV_FILES.items():
        file = folder / name
        if table == MEMORIES or is_plain(file):
            yield from _table(table, file, limits=limits)


def header_of(file: Path, *, limits: ReadLimits) -> list[str]:
    """The columns that a CSV file names. Raises InputError as above."""
    texts = pieces(file, _encoding(file), at_most=limits.file_bytes)
    first = next(records(texts, at_most=limits.record_bytes), None) or []
    return [(name or "").lstrip("\ufeff") for name in first]


def _table(table: str, file: Path, *, limits: ReadLimits) -> Iterator[Event]:
    found = records(pieces(file, _encoding(file), at_most=limits.file_bytes), at_most=limits.record_bytes)
    columns = [(name or "").lstrip("\ufeff") for name in next(found, None) or []]
    if not _NEEDED[table] <= {*columns}:
        missing = ", ".join(sorted(_NEEDED[table] - {*columns}))
        if table == MEMORIES:
            raise InputError(f"{file.name} has no columns {missing}; its first line must name them", field="path")
        yield Trouble(where=file.name, reason=f"it has no columns {missing}; its first line must name them")
        return
    if table == MEMORIES:
        yield Table(schema="", name=table, types=dict.fromkeys(columns, ()), words=frozenset())
    for n, record in enumerate(found, start=1):
        yield _row(table, n, columns, record)


def _row(table: str, n: int, columns: list[str], record: Record | None) -> Event:
    where = f"{table}, row {n}"
    if record is None:
        return Trouble(where=where, reason="it is no CSV, cut off, or too long to be read")
    if len(record) != len(columns):
        return Trouble(where=where, reason=f"{len(record)} values for {len(columns)} columns")
    return Data(table=table, n=n, values=dict(zip(columns, record, strict=True)), is_copied=False)


def _encoding(file: Path) -> str:
    encoding = encoding_of(file)
    if encoding is None:
        raise InputError(f"{file.name} is in an encoding that is not known here", field="path",
                         hint="dump it with pg_dump --encoding=UTF8")  # fmt: skip
    return encoding
