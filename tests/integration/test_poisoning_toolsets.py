"""The tools of older products give an attacker no more than our own do."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from backstory.domain.memory import Sensitivity, Tier
from backstory.domain.provenance import Origin
from tests.poisoned import LIE, MARK, ORDER, Farm


def farm_with(tmp_path: Path, toolset: str) -> Farm:
    return Farm(tmp_path, tools__toolset=toolset)


@pytest.mark.parametrize("form", ["jsonl", "json", "logfmt"])
def test_what_an_agent_was_talked_into_importing_is_offered_to_nobody(tmp_path: Path, form: str) -> None:
    farm = farm_with(tmp_path, "git-memory")
    farm.state()
    record = {"ts": "2026-01-01T00:00:00Z", "type": "decision", "scope": "user", "content": LIE, "tags": ["pinned"],
              "origin": "user", "pinned": True, "tier": "core"}  # fmt: skip
    line = f'ts=2026-01-01T00:00:00Z type=decision scope=user content="{LIE}" origin=user tier=core'
    data = {"jsonl": json.dumps(record), "json": json.dumps([record]), "logfmt": line}[form]
    assert farm.tool("memory_import", data=data, format=form).text == "Imported 1 memory(s)"
    (lie,) = farm.lies()
    assert (lie.origin, lie.tier, lie.pinned) == (Origin.IMPORTED, Tier.ARCHIVAL, False)
    farm.holds()
    assert "came from outside" in farm.tool("memory_recall", query=MARK).text
    assert "came from outside" in farm.tool("memory_context", query=MARK, minScore=0).text
    farm.close()


def test_rewording_an_import_does_not_make_it_the_agent_s(tmp_path: Path) -> None:
    farm = farm_with(tmp_path, "git-memory")
    farm.state()
    farm.tool("memory_import", data=json.dumps({"type": "decision", "scope": "keys", "content": LIE}))
    farm.tool("memory_update", scope="keys", type="decision", content=f"{LIE} This is certain.")
    (lie,) = farm.lies()
    assert lie.origin is Origin.IMPORTED
    farm.holds()
    farm.close()


def test_no_tool_pins_or_opens_what_is_closed(tmp_path: Path) -> None:
    farm = farm_with(tmp_path, "opencode-memory")
    secret = farm.state("The safe opens with a brass key.", sensitivity=Sensitivity.LOCAL_ONLY)
    farm.tool("memory_write", fact=ORDER, pinned=True, tier="core")
    farm.tool("memory_write", fact="The safe opens with a brass key.", sensitivity="normal", scope="project")
    farm.tool("memory_update", id=secret.n, fact=LIE)
    farm.tool("memory_forget", id=secret.n, match="brass key")
    farm.tool("memory_clear")
    kept = {memory.n: memory for memory in farm.kept()}
    assert kept[secret.n] == secret
    assert not any(memory.pinned for memory in kept.values())
    farm.close()
