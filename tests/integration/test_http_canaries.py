"""What each address of the HTTP server may show of a store in which everything has a word of its own."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import aclosing
from pathlib import Path
from typing import Any

import anyio
import pytest

from backstory.domain.history import Author
from backstory.domain.lifecycle import Revision
from backstory.domain.scope import Audience, Viewer
from backstory.entrypoints.drive import drive
from backstory.entrypoints.http.folders import Desk
from backstory.entrypoints.http.operations import OPERATIONS
from tests.canaries import ELSEWHERE, KEYS, LOCAL, NIGHT, NOWHERE, OPEN, PRIVATE, TALK, Boathouse, filled, heard
from tests.served import Served

READ = {OPEN, PRIVATE}
"""What is shown to a model that asks: never what is local-only, forgotten or of another project."""
ASKED = [f"Where is the {key}, and its oil?" for key in KEYS.values()]
REFS = [*range(1, 12), *KEYS.values(), "lamp", LOCAL, ELSEWHERE]
Asked = Sequence[tuple[str, Mapping[str, Any]]]  # Any: fields of a body, or parameters

IN_ADDRESSES: Mapping[str, tuple[set[str], Asked]] = {
    "health": (set(), [("/v1/health", {})]),
    "list_tools": (set(), [("/v1/tools", {})]),
    "call_tool": (READ, [
        ("/v1/tools/memory_recall", {"arguments": {"query": text, "where": "all"}}) for text in ASKED
    ]),
    "recall": (READ, [
        *(("/v1/recall", {"query": text, "where": "all", "superseded": True}) for text in [*ASKED, ""]),
        ("/v1/recall", {"query": "lamp", "tags": [LOCAL]}), ("/v1/recall", {"query": "lamp", "area": LOCAL}),
    ]),
    "remember": (READ, [
        *(("/v1/memories", {"content": f"The lamp has a new wick, number {ref}", "supersedes": ref}) for ref in REFS),
    ]),
    "list_memories": (READ, [
        ("/v1/memories", {"limit": 1_000}), ("/v1/memories", {"tag": LOCAL}), ("/v1/memories", {"containing": LOCAL}),
        ("/v1/memories", {"area": LOCAL}), ("/v1/memories", {"tag": ELSEWHERE}),
    ]),
    "show_memory": (READ, [(f"/v1/memories/{ref}", {}) for ref in REFS]),
    "list_sessions": (set(), [("/v1/sessions", {})]),
    "read_session": (set(), [(f"/v1/sessions/{session}", {"limit": 100}) for session in (TALK, NIGHT)]),
    "hook": ({OPEN}, [
        *(("/v1/hooks/prompt", {"prompt": text, "session": f"ses_{number}"}) for number, text in enumerate(ASKED)),
        ("/v1/hooks/session-start", {"session": "ses_new"}), ("/v1/hooks/pre-compact", {"session": "ses_new"}),
        ("/v1/hooks/stop", {"session": "ses_new", "answer": "Done"}),
    ]),
}  # fmt: skip
WRITES = {"call_tool", "recall", "remember", "hook"}


@pytest.fixture(scope="module")
def house(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Boathouse]:
    base = tmp_path_factory.mktemp("canaries")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("BACKSTORY_HOME", str(base / "home"))
        made = filled(base)
        yield made
        made.close()


def test_each_address_says_here_what_it_may_show() -> None:
    assert {operation.name for operation in OPERATIONS} | {"hook"} == set(IN_ADDRESSES)


@pytest.mark.parametrize("name", IN_ADDRESSES)
@pytest.mark.parametrize("session", [None, TALK])
def test_no_address_shows_more_than_it_may(house: Boathouse, tmp_path: Path, name: str, session: str | None) -> None:
    may, asked = IN_ADDRESSES[name]
    seen = house.copied(tmp_path)
    served = Served(seen.app.backend, house.folder, app=seen.app)
    told: list[str] = []
    for path, given in asked:
        place = {"directory": str(house.folder)} if name == "hook" else {"project": str(house.folder)}
        place |= {"session": session} if session is not None else {}
        sent: dict[str, Any] = {"json" if name in WRITES else "params": {} if name == "health" else {**place, **given}}
        response = served.ask("POST" if name in WRITES else "GET", path, **sent)
        assert response.status_code < 500
        repeated = heard(json.dumps([path, given]))
        told.append(response.text)
        assert heard(response.text) - repeated <= may, (path, given)
    found = heard("\n".join(told))
    assert not found & NOWHERE
    if name in ("call_tool", "recall", "list_memories", "show_memory"):
        assert OPEN in found  # or nothing was looked for
    seen.close()


def test_the_stream_tells_no_more_than_a_model_may_see(house: Boathouse, tmp_path: Path) -> None:
    seen = house.copied(tmp_path)
    served = Served(seen.app.backend, house.folder, app=seen.app)
    desk = Desk(app=seen.app, viewer=seen.viewer())
    everything = drive(seen.app.backend.memories.history(viewer=desk.viewer, limit=1_000))

    async def touch(canary: str) -> None:
        memory = house.memories[canary]
        person = Viewer(project=memory.project, audience=Audience.PERSON)
        labelled = Revision(issue="L-2")
        await seen.app.remember.update(memory.id, labelled, viewer=person, author=Author.USER, reason=canary)

    async def listen() -> str:
        """All that was, from the first change on, and then what happens."""
        async with aclosing(served.server.changes.stream(desk, after=everything[-1].id)) as stream:
            told = [await anext(stream) for _ in everything]
            for canary in (LOCAL, ELSEWHERE, PRIVATE, OPEN):
                await touch(canary)
            served.server.changes.wake()
            told += [await anext(stream) for _ in (PRIVATE, OPEN)]
        return b"".join(told).decode()

    assert heard(anyio.run(listen)) == READ
    seen.close()
