"""A running ``opencode serve``, and the calls of its HTTP API that tests make.

Starting one in a home of its own is ``opencode.py``.
"""

from __future__ import annotations

import json
import signal
import subprocess
import threading
import urllib.error
import urllib.parse
import urllib.request
from pathlib import Path
from types import TracebackType
from typing import IO

from backstory.testing.opencode_config import MODEL, PROVIDER, Json

START_TIMEOUT_S = 60
PROMPT_TIMEOUT_S = 120


class Server:
    """A running ``opencode serve``. ``directory`` is the folder a call works in, by default where it started."""

    def __init__(self, process: subprocess.Popen[str], *, directory: Path) -> None:
        self.process = process
        self.directory = directory
        self.output: list[str] = []
        self._url = ""
        self._ready = threading.Event()
        for stream in (process.stdout, process.stderr):
            assert stream is not None
            threading.Thread(target=self._read, args=(stream,), daemon=True).start()
        if not self._ready.wait(START_TIMEOUT_S) or not self._url:
            self.close()
            raise RuntimeError("opencode serve did not start: " + "\n".join(self.output)[-2000:])

    def _read(self, stream: IO[str]) -> None:
        for line in stream:
            self.output.append(line.rstrip())
            if "listening on" in line:
                self._url = line.rpartition("listening on")[2].strip()
                self._ready.set()
        self._ready.set()

    def __enter__(self) -> Server:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()

    def close(self, how: signal.Signals = signal.SIGTERM) -> None:
        """End the process, by force if ``how`` does not do it in 15 s. Closing twice is fine."""
        if self.process.poll() is None:
            self.process.send_signal(how)
            try:
                self.process.wait(15)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()

    def call(
        self,
        method: str,
        path: str,
        body: Json = None,
        *,
        directory: Path | None = None,
        timeout_s: float = PROMPT_TIMEOUT_S,
        **query: str,
    ) -> Json:
        """One HTTP call; RuntimeError with the server's words when it is refused."""
        query = {"directory": str(directory or self.directory), **query}
        request = urllib.request.Request(
            f"{self._url}{path}?{urllib.parse.urlencode(query)}",
            data=None if body is None else json.dumps(body).encode(),
            method=method,
            headers={"Content-Type": "application/json"},
        )
        try:
            with urllib.request.urlopen(request, timeout=timeout_s) as response:
                raw = response.read()
        except urllib.error.HTTPError as error:
            raise RuntimeError(f"{method} {path}: {error.code} {error.read()[:500]!r}") from error
        return json.loads(raw) if raw else None

    def create_session(
        self, *, title: str | None = "A titled session", directory: Path | None = None, **body: Json
    ) -> str:
        """A new session's id. With ``title=None`` OpenCode asks the model for a title beside the first prompt."""
        body = body if title is None else {"title": title, **body}
        return str(self.call("POST", "/session", body, directory=directory)["id"])

    def prompt(
        self,
        session: str,
        text: str,
        *,
        directory: Path | None = None,
        timeout_s: float = PROMPT_TIMEOUT_S,
        **body: Json,
    ) -> Json:
        """Send a prompt and wait for the whole turn; the assistant's message with its parts."""
        body = {"parts": [{"type": "text", "text": text}], **body}
        return self.call("POST", f"/session/{session}/message", body, directory=directory, timeout_s=timeout_s)

    def say(self, session: str, text: str, *, directory: Path | None = None) -> str:
        """Send a prompt and return the text of the answer."""
        parts = self.prompt(session, text, directory=directory)["parts"]
        return "".join(part["text"] for part in parts if part["type"] == "text")

    def messages(self, session: str, *, directory: Path | None = None) -> list[Json]:
        """The stored messages, each ``{info, parts}``, oldest first."""
        return list(self.call("GET", f"/session/{session}/message", directory=directory))

    def compact(self, session: str, *, directory: Path | None = None) -> None:
        """Compact the session now, and wait for it."""
        model = {"providerID": PROVIDER, "modelID": MODEL}
        self.call("POST", f"/session/{session}/summarize", model, directory=directory)

    def delete_session(self, session: str, *, directory: Path | None = None) -> None:
        """Delete a session and its children."""
        self.call("DELETE", f"/session/{session}", directory=directory)

    def reload(self, *, directory: Path | None = None) -> None:
        """Dispose this directory's instance; the next call loads it, and its plugins, anew."""
        self.call("POST", "/instance/dispose", {}, directory=directory)
