"""The formats that memories come in by and leave by, and which stores of them stand at a place."""

from __future__ import annotations

import re
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING

from backstory.errors import InputError

if TYPE_CHECKING:
    from backstory.ports.formats import FormatReader, FormatWriter, FoundStore

_FORMATS = "backstory.adapters.formats"
_USER = re.compile(r"(://)[^/?#]*@")
READERS: dict[str, str] = {
    "backstory": f"{_FORMATS}.backstory_lines:BackstoryLines",
    "memory-tree": f"{_FORMATS}.memory_tree.reader:MemoryTreeReader",
    "ocpg": f"{_FORMATS}.ocpg.reader:OcpgReader",
    "opencode-memory": f"{_FORMATS}.opencode_memory.reader:OpencodeMemoryReader",
    "git-memory": f"{_FORMATS}.git_memory.reader:GitMemoryReader",
    "observational": f"{_FORMATS}.observational.reader:ObservationalReader",
    "opencode": f"{_FORMATS}.opencode_history.reader:OpenCodeHistory",
    "claude-code": f"{_FORMATS}.claude_code.reader:ClaudeCodeTranscripts",
    "chatgpt": f"{_FORMATS}.chatgpt:ChatGpt",
    "claude": f"{_FORMATS}.claude_ai:ClaudeAi",
    "mcp-memory": f"{_FORMATS}.mcp_memory:McpMemory",
    "basic-memory": f"{_FORMATS}.basic_memory:BasicMemory",
    "agents-md": f"{_FORMATS}.agents_md:AgentsMd",
}
"""Where the reader of each format is, in the order in which a place is asked about; imported when it is used."""
WRITERS: dict[str, str] = {
    "memory-tree": f"{_FORMATS}.memory_tree.writer:MemoryTreeWriter",
    "ocpg": f"{_FORMATS}.ocpg.writer:OcpgWriter",
    "opencode-memory": f"{_FORMATS}.opencode_memory.writer:OpencodeMemoryWriter",
    "git-memory": f"{_FORMATS}.git_memory.writer:GitMemoryWriter",
    "observational": f"{_FORMATS}.observational.writer:ObservationalWriter",
    "markdown": f"{_FORMATS}.markdown_folder.writer:MarkdownFolder",
}
"""Where the writer of each format is."""
BACKSTORY = "backstory"
"""Our own format, which the services write themselves, line by line."""
DESCRIPTIONS: dict[str, str] = {
    "backstory": "exports of Backstory: JSON lines",
    "memory-tree": "opencode-memory-tree: folders .opencode/plugins/memory-tree",
    "ocpg": "@dzhi/ocpg: a dump, CSV files, or the address of the database",
    "opencode-memory": "@cioffi_ai/opencode-memory: store.json, with its state and summary",
    "git-memory": "opencode-plugin-git-memory: a repository, a bundle, or the older .opencode/memory",
    "observational": "opencode-observational-memory: folders .opencode/om-state",
    "opencode": "sessions of OpenCode, from its own database",
    "claude-code": "sessions of Claude Code, from its transcripts",
    "chatgpt": "ChatGPT: an export, as the zip or its conversations.json; with --format, a list of its memories",
    "claude": "Claude: an export, as the zip or its conversations.json and memories.json; with --format, a list",
    "mcp-memory": "the MCP reference memory server: its file of JSON lines",
    "basic-memory": "basic-memory: a folder of its notes",
    "agents-md": "AGENTS.md, CLAUDE.md and the like, named themselves",
    "markdown": "a folder of Markdown, for people to read",
}
"""What each format is to people."""
_ON_ITS_WORD = frozenset({"chatgpt", "claude", "agents-md"})
"""Formats whose files look like any other text: one is read as such where a person says so."""
_CAREFUL = frozenset({"markdown"})
"""Writers that know their own files and leave all others alone."""
_GENERAL = frozenset({"markdown", "basic-memory", "agents-md"})
"""Readers of files that many products have: what another reader claims is not theirs."""


def reader(name: str) -> FormatReader:
    """The reader of a format. Raises InputError for a format that is not read."""
    made: FormatReader = _made(READERS, name)
    return made


def writer(name: str) -> FormatWriter:
    """The writer of a format. Raises InputError for a format that is not written."""
    made: FormatWriter = _made(WRITERS, name)
    return made


def _made(known: dict[str, str], name: str):  # type: ignore[no-untyped-def]  # either port, as the table says
    if name not in known:
        raise InputError(f"the format {name[:60]!r} is not known; known are {', '.join(known)}", field="format")
    module, _, attribute = known[name].partition(":")
    return getattr(import_module(module), attribute)()


def find_stores(place: str, *, format_name: str | None = None, shown: str | None = None) -> list[FoundStore]:
    """The stores at a place and below it, of one format or of all.

    ``place`` is a path, the address of a database, or the name of a format for the place where that usually is. One
    folder may hold stores of several formats; a file or folder that two readers claim is the one's that stands first in
    ``READERS``. Raises InputError where nothing is found, saying what was looked for, at ``shown`` if it is given.
    """
    named = shown_place(shown or place)
    try:
        found = _found(place, format_name)
    except OSError as error:
        reason = error.strerror or "it cannot be read"
        raise InputError(f"{named!r} cannot be looked through: {reason}", field="place") from error
    if not found:
        _refuse_zip(place, named)
        if place in READERS and not Path(place).exists():
            raise InputError(
                f"nothing of {place} was found where it usually is",
                field="place",
                hint=f"name its file or folder: backstory import --format {place} PLACE",
            )
        looked_for = format_name or "any of " + ", ".join(READERS)
        raise InputError(
            f"there is no store at {named!r} that could be imported; looked for {looked_for}",
            field="place",
            hint="`backstory import --list` tells what each format is",
        )
    return found


def _refuse_zip(place: str, named: str) -> None:
    """Say what is missing in a zip in which nothing was found."""
    from backstory.adapters.formats.outside_files import named as path_of
    from backstory.adapters.formats.zipped import is_zip, zips_within

    path = path_of(place)
    if not is_zip(path):
        return
    within = zips_within(path)
    told = f"; it holds other zips, which are not read: {within[0][:100]!r}" if within else ""
    raise InputError(
        f"the zip {named!r} holds no conversations.json or memories.json of ChatGPT or Claude that can be read{told}",
        field="place",
        hint="unpack it, and name what is to be imported",
    )


def _found(place: str, format_name: str | None) -> list[FoundStore]:
    if format_name is not None:
        return list(reader(format_name).find(place)) or _believed(place, format_name)
    if place in READERS and not Path(place).exists():
        return list(reader(place).find(place))
    _check_there(place)
    return _unclaimed([store for name in READERS for store in reader(name).find(place)])


def keeps_projects(store: FoundStore) -> bool:
    """Whether the records of a store are left in their own projects unless somebody says otherwise: all but those of an
    export that does not say where its projects are."""
    if store.format != BACKSTORY:
        return True
    from backstory.adapters.formats.backstory_lines import names_projects

    return names_projects(store)


def formats() -> list[tuple[str, bool, bool, str]]:
    """All formats: the name, whether it is read, whether it is written, and what it is to people."""
    names = dict.fromkeys((*READERS, *WRITERS))
    return [(name, name in READERS, name in WRITERS or name == BACKSTORY, DESCRIPTIONS.get(name, "")) for name in names]


def check_target(target: Path, format_name: str, labels: Sequence[str], *, force: bool) -> None:
    """Raise InputError where an export must not be written: over something else than a store of its format, unless
    ``force``, and never outside of ``target``, wherever a label points."""
    for label in labels:
        path = PurePosixPath(label)
        if path.is_absolute() or ".." in path.parts or "\\" in label or ":" in label or not label.isprintable():
            raise InputError(f"a store is named {label[:100]!r}, which is no path below another", field="store")
        if not (target / label).resolve().is_relative_to(target.resolve()):
            raise InputError(f"{str(target / label)!r} leads out of {str(target)!r} by a link", field="place")
    try:
        holds_something = target.is_file() or (target.is_dir() and any(target.iterdir()))
    except OSError as error:
        raise InputError(f"{str(target)!r} cannot be written to: {error.strerror}", field="place") from error
    if not holds_something or force or (format_name in _CAREFUL and target.is_dir()):
        return
    if format_name not in READERS or not reader(format_name).find(str(target)):
        raise InputError(
            f"{str(target)!r} holds something else than an export as {format_name}",
            field="place",
            hint="name a new folder, or write into this one with --force",
        )


def shown_place(place: str) -> str:
    """A place as it may be shown: the address of a database without its user and password."""
    return _USER.sub(r"\1", place) if "://" in place else place


def _believed(place: str, format_name: str) -> list[FoundStore]:
    from backstory.adapters.formats.zipped import is_zip
    from backstory.ports.formats import FoundStore

    fits = format_name in _ON_ITS_WORD and Path(place).is_file() and not is_zip(Path(place).resolve())
    return [FoundStore(format=format_name, place=str(Path(place).resolve()))] if fits else []


def _check_there(place: str) -> None:
    if "://" in place:
        return
    try:
        is_there = Path(place).exists()
    except (OSError, ValueError):
        is_there = False
    if not is_there:
        raise InputError(
            f"there is nothing at {place[:200]!r}",
            field="place",
            hint="name a file, a folder, the address of a database, or a format: " + ", ".join(READERS),
        )


def _unclaimed(found: Sequence[FoundStore]) -> list[FoundStore]:
    """Each file or folder once, for the first reader that claims it; of general readers, what no other one claims."""
    taken: dict[str, FoundStore] = {}
    for store in found:
        taken.setdefault(store.place.rstrip("/"), store)
    own = [place for place, store in taken.items() if store.format not in _GENERAL]
    return [
        store
        for place, store in taken.items()
        if store.format not in _GENERAL or not any(_overlap(place, other) for other in own)
    ]


def _overlap(one: str, other: str) -> bool:
    return one.startswith(f"{other}/")
