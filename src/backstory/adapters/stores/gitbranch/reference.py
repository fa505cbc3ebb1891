"""The ref itself: what stands on it, and writing a commit to it that is either there as a whole or not at all."""

from __future__ import annotations

import contextlib
import re
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from backstory.adapters.stores.gitbranch.git import FALLBACK_EMAIL, FALLBACK_NAME, Git, GitFailed
from backstory.adapters.stores.gitbranch.reader import Reader
from backstory.errors import InputError, StoreDamaged, StoreUnavailable

DEFAULT_REF = "refs/memory/agent"

# The first commit of every ref is the same one, so that two clones that never met have an ancestor in common. It is the
# oldest there can be, and in SHA-1 its number (this one was searched for) gives it the name ffffffa7...: a host that
# takes the newest, or in alphabetical order the first, of all root commits for the repository's identity keeps it.
_ROOT_WHO = f"{FALLBACK_NAME} <{FALLBACK_EMAIL}> 0 +0000"
_ROOT_MESSAGE = "init memory store\n\n3015496\n"
_REPAIRS = 5
_LOST = ("not updating", "does not contain", "cannot lock ref", "missing commits", "unable to resolve ref")
_PAUSES_S = (0.01, 0.05, 0.1, 0.2, 0.4, 0.8)


class Moved(Exception):
    """Somebody else wrote to the ref first; nothing of ours is on it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class File:
    """What became of a file between two commits; None where it was not there."""

    path: str
    old: str | None
    new: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Written:
    """A commit that stands on the ref, and what git was told to make it: told again, it makes the same one."""

    commit: str
    stream: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class Commit:
    """A commit to be made. ``files`` are whole contents by path, None removes one. Without parents it follows the root
    that all refs share."""

    message: str
    who: str
    parents: Sequence[str] = ()
    files: Mapping[str, bytes | None] = field(default_factory=dict)


class Reference:
    """One ref of one repository."""

    def __init__(self, git: Git, reader: Reader, name: str) -> None:
        """Raises InputError for a name that is no full ref, or could be a branch somebody stands on."""
        if not name.startswith("refs/") or name.endswith("/") or ".." in name or set(name) & set(" ~^:?*[\\\n"):
            raise InputError(f"{name!r} is no full name of a ref, such as {DEFAULT_REF}", field="ref")
        self.git = git
        self.reader = reader
        self.name = name

    @property
    def namespace(self) -> str:
        """What memories on this ref are grouped by: the last part of its name."""
        return self.name.rpartition("/")[2]

    def tip(self) -> str | None:
        """The commit that the ref names; None without one. Costs no process."""
        found = self.reader.read(f"{self.name}^{{commit}}")
        return None if found is None else found.name

    def names(self, commit: str) -> bool:
        """Whether the ref names a commit, which need not be there."""
        try:
            return self.git.line("rev-parse", "--verify", "--quiet", self.name) == commit
        except GitFailed:
            return False

    def files_between(self, old: str | None, new: str) -> list[File]:
        """Every file that differs, in the order of their paths; without ``old`` every file of ``new``."""
        if old is None:
            return self._files(new)
        raw = self.git.run("diff-tree", "-r", "-z", "--raw", "--no-renames", "--no-abbrev", old, new)
        fields = raw.decode("utf-8", "surrogateescape").split("\0")
        return [_difference(head, path) for head, path in zip(fields[::2], fields[1::2], strict=False) if head]

    def _files(self, commit: str) -> list[File]:
        raw = self.git.run("ls-tree", "-r", "-z", "--full-tree", commit).decode("utf-8", "surrogateescape")
        entries = (entry.partition("\t") for entry in raw.split("\0") if entry)
        return [
            File(path=path, old=None, new=head.split()[2]) for head, _, path in entries if head.split()[1] == "blob"
        ]

    def contents(self, names: Sequence[str]) -> list[bytes]:
        """The blobs of these names, in order. Raises StoreDamaged where one is missing."""
        found = self.reader.read_all(names)
        for name, item in zip(names, found, strict=True):
            if item is None:
                raise StoreDamaged(f"the object {name} of {self.name} is missing; `git fsck` says more")
        return [item.data for item in found if item is not None]

    def file(self, commit: str | None, path: str) -> bytes | None:
        """One file of a commit; None without one."""
        found = None if commit is None else self.reader.read(f"{commit}:{path}")
        return None if found is None or found.type != "blob" else found.data

    def committed_at(self, commit: str) -> int:
        """When a commit was made, in seconds since 1970."""
        found = self.reader.read(commit)
        lines = [] if found is None else found.data.split(b"\n\n")[0].split(b"\n")
        times = [line.split()[-2] for line in lines if line.startswith(b"committer ")]
        return int(times[0]) if times else 0

    def commit(self, commit: Commit, *, at: int | None = None) -> Written:
        """Put a commit on the ref; it is on the disk then.

        Raises Moved when the ref is not what the commit's first parent says any more. ``at`` is its time, in seconds
        since 1970. Git writes the objects and moves the ref in one process. A concurrent ``git gc --prune=now`` removes
        what it had not yet seen in use, so the objects are looked for afterwards, and written again.
        """
        stream = self._stream(commit, int(time.time()) if at is None else at)
        written = self._persistently(stream, packed=self._is_being_collected())
        names = [
            f"{written}^{{tree}}",
            *(f"{written}:{path}" for path, data in commit.files.items() if data is not None),
        ]
        for _ in range(_REPAIRS):
            if all(found is not None for found in self.reader.read_all(names)):
                return Written(commit=written, stream=stream)
            self._persistently(stream, packed=True)
        raise StoreDamaged(f"objects of {self.name} vanish as soon as they are written; is `git gc` running in a loop?")

    def write_again(self, streams: Sequence[bytes]) -> None:
        """Write the objects of earlier commits anew, oldest first, where they were removed. The ref stays."""
        for stream in streams:
            with contextlib.suppress(Moved, GitFailed):
                self._persistently(stream, packed=True)

    def _persistently(self, stream: bytes, *, packed: bool) -> str:
        """Collecting garbage also removes files that are being written; git gives up then, and the ref stays."""
        for pause_s in _PAUSES_S:
            try:
                return self._import(stream, packed=packed)
            except GitFailed as error:
                self._clear_away(error)
                if not re.search("No such file|File exists|unable to|cannot store|missing", error.stderr):
                    raise
            packed = not packed
            time.sleep(pause_s)
        return self._import(stream, packed=packed)

    def _clear_away(self, error: GitFailed) -> None:
        """Where git gives up, it leaves a report and a mark on a pack, which nobody else would ever remove."""
        for report in re.findall(r"[^ ]*fast_import_crash_\d+", error.stderr):
            (self.git.common_dir / report.rpartition("/")[2]).unlink(missing_ok=True)
        for name in re.findall(r"pack-[0-9a-f]{40,64}", error.stderr):
            pack = self.git.common_dir / "objects" / "pack" / name
            if not pack.with_suffix(".pack").exists():
                pack.with_suffix(".keep").unlink(missing_ok=True)

    def _import(self, stream: bytes, *, packed: bool) -> str:
        """A pack is kept by its own lock until the ref names it; loose objects are kinder to the repository, since each
        pack makes git tidy up sooner."""
        settings = ["fastimport.unpackLimit=0"] if packed else []
        try:
            output = self.git.run(
                "fast-import", "--quiet", "--done", "--date-format=raw", data=stream, settings=settings
            )
        except GitFailed as error:
            if any(sign in error.stderr.lower() for sign in _LOST):
                raise Moved from error
            raise
        return output.decode("ascii").strip()

    def _is_being_collected(self) -> bool:
        return (self.git.common_dir / "gc.pid").exists()

    def _stream(self, commit: Commit, at: int) -> bytes:
        who = f"{commit.who} {at} +0000".encode("utf-8", "replace")
        parts: list[bytes] = []
        if not commit.parents:
            root = _ROOT_WHO.encode()
            parts += [b"commit %s\nauthor %s\ncommitter %s\n" % (self.name.encode(), root, root), _data(_ROOT_MESSAGE)]
        parts += [b"commit %s\nmark :1\nauthor %s\ncommitter %s\n" % (self.name.encode(), who, who)]
        parts += [_data(commit.message)]
        for word, parent in zip((b"from", b"merge"), commit.parents, strict=False):
            parts.append(b"%s %s\n" % (word, parent.encode()))
        for path, data in commit.files.items():
            parts.append(b"D %s\n" % path.encode() if data is None else b"M 100644 inline %s\n" % path.encode())
            parts += [] if data is None else [_data(data)]
        return b"".join([*parts, b"get-mark :1\ndone\n"])


def stands(git: Git, name: str) -> bool:
    """Whether a repository has a ref of this name; False where there is no repository. Costs one process."""
    try:
        return bool(git.run("for-each-ref", "--format=%(objectname)", name))
    except (GitFailed, StoreUnavailable):
        return False


def _data(content: str | bytes) -> bytes:
    data = content.encode("utf-8", "replace") if isinstance(content, str) else content
    return b"data %d\n%s\n" % (len(data), data)


def _difference(head: str, path: str) -> File:
    modes, old, new = head.split()[:2], head.split()[2], head.split()[3]
    return File(
        path=path,
        old=None if modes[0] == ":000000" else old,
        new=None if modes[1] == "000000" else new,
    )
