"""Putting our entries into an agent's configuration and taking them out again, planned first and then carried out.

Everything else in a file stays byte for byte: comments, order, indentation. A file that cannot be read as what it
should be is left alone. Before a file is changed, a copy is kept.
"""

from __future__ import annotations

import hashlib
import json
import os
import stat
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Literal

from backstory.config.files import leads_outside
from backstory.entrypoints.agents import json_edit, toml_edit
from backstory.entrypoints.agents.hosts import Entry, is_our_hook, is_ours
from backstory.entrypoints.agents.json_tree import Unfit
from backstory.entrypoints.opencode.files import read_regular, reason, remove, write_whole
from backstory.errors import InstallError

MAX_BYTES = 32 * 1024 * 1024
"""Of a configuration; Claude Code's own grows to some megabytes."""
BACKUPS = "install-backups"

Action = Literal["create", "update", "keep", "remove"]


@dataclass(frozen=True, slots=True, kw_only=True)
class FileEdit:
    """One file and what becomes of it. ``path`` is the file itself, wherever a link of the user's leads. ``lines`` say
    which entries go (``-``) and come (``+``), and nothing of the others: they may hold somebody's keys. ``is_first``:
    nothing of ours is in it yet."""

    path: Path
    before: bytes | None
    after: bytes | None
    lines: tuple[str, ...] = ()
    is_first: bool = False

    @property
    def action(self) -> Action:
        """What happens to the file."""
        if self.before == self.after:
            return "keep"
        if self.before is None:
            return "create"
        return "remove" if self.after is None else "update"


@dataclass(frozen=True, slots=True, kw_only=True)
class SetupPlan:
    """Every file that belongs to it, and names of entries that are not ours and stay as they are."""

    edits: tuple[FileEdit, ...]
    left: tuple[str, ...] = ()

    def paths(self, action: Action) -> list[Path]:
        """The files to which this happens."""
        return [edit.path for edit in self.edits if edit.action == action]


def plan_setup(entries: Sequence[Entry], *, root: Path | None, force: bool = False) -> SetupPlan:
    """What setting up does; nothing where all is there already.

    Raises InstallError for an entry of our name that is not ours, unless ``force`` replaces it, for a file that cannot
    be read or changed safely, and for a project's file that leads out of ``root``.
    """
    add = partial(_added, force=force)
    return SetupPlan(edits=tuple(_edit(file, entries, root, add) for file in _files(entries)))


def plan_removal(entries: Sequence[Entry], *, root: Path | None, backups: Path | None = None) -> SetupPlan:
    """What taking it out does. A file that nobody changed since we did becomes what it was, byte for byte, where
    ``backups`` has that. Raises InstallError as ``plan_setup``."""
    edits = [_edit(file, entries, root, _dropped) for file in _files(entries)]
    if backups is not None:
        edits = [_undone(edit, _of(file, entries), backups) for edit, file in zip(edits, _files(entries), strict=True)]
    left = [
        f"{entry.file}: {'.'.join(entry.path)}"
        for entry in entries
        if not entry.in_list and _is_foreign(entry, _value(entry, _text(entry.file, _read(entry.file))))
    ]
    return SetupPlan(edits=tuple(edits), left=tuple(left))


def is_set_up(entries: Sequence[Entry]) -> bool:
    """Whether any of our entries is there, in whatever version. What cannot be read counts as not there."""
    for entry in entries:
        try:
            if _is_there(entry, _text(entry.file, _read(entry.file))):
                return True
        except InstallError:
            continue
    return False


def carry_out(plan: SetupPlan, *, backups: Path) -> None:
    """Make the changes; ``backups`` is where a copy of each changed file is kept. Raises InstallError, also where a
    file was changed since the plan was made."""
    for edit in plan.edits:
        if edit.action == "keep":
            continue
        if _read(edit.path) != edit.before:
            raise InstallError(f"{edit.path} was changed meanwhile; run it again")
        if edit.before is not None and edit.after is not None:  # a file that goes held nothing but ours
            write_whole(backup_of(edit.path, backups), edit.before, mode=0o600)
            if edit.is_first:
                write_whole(original_of(edit.path, backups), edit.before, mode=0o600)
        if edit.after is None:
            remove(edit.path)
        else:
            write_whole(edit.path, edit.after, mode=_mode(edit.path))


def backup_of(path: Path, backups: Path) -> Path:
    """Where the copy of a file is kept, by its path; what it was before our last change of it."""
    return backups / f"{hashlib.blake2b(os.fsencode(path), digest_size=6).hexdigest()}-{path.name}"


def original_of(path: Path, backups: Path) -> Path:
    """Where the copy of a file is kept that had nothing of ours yet."""
    backup = backup_of(path, backups)
    return backup.with_name(f"{backup.name}.original")


def _undone(edit: FileEdit, entries: Sequence[Entry], backups: Path) -> FileEdit:
    original = _read(original_of(edit.path, backups))
    if edit.action == "keep" or original is None:
        return edit
    try:
        ours, _ = _changed(_text(edit.path, original), entries, partial(_added, force=False))
    except InstallError:  # --force had replaced an entry of our name: that does not come back
        return edit
    return replace(edit, after=original) if ours.encode() == edit.before else edit


def _is_there(entry: Entry, text: str) -> bool:
    value = _value(entry, text)
    found = value if isinstance(value, list) else [value]
    return any(is_our_hook(item) if entry.in_list else is_ours(item) for item in found)


def _of(file: Path, entries: Sequence[Entry]) -> list[Entry]:
    return [entry for entry in entries if entry.file == file]


def _files(entries: Sequence[Entry]) -> list[Path]:
    return list(dict.fromkeys(entry.file for entry in entries))


def _edit(file: Path, entries: Sequence[Entry], root: Path | None, change: Callable[[Entry, str], str]) -> FileEdit:
    if root is not None and leads_outside(file, root):
        raise InstallError(f"{file} is a link that leads out of the project {root}; nothing was written")
    before = _read(file)
    original = _text(file, before)
    text, lines = _changed(original, _of(file, entries), change)
    real = Path(os.path.realpath(file))
    if text == original:
        return FileEdit(path=real, before=before, after=before)
    is_empty = not text.strip("\ufeff \t\r\n{}")
    return FileEdit(
        path=real,
        before=before,
        after=None if is_empty else text.encode(),
        lines=tuple(lines),
        is_first=not any(_is_there(entry, original) for entry in entries if entry.file == file),
    )


def _changed(text: str, entries: Sequence[Entry], change: Callable[[Entry, str], str]) -> tuple[str, list[str]]:
    """The text of the one file that these entries are in, and what is said about it."""
    lines: list[str] = []
    for entry in entries:
        present = text
        try:
            text = change(entry, text)
        except Unfit as problem:
            raise InstallError(f"{entry.file} is left as it is: {problem}") from None
        if text != present:
            lines += [*_shown("-", entry, present), *_shown("+", entry, text)]
    return text, lines


def _added(entry: Entry, text: str, *, force: bool) -> str:
    value = _value(entry, text)
    if entry.in_list:
        present = value if isinstance(value, list) else []
        if [item for item in present if is_our_hook(item)] == [entry.value]:
            return text
        return json_edit.append(_dropped(entry, text), entry.path, entry.value)
    if value == entry.value:
        return text
    if _is_foreign(entry, value) and not force:
        name = ".".join(entry.path)
        raise InstallError(f"{entry.file} has {name} already, which is not ours; --force replaces it")
    if entry.syntax == "toml":
        return toml_edit.put(text, entry.path, entry.value)
    return json_edit.put(text, entry.path, entry.value)


def _dropped(entry: Entry, text: str) -> str:
    value = _value(entry, text)
    if entry.in_list:
        for position in reversed(range(len(value) if isinstance(value, list) else 0)):
            if isinstance(value, list) and is_our_hook(value[position]):
                text = json_edit.take(text, entry.path, position)
        return text
    if not is_ours(value):
        return text
    return toml_edit.take(text, entry.path) if entry.syntax == "toml" else json_edit.take(text, entry.path)


def _shown(sign: str, entry: Entry, text: str) -> Iterator[str]:
    """What stands at an entry's place in a text: ours in full, another's without what it holds."""
    value, name = _value(entry, text), ".".join(entry.path)
    if entry.in_list:
        for item in value if isinstance(value, list) else []:
            if is_our_hook(item):
                yield f"{sign} {name}: {json.dumps(item, ensure_ascii=False)}"
    elif value is not None:
        yield f"{sign} {name}: {json.dumps(value, ensure_ascii=False) if is_ours(value) else '(not ours)'}"


def _is_foreign(entry: Entry, value: object) -> bool:
    return value is not None and not is_ours(value)


def _value(entry: Entry, text: str) -> object:
    """What stands where the entry belongs; None for nothing."""
    try:
        value: object = toml_edit.value_of(text) if entry.syntax == "toml" else json_edit.value_of(text)
    except Unfit as problem:
        kind = "TOML" if entry.syntax == "toml" else "JSON"
        raise InstallError(f"{entry.file} is left as it is, since it is not {kind}: {problem}") from None
    for name in entry.path:
        value = value.get(name) if isinstance(value, dict) else None
    return value


def _read(file: Path) -> bytes | None:
    try:
        return read_regular(file, at_most=MAX_BYTES)
    except OSError as error:
        raise InstallError(f"{file} cannot be read and is left as it is: {reason(error)}") from error


def _text(file: Path, content: bytes | None) -> str:
    try:
        return (content or b"").decode("utf-8")
    except UnicodeDecodeError as error:
        raise InstallError(f"{file} is left as it is: it is not UTF-8 (byte {error.start + 1:,})") from None


def _mode(path: Path) -> int:
    try:
        return stat.S_IMODE(path.stat().st_mode)
    except OSError:
        return 0o600
