"""One call of a hook, from standard input to standard output: fast, and never in the agent's way.

Whatever goes wrong, the answer is one that changes nothing, the exit code is 0, and standard error says why. Nothing
is imported that a search by words does not need.
"""

from __future__ import annotations

import json
import os
import select
import signal
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from backstory.adapters.project_folder import project_root
from backstory.config import load_leniently
from backstory.entrypoints.agents.calls import GENERIC, GenericFormat, HookCall, HookFormat, Payload, event_of
from backstory.entrypoints.agents.claude_code import AGENT as CLAUDE_CODE
from backstory.entrypoints.agents.claude_code import PROJECT, ClaudeCodeFormat
from backstory.entrypoints.agents.deadline import Deadline
from backstory.entrypoints.drive import drive
from backstory.errors import BackstoryError, InputError, StoreUnavailable

if TYPE_CHECKING:
    from backstory.config import Settings
    from backstory.entrypoints.agents.serving import Reply

MAX_BYTES = 16 * 1024 * 1024
DEADLINE_MS = 800
"""Until the settings are known."""

KEEP_WITHIN_S = 120
"""After which a process left behind is ended by the system, whatever it is at: a store survives that."""
LATE = "--late"
"""The word with which a process is started that only keeps; no agent says it."""

_FAST = {"BACKSTORY_RECALL_MODE": "lexical", "BACKSTORY_RECALL_RERANK": "off"}
_CHUNK = 1 << 16


@dataclass(frozen=True, slots=True, kw_only=True)
class Answered:
    """What goes back to the agent; ``keep`` does what need not be waited for."""

    response: object
    keep: Callable[[], None] | None = None


def format_of(agent: str, env: Mapping[str, str]) -> HookFormat:
    """How an agent writes its calls. Raises InputError."""
    if agent == CLAUDE_CODE:
        return ClaudeCodeFormat(project=env.get(PROJECT, ""))
    if agent == GENERIC:
        return GenericFormat()
    raise InputError(f"there is no agent {agent[:60]!r}; there are {CLAUDE_CODE} and {GENERIC}", field="agent")


def run_words(words: Sequence[str], env: Mapping[str, str]) -> None:
    """``HookProcess.run`` for a command line, without what the command line costs to import: 30 ms of 180."""
    given = list(words)
    agent = GENERIC
    for position, word in enumerate(given):
        if word == "--agent":
            agent = "".join(given[position + 1 : position + 2])
            del given[position : position + 2]
        elif word.startswith("--agent="):
            agent = word.removeprefix("--agent=")
    event = next((word for word in given if not word.startswith("-")), "")
    process = HookProcess(event, agent, env)
    if LATE in given:
        process.keep_late()
    else:
        process.run(is_waiting="--wait" in given)


class HookProcess:
    """The call on standard input. This is the outermost loop of the process: nothing escapes it."""

    def __init__(self, word: str, agent: str, env: Mapping[str, str]) -> None:
        self._word = word
        self._agent = agent
        self._env = env
        self._call: HookCall | None = None

    def run(self, *, is_waiting: bool) -> None:
        """Answer. ``is_waiting`` does here what otherwise a process left behind does."""
        neutral = b"{}\n" if self._agent == CLAUDE_CODE else b'{"context": null}\n'
        deadline = Deadline(within_s=DEADLINE_MS / 1000, neutral=neutral, late=self._leave_late)
        deadline.start()
        keep = None
        try:
            deadline.within(_deadline_s(self._env))
            event, told = event_of(self._word), format_of(self._agent, self._env)
            self._call = told.read(event, read_payload(0))
            answered = answer_call(told, self._call, self._env)
            keep = answered.keep
            neutral = json.dumps(answered.response, ensure_ascii=True).encode() + b"\n"
        except BackstoryError as error:
            _tell(str(error))
        except Exception as error:
            _tell(f"{type(error).__name__}: {error}")
        deadline.answer(neutral)
        from backstory.entrypoints.cli.invocation import NO_BACKGROUND  # now that nobody waits

        try:
            if keep is not None and (is_waiting or self._env.get(NO_BACKGROUND) or _left_behind()):
                keep()
        except Exception as error:
            _tell(f"not kept: {error}")

    def keep_late(self) -> None:
        """Keep what a call tells that got no answer in time."""
        signal.alarm(KEEP_WITHIN_S)
        try:
            told = format_of(self._agent, self._env)
            call = told.read(event_of(self._word), read_payload(0))
            _keep(_settings(call, self._env), call)
        except Exception as error:
            _tell(f"not kept: {error}")

    def _leave_late(self) -> None:
        """Start a process that does it; this one is in the middle of something. It is told the call as it was read: a
        prompt read again may get another id, since the transcript has grown, and its wish would be stored twice."""
        if self._call is None:
            return
        import subprocess
        import tempfile

        with tempfile.TemporaryFile() as given:
            given.write(json.dumps(GenericFormat().tell(self._call)).encode())
            given.seek(0)
            subprocess.Popen(
                [sys.executable, "-P", "-m", "backstory", "hook", self._word, LATE],
                stdin=given,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                start_new_session=True,
            )


def answer_call(told: HookFormat, call: HookCall, env: Mapping[str, str]) -> Answered:
    """The answer of a running server, else our own. Raises BackstoryError."""
    settings = _settings(call, env)
    reply = _from_server(settings, call)
    if reply is not None:
        return Answered(response=told.write(call.event, reply.text))
    return _own_answer(settings, told, call)


def read_payload(source: int) -> Payload:
    """The JSON object on a stream: to its end, or until there is a whole object and nothing follows. InputError."""
    data = bytearray()
    while len(data) <= MAX_BYTES:
        chunk = os.read(source, _CHUNK)
        data += chunk
        is_pausing = chunk.rstrip().endswith(b"}") and not select.select([source], [], [], 0)[0]
        if is_pausing and (payload := _object(data)) is not None:
            return payload
        if not chunk:
            break
    else:
        raise InputError(f"standard input is larger than {MAX_BYTES // 1024**2} MiB", field="stdin")
    payload = _object(data)
    if payload is None:
        raise InputError("standard input holds no JSON object", field="stdin")
    return payload


def _object(data: bytearray) -> dict[str, object] | None:
    try:
        value = json.loads(data.decode("utf-8-sig"))
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


def _settings(call: HookCall, env: Mapping[str, str]) -> Settings:
    resolved, faults = load_leniently(env={**env, **_FAST}, project_root=project_root(call.directory))
    for fault in faults:
        _tell(f"a setting is left out: {fault}")
    return resolved.settings


def _from_server(settings: Settings, call: HookCall) -> Reply | None:
    if not (settings.data_dir / "serve.json").exists():
        return None
    from backstory.bootstrap.store_address import store_address
    from backstory.entrypoints.agents.serving import from_server

    try:
        return from_server(settings.data_dir, call, store=store_address(settings, call.directory))
    except (OSError, ValueError) as error:
        _tell(f"answered without the server: {error}")
        return None


def _own_answer(settings: Settings, told: HookFormat, call: HookCall) -> Answered:
    from backstory.bootstrap import open_app
    from backstory.entrypoints.agents.events import answer

    app = open_app(settings, folder=call.directory, one_shot=True)
    try:
        text = drive(answer(app, call))
    finally:
        drive(app.close())
    return Answered(response=told.write(call.event, text), keep=partial(_keep, settings, call))


def _keep(settings: Settings, call: HookCall) -> None:
    from backstory.bootstrap import open_app
    from backstory.entrypoints.agents.events import keep
    from backstory.entrypoints.agents.keepers import keeper

    with keeper(settings.data_dir) as may_keep:
        if not may_keep:
            raise StoreUnavailable("too many hooks are still waiting for the store")
        app = open_app(settings, folder=call.directory, one_shot=True)
        try:
            drive(keep(app, call))
        finally:
            drive(app.close())


def _deadline_s(env: Mapping[str, str]) -> float:
    """What the environment or the user's file says. Raises ConfigError."""
    resolved, _ = load_leniently(env=env, project_root=None)
    return resolved.settings.context.deadline_ms / 1000


def _left_behind() -> bool:
    """Let this process end, and go on in a child that holds none of the agent's pipes; True in that child."""
    if os.fork():
        return False
    os.setsid()
    signal.signal(signal.SIGALRM, signal.SIG_DFL)
    signal.alarm(KEEP_WITHIN_S)
    nowhere = os.open(os.devnull, os.O_RDWR)
    for stream in (0, 1, 2):
        os.dup2(nowhere, stream)
    return True


def _tell(what: str) -> None:
    print(f"backstory hook: {' '.join(what.split())[:500]}", file=sys.stderr)
