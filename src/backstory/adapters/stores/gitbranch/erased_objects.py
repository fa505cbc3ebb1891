"""The git objects of what was erased: removing those of the ref's old history, and nobody else's; and searching all."""

from __future__ import annotations

import contextlib
import subprocess
import zlib
from collections.abc import Iterator, Sequence
from pathlib import Path

from backstory.adapters.stores.byte_search import ByteSearch, files_in
from backstory.adapters.stores.gitbranch.git import Git, GitFailed, environment
from backstory.ports.erasing import Trace

_REPACK_S = 3600.0
_OBJECTS = "objects"
_ELSEWHERE = ("lfs", "modules", "annex")  # what other programs keep in a git directory, and may be large


def leave_log(git: Git, ref: str) -> None:
    """Empty the log of a ref's earlier positions, where git keeps one. No other ref's log is touched."""
    with contextlib.suppress(GitFailed):
        git.run("reflog", "expire", "--expire=all", "--expire-unreachable=all", ref)


def remove_unreachable(git: Git, commits: Sequence[str]) -> list[str]:
    """Remove what only these commits lead to, and no ref or log any more; the names of what could not be removed.

    Objects of others stay, also those that nothing leads to: they are somebody's way back. Where some of ours are in
    a pack, the packs are written anew first, which takes seconds to minutes in a large repository.
    """
    gone = _unreachable(git, existing(git, commits))
    if any(not _loose(git, name).exists() for name in gone):
        git.run("repack", "-A", "-d", "-q", timeout_s=_REPACK_S)
    for name in gone:
        _loose(git, name).unlink(missing_ok=True)
    info = git.common_dir / _OBJECTS / "info"
    if gone and ((info / "commit-graph").exists() or (info / "commit-graphs").exists()):
        git.run("commit-graph", "write", "--reachable", "--split=replace", timeout_s=_REPACK_S)  # it names them still
    return existing(git, gone)


def existing(git: Git, names: Sequence[str]) -> list[str]:
    """Those of some objects that the repository has, in their order."""
    if not names:
        return []
    request = "".join(f"{name}\n" for name in names).encode()
    told = git.run("cat-file", "--batch-check=%(objectname) %(objecttype)", data=request).decode("ascii").splitlines()
    return [line.split()[0] for line in told if not line.endswith(" missing")]


def _unreachable(git: Git, commits: Sequence[str]) -> list[str]:
    """The objects that only these commits lead to. ``rev-list OLD --not --all`` would not do: it leaves some out that
    others share, and a shared object that is removed is somebody's loss."""
    if not commits:
        return []
    request = "".join(f"{name}\n" for name in commits).encode()
    ours = _listed(git, "--stdin", data=request)
    return sorted(ours - _listed(git, "--all", "--reflog", "--indexed-objects"))


def _listed(git: Git, *which: str, data: bytes | None = None) -> set[str]:
    """The names of all objects that some commits lead to, their own included. About 10 s for a million."""
    listing = ("rev-list", "--objects", "--no-object-names", "--exclude-promisor-objects")
    told = git.run(*listing, *which, data=data, timeout_s=600.0)
    return set(told.decode("ascii").split())


def _loose(git: Git, name: str) -> Path:
    return git.common_dir / _OBJECTS / name[:2] / name[2:]


def refs_with(git: Git, commits: Sequence[str]) -> list[str]:
    """The refs that lead to the oldest of the commits that is still there; ``commits`` are oldest first."""
    oldest = next(iter(existing(git, commits)), None)
    if oldest is None:
        return []
    return git.run("for-each-ref", "--format=%(refname)", f"--contains={oldest}").decode("utf-8", "replace").split()


# --- searching --------------------------------------------------------------------------------------------------------


def search_repository(git: Git, search: ByteSearch, *, ref: str) -> list[Trace]:
    """Search every object, whoever it is of, what a git that was killed has left of one, and every other file of the
    git directory. What other refs than ours lead to is marked as beside the store."""
    found = {name: count for name, data in _every_object(git) if (count := search.count_in(data))}
    theirs = _reachable_from_others(git, ref) if found else set()
    traces = [
        Trace(where=f"git object {name} in {git.common_dir}", count=count, beside=name in theirs)
        for name, count in found.items()
    ]
    left = ((file, search.count_in(_unpacked(file))) for file in (git.common_dir / _OBJECTS).glob("**/tmp_obj_*"))
    traces += [Trace(where=f"{file}, left by a git that was killed", count=count) for file, count in left if count]
    files = (file for file in files_in(git.common_dir) if not _is_of_objects(file.relative_to(git.common_dir)))
    counts = ((file, search.count_in_file(file)) for file in files)
    return traces + [Trace(where=str(file), count=count, beside=True) for file, count in counts if count]


def _is_of_objects(file: Path) -> bool:
    return file.parts[0] in (_OBJECTS, *_ELSEWHERE)


def _every_object(git: Git) -> Iterator[tuple[str, bytes]]:
    """All objects of the repository unpacked, those that nothing leads to included."""
    command = git.command("cat-file", "--batch-all-objects", "--batch", "--buffer", "--unordered")
    with subprocess.Popen(
        command, env=environment(), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
    ) as process:
        assert process.stdout is not None
        while head := process.stdout.readline():
            name, _, size = head.decode("ascii").split()
            yield name, process.stdout.read(int(size) + 1)


def _unpacked(file: Path) -> bytes:
    """What can be read of an object that was not written to its end."""
    try:
        return zlib.decompressobj().decompress(file.read_bytes())
    except (OSError, zlib.error):
        return b""


def _reachable_from_others(git: Git, ref: str) -> set[str]:
    return _listed(git, f"--exclude={ref}", "--all")
