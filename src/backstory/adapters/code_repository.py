"""A repository that may be anybody's, read within a time: trees, blobs and dates of its history, and its files.

No command of git looks at the contents of files in the work tree (filters would run), none follows ``.git/config`` to a
program or to a server, and output is read as far as it is wanted.
"""

from __future__ import annotations

import contextlib
import os
import stat
import subprocess
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryFile
from typing import IO

from backstory.adapters.stores.gitbranch.git import Git, GitFailed, environment
from backstory.errors import StoreUnavailable

MAX_UNTRACKED_FILES = 5_000
MAX_FILE_BYTES = 4 << 20
MAX_OLD_FILE_BYTES = 2 << 20  # less than now: what was found in an old file is then looked for in the new one
MAX_TOTAL_BYTES = 512 << 20
MAX_OUTPUT_BYTES = 128 << 20

_SETTINGS = ("log.showSignature=false", "core.attributesFile=/dev/null")
_GRACE_S = 0.05
_MOST_COMPLAINT_BYTES = 1 << 16
_BINARY_BYTES = 8000  # where git looks for a NUL

_PLAIN_LOG = ("--no-show-signature", "--no-ext-diff", "--no-textconv", "--no-follow")
"""What a hostile configuration could add to a log."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """What became of one file in a commit: ``old`` and ``new`` are ids of its contents. ``left`` tells that it is not
    where it was, ``moved_to`` where it is then. ``at`` counts seconds; no commit is what is not committed yet."""

    commit: str | None
    at: int
    path: str
    old: str = ""
    new: str = ""
    left: bool = True
    moved_to: str | None = None


class OutOfTime(Exception):
    """The time is up, or there is more than is ever read. Never leaves these adapters."""


class CodeRepository:
    """One checkout. Every call raises OutOfTime at the deadline, and GitFailed or StoreUnavailable where git
    refuses."""

    def __init__(self, root: Path, *, within_s: float) -> None:
        self.root = root
        self._git = Git(root)
        self._end = time.monotonic() + within_s

    @property
    def left_s(self) -> float:
        """Seconds until the deadline. Raises OutOfTime when there are none."""
        left = self._end - time.monotonic()
        if left <= 0:
            raise OutOfTime
        return left

    def head(self) -> str | None:
        """The commit that is checked out; None before the first one. StoreUnavailable outside a repository."""
        self._git.run("rev-parse", "--git-dir", timeout_s=self.left_s)
        found = self._lines("rev-parse", "--verify", "--quiet", "HEAD^{commit}", no=1)
        return found[0] if found else None

    def is_bare(self) -> bool:
        """Whether there is no work tree."""
        return self._lines("rev-parse", "--is-bare-repository") == ["true"]

    def is_shallow(self) -> bool:
        """Whether the history is cut off."""
        return self._lines("rev-parse", "--is-shallow-repository") == ["true"]

    def tracked(self) -> list[str]:
        """The paths in the index."""
        return self._paths("ls-files", "-z", "--full-name")

    def untracked(self) -> list[str]:
        """The files that are neither in the index nor ignored; where there are very many, some of them."""
        return self._paths("ls-files", "-z", "--full-name", "--others", "--exclude-standard")[:MAX_UNTRACKED_FILES]

    def skipped(self) -> frozenset[str]:
        """The paths that are in the index and on purpose not on the disk (a sparse checkout)."""
        entries = self._paths("ls-files", "-z", "--full-name", "-t")
        return frozenset(entry[2:] for entry in entries if entry.startswith("S "))

    def ignored(self, paths: Sequence[str]) -> frozenset[str]:
        """Those of the paths that git ignores."""
        data = b"".join(os.fsencode(path) + b"\0" for path in paths)
        try:
            # it refuses literal pathspecs, and takes what it reads to the letter
            found = self._read("--no-literal-pathspecs", "check-ignore", "-z", "--no-index", "--stdin", data=data)
            return frozenset(_split(found))
        except GitFailed as error:
            if error.exit_code != 1:  # 1: none of them
                raise
            return frozenset()

    def tree(self) -> Mapping[str, str]:
        """The files of the commit that is checked out, and the ids of their blobs."""
        entries = self._paths("ls-tree", "-r", "-z", "--full-tree", "HEAD")
        split = (entry.partition("\t") for entry in entries)
        return {path: facts.split(" ")[2] for facts, _, path in split}

    def changes(self, *, since: int) -> Iterator[Change]:
        """What became of each file in the commits that led to HEAD, first parents only, newest first, as far back as
        ``since`` (seconds). Files that are new are left out."""
        arguments = ["log", *_PLAIN_LOG, "-m", "--first-parent", "-M", "-l400", "--raw", "--no-abbrev", "-z",
                     "--diff-filter=DMRT", "--format=%x01%H %ct", f"--since={since}", "HEAD", "--"]  # fmt: skip
        commit, at = "", 0
        with self._started(*arguments) as source:
            entries = _entries(source)
            for entry in entries:
                mark, _, head = entry.lstrip("\n").partition("\x01")
                if head:
                    commit, when = head.split(" ")[:2]
                    at = int(when)
                elif mark:
                    _, _, old, new, status = mark.split(" ")
                    path = next(entries)
                    target = next(entries) if status.startswith("R") else None
                    left = status[0] in "DR"
                    yield Change(commit=commit, at=at, path=path, old=old, new=new, left=left, moved_to=target)

    def blobs(self, ids: Sequence[str]) -> Iterator[tuple[str, bytes]]:
        """The contents of blobs in order; large and binary ones are left out."""
        names = b"".join(blob.encode() + b"\n" for blob in ids)
        read = 0
        with self._started("cat-file", "--batch", data=names) as source:
            while header := source.readline(256):
                words = header.split()
                if len(words) != 3:  # missing: a partial clone, or a damaged one
                    continue
                size = int(words[2])
                read += size
                if read > MAX_TOTAL_BYTES:
                    raise OutOfTime
                data = source.read(size + 1)[:-1]
                if len(data) < size:  # git was stopped at the deadline
                    raise OutOfTime
                if size <= MAX_OLD_FILE_BYTES and not _is_binary(data):
                    yield words[0].decode(), data

    def deletions(self, paths: Sequence[str]) -> Iterator[Change]:
        """What went of these paths, or from below them, on the way to HEAD, newest first."""
        arguments = ["log", *_PLAIN_LOG, "--no-renames", "--diff-filter=D", "--name-only", "-z", "--format=%x01%H %ct",
                     "HEAD", "--", *paths]  # fmt: skip
        commit, at = "", 0
        with self._started(*arguments) as source:
            for entry in _entries(source):
                path, _, head = entry.lstrip("\n").partition("\x01")
                if head:
                    commit, when = head.split(" ")[:2]
                    at = int(when)
                elif path:
                    yield Change(commit=commit, at=at, path=path)

    def renames(self, commit: str | None) -> dict[str, str]:
        """Which files a commit moved, by content, and where to; None stands for what is in the index since HEAD."""
        compared = ["diff-index", "--cached", "HEAD"] if commit is None else ["diff-tree", "-r", f"{commit}^", commit]
        command, *trees = compared
        words = self._paths(command, "-M", "--no-ext-diff", "--diff-filter=R", "--name-status", "-z", *trees)
        return dict(zip(words[1::3], words[2::3], strict=False))

    def commits(self, names: Sequence[str]) -> dict[str, str]:
        """The full ids of those abbreviated ids that name a commit here."""
        data = "".join(f"{name}^{{commit}}\n" for name in names).encode()
        answers = self._read("cat-file", "--batch-check=%(objectname)", data=data).decode().splitlines()
        return {name: answer for name, answer in zip(names, answers, strict=False) if " " not in answer}

    def is_reachable(self, commit: str) -> bool:
        """Whether a branch, a tag or HEAD leads to a commit."""
        return not self._lines("rev-list", "--max-count=1", commit, "--not", "--all", "--")

    def file(self, path: str) -> bytes | None:
        """A text file of the work tree as it is now; None for anything else. Links are not followed."""
        try:
            handle = os.open(self.root / path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
        except (OSError, ValueError):
            return None
        with os.fdopen(handle, "rb") as source:
            facts = os.fstat(handle)
            if not stat.S_ISREG(facts.st_mode) or facts.st_size > MAX_FILE_BYTES:
                return None
            try:
                data = source.read(MAX_FILE_BYTES)
            except OSError:
                return None
        return None if _is_binary(data) else data

    def is_on_disk(self, path: str) -> bool:
        """Whether there is anything at a path of the work tree."""
        return os.path.lexists(self.root / path)

    def holds_something(self, path: str) -> bool:
        """Whether there is a file at a path of the work tree, a link, or another repository. A folder alone may be what
        git left behind with ignored files in it."""
        there = self.root / path
        return os.path.lexists(there / ".git" if there.is_dir() and not there.is_symlink() else there)

    def _paths(self, *arguments: str) -> list[str]:
        return _split(self._read(*arguments))

    def _lines(self, *arguments: str, no: int | None = None) -> list[str]:
        """The lines of an answer; none where git answers with the exit code ``no``."""
        try:
            return self._read(*arguments).decode("utf-8", "replace").split("\n")[:-1]
        except GitFailed as error:
            if error.exit_code != no:
                raise
            return []

    def _read(self, *arguments: str, data: bytes = b"") -> bytes:
        with self._started(*arguments, data=data) as source:
            output = source.read(MAX_OUTPUT_BYTES + 1)
        if len(output) > MAX_OUTPUT_BYTES:
            raise OutOfTime
        return output

    @contextlib.contextmanager
    def _started(self, *arguments: str, data: bytes = b"") -> Iterator[IO[bytes]]:
        """What git prints, as it comes. Git is stopped at the deadline, and when nobody reads on."""
        late = threading.Event()
        with TemporaryFile() as given, TemporaryFile() as complaints:
            given.write(data)
            given.seek(0)
            process = self._popen(arguments, given, complaints)
            assert process.stdout is not None
            timer = threading.Timer(self.left_s, _stop, (process, late))
            timer.daemon = True
            timer.start()
            try:
                yield process.stdout
                is_done = not process.stdout.read(1)
            finally:
                timer.cancel()
                process.stdout.close()
                code = _ended(process)
            if late.is_set():
                raise OutOfTime
            if is_done and code > 0:
                complaints.seek(0)
                text = complaints.read(_MOST_COMPLAINT_BYTES).decode("utf-8", "replace").strip()
                raise GitFailed(f"git {arguments[0]} failed: {text[:300]}", stderr=text, exit_code=code)

    def _popen(self, arguments: Sequence[str], given: IO[bytes], complaints: IO[bytes]) -> subprocess.Popen[bytes]:
        command = self._git.command(*arguments, settings=_SETTINGS)
        env = {**environment(), "GIT_ALLOW_PROTOCOL": "none"}  # a partial clone would fetch what it lacks
        try:
            return subprocess.Popen(command, env=env, stdin=given, stdout=subprocess.PIPE, stderr=complaints)
        except FileNotFoundError as error:
            raise StoreUnavailable("git is not installed, or not on the PATH") from error
        except OSError as error:
            raise StoreUnavailable(f"git cannot be started: {error.strerror or error}") from error


def _stop(process: subprocess.Popen[bytes], late: threading.Event) -> None:
    late.set()
    process.kill()


def _ended(process: subprocess.Popen[bytes]) -> int:
    """The exit code of a git that has printed all, or that nobody listens to any more."""
    try:
        return process.wait(_GRACE_S)
    except subprocess.TimeoutExpired:
        process.kill()
        return process.wait()


def _split(output: bytes) -> list[str]:
    return [os.fsdecode(entry) for entry in output.split(b"\0") if entry]


def _entries(source: IO[bytes]) -> Iterator[str]:
    """What stands between the NULs of a stream."""
    rest = b""
    while chunk := source.read(1 << 16):
        *whole, rest = (rest + chunk).split(b"\0")
        yield from map(os.fsdecode, whole)
    if rest:
        yield os.fsdecode(rest)


def _is_binary(data: bytes) -> bool:
    return b"\0" in data[:_BINARY_BYTES]
