"""Each call of OpenCode to what answers it. Reading and writing lines is in ``server.py``."""

from __future__ import annotations

import logging
import math
import os
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import anyio.to_thread

from backstory.__about__ import __version__
from backstory.bootstrap import App
from backstory.bootstrap.sessions import LongSessions
from backstory.config import Settings
from backstory.domain.ids import MessageId, SessionId
from backstory.entrypoints.background_upkeep import warm_rules
from backstory.entrypoints.opencode import protocol
from backstory.entrypoints.opencode.code_checks import CodeChecks
from backstory.entrypoints.opencode.dreams import DreamHooks
from backstory.entrypoints.opencode.events import EventHooks, GiveWay
from backstory.entrypoints.opencode.handshake import Handshake, note_handshake
from backstory.entrypoints.opencode.helpers import HelperSessions
from backstory.entrypoints.opencode.histories import HistoryHooks
from backstory.entrypoints.opencode.prompts import PromptHooks
from backstory.entrypoints.opencode.questions import Questions
from backstory.entrypoints.opencode.requests import RequestHooks
from backstory.entrypoints.opencode.sidecar import renew_at_start
from backstory.entrypoints.opencode.waits import HELLO_WAIT, HELLO_WITHIN, TOOL_WAIT, within
from backstory.entrypoints.places import Places
from backstory.entrypoints.tools import Call, find_tool, manifest, run_tool
from backstory.errors import StoreError

log = logging.getLogger(__name__)

_BASE64_CHARS = 1.34  # a byte
_ADDRESS_HEAD_CHARS = 200


class Hooks:
    """What happens when OpenCode calls. ``questions`` go to the plugin; ``changed`` is told when memories may need
    embedding; ``give_way`` lets requests go first."""

    def __init__(self, app: App, *, questions: Questions, changed: Callable[[], None], give_way: GiveWay) -> None:
        self._app = app
        self._is_outdated = False  # what OpenCode has read from the sidecar, until it ends or closes every folder
        self._changed = changed
        self._places = Places(app, generate=questions.generate)
        self.helpers = HelperSessions(questions.ask)
        self.prompts = PromptHooks(self._places, changed=changed)
        self.histories = HistoryHooks(self._places, give_way=give_way)
        self.dreams = DreamHooks(changed=changed, give_way=give_way)
        self.code_checks = CodeChecks(give_way=give_way)
        self.requests = RequestHooks(self._places, self.histories)
        self.events = EventHooks(
            self._places, self.prompts, self.requests, self.histories, self.dreams, self.helpers,
            ask=questions.ask, changed=changed, give_way=give_way,
        )  # fmt: skip

    async def hello(self, params: protocol.Hello) -> dict[str, Any]:
        """The plugin has loaded: leave a note that proves it, tell which tools there are, and open what the first
        prompt will need. A store that fails does not matter yet."""
        self._is_outdated |= await anyio.to_thread.run_sync(partial(renew_at_start, Path(), os.environ))
        self._note_handshake(params)
        self._places.leave(params.directory)
        app = self._places.app_in(params.directory)
        try:
            with self._places.waiting(HELLO_WAIT):
                place = await within(HELLO_WITHIN.total_seconds(), self._places.place(params.directory))
                await anyio.to_thread.run_sync(_warm, place.app.long_sessions)
                _open(place.app)
                self.histories.sweep(place)
                self.dreams.sweep(place)
                self.code_checks.opened(place)
        except StoreError as error:
            log.error("event=no_store directory=%s reason=%s", params.directory, error)
        self.prompts.greeted()
        self.helpers.sweep(params.directory)
        return {
            "protocol": protocol.PROTOCOL,
            "version": __version__,
            "manifest": manifest(app.settings),
            "history": app.long_sessions is not None,
            "attachment_chars": _attachment_chars(app.settings),
        }

    async def goodbye(self, params: protocol.Goodbye) -> None:
        """An instance is gone; the next one in this folder reads the settings anew."""
        self._places.leave(params.directory)

    async def tool(self, params: protocol.ToolCall) -> dict[str, Any]:
        """The model calls a tool."""
        with self._places.waiting(TOOL_WAIT):
            return await self._tool(params)

    async def _tool(self, params: protocol.ToolCall) -> dict[str, Any]:
        place = await self._places.place(params.directory)
        tool = find_tool(params.name, place.app.settings)
        if tool is None:
            return _refused(f"There is no tool {params.name}.")
        if not place.app.settings.opencode.tools:  # switched off since OpenCode was told of them
            return _refused("The memory tools are switched off here (opencode.tools). Continue without them.")
        call = Call(
            app=place.app,
            viewer=place.viewer(params.session),
            message=None if params.message is None else MessageId(params.message),
            agent=params.agent,
            tool=params.name,
        )
        answer = await run_tool(tool, params.arguments, call)
        self._changed()
        withheld = [] if params.session is None else await place.app.blocks.withheld(SessionId(params.session))
        metadata = {"failed": answer.failed}
        return {"output": answer.text, "title": answer.title, "metadata": metadata, "withheld": withheld}

    def _note_handshake(self, params: protocol.Hello) -> None:
        handshake = Handshake(
            time=self._app.clock.now(),
            plugin_version=params.plugin_version or "",
            backstory_version=__version__,
            directory=params.directory,
            is_outdated=self._is_outdated,
        )
        note_handshake(handshake, self._app.settings, pid=params.pid, api=params.api)


def _attachment_chars(settings: Settings) -> int:
    """The longest data: address that may hold an attachment which is kept, its media type included; 0 for none."""
    most_bytes = settings.archive.attachment_max_bytes if settings.archive.enabled else 0
    return math.ceil(most_bytes * _BASE64_CHARS) + _ADDRESS_HEAD_CHARS if most_bytes else 0


def _warm(sessions: LongSessions | None) -> None:
    """Compile the rules that a prompt passes, and load a vocabulary where one counts: half of that holds up all
    threads, and the first request would wait a fifth of a second for it."""
    warm_rules()
    if sessions is not None:
        sessions.warm()


def _open(app: App) -> None:
    """Make what the first prompt, its events and the work beside it need, in the thread that uses it: importing what
    they are made of takes 60 ms."""
    for _ in (app.prompts, app.conversations, app.truth.summaries, app.truth.dreaming, app.truth.code_check):
        pass


def _refused(text: str) -> dict[str, Any]:
    return {"output": text, "title": "not done", "metadata": {"failed": True}}
