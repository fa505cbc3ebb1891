"""The calls of ``backstory hook``: a warm server answers sooner, and with meaning. See ``entrypoints/agents``."""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass

from starlette.background import BackgroundTask

from backstory.bootstrap import App
from backstory.entrypoints.agents.calls import GENERIC, HookCall, Payload, event_of
from backstory.entrypoints.agents.claude_code import AGENT as CLAUDE_CODE
from backstory.entrypoints.agents.events import answer, keep
from backstory.entrypoints.agents.hook import format_of
from backstory.entrypoints.http.folders import Folders
from backstory.entrypoints.http.problems import Problem
from backstory.errors import BackstoryError

log = logging.getLogger(__name__)

_FOLDER = {GENERIC: "directory", CLAUDE_CODE: "cwd"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Hooked:
    """What goes back, in the agent's own form, and what is done after that."""

    response: dict[str, object]
    afterwards: BackgroundTask


async def answer_hook(
    folders: Folders, word: str, agent: str, payload: object, *, changed: Callable[[], None]
) -> Hooked:
    """The answer to one call. The folder must be told: this process is in none. Raises Problem, BackstoryError."""
    event, told = event_of(word), format_of(agent, {})
    call = told.read(event, _checked(payload, _FOLDER[agent]))
    desk = await folders.desk(str(call.directory), call.session)
    text = await answer(desk.app, call)
    return Hooked(response=told.write(event, text), afterwards=BackgroundTask(_keep, desk.app, call, changed))


def _checked(payload: object, folder: str) -> Payload:
    if not isinstance(payload, dict):
        raise Problem(kind="invalid", detail="The body must be an object", name="body")
    if not payload.get(folder):
        raise Problem(kind="invalid", detail=f"{folder}: the folder that the agent works in is missing", name=folder)
    return payload


async def _keep(app: App, call: HookCall, changed: Callable[[], None]) -> None:
    """The outer loop of a job: nobody waits for it, so the log alone is told."""
    try:
        await keep(app, call)
    except BackstoryError as error:
        log.error("event=hook_not_kept session=%s reason=%s", call.session, error)
    except Exception:
        log.exception("event=hook_not_kept session=%s", call.session)
    changed()
