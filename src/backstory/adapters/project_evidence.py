"""The deeper look at a repository: its root commits, asked of git, and its main remote.

Used when a folder is seen for the first time, or stands where something else stood. A repository may come out of an
archive: nothing in it is run, and it is believed only about itself.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from pathlib import Path

from backstory.adapters.blocking import run_blocking
from backstory.adapters.project_folder import git_stamp, see_project
from backstory.domain.project import REMOTE, ROOT, Alias, ProjectSighting
from backstory.domain.project_identity import is_same_thing

DEADLINE_S = 2.0
_MAX_ROOTS = 16
_COMMIT = re.compile(r"[0-9a-f]{40}(?:[0-9a-f]{24})?")
# Parts of a git directory that git makes itself; a link there would let it speak for another repository.
_PARTS = ("HEAD", "config", "objects", "refs", "packed-refs", "commondir")


class FolderEvidence:
    """The Folders port over the disk and git."""

    def see(self, directory: Path) -> ProjectSighting:
        return see_project(directory)

    async def traits(self, seen: ProjectSighting, *, known_roots: frozenset[str]) -> tuple[str, ...]:
        if seen.git is None:
            return ()
        git_dir = Path(seen.git.partition(":")[2])

        def look() -> tuple[str, ...]:
            if not _speaks_for_itself(git_dir):
                return ()
            from backstory.adapters.git_settings import main_remote  # with urllib: only for who looks deeper

            commits = known_roots or frozenset(f"{ROOT}{commit}" for commit in root_commits(git_dir))
            remote = main_remote(git_dir)
            return tuple(sorted([*commits, *([f"{REMOTE}{remote}"] if remote else [])]))

        return await run_blocking(look)

    async def gone(self, aliases: Sequence[Alias]) -> frozenset[str]:
        return await run_blocking(lambda: frozenset(alias.name for alias in aliases if _is_gone(alias)))


def root_commits(git_dir: Path) -> list[str]:
    """The commits without a parent that ``HEAD`` comes from, sorted; none where git cannot tell within ``DEADLINE_S``,
    and none of a shallow history, which ends anywhere."""
    import subprocess

    if (git_dir / "shallow").exists():
        return []
    try:
        done = subprocess.run(
            ["git", f"--git-dir={git_dir}", "rev-list", "--max-parents=0", "HEAD"],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=DEADLINE_S,
            env=_environment(os.environ),
            check=False,
        )
    except subprocess.TimeoutExpired:
        return _hosts_root(git_dir)
    except (OSError, ValueError):
        return []
    lines = done.stdout.decode("ascii", "replace").split() if done.returncode == 0 else []
    return sorted(filter(_COMMIT.fullmatch, lines))[:_MAX_ROOTS]


def _environment(inherited: Mapping[str, str]) -> dict[str, str]:
    """No variable of a surrounding git may point elsewhere; replaced commits do not count; no network, no program."""
    kept = {name: value for name, value in inherited.items() if not name.startswith("GIT_")}
    return kept | {
        "GIT_NO_REPLACE_OBJECTS": "1",
        "GIT_NO_LAZY_FETCH": "1",
        "GIT_ALLOW_PROTOCOL": "none",
        "GIT_TERMINAL_PROMPT": "0",
        "GIT_OPTIONAL_LOCKS": "0",
        "LC_ALL": "C",
    }


def _hosts_root(git_dir: Path) -> list[str]:
    """The root commit that OpenCode found when it had the time for it, and keeps in the git directory."""
    try:
        if not (git_dir / "opencode").is_file():
            return []
        with (git_dir / "opencode").open("rb") as file:
            text = file.read(200).decode("ascii", "replace").strip()
    except OSError:
        return []
    return [text] if _COMMIT.fullmatch(text) else []


def _speaks_for_itself(git_dir: Path) -> bool:
    if git_dir.is_symlink() or (git_dir / "commondir").exists():
        return False
    return not any((git_dir / part).is_symlink() for part in _PARTS)


def _is_gone(alias: Alias) -> bool:
    path = alias.path
    if path is None or "\\x" in path:  # written with escapes, so the path itself is not known
        return False
    try:
        os.lstat(path)
    except (FileNotFoundError, NotADirectoryError):
        return True
    except (OSError, ValueError):
        return False
    return not is_same_thing(alias.stamp, git_stamp(Path(path)))
