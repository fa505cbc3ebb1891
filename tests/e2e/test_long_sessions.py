"""Long sessions in the real OpenCode: short requests, nothing lost, and the way back to every word."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import pytest

from backstory.domain.digest_block import DIGEST_TAG
from backstory.testing.opencode_server import Server
from backstory.testing.scripted_model import ScriptedModel
from tests.e2e.installation import SNAPSHOT_TAG, TAG, Installation
from tests.e2e.long_sessions import (
    CHARS,
    SMALL,
    STRATEGIES,
    Fresh,
    LongHome,
    Shown,
    code_word,
    environment,
    settled,
    step,
    typed_steps,
    write_digests,
)

pytestmark = pytest.mark.opencode

TURNS = 200
TOPIC = "the beacon of the lighthouse"
THIRD = step(3, topic=TOPIC)
MOST_MESSAGES = {"tree": 21, "observations": 40}
MOST_CHARS = 10_000  # where 200 turns are 75,000


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_two_hundred_turns_stay_short_and_every_word_can_be_looked_up(
    strategy: str, fresh: Fresh, scripted: ScriptedModel
) -> None:
    write_digests(scripted)
    short = {"BACKSTORY_OBSERVATION_MESSAGE_TOKENS": "1000", "BACKSTORY_REFLECTION_OBSERVATION_TOKENS": "1000"}
    long = LongHome(fresh(environ=environment(strategy, scripted, **short)), strategy)
    project = long.home.opencode.project()
    with long.home.opencode.serve(cwd=project) as server:
        session = server.create_session()
        long.walk(server, session, range(3))
        server.prompt(session, THIRD)
        long.walk(server, session, range(4, TURNS // 2))
    with long.home.opencode.serve(cwd=project) as server:
        long.walk(server, session, range(TURNS // 2, TURNS))
        requests = long.shown(session)
        assert len(requests) == TURNS
        for number, request in enumerate(requests):
            request.check(steps=range(number + 1))
            assert len(request.messages) <= MOST_MESSAGES[strategy], number
            assert request.size <= MOST_CHARS, number
        _check_prefixes(requests, strategy)

        found = _drilled(long, server, session)
        assert THIRD in found
        assert code_word(3) not in requests[-1].request.all_text(), "it came from where it was looked up"
        assert len(server.messages(session)) >= 2 * TURNS, "the host's own history is whole"
    long.check_store(project)


def _check_prefixes(requests: list[Shown], strategy: str) -> None:
    switches = 0
    for earlier, later in pairwise(requests):
        if earlier.digest == later.digest:
            assert later.request.extends(earlier.request)
        else:
            switches += 1
            assert later.request.texts("system") == earlier.request.texts("system")
            assert later.request.body.get("tools") == earlier.request.body.get("tools")
    assert 5 < switches < {"tree": len(requests) / 2, "observations": len(requests) / 3}[strategy]


def _drilled(long: LongHome, server: Server, session: str) -> str:
    """What the agent finds about the third step: by the ids of the tree, or by words in the session."""
    if long.strategy == "observations":
        return long.home.tool(server, session, "session_recall", query=f"Which code word has {TOPIC}?")
    node = long.last(session).digest.partition("[")[2].partition("]")[0]
    for _ in range(10):
        text = long.home.tool(server, session, "search_memory_tree", node_id=node)
        if node.startswith("node0_"):
            return text
        pieces = {piece["id"]: piece for piece in long.pieces(session)}
        node = next(c for c in pieces[node]["children"] if pieces[c]["first_message"] <= 6 <= pieces[c]["last_message"])
        assert node in text
    raise AssertionError("the tree has no leaf")


# --- what else happens to a session ---------------------------------------------------------------------------------


@pytest.fixture(scope="module", params=STRATEGIES)
def small(
    request: pytest.FixtureRequest,
    tmp_path_factory: pytest.TempPathFactory,
    scripted: ScriptedModel,
    opencode_binary: Path,
) -> LongHome:
    """A home in which a few turns are a long session."""
    root = tmp_path_factory.mktemp(request.param)
    environ = environment(request.param, scripted, **SMALL)
    return LongHome(Installation(root, scripted, opencode_binary, environ=environ), request.param)


@pytest.fixture(scope="module")
def project(small: LongHome) -> Path:
    return small.home.opencode.project(files={"limits.txt": "The limit of the heron is 4711 parcels.\n" * 3})


@pytest.fixture(scope="module")
def shared_server(small: LongHome, project: Path) -> Iterator[Server]:
    with small.home.opencode.serve(cwd=project) as server:
        yield server
    assert not small.home.left_over(), "a bridge outlived its OpenCode"
    small.check_store(project)


@pytest.fixture
def server(shared_server: Server, scripted: ScriptedModel) -> Server:
    """The one server of a strategy, with a clean script and record."""
    scripted.forget_rules()
    scripted.forget_requests()
    write_digests(scripted)
    return shared_server


def test_what_tools_were_given_and_gave_comes_back_when_looked_up(
    small: LongHome, server: Server, project: Path, scripted: ScriptedModel
) -> None:
    session = server.create_session()
    scripted.when(said="look into the file", last_role="user", times=1).call(
        "read", filePath=str(project / "limits.txt")
    )
    server.prompt(session, "Please look into the file of limits.")
    assert "4711" in small.last(session).raw
    small.walk(server, session, range(9), chars=CHARS)
    last = small.settle(server, session, 9)
    last.check(steps=range(10))
    assert "4711" not in last.request.all_text()
    assert "limits.txt" not in last.request.all_text()
    if small.strategy == "tree":
        found = small.home.tool(server, session, "search_memory_tree", node_id="node0_001")
    else:
        found = small.home.tool(server, session, "session_recall", query="the limit of the heron")
    assert "limits.txt" in found
    assert "The limit of the heron is 4711 parcels." in found


def test_a_compaction_reads_the_digest_and_the_session_goes_on(
    small: LongHome, server: Server, scripted: ScriptedModel
) -> None:
    session = server.create_session()
    small.walk(server, session, range(9), chars=CHARS)
    small.settle(server, session, 9)
    before = small.pieces(session)
    server.compact(session)
    (compaction,) = (request.all_text() for request in scripted.requests("compaction"))
    assert f"<{DIGEST_TAG}>" in compaction
    assert settled(compaction) + typed_steps(compaction) == list(range(10))
    assert code_word(0) not in compaction
    assert f"<{DIGEST_TAG}>. Keep what it says" in compaction
    small.wait_until_quiet(session)
    said = [message["info"]["id"] for message in server.messages(session) if "Step" in str(message["parts"])]
    assert set(said) <= set(small.sources(session)), "all that the host dropped is in the digest"

    for number in range(10, 22):
        told = small.walk(server, session, [number], chars=CHARS).steps()
        assert len(told) == len(set(told)), "nothing is said twice"
        assert set(told) >= set(range(10, number + 1)), "nothing said since is missing"
    small.wait_until_quiet(session)
    pieces = small.pieces(session)
    assert [piece["id"] for piece in pieces[: len(before)]] == [piece["id"] for piece in before]
    numbers = [number for piece in pieces if piece["level"] == 0 for number in _numbers(piece)]
    assert numbers == list(range(len(numbers))), "numbers go on"
    if small.strategy == "tree":
        assert step(0, chars=CHARS) in small.home.tool(server, session, "search_memory_tree", node_id="node0_001")
    else:
        assert set(small.last(session).steps()) == set(range(22)), "observations are the record of it"


def test_what_is_undone_is_gone_and_what_was_beside_it_is_there(small: LongHome, server: Server) -> None:
    session = server.create_session()
    small.walk(server, session, range(12), chars=CHARS)
    small.wait_until_quiet(session)
    sixth = next(m["info"]["id"] for m in server.messages(session) if "Step 6." in str(m["parts"]))
    assert sixth in small.sources(session), "it has been digested"
    server.call("POST", f"/session/{session}/revert", {"messageID": sixth})
    request = small.walk(server, session, [20], chars=CHARS)
    request.check(steps=[*range(6), 20])
    request = small.walk(server, session, range(21, 28), chars=CHARS)
    request.check(steps=[*range(6), *range(20, 28)])
    small.wait_until_quiet(session)
    kept = {message["info"]["id"] for message in server.messages(session)}
    assert kept.issuperset(small.sources(session))
    told = " ".join(piece["text"] for piece in small.pieces(session))
    assert not set(settled(told)) & set(range(6, 12))
    assert len(small.sources(session)) > 12


def test_a_fork_has_a_digest_of_its_own(small: LongHome, server: Server) -> None:
    parent = server.create_session()
    small.walk(server, parent, range(10), chars=CHARS)
    small.wait_until_quiet(parent)
    before = small.pieces(parent)
    fork = server.call("POST", f"/session/{parent}/fork", {})["id"]
    assert fork != parent
    for number in range(10, 17):
        small.walk(server, fork, [number], chars=CHARS).check(steps=range(number + 1))
    assert small.settle(server, fork, 17).digest
    small.last(fork).check(steps=range(18))
    small.wait_until_quiet(fork)
    assert small.pieces(parent) == before
    for number in range(30, 36):
        small.walk(server, parent, [number], chars=CHARS).check(steps=[*range(10), *range(30, number + 1)])
    small.wait_until_quiet(parent)
    assert not set(small.sources(parent)) & set(small.sources(fork))
    assert not set(settled(" ".join(piece["text"] for piece in small.pieces(fork)))) & set(range(30, 36))


def test_sub_agents_are_left_alone_and_their_parent_goes_on(
    small: LongHome, server: Server, scripted: ScriptedModel
) -> None:
    parent = server.create_session()
    small.walk(server, parent, range(6), chars=CHARS)
    task = {"description": "look", "prompt": "Look at the heron.", "subagent_type": "general"}
    scripted.when(said="delegate", last_role="user", times=1).call("task", **task)
    server.prompt(parent, "please delegate")
    (child,) = {request.session for request in scripted.requests("chat") if request.parent_session == parent}
    assert child is not None
    requests = small.walk(server, child, range(40, 52), chars=CHARS), *small.shown(child)
    assert requests[0].steps() == list(range(40, 52))
    assert not any(request.digest or DIGEST_TAG in request.raw for request in requests)
    assert small.pieces(child) == []
    small.walk(server, parent, range(6, 11), chars=CHARS).check(steps=range(11))
    assert small.settle(server, parent, 11).digest
    small.last(parent).check(steps=range(12))


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_an_agent_can_be_left_out(strategy: str, fresh: Fresh, scripted: ScriptedModel) -> None:
    write_digests(scripted)
    more = {**SMALL, "BACKSTORY_SESSION_EXCLUDE_AGENTS": "plan general"}
    long = LongHome(fresh(environ=environment(strategy, scripted, **more)), strategy)
    with long.home.opencode.serve(cwd=long.home.opencode.project()) as server:
        session = server.create_session(title=None)
        assert long.home.ask(server, session, "write a haiku about rain, please") == ""
        for number in range(10):
            server.prompt(session, step(number, chars=CHARS), agent="plan")
        assert not long.last(session).digest
        assert long.last(session).steps() == list(range(10))
        assert long.pieces(session) == []
        long.walk(server, session, range(10, 12), chars=CHARS)
        assert long.settle(server, session, 12).digest
        server.prompt(session, step(13, chars=CHARS), agent="plan")
        assert not long.last(session).digest
        assert long.last(session).steps() == list(range(14))
    assert scripted.requests("title")
    ours = (TAG, SNAPSHOT_TAG, DIGEST_TAG)
    assert not any(tag in request.all_text() for request in scripted.requests("title") for tag in ours)


def _numbers(piece: dict[str, int]) -> range:
    return range(piece["first_message"], piece["last_message"] + 1)
