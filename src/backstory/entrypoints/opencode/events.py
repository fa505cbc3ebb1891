"""What happens in OpenCode, kept as evidence: its events, and what was said before this process could hear them."""

from __future__ import annotations

import logging
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Mapping
from datetime import timedelta
from functools import partial
from typing import Any

import anyio.to_thread

from backstory.domain.conversation import Message, Role
from backstory.domain.ids import MessageId, PartId, SessionId
from backstory.entrypoints.opencode import protocol
from backstory.entrypoints.opencode.dreams import DreamHooks
from backstory.entrypoints.opencode.helpers import Ask, HelperSessions
from backstory.entrypoints.opencode.histories import HistoryHooks
from backstory.entrypoints.opencode.host_messages import to_message, to_part, to_session
from backstory.entrypoints.opencode.prompts import PromptHooks
from backstory.entrypoints.opencode.requests import RequestHooks
from backstory.entrypoints.opencode.waits import EVENT_WAIT
from backstory.entrypoints.places import Place, Places
from backstory.errors import StoreUnavailable

log = logging.getLogger(__name__)

MAX_ROLES = 2000
CATCH_UP_BATCH = 20  # messages cleaned and stored before requests get their turn

GiveWay = Callable[[], Awaitable[None]]


class EventHooks:
    """Events of all folders, taken one after another. ``ask`` puts a question to the plugin; ``changed`` is told when
    there may be something to embed; ``give_way`` lets requests go first."""

    def __init__(
        self, places: Places, prompts: PromptHooks, requests: RequestHooks, histories: HistoryHooks,
        dreams: DreamHooks, helpers: HelperSessions, *, ask: Ask, changed: Callable[[], None], give_way: GiveWay,
    ) -> None:  # fmt: skip
        self._places = places
        self._prompts = prompts
        self._requests = requests
        self._histories = histories
        self._dreams = dreams
        self._helpers = helpers
        self._ask = ask
        self._changed = changed
        self._give_way = give_way
        self._seen: set[SessionId] = set()
        self._roles: OrderedDict[str, Role] = OrderedDict()
        self._store_takes_events = True

    async def event(self, params: protocol.Event) -> None:
        """Something happened: keep it as evidence.

        A busy store is waited for. What could not be kept all the same is caught up when its session is next idle.
        """
        try:
            with self._places.waiting(EVENT_WAIT if self._store_takes_events else timedelta(0)):
                await self._event(params)
        except StoreUnavailable:
            self._store_takes_events = False  # the next ones are tried, but do not pile up meanwhile
            self._seen.discard(_session_of(params.properties))
            raise
        self._store_takes_events = True

    async def _event(self, params: protocol.Event) -> None:
        place = await self._places.place(params.directory)
        properties = params.properties
        if params.type == "session.compacted":
            await self._requests.compacted(place, str(properties.get("sessionID")))
        if params.type == "session.idle":
            await self._prompts.withdraw_unawaited(place)
        if not place.app.settings.archive.enabled:
            return
        match params.type:
            case "session.created" | "session.updated":
                await self._session(place, properties)
            case "session.deleted":
                await self._session_deleted(place, properties)
            case "session.idle":
                await self._catch_up(place, properties.get("sessionID"), child=params.child)
                self._histories.idle(place, SessionId(str(properties.get("sessionID"))))
                await self._idle(place, properties.get("sessionID"))
                self._changed()  # what was said in the turn is embedded now that nobody waits
            case "message.updated":
                await self._message(place, properties, child=params.child)
            case "message.part.updated":
                await self._part(place, properties, child=params.child)
            case "message.removed":
                message = MessageId(str(properties.get("messageID")))
                await place.app.conversations.message_removed(message)
                await self._histories.removed(place, _session_of(properties), [message])
            case "message.part.removed":
                await place.app.conversations.part_removed(PartId(str(properties.get("partID"))))
                if isinstance(owner := properties.get("messageID"), str):  # what was made from it is made anew
                    await self._histories.removed(place, _session_of(properties), [MessageId(owner)])

    async def _idle(self, place: Place, session: object) -> None:
        """A turn has ended: what was said in it is distilled later."""
        if isinstance(session, str) and session not in self._helpers:
            await self._dreams.idle(place, SessionId(session))

    async def _session(self, place: Place, properties: Mapping[str, Any]) -> None:
        info = properties.get("info")
        if not isinstance(info, Mapping):
            return
        self._helpers.note_session(info)
        session = to_session(info, project=place.project, directory=place.directory, now=place.app.clock.now())
        if session is not None and session.id not in self._helpers:
            await place.app.conversations.take_session(session)

    async def _session_deleted(self, place: Place, properties: Mapping[str, Any]) -> None:
        info = properties.get("info")
        session_id = info.get("id") if isinstance(info, Mapping) else properties.get("sessionID")
        if isinstance(session_id, str) and session_id not in self._helpers:
            await place.app.conversations.session_deleted(SessionId(session_id), at=place.app.clock.now())

    async def _message(self, place: Place, properties: Mapping[str, Any], *, child: bool) -> None:
        info = properties.get("info")
        message = None
        if isinstance(info, Mapping):
            self._helpers.note_message(info)
            message = to_message(info, None, child=child, now=place.app.clock.now())
        if message is not None and message.session not in self._helpers:
            self._roles[message.id] = message.role
            if len(self._roles) > MAX_ROLES:
                self._roles.popitem(last=False)
            await place.app.conversations.take_messages([message])
            if message.role is Role.USER:
                self._dreams.spoken(message.session, at=message.created_at)

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
        for item in history:
            if isinstance(item, Mapping) and isinstance(item.get("info"), Mapping):
                self._helpers.note_message(item["info"])
        if session in self._helpers:
            return
        messages = await anyio.to_thread.run_sync(partial(self._read_history, place, history, child=child))
        for start in range(0, len(messages), CATCH_UP_BATCH):
            await self._give_way()
            await place.app.conversations.take_messages(messages[start : start + CATCH_UP_BATCH])
        missing = await place.app.conversations.mark_missing(SessionId(session), messages)
        await self._histories.removed(place, SessionId(session), missing)
        self._seen.add(SessionId(session))

    def _read_history(self, place: Place, history: list[Any], *, child: bool) -> list[Message]:
        now = place.app.clock.now()
        read = (
            to_message(item.get("info"), item.get("parts"), child=child, now=now)
            for item in history
            if isinstance(item, Mapping)
        )
        return [message for message in read if message is not None]


def _session_of(properties: Mapping[str, Any]) -> SessionId:
    """The session an event tells of; empty if it does not say."""
    places = (properties, properties.get("info"), properties.get("part"))
    named = (place.get("sessionID") for place in places if isinstance(place, Mapping))
    return SessionId(next((name for name in named if isinstance(name, str)), ""))
