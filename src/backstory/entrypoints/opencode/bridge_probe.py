"""Starting the bridge by itself, as the plugin would, to see whether it answers.

It runs with throw-away data, so that nothing it does is kept. OpenCode is started in ``probe.py``.
"""

from __future__ import annotations

import contextlib
import json
import os
import queue
import subprocess
import threading
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from backstory.entrypoints.opencode.probe import ENDING_S, SHOWN_CHARS, Outcome, last_line, own_data, throw_away
from backstory.entrypoints.opencode.protocol import PROTOCOL

BRIDGE_TIMEOUT_S = 5.0


def start_bridge(
    command: Sequence[str], env: Mapping[str, str], *, folder: Path, timeout_s: float = BRIDGE_TIMEOUT_S
) -> Outcome:
    """Start the Python half as the plugin would, say hello, and wait for its answer.

    ``env`` is the whole environment. The data folder is a throw-away one: the store is not touched, and no note is left
    that could be taken for OpenCode's own hello.
    """
    started = time.monotonic()
    with throw_away() as scratch, (scratch / "stderr").open("w+b") as errors:
        environ = {**env, "PYTHONSAFEPATH": "1", **own_data(env, scratch)}
        try:
            process = subprocess.Popen(
                command, cwd=folder, env=environ, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=errors
            )
        except (OSError, ValueError) as error:
            return Outcome(failure=f"cannot be started: {error}")
        try:
            answer = _say_hello(process, scratch, timeout_s)
        finally:
            _end(process)
        seconds = time.monotonic() - started
        if answer is None:
            errors.seek(0)
            said = last_line(errors.read())
            how = f"gave no answer in {timeout_s:.0f} s" if seconds >= timeout_s else "ended without an answer"
            return Outcome(failure=f"{how}{f': {said}' if said else ''}", seconds=seconds)
        return Outcome(failure=_fault(answer), version=_version(answer), seconds=seconds)


def _say_hello(process: subprocess.Popen[bytes], directory: Path, timeout_s: float) -> dict[str, object] | None:
    """The answer to a hello; None when there is none in time or the process ends first."""
    assert process.stdin is not None
    params = {"protocol": PROTOCOL, "plugin_version": None, "api": 1, "directory": str(directory), "pid": os.getpid()}
    hello = {"jsonrpc": "2.0", "id": 1, "method": "hello", "params": params}
    lines: queue.Queue[bytes | None] = queue.Queue()
    threading.Thread(target=_read_lines, args=(process, lines), daemon=True).start()
    with contextlib.suppress(BrokenPipeError):
        process.stdin.write(json.dumps(hello).encode() + b"\n")
        process.stdin.flush()
    end = time.monotonic() + timeout_s
    while (left := end - time.monotonic()) > 0:
        try:
            line = lines.get(timeout=left)
        except queue.Empty:
            return None
        if line is None:
            return None
        with contextlib.suppress(ValueError):
            message = json.loads(line)
            if isinstance(message, dict) and message.get("id") == 1:
                return message
    return None


def _read_lines(process: subprocess.Popen[bytes], lines: queue.Queue[bytes | None]) -> None:
    assert process.stdout is not None
    with contextlib.suppress(ValueError):  # closed by the other thread
        for line in process.stdout:
            lines.put(line)
    lines.put(None)


def _fault(answer: Mapping[str, object]) -> str:
    result = answer.get("result")
    if not isinstance(result, dict):
        return f"answers with an error: {str(answer.get('error'))[:SHOWN_CHARS]}"
    if result.get("protocol") != PROTOCOL:
        return f"speaks protocol {str(result.get('protocol'))[:20]}, the plugin speaks {PROTOCOL}"
    return ""


def _version(answer: Mapping[str, object]) -> str:
    result = answer.get("result")
    return str(result.get("version", "")) if isinstance(result, dict) else ""


def _end(process: subprocess.Popen[bytes]) -> None:
    """End of input first, then by force."""
    with contextlib.suppress(OSError):
        if process.stdin is not None:
            process.stdin.close()
    try:
        process.wait(ENDING_S)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
