"""What happens when an agent calls by a hook: what goes before its model, and what is kept once it has its answer.

The same services answer as for OpenCode; nothing here needs an event loop.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass
from datetime import timedelta

from backstory.bootstrap import App
from backstory.domain.ids import ProjectId
from backstory.domain.scope import Audience, Viewer
from backstory.entrypoints.agents.calls import Event, HookCall
from backstory.errors import StoreError
from backstory.services.wishes import Prompt

log = logging.getLogger(__name__)

STORE_SHARE = 0.5
"""Of the deadline, for which a busy store is waited for; the rest is for everything else."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Folder:
    """Where an agent works: the application under that folder's settings, and its project."""

    app: App
    project: ProjectId

    def viewer(self, call: HookCall) -> Viewer:
        """The model of the agent that calls."""
        return Viewer(project=self.project, session=call.session, audience=Audience.MODEL)


async def folder_of(app: App, call: HookCall) -> Folder:
    """The folder in which an agent calls. Raises StoreError."""
    return Folder(app=app, project=(await app.project(call.directory)).id)


async def answer(app: App, call: HookCall) -> str | None:
    """The text that goes before the model, or None.

    The same call again gets the same text and stores nothing more. A prompt whose wish cannot be stored says so; of
    all else, a store that fails takes nothing but the text. A sub-agent's calls get nothing.
    """
    if call.is_subagent or call.event not in (Event.PROMPT, Event.SESSION_START, Event.PRE_COMPACT):
        return None
    with app.waiting(timedelta(milliseconds=app.settings.context.deadline_ms) * STORE_SHARE):
        try:
            folder = await folder_of(app, call)
            return await _answer(folder, call)
        except StoreError as error:
            log.warning("event=hook_without_store session=%s reason=%s", call.session, error)
            return app.prompts.without_store(_prompt(call)) if call.event is Event.PROMPT else None


async def _answer(folder: Folder, call: HookCall) -> str | None:
    if call.event is Event.PROMPT:
        return await folder.app.prompts.take(_prompt(call), folder.viewer(call))
    if call.is_renewed or call.event is Event.PRE_COMPACT:
        await folder.app.blocks.renew_snapshot(call.session)
    if call.event is Event.PRE_COMPACT:
        return None
    return await folder.app.blocks.snapshot(folder.viewer(call), session=call.session)


async def keep(app: App, call: HookCall) -> None:
    """Put what was said into the archive, and note that the session may be distilled. What a prompt asks to remember
    is stored now if the store was busy before. Takes as long as it takes, so it is for after the answer. Raises
    StoreError."""
    from backstory.entrypoints.agents.last_calls import note_call

    note_call(call, app.settings.data_dir, now=app.clock.now())
    if call.is_subagent:
        return
    folder = await folder_of(app, call)
    if call.event is Event.PROMPT and app.prompts.asks(_prompt(call)):
        await app.conversations.capture(_prompt(call), folder.viewer(call))
    if not app.settings.archive.enabled:
        return
    from backstory.entrypoints.agents.archive import archive

    await archive(folder, call)
    if call.event is Event.STOP and app.settings.dream.enabled:
        delay = timedelta(milliseconds=app.settings.dream.delay_ms)
        await app.truth.dreaming.note_idle(call.session, delay=delay)


def _prompt(call: HookCall) -> Prompt:
    return Prompt(text=call.text, message=call.message, session=call.session)
