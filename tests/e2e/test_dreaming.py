"""Dreaming in the real OpenCode: what was said in one session is known in the next, whatever dies in between."""

from __future__ import annotations

import json
import signal
import sqlite3
from collections.abc import Callable
from contextlib import closing

import pytest

from backstory.testing.opencode import wait_for
from backstory.testing.opencode_config import MODEL
from backstory.testing.scripted_model import Reply, Request, ScriptedModel
from tests.e2e.installation import WORDS_ONLY, Installation

pytestmark = pytest.mark.opencode

Fresh = Callable[..., Installation]

DREAM = "You keep the long-term memory of a coding assistant."
SAID = "We decided that the osprey service listens on port 7171, because 7070 belongs to the heron."
FACT = "The osprey service listens on port 7171 because 7070 belongs to the heron."
LIE = "The osprey service deletes the heron's files every night."
ASKED = "Which port does the osprey service listen on?"
WAIT_S = 90.0


def settings(model: ScriptedModel, *, delay_ms: int) -> dict[str, str]:
    return {
        **WORDS_ONLY,
        "BACKSTORY_DREAM_DELAY_MS": str(delay_ms),
        "BACKSTORY_MODELS_PROVIDER": "openai",
        "BACKSTORY_MODELS_BASE_URL": model.url,
        "BACKSTORY_MODELS_MODEL": MODEL,
        "BACKSTORY_MODELS_MAX_RETRIES": "0",
    }


def proposals(request: Request) -> Reply:
    """What was said, and what nobody said; nothing of a stretch in which it was not said."""
    if SAID not in request.all_text():
        return Reply(text='{"new": []}')
    new = [
        {"text": text, "type": "decision", "scope": "project", "confidence": 0.9, "sources": [1]}
        for text in (FACT, LIE)
    ]
    return Reply(text=json.dumps({"new": new, "update": [], "delete": [], "conflicts": []}))


def dreams(model: ScriptedModel) -> list[Request]:
    return [request for request in model.requests() if DREAM in "".join(request.texts("system"))]


def wait(home: Installation, what: Callable[[], object]) -> None:
    assert wait_for(what, timeout_s=WAIT_S), home.log.read_text()[-4000:]


def test_what_was_said_in_one_session_is_known_in_the_next(fresh: Fresh, scripted: ScriptedModel) -> None:
    home = fresh(environ=settings(scripted, delay_ms=6_000))
    scripted.when(contains=DREAM).answer(proposals)
    project = home.opencode.project()
    first = home.opencode.run(SAID, cwd=project)  # the process ends with the turn, before anything is distilled
    with home.opencode.serve(cwd=project) as server:
        second = server.create_session()  # the plugin loads, and looks for what the process before left
        wait(home, home.memories)
        assert home.memories() == [FACT]
        block = home.ask(server, second, ASKED)
        assert FACT in block
        assert "noted by the agent" in block
    assert home.rows("SELECT session, origin, source FROM memories") == [(first.session, "agent", "dreamed")]


def test_a_bridge_killed_in_the_middle_of_a_dream_loses_nothing_and_doubles_nothing(
    fresh: Fresh, scripted: ScriptedModel
) -> None:
    home = fresh(environ=settings(scripted, delay_ms=0))
    scripted.when(contains=DREAM, times=1).answer(lambda request: Reply(text="{}", delay_s=20))
    scripted.when(contains=DREAM).answer(proposals)
    project = home.opencode.project()
    with home.opencode.serve(cwd=project) as server:
        server.prompt(server.create_session(), SAID)
        wait(home, lambda: dreams(scripted))
        home.signal_bridge(signal.SIGKILL)
    assert home.memories() == []
    with closing(sqlite3.connect(home.database, timeout=240)) as raw, raw:  # as if its lease had expired
        assert raw.execute("UPDATE dreams SET lease_until_us = 1 WHERE lease_token IS NOT NULL").rowcount == 1
    with home.opencode.serve(cwd=project) as server:
        server.create_session()
        wait(home, home.memories)
        wait(home, lambda: home.rows("SELECT 1 FROM dreams WHERE due = 0 AND lease_token IS NULL"))
    assert home.memories() == [FACT]
    assert len(dreams(scripted)) >= 2
