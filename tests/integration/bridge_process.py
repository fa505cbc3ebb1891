"""The bridge as a child process, spoken to as the plugin does: JSON lines over its standard input and output."""

from __future__ import annotations

import itertools
import json
import os
import queue
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

BRIDGE = (sys.executable, "-m", "backstory", "bridge")
ANSWER_TIMEOUT_S = 60
PATIENT = {"BACKSTORY_CONTEXT_DEADLINE_MS": "5000"}
"""So that a machine with much else to do does not look like a fault."""
HASTY = {"BACKSTORY_CONTEXT_DEADLINE_MS": "800"}
"""As it is unless somebody sets it; for tests about deadlines."""
Json = Any  # whatever the wire carries; tests reach into it at any depth


def in_time(attempt: Callable[[], float], limit_s: float, *, tries: int = 6) -> None:
    """Fail unless one of some attempts, which tell how long they took, is within a limit: a machine that has much else
    to do is late now and then, and a wait that should not be is there each time."""
    took_s = []
    for _ in range(tries):
        took_s.append(attempt())
        if took_s[-1] < limit_s:
            return
    raise AssertionError(f"none within {limit_s} s: {took_s}")


class BridgeProcess:
    """One bridge. ``answers`` maps a method that it may ask of the host to what the host says."""

    def __init__(
        self,
        home: Path,
        *,
        directory: Path,
        environ: Mapping[str, str] | None = None,
        command: tuple[str, ...] = BRIDGE,
        answers: Mapping[str, Callable[[Json], Json]] | None = None,
    ) -> None:
        inherited = {name: value for name, value in os.environ.items() if not name.startswith("BACKSTORY_")}
        self.directory = directory
        self.errors = home.parent / f"{home.name}-{id(self)}.stderr"
        self.asked: list[Json] = []
        self._answers = dict(answers or {})
        self._numbers = itertools.count(1)
        self._waiting: dict[Json, queue.Queue[Json]] = {}
        self._strays: queue.Queue[Json] = queue.Queue()
        self._writing = threading.Lock()
        with self.errors.open("wb") as errors:
            self.process = subprocess.Popen(
                command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=errors,
                env={**inherited, **PATIENT, "BACKSTORY_HOME": str(home), **(environ or {})},
            )
        self._reads = True
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def raw(self, line: bytes) -> None:
        """Write bytes, whatever they are."""
        assert self.process.stdin
        with self._writing:
            self.process.stdin.write(line)
            self.process.stdin.flush()

    def send(self, message: Json) -> None:
        self.raw(json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n")

    def begin(self, method: str, *, id: Json = None, **params: Json) -> Json:
        """Send a request without waiting; ``finish`` takes its answer."""
        number = next(self._numbers) if id is None else id
        self._waiting[number] = queue.Queue()
        self.send({"id": number, "method": method, "params": {"directory": str(self.directory), **params}})
        return number

    def finish(self, number: Json) -> Json:
        """The whole answer to a request that was begun."""
        return self._waiting[number].get(timeout=ANSWER_TIMEOUT_S)

    def ask(self, method: str, **params: Json) -> Json:
        """The result of a request; an AssertionError for an error."""
        answer = self.finish(self.begin(method, **params))
        assert "error" not in answer, answer
        return answer["result"]

    def notify(self, method: str, **params: Json) -> None:
        self.send({"method": method, "params": {"directory": str(self.directory), **params}})

    def event(self, type: str, properties: Json, **params: Json) -> None:
        self.notify("event", type=type, properties=properties, **params)

    def prompt(self, text: str, *, message: str, session: str = "ses_1", **params: Json) -> str | None:
        """The block that goes beside a prompt."""
        block: str | None = self.ask("chat.message", session=session, message=message, text=text, **params)["block"]
        return block

    def tool(self, name: str, *, session: str = "ses_1", **arguments: Json) -> str:
        """What a tool says."""
        return str(self.ask("tool", session=session, name=name, arguments=arguments)["output"])

    def stray(self) -> Json:
        """The next line that answers no request of ours."""
        return self._strays.get(timeout=ANSWER_TIMEOUT_S)

    def strays(self) -> int:
        """How many lines have come that answer no request of ours."""
        return self._strays.qsize()

    def close(self, *, within_s: float = ANSWER_TIMEOUT_S) -> int:
        """End its input and wait for it."""
        assert self.process.stdin
        self.process.stdin.close()
        return self.process.wait(within_s)

    def end_s(self) -> float:
        """How long it takes to end in good order after the end of its input."""
        ended = time.monotonic()
        assert self.close() == 0
        return time.monotonic() - ended

    def stderr(self) -> str:
        return self.errors.read_text(errors="replace")

    def stop_reading(self) -> None:
        """Close this end of its standard output."""
        self._reads = False
        self.begin("hello", protocol=1)  # wakes the reader, which then closes
        self._reader.join(ANSWER_TIMEOUT_S)

    def _read(self) -> None:
        assert self.process.stdout
        with self.process.stdout:
            for line in self.process.stdout:
                if not self._reads:
                    return
                self._take(line)

    def _take(self, line: bytes) -> None:
        message = json.loads(line)
        if "method" in message:
            self.asked.append(message)
            answer = self._answers.get(message["method"])
            if answer is not None:
                self.send({"id": message["id"], "result": answer(message["params"])})
        elif (number := message["id"]) in self._waiting:
            self._waiting[number].put(message)
        else:
            self._strays.put(message)
