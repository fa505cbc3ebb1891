"""Each hook of OpenCode to the service that answers it. Reading and writing lines is in ``server.py``."""

from __future__ import annotations

import json
import logging
import os
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from backstory.__about__ import __version__
from backstory.adapters.project_folder import project_root
from backstory.bootstrap import App
from backstory.codecs.record import format_time
from backstory.config import load
from backstory.domain.conversation import Session
from backstory.domain.ids import MessageId, PartId, ProjectId, SessionId
from backstory.domain.markup import unwrap
from backstory.domain.scope import Audience, Viewer
from backstory.entrypoints.opencode import protocol
from backstory.entrypoints.opencode.host_messages import to_message, to_part, to_session
from backstory.entrypoints.tools import Call, find_tool, manifest, run_tool
from backstory.errors import BackstoryError
from backstory.services.conversation import Prompt

log = logging.getLogger(__name__)

HANDSHAKE_FILE = "opencode-handshake.json"
HELPER_TITLE = "backstory-helper"

Ask = Callable[[str, Mapping[str, Any]], Awaitable[Any]]


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
    need embedding."""

    def __init__(self, app: App, *, ask: Ask, changed: Callable[[], None]) -> None:
        self._app = app
        self._ask = ask
        self._changed = changed
        self._places: dict[str, Place] = {}
        self._seen: set[SessionId] = set()
        self._helpers: set[str] = set()
        self._dropped: set[str] = set()

    async def hello(self, params: protocol.Hello) -> dict[str, Any]:
        """The plugin has loaded: leave a note that proves it, and tell which tools there are."""
        place = await self._place(params.directory)
        self._note_handshake(params)
        return {"protocol": protocol.PROTOCOL, "version": __version__, "manifest": manifest(place.app.settings)}

    async def chat_message(self, params: protocol.ChatMessage) -> dict[str, Any]:
        """What goes beside a user's message. A sub-agent's messages are left alone, unless a setting says otherwise."""
        place = await self._place(params.directory)
        if params.child and not place.app.settings.opencode.subagents:
            return {"block": None}
        prompt = Prompt(
            text=unwrap(params.text),  # `opencode run` puts quotes around a prompt
            message=MessageId(params.message),
            session=SessionId(params.session),
            agent=params.agent,
        )
        block = await place.app.prompts.take(prompt, place.viewer(params.session))
        if params.message in self._dropped:
            self._dropped.discard(params.message)
            await place.app.blocks.withdraw(MessageId(params.message))
        self._changed()
        return {"block": block}

    async def dropped(self, params: protocol.Dropped) -> None:
        """The plugin did not wait. The answer may be frozen already, or still be on its way."""
        place = await self._place(params.directory)
        self._dropped.add(params.message)
        await place.app.blocks.withdraw(MessageId(params.message))

    async def blocks(self, params: protocol.Blocks) -> dict[str, Any]:
        """Frozen texts, for a host that was restarted."""
        place = await self._place(params.directory)
        return {"blocks": await place.app.blocks.replay([MessageId(item) for item in params.messages])}

    async def snapshot(self, params: protocol.InSession) -> dict[str, Any]:
        """The constant text of a session."""
        place = await self._place(params.directory)
        viewer = place.viewer(params.session)
        return {"text": await place.app.blocks.snapshot(viewer, session=SessionId(params.session))}

    async def compacting(self, params: protocol.InSession) -> dict[str, Any]:
        """A compaction begins: the next request may have a new snapshot."""
        place = await self._place(params.directory)
        await place.app.blocks.renew_snapshot(SessionId(params.session))
        return {"context": []}

    async def tool(self, params: protocol.ToolCall) -> dict[str, Any]:
        """The model calls a tool."""
        place = await self._place(params.directory)
        tool = find_tool(params.name)
        if tool is None:
            return {"output": f"There is no tool {params.name}.", "title": "", "metadata": {}}
        call = Call(
            app=place.app,
            viewer=place.viewer(params.session),
            message=None if params.message is None else MessageId(params.message),
            agent=params.agent,
            tool=params.name,
        )
        answer = await run_tool(tool, params.arguments, call)
        self._changed()
        return {"output": answer.text, "title": answer.title, "metadata": {"failed": answer.failed}}

    async def event(self, params: protocol.Event) -> None:
        """Something happened: keep it as evidence."""
        place = await self._place(params.directory)
        if not place.app.settings.archive.enabled:
            return
        properties = params.properties
        match params.type:
            case "session.created" | "session.updated":
                await self._session(place, properties)
            case "session.deleted":
                await self._session_deleted(place, properties)
            case "session.idle":
                await self._catch_up(place, properties.get("sessionID"), child=params.child)
            case "session.compacted":
                await place.app.blocks.renew_snapshot(SessionId(str(properties.get("sessionID"))))
            case "message.updated":
                await self._message(place, properties, child=params.child)
            case "message.part.updated":
                await self._part(place, properties, child=params.child)
            case "message.removed":
                await place.app.conversations.message_removed(MessageId(str(properties.get("messageID"))))
            case "message.part.removed":
                await place.app.conversations.part_removed(PartId(str(properties.get("partID"))))

    async def _place(self, directory: str) -> Place:
        if directory not in self._places:
            folder = Path(directory)
            resolved = load(env=os.environ, project_root=project_root(folder))
            for warning in resolved.warnings:
                log.warning("event=setting_ignored directory=%s reason=%s", directory, warning)
            app = self._app.with_settings(resolved.settings)
            project = await app.project(folder)
            self._places[directory] = Place(app=app, directory=directory, project=project.id)
        return self._places[directory]

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
            message = to_message(info, [], child=child, now=place.app.clock.now())
        if message is not None and message.session not in self._helpers:
            await place.app.conversations.take_messages([message])

    async def _part(self, place: Place, properties: Mapping[str, Any], *, child: bool) -> None:
        item = properties.get("part")
        if not isinstance(item, Mapping) or item.get("sessionID") in self._helpers:
            return
        part = to_part(item, untyped=child)
        message, session = item.get("messageID"), item.get("sessionID")
        if part is not None and isinstance(message, str) and isinstance(session, str):
            await place.app.conversations.take_part(part, message=MessageId(message), session=SessionId(session))

    async def _catch_up(self, place: Place, session: object, *, child: bool) -> None:
        """Once for each session and process: take the whole history, since events before this process were missed."""
        if not isinstance(session, str) or session in self._seen or session in self._helpers:
            return
        history = await self._ask("host.messages", {"directory": place.directory, "session": session})
        if not isinstance(history, list):
            return
        now = place.app.clock.now()
        messages = [
            to_message(item.get("info") or {}, item.get("parts") or [], child=child, now=now)
            for item in history
            if isinstance(item, Mapping)
        ]
        await place.app.conversations.take_messages([message for message in messages if message is not None])
        self._seen.add(SessionId(session))

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
            temporary = folder / f"{HANDSHAKE_FILE}.{os.getpid()}"
            temporary.write_text(json.dumps(note), encoding="utf-8")
            temporary.replace(folder / HANDSHAKE_FILE)
        except (OSError, BackstoryError) as error:
            log.warning("event=handshake_not_noted reason=%s", error)
