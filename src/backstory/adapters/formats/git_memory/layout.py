"""Where opencode-plugin-git-memory and its ancestor keep what, and how such files are told from others.

refs/memory/NAMESPACE                the plugin's refs; it also takes branches, refs/heads/memory/NAMESPACE
.opencode/memory/2026-03-02.logfmt   in their commits: the records of a day; the ancestor kept them in the work tree
.opencode/memory/deletions.logfmt    what was taken away, when and why
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from enum import StrEnum
from pathlib import Path

from backstory.adapters.formats.outside_files import Unfit, entries, is_folder, is_plain, read_file, read_start
from backstory.codecs.logfmt import TYPES

FOLDER = ".opencode/memory"
DELETIONS = "deletions.logfmt"
DEFAULT_NAMESPACE = "agent"
MEMORY_REFS, MEMORY_BRANCHES = "refs/memory/", "refs/heads/memory/"
_PREFIXES = (MEMORY_REFS, MEMORY_BRANCHES)
_START_BYTES = 4096
_LOOKED_AT = 1000  # files of one folder
_SOURCE = re.compile(r"[^/\\\x00-\x1f:]{1,200}")
_NAME = re.compile(r"[0-9A-Za-z][0-9A-Za-z._-]{0,60}\.logfmt", re.ASCII)
_NAMESPACE = re.compile(r"[0-9A-Za-z][0-9A-Za-z_-]{0,60}(?:[./][0-9A-Za-z_-]{1,60}){0,5}", re.ASCII)
_TYPES = "|".join(sorted(TYPES)).encode()
_RECORD = rb'\{\s*"ts"\s*:\s*"[^"]{1,60}"\s*,\s*"type"\s*:\s*"(?:' + _TYPES + rb')"\s*,\s*"scope"\s*:'
_STARTS = {
    ".jsonl": re.compile(rb"\s*" + _RECORD),
    ".json": re.compile(rb"\s*\[\s*" + _RECORD),
    ".logfmt": re.compile(rb"(?:\xef\xbb\xbf)?ts=\S+ (?:type|action)="),
    ".bundle": re.compile(rb"# v[23] git bundle\n"),
}


class Kind(StrEnum):
    """What a source of records is."""

    BUNDLE = "bundle"
    REPOSITORY = "repository"
    EXPORT = "export"
    WORK_TREE = "files"


def kind_of(path: Path) -> Kind | None:
    """What a file is, by its name and its first bytes; None where it is nothing of the plugin's."""
    start = _STARTS.get(path.suffix)
    if start is None or not is_plain(path) or start.match(read_start(path, size=_START_BYTES)) is None:
        return None
    return Kind.BUNDLE if path.suffix == ".bundle" else Kind.EXPORT


def sources(folder: Path) -> Iterator[tuple[Kind, Path]]:
    """What stands in a folder itself: its repository, bundles, exports, the ancestor's files; the richest first."""
    if (git_folder := repository(folder)) is not None and _has_memory_refs(git_folder):
        yield Kind.REPOSITORY, git_folder
    kinds = [(kind, path) for path in entries(folder)[:_LOOKED_AT] if (kind := kind_of(path)) is not None]
    inner = folder.name == "memory" and folder.parent.name == ".opencode"
    if not inner:
        yield from sorted(kinds, key=lambda found: found[0] is not Kind.BUNDLE)
    work_tree = folder if inner else folder / FOLDER
    if is_folder(work_tree) and any(is_memory_file(path.name) and is_plain(path) for path in entries(work_tree)):
        yield Kind.WORK_TREE, work_tree


def repository(folder: Path) -> Path | None:
    """The git directory of a folder: of a checkout, of a further worktree that its repository knows, or a bare one."""
    inner = folder / ".git"
    if is_folder(inner):
        return inner if _is_git_directory(inner) else None
    if is_plain(inner):
        return _of_worktree(inner)
    return folder if _is_git_directory(folder) else None


def is_memory_file(name: str) -> bool:
    """Whether a name is that of a file of lines."""
    return _NAME.fullmatch(name) is not None


def namespace_of(ref: str) -> str:
    """What the memories of a ref are grouped by."""
    for prefix in _PREFIXES:
        if ref.startswith(prefix) and is_namespace(ref.removeprefix(prefix)):
            return ref.removeprefix(prefix)
    return DEFAULT_NAMESPACE


def is_namespace(name: str) -> bool:
    """Whether a name can be the last part of a ref's name."""
    return _NAMESPACE.fullmatch(name) is not None and not name.endswith(".lock") and ".lock/" not in name


def is_memory_ref(ref: str) -> bool:
    """Whether a ref is one that holds memories and nothing of anybody's work."""
    return any(ref.startswith(prefix) and is_namespace(ref.removeprefix(prefix)) for prefix in _PREFIXES)


def is_source_name(name: str) -> bool:
    """Whether a source's name is that of a file or folder in its store."""
    return name in (FOLDER, ".git") or (_SOURCE.fullmatch(name) is not None and not name.startswith("."))


def _has_memory_refs(git_folder: Path) -> bool:
    if is_folder(git_folder / "refs" / "memory") or is_folder(git_folder / "refs" / "heads" / "memory"):
        return True
    try:
        packed = read_file(git_folder / "packed-refs", at_most=64 * 1024 * 1024)
    except Unfit:
        return False
    return b" refs/memory/" in packed or b" refs/heads/memory/" in packed


def _is_git_directory(folder: Path) -> bool:
    return is_plain(folder / "HEAD") and is_folder(folder / "objects") and is_folder(folder / "refs")


def _of_worktree(pointer: Path) -> Path | None:
    """The repository of a further worktree: only one that points back, so that no file can name somebody else's."""
    try:
        told = read_file(pointer, at_most=_START_BYTES).decode("utf-8", "replace")
        own = Path(told.removeprefix("gitdir:").strip())
        back = Path(read_file(own / "gitdir", at_most=_START_BYTES).decode("utf-8", "replace").strip())
    except (Unfit, ValueError):
        return None
    common = own.parent.parent
    return common if back == pointer and own.parent.name == "worktrees" and _is_git_directory(common) else None


def file_key(source: str, ref: str, path: str) -> str:
    """The key of the keepsake of a file."""
    return ":".join(filter(None, ["file", source, ref, path]))
