"""The real plugin and bridge in an OpenCode of their own: killed, hanging, not started, switched off, and what is kept
and repeated all the same."""

from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Callable
from itertools import pairwise

import pytest

from backstory.testing.scripted_model import ScriptedModel
from tests.e2e.installation import BRIDGE, TAG, WORDS_ONLY, Installation, snapshot_of

pytestmark = pytest.mark.opencode

Fresh = Callable[..., Installation]


def test_a_wish_is_kept_where_the_bridge_had_not_even_started_when_the_host_ended(fresh: Fresh) -> None:
    slow = ["sh", "-c", 'sleep 8; exec "$@"', "sh", *BRIDGE]
    hasty = {"start": 300, "hello": 300, "chat.message": 300, "history": 100, "grace": 300}
    installation = fresh(command=slow, deadlines_ms=hasty)
    project = installation.opencode.project()
    done = installation.opencode.run("Remember that the kiln is fired on Thursdays.", cwd=project)
    assert done.exit_code == 0, done.stderr
    assert not installation.left_over(), "it ends by itself"
    assert installation.memories() == ["the kiln is fired on Thursdays."]


def test_every_request_extends_the_one_before_over_turns_a_kill_and_a_restart(
    fresh: Fresh, scripted: ScriptedModel
) -> None:
    home = fresh(environ=WORDS_ONLY)
    project = home.opencode.project()
    with home.opencode.serve(cwd=project) as server:
        session = server.create_session()
        home.tool(server, server.create_session(), "memory_remember", content="Deploys happen on Tuesdays")
        home.pin(1, project)
        home.ask(server, session, "remember that the gateway is called kestrel")
        scripted.when(said="look up", last_role="user", times=1).call("memory_recall", query="gateway")
        server.prompt(session, "look up the gateway")
        home.tool(server, server.create_session(), "memory_update", id=1, content="Deploys happen on Fridays")
        assert "kestrel" in home.ask(server, session, "what is the gateway called?")
        home.ask(server, session, "thanks")
        home.ask(server, session, "and what is the gateway called in French?")
        server.close(signal.SIGKILL)
    assert not home.left_over()
    with home.opencode.serve(cwd=project) as server:
        home.ask(server, session, "and in German?")
        requests = home.requests(session)
        assert len(requests) == 7
        assert all(later.extends(earlier) for earlier, later in pairwise(requests))
        assert {snapshot_of(request) for request in requests} == {snapshot_of(requests[0])}
        assert "Tuesdays" in snapshot_of(requests[0])
        server.compact(session)
        home.ask(server, session, "and in Greek?")
        home.ask(server, session, "and in Latin?")
        after, last = home.requests(session)[-2:]
        assert "Fridays" in snapshot_of(after)
        assert "Tuesdays" not in snapshot_of(after)
        assert last.extends(after)


def test_a_killed_or_hanging_bridge_costs_no_answer_and_what_it_missed_is_caught_up(
    fresh: Fresh, scripted: ScriptedModel
) -> None:
    home = fresh(
        environ=WORDS_ONLY, deadlines_ms={"chat.message": 3000, "blocks": 1500, "snapshot": 1500, "tool": 4000}
    )
    with home.opencode.serve(cwd=home.opencode.project()) as server:
        session = server.create_session()
        assert "stored already" in home.ask(server, session, "remember that the broker is called magpie")
        home.signal_bridge(signal.SIGKILL)
        assert server.say(session, "the bridge is gone now") == "ok"
        told = home.tool(server, session, "memory_recall", query="broker")
        assert "not available" in told or "magpie" in told, "a busy machine takes the second after which it is started"
        time.sleep(1.1)
        assert "magpie" in home.ask(server, session, "what is the broker called?")
        kept = home.wait_for_evidence(session, "the bridge is gone now")
        assert [text for role, kind, text in kept if role == "user" and kind == "text"] == [
            "remember that the broker is called magpie",
            "the bridge is gone now",
            "use the tool, please",
            "what is the broker called?",
        ]

        stopped = home.signal_bridge(signal.SIGSTOP)
        started = time.monotonic()
        assert server.say(session, "the bridge hangs now") == "ok"
        assert time.monotonic() - started < 25, "what hangs would do so for ever"
        os.kill(stopped, signal.SIGCONT)
        home.wait_for_evidence(session, "the bridge hangs now")
        assert "magpie" in home.ask(server, session, "the broker, what is it called again?")
        assert home.bridges() == [stopped]
        texts = home.requests(session)[-1].texts("user")
        assert TAG not in next(text for text in texts if "hangs" in text)


def test_a_bridge_that_cannot_start_leaves_opencode_as_it_is(fresh: Fresh, scripted: ScriptedModel) -> None:
    home = fresh(command=[sys.executable, "-m", "backstory_of_another_time", "bridge"])
    scripted.when(last_role="user").call("memory_recall", query="x")
    done = home.opencode.run("remember that nothing works", cwd=home.opencode.project())
    assert (done.exit_code, done.text) == (0, "ok")
    assert "not available" in scripted.requests("chat")[-1].texts("tool")[-1]


def test_a_store_that_is_no_database_is_left_as_it_is_and_the_user_is_told(
    fresh: Fresh, scripted: ScriptedModel
) -> None:
    home = fresh(environ=WORDS_ONLY)
    home.data.mkdir()
    garbage = b"SQLite format 3\0 or so it says" * 400
    home.database.write_bytes(garbage)
    with home.opencode.serve(cwd=home.opencode.project()) as server:
        session = server.create_session()
        assert "could NOT be stored" in home.ask(server, session, "remember that the store is broken")
        assert "not available" in home.tool(server, session, "memory_recall", query="store")
        assert "not available" in home.tool(server, session, "memory_remember", content="The store is broken")
        assert server.say(session, "go on") == "ok"
    assert home.database.read_bytes() == garbage


def test_what_a_user_switches_off_is_off(fresh: Fresh, scripted: ScriptedModel) -> None:
    switches = ("BACKSTORY_CAPTURE_ENABLED", "BACKSTORY_ARCHIVE_ENABLED", "BACKSTORY_OPENCODE_TOOLS")
    off = dict.fromkeys(switches, "false")
    home = fresh(environ={**WORDS_ONLY, **off})
    done = home.opencode.run("remember that this is not for keeping", cwd=home.opencode.project())
    assert (done.exit_code, done.text) == (0, "ok")
    request = scripted.requests("chat")[-1]
    assert not [name for name in request.tool_names() if name.startswith("memory")]
    assert TAG not in request.all_text()
    assert home.memories() == []
    assert home.rows("SELECT count(*) FROM messages") == home.rows("SELECT count(*) FROM sessions") == [(0,)]
