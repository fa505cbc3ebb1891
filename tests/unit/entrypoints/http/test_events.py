"""The stream of changes: what each listener is told, in which order, and what it is never told."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import aclosing
from dataclasses import replace
from pathlib import Path
from typing import Any

import anyio
import pytest

from backstory.bootstrap import App
from backstory.config import Settings
from backstory.domain.history import Author
from backstory.domain.ids import ProjectId
from backstory.domain.memory import Sensitivity, Visibility
from backstory.domain.provenance import Origin
from backstory.domain.scope import Audience, Viewer
from backstory.entrypoints.http import events, streaming
from backstory.entrypoints.http.events import Changes
from backstory.entrypoints.http.folders import Desk
from backstory.entrypoints.http.problems import Problem
from backstory.errors import StoreUnavailable
from backstory.services.remember import Draft
from tests.stores import STORES

HERE, ELSEWHERE = ProjectId("P1"), ProjectId("P2")


@pytest.fixture(params=["memory", "sqlite"])
def app(request: pytest.FixtureRequest, tmp_path: Path) -> App:
    store = Settings().store if request.param == "sqlite" else replace(Settings().store, url="memory")
    settings = replace(Settings(), store=store)
    return App(settings, STORES[request.param](tmp_path), None, no_embedder="not in this test")


def desk(app: App, project: ProjectId = HERE) -> Desk:
    return Desk(app=app, viewer=Viewer(project=project, audience=Audience.MODEL))


async def keep(app: App, content: str, project: ProjectId = HERE, **more: Any) -> str:  # Any: fields of a draft
    viewer = Viewer(project=project, audience=Audience.PERSON)
    draft = Draft(content=content, origin=Origin.USER, **more)
    return (await app.remember.remember(draft, viewer=viewer, author=Author.USER)).change.id


def listen(
    app: App, told: Callable[[Changes, AsyncGenerator[bytes, None]], Awaitable[None]], after: str | None = None
) -> None:
    """Run a conversation with one listener, which has connected."""

    async def run() -> None:
        changes = Changes()
        async with aclosing(changes.stream(desk(app), after=after)) as stream:
            assert (await anext(stream)).startswith(b": connected")
            with anyio.fail_after(60):
                await told(changes, stream)

    anyio.run(run)


def parsed(event: bytes) -> dict[str, Any]:  # Any: JSON
    """One event: its fields, and its data."""
    assert event.endswith(b"\n\n")
    assert event.count(b"\n\n") == 1
    fields = dict(line.split(": ", 1) for line in event.decode().strip().split("\n"))
    data: dict[str, Any] = json.loads(fields["data"])
    return {"id": fields.get("id"), "name": fields["event"]} | data


def test_changes_are_told_as_they_happen_in_their_order(app: App) -> None:
    anyio.run(keep, app, "Known before anybody listens")

    async def told(changes: Changes, stream: AsyncGenerator[bytes, None]) -> None:
        change = await keep(app, "Frost comes in October")
        await keep(app, "Frost comes in November", supersedes="2")
        changes.wake()
        first, second = [parsed(await anext(stream)) for _ in range(2)]
        assert (first["id"], first["name"], first["author"]) == (change, "remembered", "user")
        assert first["memories"][0]["content"] == "Frost comes in October"
        assert second["name"] == "superseded"
        assert {memory["state"] for memory in second["memories"]} == {"active", "superseded"}

    listen(app, told)


def test_what_was_forgotten_by_now_is_told_without_its_text(app: App) -> None:
    async def told(changes: Changes, stream: AsyncGenerator[bytes, None]) -> None:
        await keep(app, "Frost comes in October")
        await app.remember.forget(["1"], viewer=desk(app).viewer, author=Author.AGENT)
        changes.wake()
        added, forgotten = [parsed(await anext(stream)) for _ in range(2)]
        assert (added["name"], added["memories"][0]["content"]) == ("remembered", None)
        assert (forgotten["name"], forgotten["memories"][0]["state"]) == ("forgotten", "deleted")
        assert forgotten["memories"][0]["content"] is None

    listen(app, told)


def test_what_the_viewer_may_not_see_is_not_told(app: App) -> None:
    async def told(changes: Changes, stream: AsyncGenerator[bytes, None]) -> None:
        await keep(app, "The yarrow of another project", ELSEWHERE)
        await keep(app, "The bryony of this machine", sensitivity=Sensitivity.LOCAL_ONLY)
        await keep(app, "True everywhere", ELSEWHERE, visibility=Visibility.GLOBAL)
        changes.wake()
        assert parsed(await anext(stream))["memories"][0]["content"] == "True everywhere"

    listen(app, told)


def test_a_text_can_neither_end_its_event_nor_begin_another(app: App) -> None:
    async def told(changes: Changes, stream: AsyncGenerator[bytes, None]) -> None:
        text = "One line\n\nevent: forgotten\ndata: {}\r\n\r\nid: x\u2028end"
        await keep(app, text)
        changes.wake()
        event = parsed(await anext(stream))
        assert event["name"] == "remembered"
        assert "event: forgotten" in event["memories"][0]["content"]

    listen(app, told)


def test_a_listener_goes_on_after_the_event_it_has_seen_last(app: App) -> None:
    async def fill() -> list[str]:
        return [await keep(app, f"Fact number {number} of many") for number in range(4)]

    ids = anyio.run(fill)

    async def told(changes: Changes, stream: AsyncGenerator[bytes, None]) -> None:
        assert [parsed(await anext(stream))["id"] for _ in range(2)] == ids[2:]
        change = await keep(app, "And one more")
        changes.wake()
        assert parsed(await anext(stream))["id"] == change  # and nothing twice

    listen(app, told, after=ids[1])


@pytest.mark.parametrize("hidden", [False, True])
def test_an_id_that_is_not_known_or_not_in_sight_is_a_gap(app: App, hidden: bool) -> None:
    after = anyio.run(keep, app, "Of another project", ELSEWHERE) if hidden else "01JNB0T5S1M0V7S5W2N3J4K6QX"

    async def told(changes: Changes, stream: AsyncGenerator[bytes, None]) -> None:
        assert parsed(await anext(stream))["name"] == "missed"

    listen(app, told, after=after)


def test_more_changes_than_are_looked_at_leave_a_gap_that_is_told(app: App, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(events, "WINDOW", 3)
    anyio.run(keep, app, "Known before anybody listens")

    async def told(changes: Changes, stream: AsyncGenerator[bytes, None]) -> None:
        ids = [await keep(app, f"Fact number {number} of many") for number in range(5)]
        changes.wake()
        assert parsed(await anext(stream))["name"] == "missed"
        assert [parsed(await anext(stream))["id"] for _ in range(3)] == ids[2:]

    listen(app, told)


def test_a_silent_stream_shows_that_it_lives_and_a_store_that_fails_does_not_end_it(
    app: App, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(events, "HEARTBEAT_S", 0.01)
    monkeypatch.setattr(events, "LOOK_EVERY_S", 0.01)

    async def told(changes: Changes, stream: AsyncGenerator[bytes, None]) -> None:
        assert await anext(stream) == b": still here\n\n"

        async def fails(*_: object, **__: object) -> None:
            raise StoreUnavailable("busy")

        with monkeypatch.context() as broken:
            broken.setattr(app.backend.memories, "history", fails)
            assert await anext(stream) == b": still here\n\n"
        change = await keep(app, "Frost comes in October")
        while (event := await anext(stream)).startswith(b":"):
            pass
        assert parsed(event)["id"] == change  # seen without being woken, as if another process had written it

    listen(app, told)


def test_there_is_room_for_so_many_listeners_and_a_place_is_free_when_one_goes(app: App) -> None:
    async def run() -> None:
        changes = Changes()
        streams = [changes.stream(desk(app), after=None) for _ in range(events.MAX_LISTENERS)]
        for stream in streams:
            await anext(stream)
        with pytest.raises(Problem) as refused:
            await anext(changes.stream(desk(app), after=None))
        assert refused.value.status == 503
        await streams.pop().aclose()
        streams.append(changes.stream(desk(app), after=None))
        await anext(streams[-1])
        changes.close()
        for stream in streams:
            assert [event async for event in stream] == []

    anyio.run(run)


def test_a_listener_that_takes_nothing_is_let_go(app: App, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(streaming, "SEND_WITHIN_S", 0.02)

    async def run() -> None:
        changes = Changes()
        answer = await streaming.EventStream.begun(changes.stream(desk(app), after=None))

        async def send(message: Any) -> None:  # Any: ASGI
            if message["type"] == "http.response.body":
                await anyio.sleep_forever()

        async def receive() -> Any:
            await anyio.sleep_forever()

        with anyio.fail_after(60):
            await answer({"type": "http", "method": "GET"}, receive, send)
        assert changes._listeners == 0

    anyio.run(run)
