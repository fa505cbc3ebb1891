"""Which project a folder belongs to, read from git's own files: no process is started, nothing is written."""

from __future__ import annotations

from pathlib import Path

from backstory.domain.project import ProjectSighting


def see_project(directory: Path) -> ProjectSighting:
    """How ``directory`` identifies its project.

    Inside git the shared git directory is the strongest alias: subfolders and worktrees have it in common, another
    repository does not. The checkout's folder is a weaker one, so that a later ``git init`` keeps what was learned
    before; outside git it is the only one. Costs a few file system calls.
    """
    here = _resolved(directory)
    found = _find_git(here)
    if found is None:
        return ProjectSighting(name=here.name or str(here), root=str(here), aliases=(f"dir:{here}",))
    root, git_dir = found
    main_root = git_dir.parent if git_dir.name == ".git" else root
    aliases = (f"git:{git_dir}", f"dir:{main_root}")
    return ProjectSighting(name=main_root.name or str(main_root), root=str(root), aliases=aliases)


def project_root(directory: Path) -> Path:
    """The root of the checkout that holds ``directory``; the folder itself outside git."""
    here = _resolved(directory)
    found = _find_git(here)
    return here if found is None else found[0]


def _resolved(directory: Path) -> Path:
    try:
        return directory.resolve()
    except (OSError, RuntimeError):  # a loop of links, or a folder that is gone
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
    try:
        lines = (git_dir / "config").read_text(encoding="utf-8", errors="surrogateescape").splitlines()
    except OSError:
        return None
    pairs = (line.partition("=") for line in lines)
    folders = [value.strip().strip('"') for name, _, value in pairs if name.strip().lower() == "worktree"]
    return _resolved(git_dir / folders[-1]) if folders else None


def _common(git_dir: Path) -> Path:
    """A worktree's git directory names the shared one in a file; a submodule has none and is its own."""
    text = _first_line(git_dir / "commondir")
    return git_dir if text is None else _resolved(git_dir / text)


def _is_bare(folder: Path) -> bool:
    return (folder / "HEAD").is_file() and (folder / "objects").is_dir() and (folder / "refs").is_dir()


def _first_line(path: Path) -> str | None:
    try:
        return path.read_text(encoding="utf-8", errors="surrogateescape").splitlines()[0].strip()
    except (OSError, IndexError):
        return None
