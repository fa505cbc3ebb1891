"""Running git so that nothing of the user's work or settings matters to it, and nothing of them is touched.

What is written and read with it is in ``reference.py`` and ``reader.py``.
"""

from __future__ import annotations

import contextlib
import os
import re
import subprocess
import time
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import Path

from backstory.errors import StoreUnavailable

TIMEOUT_S = 30.0
NETWORK_TIMEOUT_S = 120.0
FALLBACK_NAME = "Backstory"
FALLBACK_EMAIL = "backstory@localhost"

# A surrounding hook or alias sets GIT_DIR, GIT_INDEX_FILE and more, which beat the folder we name.
_KEPT = frozenset({"GIT_CONFIG_GLOBAL", "GIT_CONFIG_SYSTEM", "GIT_CONFIG_NOSYSTEM", "GIT_EXEC_PATH",
                   "GIT_TEST_ASSUME_DIFFERENT_OWNER"})  # fmt: skip
# How to reach a remote is the user's to say.
_KEPT_FOR_REMOTES = frozenset({"GIT_SSH", "GIT_SSH_COMMAND", "GIT_SSH_VARIANT", "GIT_PROXY_COMMAND", "GIT_ASKPASS",
                               "GIT_SSL_CAINFO", "GIT_SSL_CAPATH", "GIT_SSL_CERT", "GIT_SSL_KEY",
                               "GIT_ALLOW_PROTOCOL"})  # fmt: skip
# fsync all: what git acknowledged is on the disk, objects and refs (core.fsyncObjectFiles is for git before 2.36).
_SETTINGS = (
    "core.hooksPath=/dev/null",
    "core.fsync=all",
    "core.fsyncObjectFiles=true",
    "core.quotePath=false",
    "core.fsmonitor=false",
    "gc.auto=0",
    "maintenance.auto=false",
    "advice.detachedHead=false",
)
# What git says where packs were replaced under it more often than it looks for them.
_VANISHED = re.compile(
    "unable to|could not|cannot be|missing|bad (object|tree|revision)|not a (tree|valid)|unknown revision|failed to",
    re.IGNORECASE,
)
_PAUSES_S = (0.0, 0.05, 0.2)
_IDENT = re.compile(r"^(.*?) ?<(.*)> \d+ [+-]\d{4}$")


class GitFailed(Exception):
    """Git refused; ``stderr`` is what it said. Exit code 1 is often how it answers "no". Never leaves this folder."""

    def __init__(self, message: str, *, stderr: str, exit_code: int) -> None:
        super().__init__(message)
        self.stderr = stderr
        self.exit_code = exit_code


class Git:
    """One repository, named by any folder in it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def run(
        self,
        *arguments: str,
        data: bytes | None = None,
        settings: Sequence[str] = (),
        remote: bool = False,
        timeout_s: float | None = None,
    ) -> bytes:
        """What git printed. Raises GitFailed, and StoreUnavailable where there is no git, no repository, or no end.

        ``remote`` lets the user's ways to reach a remote through. Nothing is ever asked on a terminal.
        """
        limit = timeout_s or (NETWORK_TIMEOUT_S if remote else TIMEOUT_S)
        command = self.command(*arguments, settings=settings)
        try:
            # always with an input: git must not read what was meant for us
            done = subprocess.run(
                command,
                env=environment(remote=remote),
                input=data or b"",
                capture_output=True,
                timeout=limit,
                start_new_session=remote,
            )
        except FileNotFoundError as error:
            raise StoreUnavailable("git is not installed, or not on the PATH") from error
        except OSError as error:
            raise StoreUnavailable(f"git cannot be started: {error.strerror or error}") from error
        except subprocess.TimeoutExpired as error:
            raise StoreUnavailable(f"git {arguments[0]} did not end within {limit:g} s") from error
        if done.returncode != 0:
            raise self._failure(arguments[0], done.stderr, done.returncode)
        return done.stdout

    def look(self, *arguments: str) -> bytes:
        """``run`` for what only reads objects: asked again where git misses one, since a collection of garbage may have
        put it elsewhere in that moment."""
        for pause_s in _PAUSES_S:
            try:
                return self.run(*arguments)
            except GitFailed as error:
                if error.exit_code == 1 or not _VANISHED.search(error.stderr):
                    raise
            time.sleep(pause_s)
        return self.run(*arguments)

    def line(self, *arguments: str) -> str:
        """The first line that git printed."""
        return self.run(*arguments).decode("utf-8", "surrogateescape").partition("\n")[0]

    def command(self, *arguments: str, settings: Sequence[str] = ()) -> list[str]:
        """The command line, for whoever keeps a process running."""
        options = (option for setting in (*_SETTINGS, *settings) for option in ("-c", setting))
        return ["git", "-C", str(self.folder), "--no-pager", "--literal-pathspecs", *options, *arguments]

    def _failure(self, doing: str, stderr: bytes, exit_code: int) -> StoreUnavailable | GitFailed:
        """What git complained about, in our words."""
        text = stderr.decode("utf-8", "replace").strip()
        if "dubious ownership" in text or "unsafe repository" in text:
            return StoreUnavailable(
                f"git does not trust the repository at {self.folder}, because another user owns it; if you do, run: "
                f"git config --global --add safe.directory {self.folder.resolve()}"
            )
        if "not a git repository" in text:
            return StoreUnavailable(
                f"{self.folder} is not in a git repository; nothing was stored",
                hint="the git store keeps memories beside the code: go to a repository, or choose another with --store",
            )
        if "cannot change to" in text:
            return StoreUnavailable(f"the folder {self.folder} does not exist; nothing was stored")
        if re.search("no space left|disk quota|read-only file system|permission denied|insufficient permission", text,
                     re.IGNORECASE):  # fmt: skip
            return StoreUnavailable(f"git could not write to {self.folder}: {_shown(text)}")
        return GitFailed(f"git {doing} failed: {_shown(text)}", stderr=text, exit_code=exit_code)

    @cached_property
    def common_dir(self) -> Path:
        """The git directory that all worktrees share. Raises StoreUnavailable outside a repository."""
        with in_our_words():
            return Path(os.path.realpath(self.folder / self.line("rev-parse", "--git-common-dir")))

    @cached_property
    def author(self) -> str:
        """``Name <email>`` of whoever works here; ours where git knows nobody. Never an error."""
        try:
            found = _IDENT.match(self.line("var", "GIT_COMMITTER_IDENT"))
        except GitFailed:
            found = None
        name, email = (found[1].strip(), found[2].strip()) if found else ("", "")
        return f"{name or FALLBACK_NAME} <{email or FALLBACK_EMAIL}>"


@contextlib.contextmanager
def in_our_words() -> Iterator[None]:
    """Turn git's refusals into errors of ours, for whoever cannot do anything about them."""
    try:
        yield
    except GitFailed as error:
        raise StoreUnavailable(str(error)) from error


def environment(*, remote: bool = False) -> Mapping[str, str]:
    """The environment of a git process: no location of another repository, no prompt, messages in English."""
    kept = _KEPT | _KEPT_FOR_REMOTES if remote else _KEPT
    env = {name: value for name, value in os.environ.items() if not name.startswith("GIT_") or name in kept}
    return env | {
        "LC_ALL": "C",
        "GIT_TERMINAL_PROMPT": "0",
        "GIT_OPTIONAL_LOCKS": "0",
        "GIT_NO_REPLACE_OBJECTS": "1",
        "GIT_NO_LAZY_FETCH": "1",
    }


def _shown(text: str) -> str:
    """The lines that tell, without what would only confuse; never longer than a message should be."""
    lines = [line for line in text.splitlines() if line.strip() and not line.startswith(("hint:", "warning:"))]
    return " ".join(lines or text.splitlines())[:500]
