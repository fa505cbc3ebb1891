"""The shared message sequences that only a store, a model or a running bridge decides: nothing in between is faked."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from backstory.adapters.stores.sqlite.store import open_sqlite
from backstory.adapters.tokens import EstimatedTokens
from backstory.domain.conversation import Message, Part, Role, typed_text
from backstory.domain.ids import MessageId, PartId
from backstory.domain.observation import ObservationPolicy
from backstory.domain.summary_tree import TreePolicy
from backstory.entrypoints.opencode.host_messages import to_message
from backstory.ports.backend import Backend
from backstory.testing.opencode import wait_for
from tests.integration.bridge_process import BridgeProcess
from tests.long_host import EAGER, LongHost

CASES = Path(__file__).parents[3] / "shared" / "cases" / "message-sequences"
NOW = datetime(2026, 3, 2, 12, tzinfo=UTC)
NOTES = "<observations>\n- The limit is 250 rows.\n</observations>"
SUMMARY = "The two schemas were compared; a.sql was read."

pytestmark = pytest.mark.anyio
Row = Mapping[str, Any]


def row(name: str) -> Row:
    """One of the shared rows, with what it abbreviates written out."""
    path = CASES / f"{name}.json"
    if not path.exists():
        pytest.skip("the message sequences are not beside this checkout")
    found: Row = expanded(json.loads(path.read_text(encoding="utf-8")))
    return found


def expanded(value: Any) -> Any:
    if isinstance(value, dict):
        if set(value) == {"$gen"}:
            return "".join(item["s"] * item["n"] for item in value["$gen"])
        return {key: expanded(item) for key, item in value.items()}
    return [expanded(item) for item in value] if isinstance(value, list) else value


def read(items: Sequence[Any], *, child: bool = False) -> list[Message]:
    """The messages as the bridge reads them. The rows leave out when an answer was complete, but not that it ended."""
    found = [to_message(item["info"], item["parts"], child=child, now=NOW) for item in items]
    ended = {item["info"]["id"] for item in items if item["info"].get("finish")}
    messages = [message for message in found if message is not None]
    return [replace(m, completed_at=m.created_at) if m.id in ended else m for m in messages]


def prompt_after(messages: Sequence[Message], text: str = "And what is next?") -> Message:
    """What a person types next, so that all before it is past."""
    last = messages[-1]
    name = MessageId(f"{last.id}-next")
    part = Part(id=PartId(f"{name}-p"), kind="text", text=text)
    return Message(id=name, session=last.session, role=Role.USER, created_at=last.created_at, parts=(part,))


@pytest.fixture
def backend(tmp_path: Path) -> Iterator[Backend]:
    from backstory.entrypoints.drive import drive

    backend = open_sqlite(tmp_path / "memory.db")
    yield backend
    drive(backend.memories.close())


async def observed(host: LongHost, step: Row) -> list[Message]:
    """The messages of an ``observe`` step, all observed."""
    messages = read(step["messages"])
    assert await host.work([*messages, prompt_after(messages)]) > 0
    [piece] = await host.pieces(messages[0].session)
    assert piece.sources == tuple(message.id for message in messages)
    return messages


def check_injected(text: str, expect: Row) -> None:
    assert all(words in text for words in expect.get("system_must_contain", ()))
    assert not any(words in text for words in expect.get("system_must_not_contain", ()))


async def test_a_fork_starts_without_its_parents_notes_and_leaves_them_alone(backend: Backend) -> None:
    observe, fork, parent = row("fork-own-state")["steps"]
    host = LongHost(answers=(observe["observer_returns"],), policy=EAGER, backend=backend)
    messages = await observed(host, observe)
    before = await host.digest(messages[0].session)
    check_injected(await host.injected(read(fork["messages"])), fork["expect"])
    assert await host.pieces(read(fork["messages"])[0].session) == ()
    assert await host.digest(messages[0].session) == before
    own = read(parent["messages"])
    check_injected(await host.injected([*own, prompt_after(own)]), parent["expect"])


async def test_what_was_undone_is_in_no_later_request_and_the_new_wish_is_observed_once(backend: Backend) -> None:
    observe, undo, inject = row("undo-after-observe")["steps"]
    host = LongHost(answers=(observe["observer_returns"], NOTES), policy=EAGER, backend=backend)
    messages = await observed(host, observe)
    await host.undo(*(message for message in messages if message.id in undo["event"]["ids"]))
    request = read(inject["messages"])
    check_injected(await host.injected(request), inject["expect"])
    assert inject["expect"]["observed_once"]
    await host.work([*request, prompt_after(request)])
    await host.work([*request, prompt_after(request)])
    sources = [source for piece in await host.pieces(request[0].session) for source in piece.sources]
    assert sorted(sources) == sorted(message.id for message in request)
    asked = [made.prompt for made in host.model.requests[1:]]
    assert sum(prompt.count(typed_text(request[-1])) for prompt in asked) == 1
    assert not any("Postgres" in prompt for prompt in asked)


async def test_a_summary_longer_than_its_source_is_thrown_away_and_asked_for_once(backend: Backend) -> None:
    case = row("compress-not-smaller")
    too_long = case["expect"]["summary_from_model"]
    host = LongHost(answers=(too_long,), policy=tree_policy(case), backend=backend)
    messages = read(case["messages"])
    for _ in range(3):
        await host.work(messages)
    outlook = await host.request(messages)
    assert case["expect"]["applied"] is False
    assert too_long not in json.dumps([piece.text for piece in await host.pieces(messages[0].session)])
    assert len(host.model.requests) == 1
    assert outlook.replaced is None or too_long not in outlook.replaced.text


def tree_policy(case: Row) -> TreePolicy:
    return TreePolicy(max_raw=case["config"]["max_raw"], min_batch=case["config"]["min_batch"])


async def test_the_newest_user_message_is_in_no_batch_and_a_leaf_opens_to_what_was_said(backend: Backend) -> None:
    case = row("compress-keeps-last-user")
    expect = case["expect"]
    host = LongHost(answers=("They greeted each other.",), policy=tree_policy(case), backend=backend)
    messages = read(case["messages"])
    assert await host.work(messages) == 1
    [leaf] = await host.pieces(messages[0].session)
    assert not set(expect["never_in_batch"]) & set(leaf.sources)
    assert expect["round_numbers_contiguous"]
    assert list(leaf.sources) == [message.id for message in messages[leaf.start : leaf.end + 1]]
    opened = await host.lookup.open(messages[0].session, leaf.id)
    assert all(text in opened for text in expect["details_must_contain"])


async def test_a_message_whose_tools_still_run_is_in_no_leaf_until_they_have_ended(backend: Backend) -> None:
    case = row("tool-states-compress")
    host = LongHost(answers=(SUMMARY,), policy=tree_policy(case), backend=backend)
    messages = read(case["messages"])
    await host.work(messages)
    waiting = [m for m in messages if any(f'"status": "{s}"' in (p.detail or "")
               for s in case["expect"]["never_in_batch_while"] for p in m.parts)]  # fmt: skip
    assert waiting
    taken = {source for piece in await host.pieces(messages[0].session) for source in piece.sources}
    assert taken.isdisjoint(message.id for message in waiting)
    ended = [ended_tools(message) for message in messages]
    assert await host.work(ended) == 1
    [leaf] = await host.pieces(messages[0].session)
    assert set(leaf.sources) == {message.id for message in messages[:2]}


def ended_tools(message: Message) -> Message:
    """The message once all of its tools have answered."""

    def ended(part: Part) -> Part:
        detail = (part.detail or "").replace('"pending"', '"completed"').replace('"running"', '"completed"')
        return replace(part, detail=detail or None, text=part.text or "CREATE TABLE a();")

    return replace(message, parts=tuple(map(ended, message.parts)), completed_at=NOW)


async def test_one_message_above_the_threshold_is_observed_at_the_next_turn(backend: Backend) -> None:
    case = row("huge-first-message")
    policy = ObservationPolicy(message_tokens=case["config"]["message_tokens"])
    host = LongHost(answers=(NOTES,), policy=policy, backend=backend)
    [huge] = read(case["messages"])
    answer = replace(prompt_after([huge]), id=MessageId("msg_a_002"), role=Role.ASSISTANT, completed_at=NOW, parts=())
    request = [huge, answer, prompt_after([answer])]
    assert (await host.request(request)).due is case["expect"]["triggers"]
    assert await host.work(request) > 0
    sources = {source for piece in await host.pieces(huge.session) for source in piece.sources}
    assert set(case["expect"]["observed_ids"]) <= sources
    assert await host.work(request) == 0
    outlook = await host.request([*request, prompt_after(request)])
    assert outlook.replaced is not None
    assert EstimatedTokens().count(outlook.replaced.text) < 1_000


# --- a running bridge -------------------------------------------------------------------------------------------------

Start = Callable[..., BridgeProcess]


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Start]:
    running: list[BridgeProcess] = []
    folder = tmp_path / "app"
    folder.mkdir()

    def start(*history: Row, **environ: str) -> BridgeProcess:
        """A bridge whose host has this history to tell when it is asked."""
        settings = {"BACKSTORY_EMBEDDER_PROVIDER": "none", "BACKSTORY_SESSION_STRATEGY": "observations", **environ}
        answers = {"host.messages": lambda _: list(history)}
        running.append(BridgeProcess(tmp_path / "home", directory=folder, environ=settings, answers=answers))
        running[-1].ask("hello", protocol=1)
        return running[-1]

    yield start
    for bridge in running:
        if bridge.process.poll() is None:
            bridge.process.kill()
            bridge.process.wait()


def rows_of(home: Path, statement: str) -> list[Any]:
    with sqlite3.connect(home / "home" / "backstory.db") as raw:
        return raw.execute(statement).fetchall()


def tell(bridge: BridgeProcess, item: Row, **params: Any) -> None:
    """One message, as the host's events tell it."""
    bridge.event("message.updated", {"info": item["info"]}, **params)
    for part in item["parts"]:
        bridge.event("message.part.updated", {"part": part}, **params)


def settled(home: Path, *bridges: BridgeProcess) -> None:
    """Wait until all that was sent is taken: a mark sent last is kept last."""
    for number, bridge in enumerate(bridges):
        info = {"id": f"mark_{number}", "sessionID": "ses_mark", "role": "user", "time": {"created": 1_772_445_609_000}}
        bridge.event("message.updated", {"info": info})
        assert wait_for(partial(rows_of, home, f"SELECT 1 FROM messages WHERE id = 'mark_{number}'"))


def test_an_event_told_nine_times_by_two_instances_is_kept_once(start: Start, tmp_path: Path) -> None:
    [step] = row("same-event-many-times")["steps"]
    event, expect = step["event"], step["expect"]
    item = event["message"]
    bridges = [start() for _ in range(event["instances"])]
    session, message, text = item["info"]["sessionID"], item["info"]["id"], item["parts"][0]["text"]
    for _ in range(event["repeat"]):
        for bridge in bridges:
            tell(bridge, item)
            bridge.prompt(text, message=message, session=session)
    settled(tmp_path, *bridges)
    assert len(rows_of(tmp_path, f"SELECT 1 FROM messages WHERE session = '{session}'")) == expect["stored_rows"]
    assert len(rows_of(tmp_path, f"SELECT 1 FROM parts WHERE session = '{session}'")) == expect["stored_rows"]
    assert len(rows_of(tmp_path, "SELECT 1 FROM memories")) == expect["stored_rows"]
    asked = rows_of(tmp_path, "SELECT 1 FROM ledger")
    assert len(asked) + sum(len(b.asked) for b in bridges) <= expect["model_calls_max"]


def test_a_child_session_brings_no_memory_and_is_not_observed(start: Start, tmp_path: Path) -> None:
    case = row("child-session")
    expect, info = case["expect"], {**case["session"], "time": {"created": 1_772_445_600_000}}
    bridge = start(*case["messages"], BACKSTORY_OBSERVATION_MESSAGE_TOKENS="1000")
    bridge.event("session.created", {"info": info}, child=True)
    for item in case["messages"]:
        tell(bridge, item, child=True)
    first = case["messages"][0]
    told = {"message": first["info"]["id"], "session": info["id"], "child": True, "parent": info["parentID"]}
    bridge.prompt(first["parts"][0]["text"], **told)
    bridge.event("session.idle", {"sessionID": info["id"]}, child=True)
    settled(tmp_path, bridge)
    assert len(rows_of(tmp_path, "SELECT 1 FROM memories")) == expect["stored_rows"] == len(expect["captures"])
    assert rows_of(tmp_path, "SELECT sources FROM digest_pieces") == expect["observed_ids"]
    assert rows_of(tmp_path, "SELECT 1 FROM digests") == []
