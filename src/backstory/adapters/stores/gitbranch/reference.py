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
# What git says where files that it was writing, or had just written, were taken away.
_SWEPT = re.compile("No such file|File exists|unable to|cannot store|missing|nonexistent object|bad object|not a valid")
_PAUSES_S = (0.01, 0.05, 0.1, 0.2, 0.4, 0.8, 0.8, 0.8)
# Who prunes has decided what to remove some time before it does: what was written meanwhile may yet go. That long, what
# was found just after it was written is looked for again.
_UNSURE_S = 2.0


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
        self._written: tuple[str, list[str], float] | None = None  # the last commit, its objects, and when

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
        raw = self.git.look("diff-tree", "-r", "-z", "--raw", "--no-renames", "--no-abbrev", old, new)
        fields = raw.decode("utf-8", "surrogateescape").split("\0")
        return [_difference(head, path) for head, path in zip(fields[::2], fields[1::2], strict=False) if head]

    def _files(self, commit: str) -> list[File]:
        raw = self.git.look("ls-tree", "-r", "-z", "--full-tree", commit).decode("utf-8", "surrogateescape")
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
        what it had not yet seen in use, except packs; so the objects are looked for afterwards, and written again, in a
        pack where the collection goes on.
        """
        stream = self._stream(commit, int(time.time()) if at is None else at)
        written, packed = self._persistently(stream, packed=self._is_being_collected())
        names = [
            f"{written}^{{tree}}",
            *(f"{written}:{path}" for path, data in commit.files.items() if data is not None),
        ]
        for _ in range(_REPAIRS):
            if (packed or not self._is_being_collected()) and self._has(names):
                break
            with contextlib.suppress(Moved):  # somebody has built on it since; its objects are written all the same
                _, packed = self._persistently(stream, packed=True)
        if self._has(names):
            self._written = (written, names, time.monotonic())
            return Written(commit=written, stream=stream)
        raise StoreDamaged(f"objects of {self.name} vanish as soon as they are written; is `git gc` running in a loop?")

    def is_whole(self, tip: str) -> bool:
        """Whether the tree of the tip is there; where it was written here lately, its files too."""
        return self.is_settled(tip) and self._has([f"{tip}^{{tree}}"])

    def is_settled(self, tip: str | None) -> bool:
        """Whether what was written here lately is there, if the ref still stands on it. Costs nothing a while after."""
        if self._written is None or self._written[0] != tip:
            self._written = None
            return True
        _, names, at = self._written
        is_over = time.monotonic() - at > _UNSURE_S
        is_there = self._has(names)
        if is_over and is_there:
            self._written = None
        return is_there

    def _has(self, names: Sequence[str]) -> bool:
        return all(found is not None for found in self.reader.read_all(names))

    def write_again(self, streams: Sequence[bytes]) -> None:
        """Write the objects of earlier commits anew, oldest first, where they were removed. The ref stays."""
        self._written = None
        for stream in streams:
            with contextlib.suppress(Moved, GitFailed):
                self._persistently(stream, packed=True)

    def _persistently(self, stream: bytes, *, packed: bool) -> tuple[str, bool]:
        """The commit that was made, and whether in a pack.

        Collecting garbage also removes files that are being written; git gives up then, and the ref stays.
        """
        for pause_s in _PAUSES_S:
            try:
                return self._import(stream, packed=packed), packed
            except GitFailed as error:
                self._clear_away(error)
                if not _SWEPT.search(error.stderr):
                    raise
            packed = not packed
            time.sleep(pause_s)
        return self._import(stream, packed=packed), packed

    def _clear_away(self, error: GitFailed) -> None:
        """Where git gives up, it leaves a report and a mark on a pack, which nobody else would ever remove."""
        for report in re.findall(r"[^ ]*fast_import_crash_\d+", error.stderr):
            (self.git.common_dir / report.rpartition("/")[2]).unlink(missing_ok=True)
        for name in re.findall(r"pack-[0-9a-f]{40,64}", error.stderr):
            pack = self.git.common_dir / "objects" / "pack" / name
            if not pack.with_suffix(".idx").exists():  # without it the pack is nothing to git
                for suffix in (".pack", ".keep"):
                    pack.with_suffix(suffix).unlink(missing_ok=True)

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
