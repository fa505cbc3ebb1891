"""Long sessions over the bridge process alone, without a model: what a request's old messages give way to, and when."""

from __future__ import annotations

import json
import sqlite3
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from backstory.testing.opencode import wait_for
from tests.integration.bridge_process import BridgeProcess, Json

SESSION = "ses_1"
CREATED_MS = 1_770_000_000_000
PLAIN = {"BACKSTORY_EMBEDDER_PROVIDER": "none", "BACKSTORY_MODELS_PROVIDER": "none"}
STRATEGIES: dict[str, dict[str, str]] = {
    "tree": {
        **PLAIN,
        "BACKSTORY_SESSION_STRATEGY": "tree",
        "BACKSTORY_TREE_MAX_RAW": "4",
        "BACKSTORY_TREE_MIN_BATCH": "2",
    },
    "observations": {
        **PLAIN,
        "BACKSTORY_SESSION_STRATEGY": "observations",
        "BACKSTORY_OBSERVATION_MESSAGE_TOKENS": "1000",
    },
}
PADDING = "The importer reads the queue in order and writes one line for each parcel that it has seen. " * 14
Start = Callable[..., BridgeProcess]


@pytest.fixture
def home(tmp_path: Path) -> Path:
    return tmp_path / "home"


@pytest.fixture
def start(home: Path, tmp_path: Path) -> Iterator[Start]:
    """Starts bridges over one home and in one project."""
    project = tmp_path / "shop"
    project.mkdir()
    running: list[BridgeProcess] = []

    def start(environ: Mapping[str, str], **options: Json) -> BridgeProcess:
        running.append(BridgeProcess(home, directory=project, environ=environ, **options))
        return running[-1]

    yield start
    for bridge in running:
        if bridge.process.poll() is None:
            bridge.process.kill()
            bridge.process.wait()


@dataclass
class Talk:
    """A session as OpenCode has it, told to a bridge as the plugin tells it."""

    bridge: BridgeProcess
    home: Path
    session: str = SESSION
    messages: list[Json] = field(default_factory=list)

    def say(self, name: str, text: str, *, role: str = "user") -> None:
        """A message with its one part, and their events."""
        created = CREATED_MS + 1000 * len(self.messages)
        times = {"created": created, **({"completed": created + 500} if role == "assistant" else {})}
        info = {"id": name, "sessionID": self.session, "role": role, "time": times}
        part = {"id": f"prt_{name}", "messageID": name, "sessionID": self.session, "type": "text", "text": text}
        self.messages.append({"info": info, "parts": [part]})
        self.bridge.event("message.updated", {"info": info})
        self.bridge.event("message.part.updated", {"part": part})

    def request(self) -> Json:
        """What a request with all messages so far is answered."""
        listed = [{"id": item["info"]["id"], "role": item["info"]["role"]} for item in self.messages]
        return self.bridge.ask("history", session=self.session, agent="build", messages=listed)["replace"]

    def turn(self, number: int) -> Json:
        """A whole turn; the answer to its first request. Waits until the background has nothing more to do."""
        self.say(f"u{number}", f"Step {number}. We decided to name the queue heron-{number}. {PADDING}")
        replaced = self.request()
        self.say(f"a{number}", f"Done: the label is crane-{number}. {PADDING}", role="assistant")
        assert self.request() == replaced, "the steps of a turn send the same"
        self.bridge.event("session.idle", {"sessionID": self.session})
        self.settle()
        return replaced

    def settle(self) -> None:
        """Wait until all was archived, and no digest is due or in work."""
        names = [item["info"]["id"] for item in self.messages]
        kept = f"SELECT count(*) FROM parts WHERE message IN ({', '.join('?' * len(names))})"
        assert wait_for(lambda: self.rows(kept, *names) == [(len(names),)])
        busy = "SELECT 1 FROM digests WHERE due OR lease_token IS NOT NULL"
        quiet = 0
        while quiet < 4:  # what is due is found a moment after it was archived
            assert wait_for(lambda: not self.rows(busy), timeout_s=30)
            wait_for(lambda: bool(self.rows(busy)), timeout_s=0.1)
            quiet = 0 if self.rows(busy) else quiet + 1

    def rows(self, statement: str, *parameters: object) -> list[tuple[Json, ...]]:
        with closing(sqlite3.connect(self.home / "backstory.db")) as raw:
            return raw.execute(statement, parameters).fetchall()

    def until_replaced(self, *, first: int = 1, most: int = 8) -> tuple[int, Json]:
        """Talk until something is replaced: the number of that turn, and what."""
        for number in range(first, first + most):
            if (replaced := self.turn(number)) is not None:
                return number, replaced
        raise AssertionError(f"nothing was replaced in {most} turns")


@pytest.fixture(params=list(STRATEGIES))
def strategy(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def _begin(start: Start, home: Path, strategy: str) -> Talk:
    messages: list[Json] = []
    bridge = start(STRATEGIES[strategy], answers={"host.messages": lambda params: messages})
    talk = Talk(bridge, home, messages=messages)
    assert talk.bridge.ask("hello", protocol=1, api=1)["history"] is True
    return talk


def test_old_messages_give_way_to_a_digest_from_a_later_turn_on(start: Start, home: Path, strategy: str) -> None:
    talk = _begin(start, home, strategy)
    number, replaced = talk.until_replaced()
    assert number > 1
    assert replaced["text"].startswith("<backstory-digest>")
    assert 0 < replaced["count"] <= 2 * (number - 1)
    first_left = replaced["count"] // 2 + 1
    assert f"heron-{first_left - 1}" in replaced["text"]
    assert talk.turn(number + 1)["count"] >= replaced["count"]
    assert talk.rows("SELECT DISTINCT made_by FROM digest_pieces") == [("extract-1",)]
    assert talk.bridge.close() == 0
    assert "broke" not in talk.bridge.stderr()


def test_an_undone_message_takes_its_digest_with_it(start: Start, home: Path, strategy: str) -> None:
    talk = _begin(start, home, strategy)
    number, replaced = talk.until_replaced()
    gone = talk.messages[0]["info"]["id"]
    assert "heron-1" in replaced["text"]
    talk.bridge.event("message.removed", {"sessionID": SESSION, "messageID": gone})
    assert wait_for(lambda: talk.rows("SELECT 1 FROM messages WHERE id = ? AND removed_us IS NOT NULL", gone))
    del talk.messages[0]
    assert wait_for(lambda: "heron-1" not in json.dumps(talk.request())), "in the middle of a turn"
    assert "heron-1" not in json.dumps(talk.turn(number + 1))
    assert "heron-1" not in json.dumps(talk.rows("SELECT text FROM digest_pieces"))


def test_a_part_that_was_taken_back_takes_its_digest_with_it(start: Start, home: Path, strategy: str) -> None:
    talk = _begin(start, home, strategy)
    number, replaced = talk.until_replaced()
    first = talk.messages[0]
    assert "heron-1" in replaced["text"]
    first["parts"][0]["text"] = PADDING
    again = {**first["parts"][0], "id": "prt_again"}
    talk.bridge.event("message.part.updated", {"part": again})
    gone = {"sessionID": SESSION, "messageID": first["info"]["id"], "partID": first["parts"][0]["id"]}
    talk.bridge.event("message.part.removed", gone)
    first["parts"] = [again]
    assert wait_for(lambda: not talk.rows("SELECT 1 FROM parts WHERE id = ?", gone["partID"]))
    assert wait_for(lambda: "heron-1" not in json.dumps(talk.request())), "in the middle of a turn"
    _, replaced = talk.until_replaced(first=number + 1)
    assert "heron-1" not in replaced["text"]
    assert "crane-1" in replaced["text"], "what was said beside it is digested anew"
    assert "heron-1" not in json.dumps(talk.rows("SELECT text FROM digest_pieces"))


def test_a_restarted_bridge_repeats_what_the_turn_has_sent(start: Start, home: Path, strategy: str) -> None:
    talk = _begin(start, home, strategy)
    number, _ = talk.until_replaced()
    talk.say(f"u{number + 1}", f"Step {number + 1}. {PADDING}")
    sent = talk.request()
    talk.settle()  # newer pieces may be there by now
    talk.bridge.process.kill()
    talk.bridge.process.wait()
    talk.bridge = start(STRATEGIES[strategy])
    talk.bridge.ask("hello", protocol=1, api=1)
    assert talk.request() == sent
    talk.say(f"a{number + 1}", "Done.", role="assistant")
    assert talk.request() == sent


def test_without_a_strategy_or_an_archive_nothing_is_replaced(start: Start, home: Path) -> None:
    for environ in (PLAIN, {**STRATEGIES["tree"], "BACKSTORY_ARCHIVE_ENABLED": "false"}):
        bridge = start(environ)
        answer = bridge.ask("hello", protocol=1)
        assert answer["history"] is False
        listed = [{"id": "u1", "role": "user"}]
        assert bridge.ask("history", session=SESSION, messages=listed) == {"replace": None}
        assert bridge.ask("compacting", session=SESSION, messages=listed) == {"context": [], "summary": None}
        assert bridge.close() == 0


def test_hello_tells_how_long_the_address_of_a_kept_attachment_is(start: Start, home: Path) -> None:
    limits = {"1000000": 1_340_200, "0": 0, "3": 205}
    for most, chars in limits.items():
        bridge = start({**PLAIN, "BACKSTORY_ARCHIVE_ATTACHMENT_MAX_BYTES": most})
        assert bridge.ask("hello", protocol=1)["attachment_chars"] == chars
    bridge = start({**PLAIN, "BACKSTORY_ARCHIVE_ENABLED": "false"})
    assert bridge.ask("hello", protocol=1)["attachment_chars"] == 0


def test_thresholds_that_do_not_fit_are_told_and_break_no_prompt(start: Start, home: Path) -> None:
    bridge = start({**STRATEGIES["tree"], "BACKSTORY_TREE_MIN_BATCH": "50"})
    assert bridge.ask("hello", protocol=1)["history"] is False
    told = bridge.prompt("remember that the staging cluster is called heron-2", message="u1")
    assert told is not None
    assert "tree.max_raw is 4" in told
    assert "stored already as #1" in told
    listed = [{"id": "u1", "role": "user"}, {"id": "a1", "role": "assistant"}, {"id": "u2", "role": "user"}]
    assert bridge.ask("history", session=SESSION, messages=listed) == {"replace": None}
    assert "heron-2" in str(bridge.prompt("what is the staging cluster called?", message="u2"))
    bridge.event("session.idle", {"sessionID": SESSION})
    bridge.event("message.removed", {"sessionID": SESSION, "messageID": "a1"})
    assert bridge.ask("compacting", session=SESSION) == {"context": [], "summary": None}
    assert bridge.close() == 0
    assert "Traceback" not in bridge.stderr()


def test_a_project_whose_thresholds_do_not_fit_spoils_only_its_own_sessions(start: Start, home: Path) -> None:
    bridge = start(STRATEGIES["tree"])
    shop, other = bridge.directory, bridge.directory.with_name("other")
    other.mkdir()
    (other / ".backstory.toml").write_text("[tree]\ncompact_branch = 9\n")
    for folder, wanted in ((other, False), (shop, True)):
        bridge.directory = folder
        assert bridge.ask("hello", protocol=1)["history"] is wanted
        told = str(bridge.prompt("remember that the parrot is called Polly", message=f"msg_{folder.name}"))
        assert ("tree.compact_threshold is 6" in told) is not wanted
    assert bridge.close() == 0


def test_a_compaction_is_told_of_the_digest_and_gets_it_as_its_summary_where_it_is_whole(
    start: Start, home: Path, strategy: str
) -> None:
    talk = _begin(start, home, strategy)
    _, replaced = talk.until_replaced()
    listed = [{"id": item["info"]["id"], "role": item["info"]["role"]} for item in talk.messages]
    own = {"id": f"#{len(listed)}", "role": "user"}
    told = talk.bridge.ask("compacting", session=SESSION)
    assert "<backstory-digest>" in told["context"][0]
    assert told["summary"] is None, "a host that did not ask for it"
    head = listed[: replaced["count"]]
    whole = talk.bridge.ask("compacting", session=SESSION, messages=[*head, own])
    assert "heron-1" in whole["summary"]
    foreign = [*head, {"id": "msg_other", "role": "assistant"}, own]
    assert talk.bridge.ask("compacting", session=SESSION, messages=foreign)["summary"] is None
    assert talk.bridge.ask("compacting", session=SESSION, messages=[own])["summary"] is None


def test_a_sidecar_of_earlier_settings_is_renewed_and_the_note_says_so(
    start: Start, home: Path, tmp_path: Path
) -> None:
    from backstory.config import Settings
    from backstory.entrypoints.opencode.sidecar import FILE, sidecar_for

    plugins = tmp_path / "opencode" / "plugins"
    plugins.mkdir(parents=True)
    (plugins / FILE).write_bytes(sidecar_for(Settings(), {"BACKSTORY_HOME": str(home)}).content())
    bridge_in = ("import os, runpy, sys", f"os.chdir({str(plugins)!r})", "sys.argv[1:] = ['bridge']")
    command = (sys.executable, "-c", "; ".join((*bridge_in, "runpy.run_module('backstory', run_name='__main__')")))
    for environ, renewed in ((STRATEGIES["tree"], True), (STRATEGIES["tree"], False), (PLAIN, True)):
        bridge = start(environ, command=command)
        bridge.ask("hello", protocol=1)
        bridge.ask("hello", protocol=1)
        assert json.loads((home / "opencode-handshake.json").read_text())["outdated"] is renewed
        tools = [tool["name"] for tool in json.loads((plugins / FILE).read_text())["manifest"]]
        assert ("search_memory_tree" in tools) is (environ is not PLAIN)
        assert bridge.close() == 0
