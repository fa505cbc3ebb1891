"""What a command leaves running behind it: embedding what it stored, so that recall by meaning finds it soon.

Loading a model takes longer than storing a memory, so the person does not wait for it. At most one such process works
on a machine at a time; a lock on a file in the cache folder sees to that, and the system releases it however the
process ends.
"""

from __future__ import annotations

import fcntl
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from backstory.entrypoints.cli.invocation import NO_BACKGROUND

if TYPE_CHECKING:
    from backstory.entrypoints.cli.invocation import Desk, Invocation

LOCK_NAME = "embedding.lock"


def embed_in_background(here: Invocation, desk: Desk) -> None:
    """Start ``backstory embed --quiet`` by itself, if there is an embedder and no other such process.

    Never fails: what has no vector is found by its words, and the next run embeds it.
    """
    store = desk.app.settings.database_file
    if os.environ.get(NO_BACKGROUND) or desk.app.embedder is None or store is None:
        return
    try:
        with embedding_lock(desk.app.settings.cache_dir) as is_ours:
            if not is_ours:
                return
        _start(["embed", "--quiet", "--project", str(here.folder), "--store", f"sqlite://{store}"])
    except OSError:
        return


@contextmanager
def embedding_lock(cache_dir: Path) -> Iterator[bool]:
    """Hold the lock; gives False where another process has it. Raises OSError where there can be no such file."""
    cache_dir.mkdir(mode=0o700, parents=True, exist_ok=True)
    handle = os.open(cache_dir / LOCK_NAME, os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o600)
    try:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            yield False
        else:
            yield True
    finally:
        os.close(handle)


def _start(arguments: list[str]) -> None:
    """Run ``backstory`` in a session of its own, tied to no terminal and no pipe of ours."""
    import subprocess

    # -P: a folder that somebody cloned must not lend its modules to Python
    subprocess.Popen(
        [sys.executable, "-P", "-m", "backstory", *arguments],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
