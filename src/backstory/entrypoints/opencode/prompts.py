"""A prompt on its way to the model: what it asks to remember, and what goes beside it."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import anyio

from backstory.bootstrap import App
from backstory.domain.history import Author
from backstory.domain.ids import MessageId, SessionId
from backstory.domain.markup import unwrap
from backstory.entrypoints.opencode import protocol
from backstory.entrypoints.opencode.helpers import HELPER
from backstory.entrypoints.opencode.unkept import Unkept
from backstory.entrypoints.opencode.waits import (
    FIRST_PROMPT_WITHIN_S,
    PROMPT_SHARE,
    WISH_WAIT,
    WITHHELD_WAIT,
    TooLate,
    within,
)
from backstory.entrypoints.places import Place, Places
from backstory.errors import StoreError, StoreUnavailable
from backstory.services.conversation import Captured, Prompt

log = logging.getLogger(__name__)


class PromptHooks:
    """Prompts of all folders. ``changed`` is told when memories may need embedding."""

    def __init__(self, places: Places, *, changed: Callable[[], None]) -> None:
        self._places = places
        self._changed = changed
        self._began = time.monotonic()
        self._greeted = False
        self._answering: dict[str, bool] = {}  # user message -> whether the plugin has given up on its answer
        self._unawaited: set[MessageId] = set()  # answered without the store, which may have frozen something since
        self.unkept = Unkept(self._capture)

    def greeted(self) -> None:
        """The plugin has had a first answer, so no prompt is given a start's time any more."""
        self._greeted = True

    async def chat_message(self, params: protocol.ChatMessage) -> dict[str, Any]:
        """What goes beside a user's message. A sub-agent's messages get nothing; a setting lets them be captured.

        A busy store is waited for until half of the deadline is over, and one that does not answer until most of it
        is; what it could not take is tried again later.
        """
        app = self._places.app_in(params.directory)
        if params.agent == HELPER or (params.child and not app.settings.opencode.subagents):
            return {"block": None}
        prompt = self._prompt(params)
        self._answering[params.message] = False
        try:
            with self._places.waiting(timedelta(milliseconds=app.settings.context.deadline_ms) / 2):
                block = await within(self._patience_s(app), self._take(prompt, params))
        except StoreError as error:
            log.warning("event=prompt_without_store session=%s reason=%s", params.session, error)
            block = None if params.child else app.prompts.without_store(prompt)
            if isinstance(error, StoreUnavailable) and app.conversations.asks(prompt):
                self.unkept.add(params.directory, prompt)
            if isinstance(error, TooLate):  # no time is left to ask for anything else
                self._unawaited.add(prompt.message)
                return {"block": block, "withheld": []}
        finally:
            self._answering.pop(params.message, None)
        self._changed()
        return {"block": block, "withheld": await self._withheld(app, prompt.session)}

    def _prompt(self, params: protocol.ChatMessage) -> Prompt:
        untold = () if params.child else self._places.untold_faults(params.directory)
        notes = () if params.child else self.unkept.notes(params.session)
        return Prompt(
            text=unwrap(params.text),  # `opencode run` puts quotes around a prompt
            message=MessageId(params.message),
            session=SessionId(params.session),
            agent=params.agent,
            typed=params.typed,
            author=Author.AGENT if params.child else Author.USER,
            notes=(*untold, *notes),
        )

    def _patience_s(self, app: App) -> float:
        """How long a prompt may take: most of what the plugin waits, which is more until this process has answered."""
        patience_s = PROMPT_SHARE * app.settings.context.deadline_ms / 1000
        if self._greeted:
            return patience_s
        return max(patience_s, self._began + FIRST_PROMPT_WITHIN_S - time.monotonic())

    async def _withheld(self, app: App, session: SessionId) -> list[MessageId]:
        """Those of a session, or none where that takes long: the next prompt asks again."""
        with self._places.waiting(WITHHELD_WAIT), anyio.move_on_after(WITHHELD_WAIT.total_seconds()):
            return await app.blocks.withheld(session)
        return []

    async def _take(self, prompt: Prompt, params: protocol.ChatMessage) -> str | None:
        place = await self._places.place(params.directory)
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
        with self._places.waiting(WISH_WAIT):
            place = await self._places.place(directory)
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
        place = await self._places.place(params.directory)
        await place.app.blocks.withdraw(MessageId(params.message))

    async def withdraw_unawaited(self, place: Place) -> None:
        """Empty what the store froze for prompts that had gone on without it."""
        while self._unawaited:
            await place.app.blocks.withdraw(self._unawaited.pop())
