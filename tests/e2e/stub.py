"""How tests install, script and read the stub bridge."""

from __future__ import annotations

import json
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from backstory.testing.scripted_model import Request

PLUGIN = Path(__file__).parents[2] / "src" / "backstory" / "entrypoints" / "opencode" / "plugin.js"
UNAVAILABLE = "No memory today."
TOOLS = [
    {
        "name": "memory_recall",
        "description": "Search what is remembered.",
        "parameters": {
            "type": "object",
            "properties": {
                "query": {"type": "string", "description": "what to look for"},
                "limit": {"type": "integer", "minimum": 1},
            },
            "required": ["query"],
            "additionalProperties": False,
        },
    },
    {"name": "memory_big", "description": "Says a lot.", "parameters": {"type": "object", "properties": {}}},
]


@dataclass(frozen=True, slots=True)
class Stub:
    """One stub's folder; see ``stub_bridge.py`` for what lies in it."""

    folder: Path

    def sidecar(self, *, command: list[str] | None = None, **deadlines_ms: int) -> dict[str, Any]:
        """What the installer would write beside the plugin."""
        return {
            "command": command or [sys.executable, str(Path(__file__).with_name("stub_bridge.py"))],
            "env": {"STUB_FOLDER": str(self.folder)},
            "version": "9.9.9",
            "manifest": TOOLS,
            "deadlines_ms": {"start": 15_000, "hello": 15_000, "session": 3000, **deadlines_ms},  # on a busy machine
            "unavailable": UNAVAILABLE,
        }

    def script(self, **behaviour: object) -> None:
        """Misbehave from now on; dots in method names are written as underscores. Nothing: behave."""
        script = {name.replace("_", "."): value for name, value in behaviour.items()}
        (self.folder / "script.json").write_text(json.dumps(script))

    def heard(self, method: str | None = None, **params: object) -> list[dict[str, Any]]:
        """What came in so far: the messages of one method whose parameters have these values."""
        path = self.folder / "heard.jsonl"
        lines = path.read_text().rpartition("\n")[0].splitlines() if path.exists() else []  # the last is being written
        messages = [json.loads(line) for line in lines]
        return [
            message
            for message in messages
            if method in (None, message.get("method"))
            and all(message.get("params", {}).get(name) == value for name, value in params.items())
        ]

    def events(self, session: str, type: str | None = None) -> list[dict[str, Any]]:
        """The ``event`` notifications that concern one session, in order."""
        events = [message["params"] for message in self.heard("event") if session in json.dumps(message)]
        return [event for event in events if type in (None, event["type"])]


def blocks_of(request: Request) -> list[str]:
    """The first word of each block in a request."""
    return [text.partition("<memory>")[2].partition(" ")[0] for text in request.texts("user") if "<memory>" in text]
