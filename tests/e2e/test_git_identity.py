"""OpenCode takes a repository's identity from its root commits: the ref of the memories must not become one of them."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import anyio
import pytest

from backstory.adapters.stores.gitbranch.store import open_git
from backstory.domain.history import Edit
from backstory.testing.fakes import sample_change, sample_memory
from backstory.testing.opencode import OpenCode
from backstory.testing.scripted_model import ScriptedModel

pytestmark = pytest.mark.opencode


@pytest.fixture
def opencode(tmp_path: Path, scripted: ScriptedModel, opencode_binary: Path) -> OpenCode:
    return OpenCode(tmp_path / "opencode", scripted.url, binary=opencode_binary)


def project_id(opencode: OpenCode, folder: Path) -> str:
    """What OpenCode takes for the project's identity in a folder, not having been told before."""
    (folder / ".git" / "opencode").unlink(missing_ok=True)
    with opencode.serve(cwd=folder) as server:
        return str(server.call("GET", "/project/current")["id"])


def test_a_repository_keeps_its_identity_when_memories_are_stored_in_it(opencode: OpenCode, tmp_path: Path) -> None:
    folder = opencode.project("orchard", files={"readme": "trees"})
    root = opencode.git(folder, "rev-list", "--max-parents=0", "HEAD")
    before = project_id(opencode, folder)
    assert before == root

    async def remember() -> None:
        backend = open_git(folder, index=tmp_path / "local.db")
        memory = sample_memory("Apples are picked in October.")
        change = await backend.memories.commit(sample_change(1, Edit(before=None, after=memory)))
        stored = change.edits[0].after
        await backend.memories.commit(sample_change(2, Edit(before=stored, after=replace(stored, pinned=True))))
        await backend.memories.close()

    anyio.run(remember)
    assert len(opencode.git(folder, "rev-list", "--max-parents=0", "--all").splitlines()) == 2
    assert project_id(opencode, folder) == before
    other_home = OpenCode(tmp_path / "elsewhere", "http://127.0.0.1:9", binary=opencode.binary)
    assert project_id(other_home, folder) == before
