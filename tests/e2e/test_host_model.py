"""The model of the host: real OpenCode, plugin and bridge, asked over the whole way and by nobody's key."""

from __future__ import annotations

import itertools
import json
import signal
import sqlite3
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from backstory.testing.opencode import wait_for
from backstory.testing.opencode_config import MODEL, PROVIDER, SMALL_MODEL
from backstory.testing.opencode_server import Server
from backstory.testing.scripted_model import Request, ScriptedModel
from tests.e2e.installation import WORDS_ONLY, Installation

pytestmark = pytest.mark.opencode

HELPER = "backstory-helper"
MINE = (
    "How backstory-helper works",
    "backstory-helper sessions: why is the sweep late?",
    f"backstory-helper rerank {'0123456789abcdef' * 2}",
)
COMMAND = (sys.executable, "-m", "tests.e2e.asking_bridge", "bridge")
ROOT = Path(__file__).parents[2]
SCHEMA = {
    "type": "object",
    "properties": {"keep": {"type": "array", "items": {"type": "integer"}}},
    "required": ["keep"],
    "additionalProperties": False,
}
Json = Any


class Asking:
    """An installation whose bridge asks the model on request."""

    def __init__(self, make: Callable[..., Installation], tmp_path: Path, **environ: str) -> None:
        self.folder = tmp_path / "asked"
        self.folder.mkdir(exist_ok=True)
        environ = {**WORDS_ONLY, "ASKING_FOLDER": str(self.folder), "PYTHONPATH": str(ROOT), **environ}
        self.home = make(command=COMMAND, environ=environ)
        self._numbers = itertools.count(1)

    def begin(self, directory: Path, prompt: str, **request: Json) -> Path:
        """Have a question asked; the file its answer will be in."""
        name = f"{next(self._numbers):03}"
        asked = {"directory": str(directory), "feature": "rerank", "prompt": prompt, "deadline_s": 30, **request}
        temporary = self.folder / f"{name}.new"
        temporary.write_text(json.dumps(asked))
        temporary.rename(self.folder / f"{name}.ask.json")
        return self.folder / f"{name}.answer.json"

    def finish(self, target: Path, *, timeout_s: float = 40) -> Json:
        assert wait_for(target.exists, timeout_s=timeout_s), self.home.log.read_text()[-3000:]
        return json.loads(target.read_text())

    def ask(self, directory: Path, prompt: str, **request: Json) -> Json:
        return self.finish(self.begin(directory, prompt, **request))

    def ledger(self) -> list[tuple[Json, ...]]:
        return self.home.rows(
            "SELECT feature, model, session, input_tokens, output_tokens, outcome, requests FROM ledger ORDER BY at_us"
        )


@pytest.fixture
def asking(fresh: Callable[..., Installation], tmp_path: Path) -> Asking:
    return Asking(fresh, tmp_path)


@pytest.fixture
def project(asking: Asking) -> Path:
    return asking.home.opencode.project(files={"AGENTS.md": "Always talk like a pirate."})


@pytest.fixture
def server(asking: Asking, project: Path) -> Iterator[Server]:
    with asking.home.opencode.serve(cwd=project) as server:
        _load(asking, server)
        yield server


def _load(asking: Asking, server: Server) -> None:
    """Have the folder loaded, and the model's provider with it."""
    server.say(server.create_session(title="Warm up"), "hello")
    assert wait_for((asking.home.data / "opencode-handshake.json").exists)


def _helper_requests(model: ScriptedModel, prompt: str) -> list[Request]:
    return [request for request in model.requests() if prompt in "".join(request.texts("user"))]


def _sessions(server: Server) -> list[str]:
    return [info["title"] for info in server.call("GET", "/session")]


def test_a_question_is_answered_without_tools_rules_or_traces(
    asking: Asking, server: Server, project: Path, scripted: ScriptedModel
) -> None:
    scripted.when(said="Which colour").say("Green, by all means.")
    session = server.create_session()
    server.prompt(session, "recall something")
    answer = asking.ask(project, "Which colour?", system="You know colours.", session=session, max_output_tokens=99)
    assert answer["text"] == "Green, by all means."
    assert answer["model"] == f"{PROVIDER}/{SMALL_MODEL}"
    assert (answer["finish"], answer["sent"], answer["unanswered"]) == ("stop", 1, 0)
    (request,) = _helper_requests(scripted, "Which colour?")
    assert request.texts("system") == ["You know colours."], "no environment, and not the project's rules"
    assert request.texts("user") == ["Which colour?"]
    assert request.tool_names() == []
    assert request.body["max_tokens"] == 99
    assert request.body["model"] == SMALL_MODEL
    assert request.parent_session == session

    assert wait_for(lambda: HELPER not in str(_sessions(server)))
    server.prompt(session, "and on we go")
    before, after = asking.home.requests(session)
    assert after.extends(before), "the session it was asked for does not change by it"
    assert HELPER not in json.dumps(after.body), "and no model is told of the agent"
    asking.home.wait_for_evidence(session, "and on we go")
    assert asking.home.rows("SELECT id FROM sessions WHERE title <> 'Warm up'") == [(session,)]
    assert asking.home.rows("SELECT count(*) FROM parts WHERE text LIKE '%colour%' OR text LIKE '%Green%'") == [(0,)]
    assert asking.home.memories() == []

    usage = json.loads(json.dumps(asking.ledger()))
    assert usage == [
        ["rerank", "host:default", session, answer["input_tokens"], answer["output_tokens"], "ok", 1],
    ]
    assert answer["output_tokens"] == len("Green, by all means.") // 4, "as the server counted"


def test_an_answer_keeps_to_a_schema(asking: Asking, server: Server, project: Path, scripted: ScriptedModel) -> None:
    scripted.when(said="Which ones", offers="StructuredOutput").call("StructuredOutput", keep=[3, 1])
    answer = asking.ask(project, "Which ones?", schema=SCHEMA)
    assert json.loads(answer["text"]) == {"keep": [3, 1]}
    assert answer["finish"] == "stop"
    requests = _helper_requests(scripted, "Which ones?")
    assert [request.tool_names() for request in requests] == [["StructuredOutput"]]
    assert wait_for(lambda: HELPER not in str(_sessions(server)))


def test_a_model_that_takes_no_schema_is_asked_without_one(
    asking: Asking, server: Server, project: Path, scripted: ScriptedModel
) -> None:
    scripted.when(said="Which ones", offers="StructuredOutput").fail(400)
    scripted.when(said="Which ones").say('{"keep": [2]}')
    for _ in range(2):
        assert asking.ask(project, "Which ones?", schema=SCHEMA)["text"] == '{"keep": [2]}'
    offered = [request.tool_names() for request in _helper_requests(scripted, "Which ones?")]
    assert offered == [["StructuredOutput"], [], []], "found out once"


def test_words_in_place_of_the_form_are_an_answer_too(
    asking: Asking, server: Server, project: Path, scripted: ScriptedModel
) -> None:
    scripted.when(said="Which ones").say("Two and three.")
    assert asking.ask(project, "Which ones?", schema=SCHEMA)["text"] == "Two and three."


def test_the_model_is_the_one_that_was_set(
    fresh: Callable[..., Installation], tmp_path: Path, scripted: ScriptedModel
) -> None:
    asking = Asking(fresh, tmp_path, BACKSTORY_MODELS_MODEL=f"{PROVIDER}/{MODEL}")
    project = asking.home.opencode.project()
    with asking.home.opencode.serve(cwd=project) as server:
        server.call("GET", "/config")
        assert asking.ask(project, "Which colour?")["model"] == f"{PROVIDER}/{MODEL}"
    assert _helper_requests(scripted, "Which colour?")[0].body["model"] == MODEL
    assert asking.ledger()[0][1] == f"host:{PROVIDER}/{MODEL}"


@pytest.mark.parametrize("status", [401, 400, 503])
def test_a_model_that_fails_is_unavailable_and_the_host_unharmed(
    asking: Asking, server: Server, project: Path, scripted: ScriptedModel, status: int
) -> None:
    scripted.when(said="Which colour").fail(status, "secret words of the server")
    answer = asking.ask(project, "Which colour?", deadline_s=6)  # OpenCode tries again after 2 s, and then after 4
    assert answer["error"] == "ModelUnavailable"
    assert "secret words" not in answer["message"]
    assert (answer["sent"], answer["unanswered"]) == (len(_helper_requests(scripted, "Which colour?")), 0)
    assert wait_for(lambda: HELPER not in str(_sessions(server)))
    assert server.say(server.create_session(), "hello") == "ok"
    assert [(row[3], row[5]) for row in asking.ledger()] == [(0, "refused")]


def test_a_deadline_ends_the_question_at_the_host_too(
    asking: Asking, server: Server, project: Path, scripted: ScriptedModel
) -> None:
    scripted.when(said="Which colour").say("Too late", delay_s=60)
    answer = asking.ask(project, "Which colour?", deadline_s=2)
    assert answer["error"] == "ModelTimeout"
    assert answer["took_s"] < 15
    assert (answer["sent"], answer["unanswered"]) == (1, 1)
    assert wait_for(lambda: HELPER not in str(_sessions(server)), timeout_s=40), "before the model would have answered"
    assert [row[5] for row in asking.ledger()] == ["timeout"]
    assert server.say(server.create_session(), "hello") == "ok"


def test_a_question_too_long_for_the_model_is_not_summed_up(
    asking: Asking, server: Server, project: Path, scripted: ScriptedModel
) -> None:
    scripted.when(said="Which colour").fail(400, "prompt is too long: 250000 tokens > 200000 maximum")
    answer = asking.ask(project, "Which colour?")
    assert answer["error"] == "ModelUnavailable"
    assert "ContextOverflowError" in answer["message"]
    assert (answer["sent"], answer["unanswered"]) == (1, 0)
    assert wait_for(lambda: HELPER not in str(_sessions(server)), timeout_s=40)
    assert not scripted.requests("compaction")


@pytest.mark.parametrize("deadline_s", [1.4, 2.2])
def test_a_question_given_up_while_the_host_still_loads_does_it_no_harm(
    asking: Asking, project: Path, scripted: ScriptedModel, deadline_s: float
) -> None:
    # OpenCode 1.18 loads a provider with the first prompt; when that is aborted, no prompt works any more
    scripted.when(said="Which colour").say("Too late", delay_s=60)
    with asking.home.opencode.serve(cwd=project) as server:
        server.call("GET", "/config")
        assert asking.ask(project, "Which colour?", deadline_s=deadline_s)["error"] == "ModelTimeout"
        assert server.say(server.create_session(), "hello") == "ok"
        assert wait_for(lambda: HELPER not in str(_sessions(server)), timeout_s=40)


def test_what_a_killed_host_left_is_deleted_at_a_later_start_and_nothing_else(
    asking: Asking, project: Path, scripted: ScriptedModel
) -> None:
    home = asking.home
    scripted.when(said="Which colour").say("Too late", delay_s=60)
    with home.opencode.serve(cwd=project) as server:
        server.call("GET", "/config")
        mine = server.create_session(title=MINE[0])
        asked = server.create_session(title=MINE[1])
        server.say(asked, "still to be found")
        joined = server.create_session(title=MINE[2])
        server.prompt(joined, "hello", agent=HELPER)
        server.say(joined, "let me join in")
        asking.begin(project, "Which colour?", session=mine)
        assert wait_for(lambda: _helper_requests(scripted, "Which colour?"))
        server.close(signal.SIGKILL)
    assert not home.left_over()
    with home.opencode.serve(cwd=project) as server:
        server.call("GET", "/config")
        time.sleep(3)
        assert HELPER in str(_sessions(server)), "it could be another OpenCode's, at work"
    (database,) = (home.opencode.home / ".local/share/opencode").glob("opencode*.db")
    with closing(sqlite3.connect(database)) as raw:
        raw.execute("UPDATE session SET time_updated = time_updated - 1000000")
        raw.commit()
    with home.opencode.serve(cwd=project) as server:
        server.call("GET", "/config")
        assert wait_for(lambda: len(_sessions(server)) == len(MINE)), _sessions(server)
        assert set(_sessions(server)) == set(MINE)
        for session in (mine, asked, joined):
            server.say(session, "still here")
            home.wait_for_evidence(session, "still here")
        home.wait_for_evidence(asked, "still to be found")
        home.wait_for_evidence(joined, "let me join in")
    assert {session for (session,) in home.rows("SELECT id FROM sessions")} == {mine, asked, joined}
    assert home.rows("SELECT count(*) FROM parts WHERE text LIKE '%colour%'") == [(0,)]


def test_a_run_that_ends_meanwhile_does_not_wait(asking: Asking, project: Path, scripted: ScriptedModel) -> None:
    scripted.when(said="Which colour").say("Too late", delay_s=90)
    scripted.when(said="short").say("done", delay_s=3)
    target = asking.begin(project, "Which colour?", deadline_s=100)
    run = asking.home.opencode.run("be short", cwd=project)
    assert (run.exit_code, run.text) == (0, "done")
    assert _helper_requests(scripted, "Which colour?"), "it was under way"
    assert run.duration_s < 60
    answer = asking.finish(target)
    assert (answer["error"], answer["unanswered"]) == ("ModelUnavailable", 1)
    assert [row[5] for row in asking.ledger()] == ["failed"]


def test_an_agent_of_that_name_is_left_as_the_user_made_it(
    fresh: Callable[..., Installation], tmp_path: Path, scripted: ScriptedModel
) -> None:
    asking = Asking(fresh, tmp_path)
    project = asking.home.opencode.project(
        files={f".opencode/agent/{HELPER}.md": "---\ndescription: mine\nmode: subagent\n---\nBe my guest."}
    )
    with asking.home.opencode.serve(cwd=project) as server:
        (agent,) = (agent for agent in server.call("GET", "/agent") if agent["name"] == HELPER)
        assert (agent["description"], agent["mode"]) == ("mine", "subagent")
        assert asking.ask(project, "Which colour?")["text"] == "ok"
    assert _helper_requests(scripted, "Which colour?")[0].tool_names() == [], "tools it gets none, all the same"
    assert f"the agent {HELPER} is configured already" in asking.home.log.read_text()
