"""Reading objects and refs through one git process that stays, so that a look at the ref costs no new process."""

from __future__ import annotations

import contextlib
import subprocess
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass

from backstory.adapters.stores.gitbranch.git import Git, GitFailed, environment
from backstory.errors import StoreDamaged, StoreUnavailable

_BATCH = 200  # requests under way at once; their names and answers must fit the pipes, or both sides would wait
_PAUSES_S = (0.0, 0.02, 0.1)  # a repack puts the new pack in place before it removes the old one: it is brief


@dataclass(frozen=True, slots=True, kw_only=True)
class Object:
    """One object as git keeps it."""

    name: str
    type: str
    data: bytes


class Reader:
    """Objects by name. Used by one thread at a time. The process starts at the first use and ends with ``close``."""

    def __init__(self, git: Git) -> None:
        self._git = git
        self._process: subprocess.Popen[bytes] | None = None
        self._owner = 0
        self._packed_refs: tuple[int, ...] | None = None  # as they were when the process started

    def read(self, name: str) -> Object | None:
        """The object that a name such as ``refs/memory/agent^{commit}`` or ``COMMIT:path`` means; None without one."""
        return self.read_all([name])[0]

    def read_all(self, names: Sequence[str]) -> list[Object | None]:
        """The objects of many names, in order. Raises StoreDamaged where git goes on failing in the midst of one.

        An object that git does not find is looked for once more, by a new process: who replaces packs twice in a moment
        makes git miss what is there. A ref that is not there is believed at once.
        """
        found = self._read_all(names)
        lost = [at for at, name in enumerate(names) if found[at] is None and not name.startswith("refs/")]
        if lost:
            self.close()
            for at, item in zip(lost, self._read_all([names[at] for at in lost]), strict=True):
                found[at] = item
        return found

    def _read_all(self, names: Sequence[str]) -> list[Object | None]:
        """Git's process ends when it is killed, and when a collection of garbage takes away the pack that it is reading
        from. A new process knows the packs that are there now, so it is asked again, each time after a longer pause.
        """
        for pause_s in _PAUSES_S:
            try:
                return self._ask(names)
            except (BrokenPipeError, EOFError, StoreDamaged):
                self.close()
            time.sleep(pause_s)
        try:
            return self._ask(names)
        except (BrokenPipeError, EOFError) as error:
            raise self._why() from error
        except StoreDamaged:
            self.close()
            raise

    def close(self) -> None:
        """End the process. Calling twice is fine; the next read starts another."""
        process, self._process = self._process, None
        if process is None:
            return
        for stream in (process.stdin, process.stdout):
            if stream is not None:
                with contextlib.suppress(OSError):
                    stream.close()
        process.wait()

    def _ask(self, names: Sequence[str]) -> list[Object | None]:
        process = self._running()
        assert process.stdin is not None
        found: list[Object | None] = []
        for start in range(0, len(names), _BATCH):
            batch = names[start : start + _BATCH]
            request = "".join(f"{name}\n" for name in batch).encode("utf-8", "surrogateescape")
            writer = threading.Thread(target=_send, args=(process, request)) if len(batch) > 1 else None
            if writer is None:
                _send(process, request)
            else:
                writer.start()
            found += [self._answer(process, name) for name in batch]
            if writer is not None:
                writer.join()
        return found

    def _answer(self, process: subprocess.Popen[bytes], name: str) -> Object | None:
        assert process.stdout is not None
        head = process.stdout.readline()
        if not head.endswith(b"\n"):
            raise EOFError
        words = head.decode("utf-8", "surrogateescape").split()
        if len(words) != 3 or not words[2].isdigit():
            return None  # "NAME missing", and the like
        size = int(words[2])
        data = process.stdout.read(size + 1)
        if len(data) != size + 1:
            raise StoreDamaged(f"git could not read the object {words[0]} ({name}); `git fsck` says more")
        return Object(name=words[0], type=words[1], data=data[:-1])

    def _running(self) -> subprocess.Popen[bytes]:
        """The process, a new one where the packed refs are not those it started with: git looks at the second, not at
        the moment within it, so that it may take refs that were packed again and again for those it has read."""
        import os

        packed_refs = self._look_at_packed_refs()
        if self._process is not None and self._owner == os.getpid():
            if packed_refs == self._packed_refs:
                return self._process
            self.close()
        self._process, self._owner = None, os.getpid()  # a forked child shares no process with its parent
        self._packed_refs = packed_refs
        command = self._git.command("cat-file", "--batch")
        try:
            self._process = subprocess.Popen(
                command, env=environment(), stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
            )
        except OSError as error:
            raise StoreUnavailable("git is not installed, or not on the PATH") from error
        return self._process

    def _look_at_packed_refs(self) -> tuple[int, ...]:
        """What tells one state of that file from another; empty without one."""
        try:
            seen = (self._git.common_dir / "packed-refs").stat()
        except OSError:
            return ()
        return seen.st_ino, seen.st_size, seen.st_mtime_ns, seen.st_ctime_ns

    def _why(self) -> StoreUnavailable:
        self.close()
        try:
            self._git.run("rev-parse", "--git-dir")
        except StoreUnavailable as error:
            return error
        except GitFailed as error:
            return StoreUnavailable(str(error))
        return StoreUnavailable(f"git could not read the repository at {self._git.folder}")


def _send(process: subprocess.Popen[bytes], request: bytes) -> None:
    assert process.stdin is not None
    with contextlib.suppress(OSError):  # whoever reads the answers finds out
        process.stdin.write(request)
        process.stdin.flush()
