"""Recognising ocpg's files by their names and first bytes, and which of them are one database."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from backstory.adapters.formats.folder_walk import folders_below
from backstory.adapters.formats.ocpg.characters import encoding_of
from backstory.adapters.formats.ocpg.database import SCHEMES, usual_address
from backstory.adapters.formats.ocpg.rows import SYSTEM
from backstory.adapters.formats.ocpg.script import Script
from backstory.adapters.formats.ocpg.sources import CSV_FILES, header_of
from backstory.adapters.formats.ocpg.tables import MEMORIES, NEEDED, Data, Table, Trouble
from backstory.adapters.formats.ocpg.tokens import Tokens
from backstory.adapters.formats.outside_files import entries, is_plain, read_start
from backstory.errors import InputError
from backstory.ports.formats import FoundStore, ReadLimits

SCRIPTS = (".sql", ".dump", ".pgsql")
_HEAD_BYTES = 256 * 1024
_CUSTOM = b"PGDMP"
_CUSTOM_SIGNS = (b"memories", b"search_vector")  # in the list of contents, which such a dump begins with
_BESIDES = frozenset({"embedding", "search_vector"})  # columns of a script that CSV files have elsewhere, or nowhere
_SERVER = re.compile(r"^-- Dumped from database version ([\w.() ~+-]{1,80})$", re.MULTILINE | re.ASCII)
_PROGRAM = re.compile(r"^-- Dumped by pg_dump version ([\w.() ~+-]{1,80})$", re.MULTILINE | re.ASCII)
_OWNER = re.compile(r"^-- Name: memories; Type: TABLE; Schema: public; Owner: ([\w-]{1,63})$", re.MULTILINE | re.ASCII)


@dataclass(frozen=True, slots=True, kw_only=True)
class Preface:
    """What a dump says of itself; None where it says nothing."""

    server: str | None = None
    program: str | None = None
    owner: str | None = None


def found_at(place: str) -> Iterator[FoundStore]:
    """ocpg's stores at a place and below it, by label. The format's name stands for the database that ocpg uses."""
    if place == SYSTEM and not Path(place).exists():
        place = usual_address()
    if place.startswith(SCHEMES):
        yield FoundStore(format=SYSTEM, place=place)
        return
    path = Path(place).expanduser()
    if is_plain(path.resolve()):
        if _is_script(path.resolve()) or _is_table(path.resolve()):
            yield FoundStore(format=SYSTEM, place=str(path.resolve()))
        return
    found = [(f"{label}/{file.name}".lstrip("/"), file) for label, folder in folders_below(place)
             for file in _in(folder)]  # fmt: skip
    for label, file in sorted(found):
        yield FoundStore(format=SYSTEM, place=str(file), label=label)


def csv_beside(script: Path) -> Path | None:
    """The folder whose CSV files are of the same database as a script in it: they name the same columns, and those of
    no other script there. None where there are none."""
    table = script.with_name(CSV_FILES[MEMORIES])
    wanted = _csv_columns(table) if is_plain(table) else None
    if wanted is None:
        return None
    same = [file for file in _scripts(script.parent) if _script_columns(file) == wanted]
    return script.parent if same == [script] else None


def preface_of(script: Path) -> Preface:
    """What a dump says of itself."""
    head = _head(script)
    server, program, owner = (pattern.search(head) for pattern in (_SERVER, _PROGRAM, _OWNER))
    return Preface(
        server=server and server.group(1), program=program and program.group(1), owner=owner and owner.group(1)
    )


def _in(folder: Path) -> Iterator[Path]:
    scripts = [file for file in _scripts(folder) if _is_script(file)]
    yield from scripts
    table = folder / CSV_FILES[MEMORIES]
    if is_plain(table) and _is_table(table) and not any(csv_beside(file) for file in scripts):
        yield table


def _scripts(folder: Path) -> Sequence[Path]:
    return [file for file in entries(folder) if file.suffix.lower() in SCRIPTS and is_plain(file)]


def _is_script(file: Path) -> bool:
    if file.suffix.lower() not in SCRIPTS:
        return False
    if _script_columns(file) is not None:
        return True
    head = read_start(file, size=_HEAD_BYTES)
    return head.startswith(_CUSTOM) and all(sign in head for sign in _CUSTOM_SIGNS)


def _is_table(file: Path) -> bool:
    return file.name == CSV_FILES[MEMORIES] and _csv_columns(file) is not None


def _script_columns(file: Path) -> frozenset[str] | None:
    """The columns of ocpg's memories that a script begins with; None where it has none of them."""
    head = _head(file)
    if MEMORIES not in head or head.startswith(_CUSTOM.decode()):
        return None
    for event in Script(Tokens(iter((head,)), at_most=_HEAD_BYTES)):
        match event:
            case Table(name="memories", types=types):
                return frozenset(types) - _BESIDES
            case Data(table="memories", values=values):
                return frozenset(values) - _BESIDES
            case Trouble(where="memories"):
                return frozenset()
    return None


def _csv_columns(file: Path) -> frozenset[str] | None:
    limits = ReadLimits(file_bytes=1 << 62, record_bytes=_HEAD_BYTES)
    try:
        columns = frozenset(header_of(file, limits=limits))
    except InputError:
        return None
    return columns - _BESIDES if NEEDED[MEMORIES] <= columns else None


def _head(file: Path) -> str:
    return read_start(file, size=_HEAD_BYTES).decode(encoding_of(file) or "utf-8", "replace")
