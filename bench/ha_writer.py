"""A process that writes to a Postgres store at a steady pace, whatever becomes of its servers, until its input ends.

``python -m bench.ha_writer ADDRESS SERIES``. It opens the store once and never again: to find the next leader is the
store's own affair. It tells what was acknowledged as ``crash_writer`` does, and what failed as ``{"failed": ...}``.
"""

from __future__ import annotations

import itertools
import json
import sys
import threading

import anyio

from backstory.adapters.stores.postgres.store import open_postgres
from backstory.errors import StoreError
from bench.crash_writer import Writer

PAUSE_S = 0.05  # between writes: a busy agent's pace, which two cores can serve beside three servers
PAUSE_AFTER_FAILURE_S = 0.1


class SteadyWriter(Writer):
    """A writer that goes on after a failure, as the store's callers do."""

    async def run(self) -> None:
        """Write until the input ends."""
        ended = threading.Event()
        threading.Thread(target=_wait_for_end, args=(ended,), daemon=True).start()
        for number in itertools.count(1):
            if ended.is_set():
                return
            try:
                await self._write(number)
            except StoreError as error:
                _tell_failure(error)
                self._own.clear()  # nobody knows which of the last change's memories are as they were
                await anyio.sleep(PAUSE_AFTER_FAILURE_S)
            else:
                await anyio.sleep(PAUSE_S)


def _tell_failure(error: StoreError) -> None:
    sys.stdout.write(json.dumps({"failed": f"{type(error).__name__}: {error}"}) + "\n")
    sys.stdout.flush()


def _wait_for_end(ended: threading.Event) -> None:
    sys.stdin.read()
    ended.set()


def main() -> None:
    """Write to the store that the command line names; its password is in the environment."""
    address, series = sys.argv[1:3]
    anyio.run(SteadyWriter(open_postgres(address), int(series)).run)


if __name__ == "__main__":
    main()
