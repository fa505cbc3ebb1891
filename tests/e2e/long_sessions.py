"""What the tests of long sessions share: a scripted writer of digests, homes with a strategy, how to read a request."""

from __future__ import annotations

import json
import re
import sqlite3
import subprocess
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from backstory.domain.digest_block import DIGEST_TAG
from backstory.testing.opencode import wait_for
from backstory.testing.opencode_config import MODEL
from backstory.testing.opencode_server import Server
from backstory.testing.scripted_model import Reply, Request, ScriptedModel
from tests.e2e.installation import WORDS_ONLY, Installation, Json

Fresh = Callable[..., Installation]

STRATEGIES = ("tree", "observations")
FEATURES = {"tree": "summary_tree", "observations": "observation"}
FIRST = {"tree": "leaf", "observations": "observe"}
"""What is asked first of a model."""
MARKS = {
    "leaf": "You write short summaries of stretches",
    "merge": "You join short summaries",
    "observe": "You are the memory of a coding assistant. You read a stretch",
    "reflect": "You are the memory of a coding assistant. Your notes",
}
"""How the instructions of the four questions begin."""
SMALL = {
    "BACKSTORY_TREE_MAX_RAW": "4",
    "BACKSTORY_TREE_MIN_BATCH": "2",
    "BACKSTORY_OBSERVATION_MESSAGE_TOKENS": "1000",
}
"""Thresholds that a few turns reach."""
CHARS = 1000
"""Of the turns that reach them."""
TOPIC = "the queue of the importer"
WAIT_S = 60.0

_STEP = re.compile(r"Step (\d+)\.")
_SETTLED = re.compile(r"settled steps ([\d, -]+)")
_PADDING = "Everything else about it stays as we had it, and nobody has to be told of the change before it is done. "


# --- what is said -----------------------------------------------------------------------------------------------------


def step(number: int, *, topic: str = TOPIC, chars: int = 330) -> str:
    """A user's words of about so many characters, with the word that only they have."""
    text = f"Step {number}. For {topic} choose the code word {code_word(number)}. "
    return (text + _PADDING * (chars // len(_PADDING) + 1))[:chars].rstrip()


def code_word(number: int) -> str:
    return f"zebu{number:03}lantern"


def ranges(numbers: Iterable[int]) -> str:
    """``0-4, 7`` for 0, 1, 2, 3, 4 and 7."""
    found: list[list[int]] = []
    for number in sorted(set(numbers)):
        if found and number == found[-1][-1] + 1:
            found[-1].append(number)
        else:
            found.append([number])
    return ", ".join(f"{run[0]}-{run[-1]}" if len(run) > 1 else f"{run[0]}" for run in found)


def settled(text: str) -> list[int]:
    """The steps that a digest tells of, twice if it tells of them twice."""
    parts = [part for found in _SETTLED.findall(text) for part in found.replace(" ", "").split(",") if part]
    bounds = [part.partition("-")[::2] for part in parts]
    return [number for low, high in bounds for number in range(int(low), int(high or low) + 1)]


def typed_steps(text: str) -> list[int]:
    """The steps whose own words are in a text."""
    return [int(number) for number in _STEP.findall(text)]


# --- who writes digests -----------------------------------------------------------------------------------------------


def is_question(request: Request, *names: str) -> bool:
    """Whether a request asks for a digest, one of the kinds in ``MARKS`` or any."""
    system = "".join(request.texts("system"))
    return any(system.startswith(MARKS[name]) for name in names or MARKS)


def questions(model: ScriptedModel, *names: str, about: str = "") -> list[Request]:
    return [r for r in model.requests() if is_question(r, *names) and about in r.all_text()]


def digest_of(request: Request) -> str:
    """What an honest model answers: which steps were settled, and no word of how."""
    asked = request.texts("user")[-1]
    within = asked[asked.rindex("<transcript>") :] if "<transcript>" in asked else asked
    steps = typed_steps(within) if is_question(request, "leaf", "observe") else settled(within)
    told = f"The user settled steps {ranges(steps)}." if steps else "Nothing was settled."
    if is_question(request, "leaf", "merge"):
        return told
    return f"<observations>\nDate: Mar 2, 2026\n* 🔴 (09:15) {told}\n</observations>"


def write_digests(model: ScriptedModel, *, delay_s: float = 0.0) -> None:
    """From now on, answer all questions for digests honestly."""
    for mark in MARKS.values():
        model.when(contains=mark).answer(lambda request: Reply(text=digest_of(request), delay_s=delay_s))


def environment(strategy: str, model: ScriptedModel, **more: str) -> Mapping[str, str]:
    """The settings of a strategy whose writer is the scripted model."""
    return {
        **WORDS_ONLY,
        "BACKSTORY_SESSION_STRATEGY": strategy,
        "BACKSTORY_MODELS_PROVIDER": "openai",
        "BACKSTORY_MODELS_BASE_URL": model.url,
        "BACKSTORY_MODELS_MODEL": MODEL,
        "BACKSTORY_MODELS_MAX_RETRIES": "0",
        **more,
    }


# --- what a request shows ---------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Shown:
    """A request of the main loop, taken apart."""

    request: Request

    @property
    def messages(self) -> list[Json]:
        """All but the system prompt."""
        return [message for message in self.request.messages if message["role"] != "system"]

    @property
    def digest(self) -> str:
        """The digest at the front; empty where there is none."""
        first = self.request.texts("user")[0]
        return first if first.startswith(f"<{DIGEST_TAG}>") else ""

    @property
    def raw(self) -> str:
        """All that is said beside the system prompt and the digest."""
        texts = [text for role in ("user", "assistant", "tool") for text in self.request.texts(role)]
        return "\n".join(text for text in texts if text != self.digest)

    @property
    def size(self) -> int:
        """Characters beside the system prompt."""
        return len(json.dumps(self.messages))

    def steps(self) -> list[int]:
        """The steps told of, in the digest and then word for word."""
        return settled(self.digest) + typed_steps("\n".join(self.request.texts("user")))

    def check(self, *, steps: Sequence[int]) -> None:
        """What holds for every request: one digest at most and in front, a user first, no step missing or twice."""
        assert self.messages[0]["role"] == "user"
        tagged = [text for role in ("user", "assistant") for text in self.request.texts(role) if DIGEST_TAG in text]
        assert tagged == ([self.digest] if self.digest else [])
        told = settled(self.digest), typed_steps("\n".join(self.request.texts("user")))
        assert [*told[0], *told[1]] == list(steps), told


# --- homes ------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class LongHome:
    """An installation with a strategy."""

    home: Installation
    strategy: str

    def walk(
        self, server: Server, session: str, steps: Iterable[int], *, topic: str = TOPIC, chars: int = 330
    ) -> Shown:
        """Say steps, one a turn, each checked to reach the model word for word; the last request."""
        for number in steps:
            text = step(number, topic=topic, chars=chars)
            server.prompt(session, text)
            request = self.home.requests(session)[-1]
            assert request.texts("user")[-1].startswith(text)
        return self.last(session)

    def settle(self, server: Server, session: str, number: int, *, chars: int = CHARS) -> Shown:
        """One more turn, which shows all that was found to be done before it."""
        self.wait(lambda: self.pieces(session))
        self.wait_until_quiet(session)
        return self.walk(server, session, [number], chars=chars)

    def last(self, session: str) -> Shown:
        return Shown(self.home.requests(session)[-1])

    def shown(self, session: str) -> list[Shown]:
        return list(map(Shown, self.home.requests(session)))

    # --- what is stored -----------------------------------------------------------------------------------------------

    def pieces(self, session: str) -> list[Json]:
        """Rows of the pieces of a session, in the order in which they were made."""
        names = ("id", "level", "text", "first_message", "last_message", "sources", "children", "active", "made_by")
        rows = self.home.rows(
            f"SELECT {', '.join(names)} FROM digest_pieces WHERE session = ? ORDER BY position", session
        )
        read = [dict(zip(names, row, strict=True)) for row in rows]
        return [{**row, "sources": json.loads(row["sources"]), "children": json.loads(row["children"])} for row in read]

    def state(self, session: str, column: str) -> Json:
        """A column of a session's row; None without one."""
        rows = self.home.rows(f"SELECT {column} FROM digests WHERE session = ?", session)
        return rows[0][0] if rows else None

    def wait(self, what: Callable[[], object]) -> None:
        """Wait for something in the background; the log of the bridge tells why it did not happen."""
        assert wait_for(what, timeout_s=WAIT_S), self.home.log.read_text()[-4000:]

    def let_time_pass(self, session: str) -> None:
        """As if all leases had expired and all pauses were over."""
        with closing(sqlite3.connect(self.home.database, timeout=240)) as raw, raw:
            raw.execute(
                "UPDATE digests SET lease_until_us = min(lease_until_us, 1), not_before_us = NULL WHERE session = ?",
                [session],
            )

    def wait_until_quiet(self, session: str) -> None:
        """Until nothing is left to be digested."""
        self.wait(lambda: self.state(session, "due") == 0 and self.state(session, "lease_token") is None)

    def sources(self, session: str) -> list[str]:
        """The messages that pieces of level 0 stand for; asserts that none stands in two."""
        found = [message for piece in self.pieces(session) for message in piece["sources"]]
        assert len(found) == len(set(found)), "two pieces stand for one message"
        return found

    def cli(self, *arguments: str, project: Path) -> subprocess.CompletedProcess[str]:
        """Run our command line in this home."""
        command = [sys.executable, "-m", "backstory", *arguments]
        environ = self.home.opencode.environment()
        return subprocess.run(command, cwd=project, env=environ, capture_output=True, text=True, timeout=120)

    def check_store(self, project: Path) -> None:
        done = self.cli("check", "--full", project=project)
        assert done.returncode == 0, done.stdout + done.stderr
