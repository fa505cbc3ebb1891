"""Stores of opencode-memory, made up for tests.

Test modules take the fixture by its name.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from backstory.adapters.formats.opencode_memory.json_text import js_text
from tests.unit.adapters.formats.exchange import Exchange

ORCHARD = "/home/kim/orchard"
START = 1_750_000_000_000
PEAR, PLUM, QUINCE = "0b1c7d5e-pear", "3c2f-plum", "9f00-quince"

ENTRIES: list[dict[str, Any]] = [
    {
        "text": "Pears are picked before they are ripe.", "category": "workflow", "scope": "project",
        "projectID": ORCHARD, "weight": 3.5, "lastSeen": START + 9000, "source": "explicit", "created": START,
        "createdBy": "memory_write", "confidence": 1, "tier": "core", "pinned": True, "sensitivity": "normal",
        "id": PEAR, "status": "ACTIVE", "useCount": 4, "helpfulCount": 2, "lastUsed": START + 8000,
    },
    {
        "text": "Plums freeze well:\n\t- halved \"C:\\tin\" 梅 🍑", "category": "general", "scope": "global",
        "weight": 1.0625000001, "lastSeen": START + 500, "source": "dreamed", "created": START + 500,
        "createdBy": "consolidation", "sourceSessionID": "ses_1", "sourceMessageIDs": ["msg_1", "msg_2"],
        "extractedAt": START + 500, "confidence": 0.7, "id": PLUM, "tier": "archival", "status": "SUPERSEDED",
        "sensitivity": "normal", "supersededAt": START + 700, "invented": {"kept": [1, 2.5, None]},
    },
    {
        "text": "Quinces need two frosts.", "category": "status", "scope": "global", "weight": 3,
        "lastSeen": START + 100, "source": "explicit", "created": START + 100, "createdBy": "memory_write",
        "confidence": 1, "tier": "temporary", "expiresAt": START + 10**12, "sensitivity": "normal", "id": QUINCE,
        "status": "CONFLICTED", "conflictEvidence": "\"one frost did\"", "conflictAt": START + 200,
    },
]  # fmt: skip
STATE = {"sessions": {"ses_1": START}, "inProgress": {"ses_2": {"targetTs": START, "startedAt": START + 1}}}


def written(folder: Path, entries: list[Any], *, version: object = 2, summary: str = "Kim keeps an orchard.") -> Path:
    """A store as the plugin leaves it."""
    folder.mkdir(exist_ok=True, parents=True)
    store = {"version": version, "summary": summary, "updatedAt": START + 9000, "entries": entries}
    (folder / "store.json").write_text(js_text(store))
    (folder / "state.json").write_text(js_text(STATE))
    page = f"# opencode memory summary\n\nUpdated: 2025-06-15T15:06:49.000Z\n\n{summary}\n"
    (folder / "SUMMARY.md").write_text(page)
    return folder


def entry(**values: object) -> dict[str, Any]:
    """An entry in which these fields say something else; one that is None is not there."""
    made = {"text": "Kept.", "category": "other", "scope": "global", "weight": 3, "lastSeen": START,
            "source": "explicit", "created": START, "id": "one"} | values  # fmt: skip
    return {name: value for name, value in made.items() if value is not None}


def taken_out(exchange: Exchange, folder: Path) -> dict[str, Any]:
    """The store as an export writes it."""
    exchange.take_out(folder / "out")
    found: dict[str, Any] = json.loads((folder / "out" / "store.json").read_text())
    return found


@pytest.fixture
def exchange() -> Exchange:
    return Exchange("opencode-memory")
