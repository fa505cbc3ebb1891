"""Which project a folder belongs to, read from git's own files: no process is started, nothing is written.

What takes a deeper look is in ``project_evidence.py``.
"""

from __future__ import annotations

import os
from pathlib import Path

from backstory.domain.project import ProjectSighting

_MAX_BYTES = 1 << 20


def see_project(directory: Path) -> ProjectSighting:
    """How ``directory`` identifies its project.

    Inside git the shared git directory is the strongest alias: subfolders and worktrees have it in common, another
    repository does not. The checkout's folder is a weaker one, so that a later ``git init`` keeps what was learned
    before; outside git it is the only one. Costs some 20 file system calls (0.1 to 0.3 ms on a busy machine).
    """
    here = _resolved(directory)
    found = _find_git(here)
    if found is None:
        folder = f"dir:{_text(here)}"
        stamps = {folder: _folder_stamp(here)}
        return ProjectSighting(name=_name(here), root=_text(here), aliases=(folder,), stamps=stamps)
    root, git_dir = found
    main_root = git_dir.parent if git_dir.name == ".git" else root
    repository, folder = f"git:{_text(git_dir)}", f"dir:{_text(main_root)}"
    inner = {f"dir:{_text(path)}": _folder_stamp(path) for path in _between(here, root)}
    return ProjectSighting(
        name=_repository_name(git_dir, main_root),
        root=_text(root),
        aliases=(repository, folder),
        stamps=inner | {repository: git_stamp(git_dir), folder: _folder_stamp(main_root)},
        looked=_state_of(git_dir),
        inner=tuple(inner),
    )


def shared_git_folder(directory: Path) -> Path | None:
    """The git directory that all checkouts of the repository around ``directory`` share; None outside git."""
    found = _find_git(_resolved(directory))
    return None if found is None else found[1]


def project_root(directory: Path) -> Path:
    """The root of the checkout that holds ``directory``; the folder itself outside git."""
    here = _resolved(directory)
    found = _find_git(here)
    return here if found is None else found[0]


def _name(folder: Path) -> str:
    return _text(folder.name) or _text(folder)


def _repository_name(git_dir: Path, main_root: Path) -> str:
    """The main checkout's name. A bare repository gives its worktrees its own: ``ferry.git`` and ``ferry/.bare`` are
    ferry."""
    if ".git" in git_dir.parts:
        return _name(main_root)
    if git_dir.name.startswith("."):
        return _name(git_dir.parent)
    return _text(git_dir.name).removesuffix(".git") or _name(git_dir)


def _between(here: Path, root: Path) -> list[Path]:
    """The folders from ``here`` up to the root, which is left out; the nearest first."""
    return [path for path in (here, *here.parents) if path != root and path.is_relative_to(root)]


def _text(path: Path | str) -> str:
    """A path as text that can be stored: bytes that are not UTF-8 as escapes."""
    text = str(path)
    return text if text.isascii() else os.fsencode(text).decode("utf-8", "backslashreplace")


def _folder_stamp(folder: Path) -> str:
    try:
        stat = folder.stat()
    except (OSError, ValueError):
        return ""
    return f"{stat.st_dev}:{stat.st_ino}"


def git_stamp(git_dir: Path) -> str:
    """Device, inode, and when git made it: git writes ``description`` once, and a move keeps its time.

    A link is told by itself: whoever packs an archive can make one to another repository.
    """
    if git_dir.is_symlink():
        link = git_dir.lstat()
        return f"{link.st_dev}:{link.st_ino}"
    stamp = _folder_stamp(git_dir)
    made = _mtime(git_dir / "description")
    return f"{stamp}:{made}" if stamp and made else stamp


def _state_of(git_dir: Path) -> str:
    """What changes whenever a deeper look would find more: commits, where there were none; a complete history, where
    it was shallow; other settings."""
    history = "shallow" if (git_dir / "shallow").exists() else "commits" if _has_commits(git_dir) else "empty"
    return f"{history}:{_mtime(git_dir / 'config')}"


def _has_commits(git_dir: Path) -> bool:
    if (git_dir / "packed-refs").exists() or (git_dir / "reftable").exists():
        return True
    try:
        with os.scandir(git_dir / "refs" / "heads") as branches:
            return next(branches, None) is not None
    except OSError:
        return False


def _mtime(path: Path) -> int:
    try:
        return path.stat().st_mtime_ns
    except OSError:
        return 0


def _resolved(directory: Path) -> Path:
    try:
        return directory.resolve()
    except (OSError, RuntimeError, ValueError):  # a loop of links, a folder that is gone, a NUL in its name
        return directory.absolute()


def _find_git(here: Path) -> tuple[Path, Path] | None:
    """The checkout's root and the git directory that all its worktrees share; None outside git."""
    for folder in (here, *here.parents):
        marker = folder / ".git"
        if marker.is_dir() and (marker / "HEAD").exists():
            return folder, marker
        if marker.is_file() and (git_dir := _linked(marker)) is not None and _points_back(git_dir, marker):
            return folder, _common(git_dir)
        if _is_bare(folder):
            return folder, folder
    return None


def _linked(marker: Path) -> Path | None:
    """Where a ``.git`` file of a worktree or submodule points to."""
    text = _first_line(marker)
    if text is None or not text.startswith("gitdir:"):
        return None
    return _resolved(marker.parent / text.removeprefix("gitdir:").strip())


def _points_back(git_dir: Path, marker: Path) -> bool:
    """Whether git itself knows this checkout: a worktree is named in its git directory, a submodule in its settings.

    A ``.git`` file alone proves nothing: an unpacked archive could name any repository, and read its memories.
    """
    named = _first_line(git_dir / "gitdir")
    if named is not None:
        return _resolved(git_dir / named) == _resolved(marker)
    return _worktree_setting(git_dir) == _resolved(marker.parent)


def _worktree_setting(git_dir: Path) -> Path | None:
    """``core.worktree`` of a submodule's settings."""
    pairs = (line.partition("=") for line in (_content(git_dir / "config") or "").splitlines())
    folders = [value.strip().strip('"') for name, _, value in pairs if name.strip().lower() == "worktree"]
    return _resolved(git_dir / folders[-1]) if folders else None


def _common(git_dir: Path) -> Path:
    """A worktree's git directory names the shared one in a file; a submodule has none and is its own.

    The shared one must hold it: whoever packs an archive can write such a file, but not into another repository.
    """
    text = _first_line(git_dir / "commondir")
    common = git_dir if text is None else _resolved(git_dir / text)
    return common if git_dir.parent == common / "worktrees" else git_dir


def _is_bare(folder: Path) -> bool:
    return (folder / "HEAD").is_file() and (folder / "objects").is_dir() and (folder / "refs").is_dir()


def _first_line(path: Path) -> str | None:
    lines = (_content(path) or "").splitlines()
    return lines[0].strip() if lines else None


def _content(path: Path) -> str | None:
    """What a file holds, as far as git would write it. A pipe in its place would never end."""
    try:
        if not path.is_file():
            return None
        with path.open("rb") as file:
            return file.read(_MAX_BYTES).decode("utf-8", "surrogateescape")
    except (OSError, ValueError):
        return None
