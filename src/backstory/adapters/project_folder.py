"""Which project a folder belongs to, read from git's own files: no process is started, nothing is written."""

from __future__ import annotations

from pathlib import Path

from backstory.domain.project import ProjectSighting


def see_project(directory: Path) -> ProjectSighting:
    """How ``directory`` identifies its project.

    Inside git the shared git directory is the strongest alias: subfolders and worktrees have it in common, another
    repository does not. Outside git it is the folder itself. Costs a few file system calls.
    """
    here = _resolved(directory)
    found = _find_git(here)
    if found is None:
        return ProjectSighting(name=here.name or str(here), root=str(here), aliases=(f"dir:{here}",))
    root, git_dir = found
    main_root = git_dir.parent if git_dir.name == ".git" else root
    return ProjectSighting(name=main_root.name or str(main_root), root=str(root), aliases=(f"git:{git_dir}",))


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
        if marker.is_file() and (git_dir := _linked(marker)) is not None:
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
