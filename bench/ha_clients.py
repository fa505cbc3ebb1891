"""Who uses the cluster while its leader is killed: writers, and one OpenCode session whose hooks a real bridge answers.

Both only note what they see and when, in seconds of the monotonic clock; judging it is in ``ha.py``.
"""

from __future__ import annotations

import contextlib
import json
import os
import queue
import re
import subprocess
import sys
import threading
import time
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench.patroni_cluster import NotReady
from tests.integration.bridge_process import BridgeProcess

HOOK_EVERY_S = 0.3
HOOK_DEADLINE_S = 0.8  # ``chat.message`` in plugin.js, which waits no longer
_WISH_EVERY = 10  # prompts: one of so many asks for something to be remembered
_WAITING_HOOKS = 64  # more than can wait at once, at one every 0.3 s and an answer within 30 s
_SESSION = "ses_ha"
_STORED = re.compile(r"stored (?:already|after all,?) as ((?:#\d+(?:, )?)+)")
_ROOT = Path(__file__).resolve().parents[1]

Told = Mapping[str, Any]
"""One line of a writer: an acknowledged write, as ``crash_writer`` tells it, or a failure."""


class WriterProcess:
    """One writer, listened to until it ends. ``told`` has each line with the moment at which it came."""

    def __init__(self, address: str, series: int, *, password: str, log: Path) -> None:
        self.told: list[tuple[float, Told]] = []
        with log.open("wb") as errors:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "bench.ha_writer", address, str(series)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=errors,
                env={**os.environ, "PGPASSWORD": password},
                cwd=_ROOT,
                start_new_session=True,
            )
        self._log = log
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def acknowledged(self) -> list[tuple[float, Told]]:
        """The writes of which it was told that they are stored, in order."""
        return [(at, told) for at, told in list(self.told) if "failed" not in told]

    def failures(self) -> list[str]:
        """What it was told instead, in order."""
        return [told["failed"] for _, told in list(self.told) if "failed" in told]

    def end(self, *, within_s: float = 30.0) -> str:
        """Let it finish; what it said where it did not end well by itself, else an empty text."""
        assert self.process.stdin is not None
        self.process.stdin.close()
        try:
            code = self.process.wait(within_s)
        except subprocess.TimeoutExpired:
            self.process.kill()
            code = self.process.wait()
        self._reader.join()
        said = self._log.read_text(errors="replace").strip()[-500:]
        return "" if code == 0 else said or f"exit code {code}"

    def _read(self) -> None:
        assert self.process.stdout is not None
        with self.process.stdout:
            for line in self.process.stdout:
                if line.endswith(b"\n"):
                    self.told.append((time.monotonic(), json.loads(line)))


@dataclass(frozen=True, slots=True, kw_only=True)
class Hook:
    """One ``chat.message``: when it was asked, how long the bridge took, and what it said; ``block`` None for nothing.

    ``failed`` says why there was no answer, else None.
    """

    asked_at: float
    took_s: float
    block: str | None
    failed: str | None


class HookedSession:
    """An OpenCode session, as the bridge sees it: a prompt every 0.3 s, none of which waits for the one before."""

    def __init__(self, address: str, folder: Path, *, password: str) -> None:
        self.hooks: list[Hook] = []
        self.wishes = 0
        project = folder / "project"
        project.mkdir()
        environ = {
            "BACKSTORY_STORE": address,
            "BACKSTORY_STORE_PASSWORD": password,
            # the model would compete with three servers for the cores; recall by words asks the store no less
            "BACKSTORY_EMBEDDER_PROVIDER": "none",
        }
        self.bridge = BridgeProcess(folder / "home", directory=project, environ=environ)
        self._ended = threading.Event()
        self._asking = threading.Thread(target=self._ask_on, daemon=True)

    def start(self) -> None:
        """Say hello, as the plugin does, and begin. Raises NotReady for a bridge that does not answer."""
        try:
            self.bridge.ask("hello", protocol=1, plugin_version="0", api=1, pid=os.getpid())
        except (AssertionError, queue.Empty, OSError) as error:
            raise NotReady(f"the bridge does not answer: {self.bridge.stderr()[-500:] or error}") from error
        self._asking.start()

    def stored_numbers(self) -> list[int]:
        """The numbers of the memories that the model was told are stored."""
        blocks = [hook.block for hook in self.hooks if hook.block is not None]
        found = [match for block in blocks for match in _STORED.findall(block)]
        return sorted({int(number) for numbers in found for number in re.findall(r"\d+", numbers)})

    def stop_asking(self) -> None:
        """No more prompts; waits for the answers to those that were asked."""
        self._ended.set()
        self._asking.join()

    def end(self) -> str:
        """End the bridge; what it said last where it had not lived until now, else an empty text."""
        died = self.bridge.process.poll() is not None
        self.bridge.close()
        return self.bridge.stderr()[-500:] if died else ""

    def kill(self) -> None:
        """End the bridge whatever it does."""
        self._ended.set()
        self.bridge.process.kill()
        self.bridge.process.wait()

    def _ask_on(self) -> None:
        with ThreadPoolExecutor(_WAITING_HOOKS) as threads:
            number = 0
            due = time.monotonic()
            while not self._ended.wait(max(due - time.monotonic(), 0.0)):
                number += 1
                due += HOOK_EVERY_S
                threads.submit(self._ask, number)

    def _ask(self, number: int) -> None:
        message = f"msg_{number}"
        text = f"How do we deploy the ledger to staging, number {number}?"
        if number % _WISH_EVERY == 0:
            self.wishes += 1
            text = f"Remember that crate {number} goes to dock {number + 7}."
        asked_at = time.monotonic()
        late = threading.Timer(HOOK_DEADLINE_S, self._drop, (message,))
        late.start()
        block, failed = None, None
        try:
            block = self.bridge.prompt(text, message=message, session=_SESSION)
        except (AssertionError, queue.Empty, OSError) as error:
            failed = f"{type(error).__name__}: {error}"
        late.cancel()
        took_s = time.monotonic() - asked_at
        self.hooks.append(Hook(asked_at=asked_at, took_s=took_s, block=block, failed=failed))

    def _drop(self, message: str) -> None:
        """Tell the bridge that nobody waits any more, as the plugin does."""
        with contextlib.suppress(OSError):  # it has died, which ``end`` tells
            self.bridge.notify("dropped", session=_SESSION, message=message)
