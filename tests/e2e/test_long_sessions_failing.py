"""Long sessions in the real OpenCode when models fail and processes die: messages stay, requests do not wait."""

from __future__ import annotations

import json
import signal
import socket
import time
from collections.abc import Callable

import pytest

from backstory.domain.extract import EXTRACT
from backstory.testing.opencode import wait_for
from backstory.testing.opencode_config import SMALL_MODEL
from backstory.testing.opencode_server import Server
from backstory.testing.scripted_model import Reply, Request, ScriptedModel
from tests.e2e.long_sessions import (
    CHARS,
    FEATURES,
    FIRST,
    MARKS,
    SMALL,
    STRATEGIES,
    Fresh,
    LongHome,
    digest_of,
    environment,
    is_question,
    questions,
    write_digests,
)

pytestmark = pytest.mark.opencode

FAULTS: dict[str, Callable[[Request], Reply]] = {
    "slow heron": lambda request: Reply(text=digest_of(request), delay_s=12),
    "broken egret": lambda request: Reply(text="out of order", status=500),
    "echoing bittern": lambda request: Reply(text=request.texts("system")[0][:700]),
    "erring stork": lambda request: Reply(text='{"error": {"message": "overloaded", "type": "server_error"}}'),
    "refusing ibis": lambda request: Reply(text="I'm sorry, but I can't help with that request."),
    "silent crane": lambda request: Reply(text=""),
}
"""What goes wrong in the sessions that speak of these."""
LONG_WINDED = "verbose spoonbill"
"""They hear more of this than they said."""


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_a_model_that_fails_or_lies_leaves_the_messages_as_they_are_and_is_asked_again(
    strategy: str, fresh: Fresh, scripted: ScriptedModel
) -> None:
    more = {**SMALL, "BACKSTORY_MODELS_TIMEOUT_MS": "1500"}
    long = LongHome(fresh(environ=environment(strategy, scripted, **more)), strategy)
    for topic, fault in FAULTS.items():
        scripted.when(said=topic, contains=MARKS[FIRST[strategy]]).answer(fault)
    scripted.when(said=LONG_WINDED, contains=MARKS[FIRST[strategy]]).answer(_long_winded)
    with long.home.opencode.serve(cwd=long.home.opencode.project()) as server:
        sessions = {topic: server.create_session() for topic in FAULTS}
        for topic, session in sessions.items():
            _check_trouble(long, server, session, topic)
        _check_long_winded(long, server)
        scripted.forget_rules()
        write_digests(scripted)
        for topic, session in sessions.items():
            reached = _recovered(long, server, session, topic)
            long.walk(server, session, range(reached, reached + 5), topic=topic, chars=CHARS)
            long.last(session).check(steps=range(reached + 5))
            assert long.last(session).digest
            assert all(piece["made_by"].startswith("openai:") for piece in long.pieces(session))


def _check_trouble(long: LongHome, server: Server, session: str, topic: str) -> None:
    long.walk(server, session, range(4), topic=topic, chars=CHARS)
    long.wait(lambda: long.state(session, "problem"))
    last = long.walk(server, session, [4], topic=topic, chars=CHARS)
    last.check(steps=range(5))
    assert (last.digest, long.pieces(session)) == ("", []), topic
    assert long.state(session, "attempts") > 0
    assert "sorry" not in long.state(session, "problem"), "a problem is told in our words"


def _long_winded(request: Request) -> Reply:
    notes = "\n".join(f"* 🔴 (09:15) The prolixness had part number {n}." for n in range(200))
    return Reply(text=notes if is_question(request, "leaf") else f"<observations>\n{notes}\n</observations>")


def _check_long_winded(long: LongHome, server: Server) -> None:
    session = server.create_session()
    long.walk(server, session, range(4), topic=LONG_WINDED, chars=CHARS)
    if long.strategy == "tree":
        long.wait(lambda: long.pieces(session))
        assert {piece["made_by"] for piece in long.pieces(session)} == {EXTRACT}
    else:
        long.wait(lambda: long.state(session, "problem"))
        assert long.pieces(session) == []
    long.walk(server, session, range(4, 7), topic=LONG_WINDED, chars=CHARS)
    assert "prolixness" not in long.last(session).request.all_text()


def _recovered(long: LongHome, server: Server, session: str, topic: str) -> int:
    """Go on until the work was done after all; the number of the next step."""
    for number in range(5, 15):
        long.let_time_pass(session)
        long.walk(server, session, [number], topic=topic, chars=CHARS)
        if wait_for(lambda: long.pieces(session) and long.state(session, "problem") is None, timeout_s=10):
            return number + 1
    raise AssertionError(long.home.log.read_text()[-4000:])


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_a_killed_process_leaves_nothing_half_done_and_its_work_is_done_once(
    strategy: str, fresh: Fresh, scripted: ScriptedModel
) -> None:
    long = LongHome(fresh(environ=environment(strategy, scripted, **SMALL)), strategy)
    project = long.home.opencode.project()
    with long.home.opencode.serve(cwd=project) as server:
        session = server.create_session()
        reached = _hanging(long, server, session, scripted, 0)
        assert long.pieces(session) == []
        long.home.signal_bridge(signal.SIGKILL)
        _answering(scripted)
        time.sleep(1.1)  # the plugin starts another one a second later
        long.walk(server, session, [reached], chars=CHARS).check(steps=range(reached + 1))
        assert long.state(session, "lease_token") is not None, "the dead process's"
        assert long.pieces(session) == []
        long.let_time_pass(session)
        for number in range(reached + 1, reached + 5):
            long.walk(server, session, [number], chars=CHARS).check(steps=range(number + 1))
        assert long.settle(server, session, reached + 5).digest
        long.wait_until_quiet(session)
        reached = _hanging(long, server, session, scripted, reached + 6)
        before = long.pieces(session)
        server.close(signal.SIGKILL)
    assert not long.home.left_over()
    long.check_store(project)
    assert long.pieces(session) == before
    _answering(scripted)
    long.let_time_pass(session)
    with long.home.opencode.serve(cwd=project) as server:
        server.call("GET", "/config")
        long.wait(lambda: len(long.pieces(session)) > len(before))
        assert long.pieces(session)[: len(before)] == before or strategy == "tree", "what was done is not done again"
        for number in range(reached, reached + 4):
            long.walk(server, session, [number], chars=CHARS).check(steps=range(number + 1))
        long.wait_until_quiet(session)
        long.sources(session)
    long.check_store(project)


def _hanging(long: LongHome, server: Server, session: str, scripted: ScriptedModel, first: int) -> int:
    """Go on until a question hangs, and two turns more that do not wait for it; the number of the next step."""
    scripted.forget_rules()
    scripted.forget_requests()
    scripted.when(contains=MARKS[FIRST[long.strategy]]).say("Too late.", delay_s=50)
    for number in range(first, first + 8):
        long.walk(server, session, [number], chars=CHARS)
        if wait_for(lambda: questions(scripted, FIRST[long.strategy]), timeout_s=3):
            break
    long.walk(server, session, [number + 1, number + 2], chars=CHARS)
    assert len(questions(scripted, FIRST[long.strategy])) == 1
    assert long.state(session, "lease_token") is not None, "it still hangs"
    return number + 3


def _answering(scripted: ScriptedModel) -> None:
    scripted.forget_rules()
    write_digests(scripted)


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_without_a_server_everything_stays_until_there_is_one(
    strategy: str, fresh: Fresh, scripted: ScriptedModel
) -> None:
    write_digests(scripted)
    with socket.socket() as taken:  # bound, but nothing listens
        taken.bind(("127.0.0.1", 0))
        nobody = {"BACKSTORY_MODELS_BASE_URL": f"http://127.0.0.1:{taken.getsockname()[1]}/v1"}
        long = LongHome(fresh(environ={**environment(strategy, scripted, **SMALL), **nobody}), strategy)
        project = long.home.opencode.project()
        with long.home.opencode.serve(cwd=project) as server:
            session = server.create_session()
            long.walk(server, session, range(6), chars=CHARS).check(steps=range(6))
            long.wait(lambda: long.state(session, "problem"))
            assert not long.last(session).digest
    long.let_time_pass(session)
    with long.home.opencode.serve(cwd=project, environ={"BACKSTORY_MODELS_BASE_URL": scripted.url}) as server:
        server.call("GET", "/config")
        long.wait(lambda: long.pieces(session))
        long.walk(server, session, range(6, 10), chars=CHARS).check(steps=range(10))
        assert long.last(session).digest
        assert long.state(session, "problem") is None


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_a_cap_ends_the_asking_and_the_ledger_adds_up(strategy: str, fresh: Fresh, scripted: ScriptedModel) -> None:
    write_digests(scripted)
    cap = {"tree": 4000, "observations": 7000}[strategy]
    more = {**SMALL, "BACKSTORY_MODELS_CAP_FEATURES": f"{FEATURES[strategy]}={cap}"}
    long = LongHome(fresh(environ=environment(strategy, scripted, **more)), strategy)
    project = long.home.opencode.project()
    with long.home.opencode.serve(cwd=project) as server:
        session = server.create_session()
        long.walk(server, session, range(15), chars=CHARS)
        long.settle(server, session, 15)
        long.wait_until_quiet(session)
        asked = questions(scripted)
        written = [piece["made_by"] for piece in long.pieces(session)]
        by_model = [name for name in written if name != EXTRACT]
        assert 0 < len(by_model) == len(asked)
        assert EXTRACT in written, "digests go on"
        assert written == by_model + [EXTRACT] * (len(written) - len(by_model)), "and nothing is asked after the cap"
        assert long.last(session).digest
        long.home.wait_for_evidence(session, "Step 15.")
    done = long.cli("status", "--cost", "--json", project=project)
    assert done.returncode == 0, done.stderr
    costs = json.loads(done.stdout)
    lines = costs["lines"]
    sent = [len(json.dumps(request.messages)) // 4 for request in asked]
    received = [len(digest_of(request)) // 4 for request in asked]
    assert [line["feature"] for line in lines] == [FEATURES[strategy]]
    assert sum(line["calls"] for line in lines) == len(asked)
    assert sum(line["input_tokens"] for line in lines) == sum(sent)
    assert sum(line["output_tokens"] for line in lines) == sum(received)
    assert sum(sent[:-1]) + sum(received[:-1]) < cap <= sum(sent) + sum(received), "only the last one may go beyond it"
    assert [stopped["feature"] for stopped in costs["at_cap"]] == [FEATURES[strategy]]


def test_the_model_of_the_host_writes_digests_too(fresh: Fresh, scripted: ScriptedModel) -> None:
    write_digests(scripted)
    environ = {**environment("tree", scripted, **SMALL), "BACKSTORY_MODELS_PROVIDER": "host"}
    del environ["BACKSTORY_MODELS_BASE_URL"], environ["BACKSTORY_MODELS_MODEL"]
    long = LongHome(fresh(environ=environ), "tree")
    with long.home.opencode.serve(cwd=long.home.opencode.project()) as server:
        session = server.create_session()
        for number in range(8):
            long.walk(server, session, [number], chars=CHARS).check(steps=range(number + 1))
        long.wait_until_quiet(session)
        long.walk(server, session, [8], chars=CHARS).check(steps=range(9))
        assert long.last(session).digest
        assert all(piece["made_by"].startswith("host:") for piece in long.pieces(session))
        asked = questions(scripted)
        assert asked
        assert {request.body["model"] for request in asked} == {SMALL_MODEL}
        assert {request.parent_session for request in asked} == {session}
        assert long.home.rows("SELECT id FROM sessions") == [(session,)]
        long.wait(lambda: [info["id"] for info in server.call("GET", "/session")] == [session])
