"""Git with nothing of the repository's or the user's settings in the way: objects read, refs written, nothing run.

No hook, no helper, no remote: the repository may be somebody else's. Sizes are looked at before contents.
"""

from __future__ import annotations

import os
import re
import subprocess
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from backstory.adapters.formats.git_memory.layout import FOLDER, is_memory_file
from backstory.adapters.formats.outside_files import Unfit
from backstory.errors import StoreUnavailable

TIMEOUT_S = 120
# Of a git process: address space in kB, seconds of one processor, blocks of 512 bytes in one file that it writes. An
# object may unpack to a thousand times its size.
_LIMITS = "ulimit -v 4000000; ulimit -t 100; ulimit -f 4000000"
_TREE_BYTES = 16 * 1024 * 1024
_BATCH_BYTES = 16 * 1024 * 1024
_MOST_REFS = 10_000
_SETTINGS = (
    "core.hooksPath=/dev/null", "core.fsmonitor=false", "core.quotePath=false", "gc.auto=0", "maintenance.auto=false",
    "fetch.fsckObjects=true", "pack.threads=1", "core.bigFileThreshold=32m", "submodule.recurse=false",
    "core.packedGitLimit=256m", "core.packedGitWindowSize=32m",
)  # fmt: skip
_ENTRY = re.compile(rb"(\d{6}) (\w+) ([0-9a-f]{40,64}) +(\d+|-)\t(.*)", re.DOTALL)
_WHO = "Backstory <backstory@localhost>"


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredFile:
    """A memory file on a ref; ``size`` in bytes, by which it is decided whether it is read."""

    ref: str
    name: str
    object: str
    size: int


class Repository:
    """One repository, named by its git directory."""

    def __init__(self, git_folder: Path) -> None:
        self._folder = git_folder

    def files(self) -> list[StoredFile]:
        """The memory files on all refs under ``refs/memory`` and ``refs/heads``, by ref and name. Raises Unfit."""
        told = self._run("for-each-ref", f"--count={_MOST_REFS}", "--format=%(refname)", "refs/memory", "refs/heads")
        refs = [ref for ref in told.decode("utf-8", "surrogateescape").splitlines() if _is_plain_ref(ref)]
        names = "".join(f"{ref}:{FOLDER}\n" for ref in refs).encode("utf-8", "surrogateescape")
        answers = self._run("cat-file", "--batch-check", data=names).decode("utf-8", "replace").splitlines()
        found: list[StoredFile] = []
        for ref, answer in zip(refs, answers, strict=False):
            words = answer.split(" ")
            if len(words) == 3 and words[1] == "tree" and int(words[2]) <= _TREE_BYTES:
                found += self._in_tree(ref, words[0])
        return found

    def contents(self, files: Sequence[StoredFile]) -> Iterator[bytes]:
        """What stands in files, in their order. Raises Unfit. Holds about ``_BATCH_BYTES`` at once."""
        batch: list[StoredFile] = []
        size = 0
        for file in files:
            size += file.size
            if batch and size > _BATCH_BYTES:
                yield from self._batch(batch)
                batch, size = [], file.size
            batch.append(file)
        yield from self._batch(batch)

    def tip(self, ref: str) -> str | None:
        """The commit that a ref names; None without one."""
        try:
            return self._run("rev-parse", "--verify", "--quiet", f"{ref}^{{commit}}").decode().strip() or None
        except Unfit:
            return None

    def commit(self, ref: str, files: Mapping[str, bytes], *, removed: Sequence[str], at: int, message: str) -> None:
        """Put a commit with these contents, by path, on a ref; what else stands on it stays. Raises Unfit where
        somebody else was first."""
        tip = self.tip(ref)
        stream = [f"commit {ref}\ncommitter {_WHO} {at} +0000\n".encode(), _data(message.encode())]
        stream += [f"from {tip}\n".encode()] if tip is not None else []
        stream += [f"D {path}\n".encode() for path in removed]
        for path, content in files.items():
            stream += [f"M 100644 inline {path}\n".encode(), _data(content)]
        self._run("fast-import", "--quiet", "--date-format=raw", data=b"".join(stream))

    def fetch_bundle(self, bundle: Path) -> None:
        """Take the refs of a bundle over. Raises Unfit."""
        wanted = [f"+{refs}/*:{refs}/*" for refs in ("refs/memory", "refs/heads")]
        arguments = ("fetch", "--quiet", "--no-tags", "--no-write-fetch-head", str(bundle), *wanted)
        self._run(*arguments, protocol="file")  # how git calls the reading of a bundle

    def write_bundle(self, bundle: Path, refs: Sequence[str]) -> None:
        """Write refs with their history to a new file. Raises Unfit."""
        self._run("bundle", "create", "--quiet", str(bundle), *refs)

    def _batch(self, files: Sequence[StoredFile]) -> Iterator[bytes]:
        """The contents of a few files, each behind a line with its size."""
        told = self._run("cat-file", "--batch", data="".join(f"{file.object}\n" for file in files).encode())
        at = 0
        for file in files:
            begin = told.find(b"\n", at) + 1
            if not told[at:begin].endswith(b" blob %d\n" % file.size):
                raise Unfit("an object is not what its tree says")
            at = begin + file.size + 1
            yield told[begin : begin + file.size]

    def _in_tree(self, ref: str, tree: str) -> Iterator[StoredFile]:
        for entry in self._run("ls-tree", "-l", "-z", tree).split(b"\0"):
            match = _ENTRY.fullmatch(entry)
            if match is not None and match[1] in (b"100644", b"100755") and match[2] == b"blob":
                name = match[5].decode("utf-8", "replace")
                if is_memory_file(name) and match[4].isdigit():
                    yield StoredFile(ref=ref, name=name, object=match[3].decode(), size=int(match[4]))

    def _run(self, *arguments: str, data: bytes = b"", protocol: str = "none") -> bytes:
        options = [option for setting in _SETTINGS for option in ("-c", setting)]
        git = ["git", f"--git-dir={self._folder}", "--no-pager", "--literal-pathspecs", *options, *arguments]
        return run_git(git, data=data, protocol=protocol)


@contextmanager
def new_repository() -> Iterator[Repository]:
    """An empty bare repository for a while, without anything of a template."""
    with tempfile.TemporaryDirectory(prefix="backstory-git-") as folder:
        place = Path(folder) / "git"
        run_git(["git", "-c", "init.defaultBranch=main", "init", "--quiet", "--bare", "--template=", str(place)])
        yield Repository(place)


def run_git(command: Sequence[str], *, data: bytes = b"", protocol: str = "none") -> bytes:
    """What git printed. ``protocol`` is the one way to other repositories that is open.

    Raises Unfit with what it complained about, and StoreUnavailable where there is no git.
    """
    shell = ["sh", "-c", f'{_LIMITS}; exec "$@"', "sh"] if os.name == "posix" else []
    try:
        done = subprocess.run(
            [*shell, *command],
            env=_environment(protocol),
            input=data,
            capture_output=True,
            timeout=TIMEOUT_S,
            cwd=Path("/"),
        )
    except FileNotFoundError as error:
        raise StoreUnavailable("git is not installed, or not on the PATH") from error
    except subprocess.TimeoutExpired as error:
        raise Unfit(f"git did not end within {TIMEOUT_S} s") from error
    if done.returncode == 127:
        raise StoreUnavailable("git is not installed, or not on the PATH")
    if done.returncode != 0:
        told = done.stderr.decode("utf-8", "replace").strip().splitlines()
        why = next((line for line in told if line.startswith("fatal:")), told[-1] if told else "it said nothing")
        raise Unfit(f"git failed ({why[:200]})")
    return done.stdout


def _environment(protocol: str) -> Mapping[str, str]:
    """No settings but the repository's own, no prompt, no remote, messages in English."""
    kept = {name: os.environ[name] for name in ("PATH", "SYSTEMROOT", "TMPDIR", "TEMP") if name in os.environ}
    return kept | {
        "LC_ALL": "C",
        "HOME": os.devnull,
        "GIT_CONFIG_GLOBAL": os.devnull,
        "GIT_CONFIG_SYSTEM": os.devnull,
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_TERMINAL_PROMPT": "0",
        "GIT_OPTIONAL_LOCKS": "0",
        "GIT_NO_REPLACE_OBJECTS": "1",
        "GIT_NO_LAZY_FETCH": "1",
        "GIT_ALLOW_PROTOCOL": protocol,
    }


def _is_plain_ref(ref: str) -> bool:
    return ref.isprintable() and " " not in ref


def _data(content: bytes) -> bytes:
    return b"data %d\n" % len(content) + content + b"\n"
