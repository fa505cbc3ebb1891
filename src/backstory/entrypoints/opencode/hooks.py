"""Each hook of OpenCode to the service that answers it. Reading and writing lines is in ``server.py``."""

from __future__ import annotations

import json
import logging
import os
import tempfile
import time
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import anyio
import anyio.to_thread

from backstory.__about__ import __version__
from backstory.adapters.project_folder import project_root
from backstory.bootstrap import App
from backstory.codecs.record import format_time
from backstory.config import load_leniently
from backstory.domain.conversation import Message, Role, Session
from backstory.domain.history import Author
from backstory.domain.ids import MessageId, PartId, ProjectId, SessionId
from backstory.domain.markup import unwrap
from backstory.domain.scope import Audience, Viewer
from backstory.entrypoints.opencode import protocol
from backstory.entrypoints.opencode.handshake import FILE as HANDSHAKE_FILE
from backstory.entrypoints.opencode.host_messages import to_message, to_part, to_session
from backstory.entrypoints.opencode.unkept import Unkept
from backstory.entrypoints.tools import Call, find_tool, manifest, run_tool
from backstory.errors import BackstoryError, StoreError, StoreUnavailable
from backstory.services.conversation import Captured, Prompt

log = logging.getLogger(__name__)

HELPER_TITLE = "backstory-helper"
MAX_ROLES = 2000
CATCH_UP_BATCH = 20  # messages cleaned and stored before requests get their turn
MAX_FAULTS = 3  # told of wrong settings; the log has all

# How long a store that another process keeps busy, or that does not answer, is waited for, within what the plugin waits
# for each.
HELLO_WAIT = timedelta(seconds=3)
SNAPSHOT_WAIT = timedelta(milliseconds=150)
COMPACTING_WAIT = timedelta(milliseconds=300)
TOOL_WAIT = timedelta(seconds=8)
EVENT_WAIT = timedelta(seconds=60)
WISH_WAIT = timedelta(seconds=3)  # in each try: a new one soon is better than a long wait for a server that is gone
WITHHELD_WAIT = timedelta(milliseconds=100)
HELLO_WITHIN = timedelta(seconds=4)
PROMPT_SHARE = 0.8  # of a prompt's deadline until it is answered without the store; the rest is for the way back
FIRST_PROMPT_WITHIN_S = 1.5  # of this process, which the plugin gives 2.5 s from its start to say its first word

Ask = Callable[[str, Mapping[str, Any]], Awaitable[Any]]
GiveWay = Callable[[], Awaitable[None]]
T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """A folder that OpenCode has open: the application under its settings, and its project."""

    app: App
    directory: str
    project: ProjectId

    def viewer(self, session: str | None) -> Viewer:
        """A model in this folder."""
        session_id = None if session is None else SessionId(session)
        return Viewer(project=self.project, session=session_id, audience=Audience.MODEL)


class Hooks:
    """What happens when OpenCode calls. ``ask`` puts a question to the plugin; ``changed`` is told when memories may
    need embedding; ``give_way`` lets requests go first."""

    def __init__(self, app: App, *, ask: Ask, changed: Callable[[], None], give_way: GiveWay) -> None:
        self._app = app
        self._ask = ask
        self._changed = changed
        self._give_way = give_way
        self._apps: dict[str, App] = {}
        self._places: dict[str, Place] = {}
        self._seen: set[SessionId] = set()
        self._helpers: set[str] = set()
        self._answering: dict[str, bool] = {}  # user message -> whether the plugin has given up on its answer
        self._thawed: set[str] = set()
        self._roles: OrderedDict[str, Role] = OrderedDict()
        self._faults: dict[str, list[str]] = {}  # directory -> what nobody was told yet about its settings
        self._store_takes_events = True
        self._began = time.monotonic()
        self._greeted = False
        self._unawaited: set[MessageId] = set()  # answered without the store, which may have frozen something since
        self.unkept = Unkept(self._capture)

    async def hello(self, params: protocol.Hello) -> dict[str, Any]:
        """The plugin has loaded: leave a note that proves it, tell which tools there are, and open what the first
        prompt will need. A store that fails does not matter yet."""
        self._note_handshake(params)
        self._leave(params.directory)
        app = self._app_in(params.directory)
        try:
            with self._app.waiting(HELLO_WAIT):
                place = await _within(HELLO_WITHIN.total_seconds(), self._place(params.directory))
                place.app.prompts  # noqa: B018 - imports what it is made of
        except StoreError as error:
            log.error("event=no_store directory=%s reason=%s", params.directory, error)
        self._greeted = True
        return {"protocol": protocol.PROTOCOL, "version": __version__, "manifest": manifest(app.settings)}

    async def goodbye(self, params: protocol.Goodbye) -> None:
        """An instance is gone; the next one in this folder reads the settings anew."""
        self._leave(params.directory)

    async def chat_message(self, params: protocol.ChatMessage) -> dict[str, Any]:
        """What goes beside a user's message. A sub-agent's messages get nothing; a setting lets them be captured.

        A busy store is waited for until half of the deadline is over, and one that does not answer until most of it
        is; what it could not take is tried again later.
        """
        app = self._app_in(params.directory)
        if params.child and not app.settings.opencode.subagents:
            return {"block": None}
        prompt = Prompt(
            text=unwrap(params.text),  # `opencode run` puts quotes around a prompt
            message=MessageId(params.message),
            session=SessionId(params.session),
            agent=params.agent,
            typed=params.typed,
            author=Author.AGENT if params.child else Author.USER,
            notes=() if params.child else (*self._untold_faults(params.directory), *self.unkept.notes(params.session)),
        )
        self._answering[params.message] = False
        try:
            with self._app.waiting(timedelta(milliseconds=app.settings.context.deadline_ms) / 2):
                block = await _within(self._patience_s(app), self._take(prompt, params))
        except StoreError as error:
            log.warning("event=prompt_without_store session=%s reason=%s", params.session, error)
            block = None if params.child else app.prompts.without_store(prompt)
            if isinstance(error, StoreUnavailable) and app.conversations.asks(prompt):
                self.unkept.add(params.directory, prompt)
            if isinstance(error, _TooLate):  # no time is left to ask for anything else
                self._unawaited.add(prompt.message)
                return {"block": block, "withheld": []}
        finally:
            self._answering.pop(params.message, None)
        self._changed()
        return {"block": block, "withheld": await self._withheld(app, prompt.session)}

    def _patience_s(self, app: App) -> float:
        """How long a prompt may take: most of what the plugin waits, which is more until this process has answered."""
        patience_s = PROMPT_SHARE * app.settings.context.deadline_ms / 1000
        if self._greeted:
            return patience_s
        return max(patience_s, self._began + FIRST_PROMPT_WITHIN_S - time.monotonic())

    async def _withheld(self, app: App, session: SessionId) -> list[MessageId]:
        """Those of a session, or none where that takes long: the next prompt asks again."""
        with self._app.waiting(WITHHELD_WAIT), anyio.move_on_after(WITHHELD_WAIT.total_seconds()):
            return await app.blocks.withheld(session)
        return []

    async def _take(self, prompt: Prompt, params: protocol.ChatMessage) -> str | None:
        place = await self._place(params.directory)
        if params.child:
            await place.app.conversations.capture(prompt, place.viewer(params.session))
            return None
        block = await place.app.prompts.take(prompt, place.viewer(params.session))
        if place.app.conversations.failed(prompt.message):
            self.unkept.add(params.directory, prompt)
        if self._answering.get(params.message):  # delivered twice, the other delivery may be done
            await place.app.blocks.withdraw(prompt.message)
        return block

    async def _capture(self, directory: str, prompt: Prompt) -> Captured:
        """Capture anew what the store could not take."""
        with self._app.waiting(WISH_WAIT):
            place = await self._place(directory)
            try:
                captured = await place.app.conversations.capture(prompt, place.viewer(prompt.session))
            finally:
                place.app.conversations.failed(prompt.message)  # known
        self._changed()
        return captured

    async def dropped(self, params: protocol.Dropped) -> None:
        """The plugin did not wait. The answer may be frozen already, or still be on its way."""
        if params.message in self._answering:
            self._answering[params.message] = True
        place = await self._place(params.directory)
        await place.app.blocks.withdraw(MessageId(params.message))

    async def blocks(self, params: protocol.Blocks) -> dict[str, Any]:
        """Frozen texts, for a host that was restarted."""
        place = await self._place(params.directory)
        return {"blocks": await place.app.blocks.replay([MessageId(item) for item in params.messages])}

    async def snapshot(self, params: protocol.InSession) -> dict[str, Any]:
        """The constant text of a session."""
        with self._app.waiting(SNAPSHOT_WAIT):
            place = await self._place(params.directory)
            viewer = place.viewer(params.session)
            return {"text": await place.app.blocks.snapshot(viewer, session=SessionId(params.session))}

    async def compacting(self, params: protocol.InSession) -> dict[str, Any]:
        """A compaction begins: the next request may have a new snapshot."""
        with self._app.waiting(COMPACTING_WAIT):
            place = await self._place(params.directory)
            await place.app.blocks.renew_snapshot(SessionId(params.session))
        self._thawed.add(params.session)
        return {"context": []}

    async def tool(self, params: protocol.ToolCall) -> dict[str, Any]:
        """The model calls a tool."""
        with self._app.waiting(TOOL_WAIT):
            return await self._tool(params)

    async def _tool(self, params: protocol.ToolCall) -> dict[str, Any]:
        place = await self._place(params.directory)
        tool = find_tool(params.name)
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

    async def event(self, params: protocol.Event) -> None:
        """Something happened: keep it as evidence.

        A busy store is waited for. What could not be kept all the same is caught up when its session is next idle.
        """
        try:
            with self._app.waiting(EVENT_WAIT if self._store_takes_events else timedelta(0)):
                await self._event(params)
        except StoreUnavailable:
            self._store_takes_events = False  # the next ones are tried, but do not pile up meanwhile
            self._seen.discard(_session_of(params.properties))
            raise
        self._store_takes_events = True

    async def _event(self, params: protocol.Event) -> None:
        place = await self._place(params.directory)
        properties = params.properties
        if params.type == "session.compacted":
            await self._compacted(place, properties)
        if params.type == "session.idle":
            while self._unawaited:
                await place.app.blocks.withdraw(self._unawaited.pop())
        if not place.app.settings.archive.enabled:
            return
        match params.type:
            case "session.created" | "session.updated":
                await self._session(place, properties)
            case "session.deleted":
                await self._session_deleted(place, properties)
            case "session.idle":
                await self._catch_up(place, properties.get("sessionID"), child=params.child)
                self._changed()  # what was said in the turn is embedded now that nobody waits
            case "message.updated":
                await self._message(place, properties, child=params.child)
            case "message.part.updated":
                await self._part(place, properties, child=params.child)
            case "message.removed":
                await place.app.conversations.message_removed(MessageId(str(properties.get("messageID"))))
            case "message.part.removed":
                await place.app.conversations.part_removed(PartId(str(properties.get("partID"))))

    def _app_in(self, directory: str) -> App:
        """The application under the settings of a folder. A user's setting that is wrong is left out, and told."""
        if directory not in self._apps:
            resolved, faults = load_leniently(env=os.environ, project_root=project_root(Path(directory)))
            self._faults[directory] = list(faults)
            for warning in (*faults, *resolved.warnings):
                log.warning("event=setting_ignored directory=%s reason=%s", directory, warning)
            self._apps[directory] = self._app.with_settings(resolved.settings)
        return self._apps[directory]

    def _untold_faults(self, directory: str) -> list[str]:
        """Sentences about wrong settings, for the first prompt after they were read."""
        faults = self._faults.pop(directory, [])
        return [
            f"A setting of Backstory is wrong and left out, tell the user: {fault}" for fault in faults[:MAX_FAULTS]
        ]

    async def _place(self, directory: str) -> Place:
        app = self._app_in(directory)
        place = self._places.get(directory)
        if place is None or place.app is not app:
            project = await app.project(Path(directory))
            place = self._places[directory] = Place(app=app, directory=directory, project=project.id)
        return place

    def _leave(self, directory: str) -> None:
        self._apps.pop(directory, None)
        self._places.pop(directory, None)

    async def _compacted(self, place: Place, properties: Mapping[str, Any]) -> None:
        """Events come late: a snapshot that was renewed when the compaction began may have been shown since."""
        session = str(properties.get("sessionID"))
        if session in self._thawed:
            self._thawed.discard(session)
        else:
            await place.app.blocks.renew_snapshot(SessionId(session))

    async def _session(self, place: Place, properties: Mapping[str, Any]) -> None:
        info = properties.get("info")
        if not isinstance(info, Mapping):
            return
        session = to_session(info, project=place.project, directory=place.directory, now=place.app.clock.now())
        if session is None or self._is_helper(session):
            return
        await place.app.conversations.take_session(session)

    def _is_helper(self, session: Session) -> bool:
        """Sessions we run ourselves are marked in their title, which outlives this process."""
        if (session.title or "").startswith(HELPER_TITLE):
            self._helpers.add(session.id)
        return session.id in self._helpers

    async def _session_deleted(self, place: Place, properties: Mapping[str, Any]) -> None:
        info = properties.get("info")
        session_id = info.get("id") if isinstance(info, Mapping) else properties.get("sessionID")
        if isinstance(session_id, str):
            await place.app.conversations.session_deleted(SessionId(session_id), at=place.app.clock.now())

    async def _message(self, place: Place, properties: Mapping[str, Any], *, child: bool) -> None:
        info = properties.get("info")
        message = None
        if isinstance(info, Mapping):
            message = to_message(info, None, child=child, now=place.app.clock.now())
        if message is not None and message.session not in self._helpers:
            self._roles[message.id] = message.role
            if len(self._roles) > MAX_ROLES:
                self._roles.popitem(last=False)
            await place.app.conversations.take_messages([message])

    async def _part(self, place: Place, properties: Mapping[str, Any], *, child: bool) -> None:
        item = properties.get("part")
        if not isinstance(item, Mapping) or item.get("sessionID") in self._helpers:
            return
        message, session = item.get("messageID"), item.get("sessionID")
        if not isinstance(message, str) or not isinstance(session, str):
            return
        role = self._roles.get(message)
        part = to_part(item, untyped=child and role is not Role.ASSISTANT)
        if part is not None:
            await place.app.conversations.take_part(
                part, message=MessageId(message), session=SessionId(session), role=role
            )

    async def _catch_up(self, place: Place, session: object, *, child: bool) -> None:
        """Once for each session and process: take the whole history, since events before this process were missed."""
        if not isinstance(session, str) or session in self._seen or session in self._helpers:
            return
        history = await self._ask("host.messages", {"directory": place.directory, "session": session})
        if not isinstance(history, list):
            return
        messages = await anyio.to_thread.run_sync(partial(self._read_history, place, history, child=child))
        for start in range(0, len(messages), CATCH_UP_BATCH):
            await self._give_way()
            await place.app.conversations.take_messages(messages[start : start + CATCH_UP_BATCH])
        await place.app.conversations.mark_missing(SessionId(session), messages)
        self._seen.add(SessionId(session))

    def _read_history(self, place: Place, history: list[Any], *, child: bool) -> list[Message]:
        now = place.app.clock.now()
        read = (
            to_message(item.get("info"), item.get("parts"), child=child, now=now)
            for item in history
            if isinstance(item, Mapping)
        )
        return [message for message in read if message is not None]

    def _note_handshake(self, params: protocol.Hello) -> None:
        """``doctor`` reads this: only a note from a loaded plugin proves that OpenCode loaded it."""
        note = {
            "time": format_time(self._app.clock.now()),
            "pid": params.pid,
            "api": params.api,
            "plugin_version": params.plugin_version,
            "backstory_version": __version__,
            "directory": params.directory,
        }
        try:
            folder = self._app.settings.data_dir
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            with tempfile.NamedTemporaryFile(  # which nobody else may read: it names the person's folders
                "w", dir=folder, prefix=f"{HANDSHAKE_FILE}.", encoding="utf-8", delete=False
            ) as temporary:
                json.dump(note, temporary)
            Path(temporary.name).replace(folder / HANDSHAKE_FILE)
        except (OSError, BackstoryError) as error:
            log.warning("event=handshake_not_noted reason=%s", error)


class _TooLate(StoreUnavailable):
    """Nobody waits any longer; what was asked of the store may still be done."""


async def _within(seconds: float, work: Awaitable[T]) -> T:
    """What ``work`` gives; _TooLate, a StoreUnavailable, when it takes longer."""
    with anyio.move_on_after(seconds):
        return await work
    raise _TooLate("the store has not answered in time")


def _session_of(properties: Mapping[str, Any]) -> SessionId:
    """The session an event tells of; empty if it does not say."""
    places = (properties, properties.get("info"), properties.get("part"))
    named = (place.get("sessionID") for place in places if isinstance(place, Mapping))
    return SessionId(next((name for name in named if isinstance(name, str)), ""))


def _refused(text: str) -> dict[str, Any]:
    return {"output": text, "title": "not done", "metadata": {"failed": True}}
