"""A home with the real OpenCode, our plugin, and the real bridge; and ways to look into its store from outside."""

from __future__ import annotations

import os
import signal
import sqlite3
import sys
from collections.abc import Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

from backstory.bootstrap import open_app
from backstory.config import load
from backstory.domain.history import Author
from backstory.domain.scope import Audience
from backstory.entrypoints.drive import drive
from backstory.entrypoints.tools import manifest
from backstory.testing.opencode import OpenCode, wait_for
from backstory.testing.opencode_server import Server
from backstory.testing.scripted_model import Request, ScriptedModel
from tests.e2e.stub import PLUGIN

BRIDGE = (sys.executable, "-m", "backstory", "bridge")
WORDS_ONLY = {"BACKSTORY_EMBEDDER_PROVIDER": "none"}
# Generous, so that a busy machine does not look like a fault; tests about deadlines set their own.
DEADLINES_MS = {
    "hello": 20_000, "chat.message": 8000, "blocks": 8000, "snapshot": 8000, "history": 8000, "compacting": 8000,
    "tool": 20_000, "session": 5000,
}  # fmt: skip
TAG = "<backstory-memory>"
SNAPSHOT_TAG = "<backstory-snapshot>"
Json = Any


class Installation:
    """``environ`` is added to the environment of OpenCode, and with it of the bridge."""

    def __init__(
        self,
        root: Path,
        model: ScriptedModel,
        binary: Path,
        *,
        command: Sequence[str] = BRIDGE,
        environ: Mapping[str, str] | None = None,
        deadlines_ms: Mapping[str, int] | None = None,
    ) -> None:
        self.model = model
        self.data = root / "memory"
        self.database = self.data / "backstory.db"
        self.log = root / "plugin.log"
        patient = {"BACKSTORY_CONTEXT_DEADLINE_MS": "5000"}  # the bridge's own, as generous
        known = {"BACKSTORY_HOME": str(self.data), "BACKSTORY_PLUGIN_LOG": str(self.log)}
        environ = {**patient, **known, **(environ or {})}
        # OpenCode's own snapshots of the work tree cost a second for each folder, and are none of our business.
        config = {"snapshot": False}
        self.opencode = OpenCode(root / "opencode", model.url, binary=binary, environ=environ, config=config)
        self.settings = load(env=environ, project_root=None).settings
        self.install(command=command, deadlines_ms={**DEADLINES_MS, **(deadlines_ms or {})})

    def install(self, *, command: Sequence[str] = BRIDGE, deadlines_ms: Mapping[str, int] = DEADLINES_MS) -> None:
        """Write the plugin and its sidecar, as the installer does."""
        sidecar = {
            "command": list(command),
            "env": {},
            "version": "test",
            "deadlines_ms": dict(deadlines_ms),
            "manifest": manifest(self.settings),
        }
        self.opencode.install_plugin(PLUGIN, sidecar)

    # --- what the model was shown -----------------------------------------------------------------------------------

    def requests(self, session: str) -> list[Request]:
        """The requests of a session's main loop, in order."""
        return self.model.requests("chat", session=session)

    def ask(self, server: Server, session: str, text: str, *, directory: Path | None = None) -> str:
        """Prompt, and return the block that the model saw beside the prompt; empty when there was none."""
        server.prompt(session, text, directory=directory)
        return block_of(self.requests(session)[-1])

    def tool(self, server: Server, session: str, name: str, *, directory: Path | None = None, **arguments: Json) -> str:
        """Let the model call a tool, and return what it was told."""
        self.model.when(last_role="user", offers=name, times=1).call(name, **arguments)
        server.prompt(session, "use the tool, please", directory=directory)
        return self.requests(session)[-1].texts("tool")[-1]

    # --- what is stored ---------------------------------------------------------------------------------------------

    def rows(self, statement: str, *parameters: object) -> list[tuple[Json, ...]]:
        with closing(sqlite3.connect(self.database)) as raw:
            return raw.execute(statement, parameters).fetchall()

    def memories(self) -> list[str]:
        return [row[0] for row in self.rows("SELECT content FROM memories WHERE state = 'active' ORDER BY n")]

    def evidence(self, session: str) -> list[tuple[str, str, str]]:
        """Role, kind and text of the parts that were kept of a session, in order; removed messages left out."""
        return self.rows(
            "SELECT m.role, p.kind, p.text FROM messages m JOIN parts p ON p.message = m.id"
            " WHERE m.session = ? AND m.removed_us IS NULL ORDER BY m.created_us, m.id, p.id",
            session,
        )

    def wait_for_evidence(self, session: str, text: str) -> list[tuple[str, str, str]]:
        """The evidence of a session, once ``text`` is part of it."""
        assert wait_for(lambda: text in str(self.evidence(session))), self.evidence(session)
        return self.evidence(session)

    def pin(self, n: int, project: Path) -> None:
        """Pin a memory, as a person does at the command line."""
        app = open_app(self.settings)
        viewer = drive(app.viewer(project, audience=Audience.PERSON))
        drive(app.remember.pin(f"#{n}", pinned=True, viewer=viewer, author=Author.USER))
        drive(app.close())

    # --- its processes ----------------------------------------------------------------------------------------------

    def bridges(self) -> list[int]:
        """The living bridges of this home."""
        return [pid for pid in map(int, (path.name for path in Path("/proc").glob("[0-9]*"))) if self._is_bridge(pid)]

    def _is_bridge(self, pid: int) -> bool:
        try:
            process = Path(f"/proc/{pid}")
            words = (process / "cmdline").read_bytes().split(b"\0")
            state = (process / "stat").read_text().rpartition(")")[2].split()[0]
            mine = f"BACKSTORY_HOME={self.data}".encode() in (process / "environ").read_bytes().split(b"\0")
        except OSError:
            return False
        return mine and b"bridge" in words and state != "Z"

    def signal_bridge(self, how: signal.Signals) -> int:
        """Send a signal to the one bridge there is, and return its process id."""
        (pid,) = self.bridges()
        os.kill(pid, how)
        return pid

    def left_over(self) -> list[int]:
        """Bridges that are still there although they were given 30 s to end; they are killed."""
        wait_for(lambda: not self.bridges(), timeout_s=30)
        left = self.bridges()
        for pid in left:
            os.kill(pid, signal.SIGKILL)
        return left


def block_of(request: Request) -> str:
    """The block beside the newest user message."""
    text = request.texts("user")[-1]
    return text[text.index(TAG) :] if TAG in text else ""


def snapshot_of(request: Request) -> str:
    """The snapshot in the system prompt; empty when there is none."""
    return next((text for text in request.texts("system") if text.startswith(SNAPSHOT_TAG)), "")
