"""Claude Code's hooks: their JSON on standard input, and the JSON that it takes back (read from its documentation)."""

from __future__ import annotations

import os
from pathlib import Path

from backstory.domain.ids import SessionId
from backstory.entrypoints.agents.calls import Event, HookCall, Payload, directory, made_id, named, path, said

AGENT = "claude-code"
EVENTS = {
    Event.PROMPT: "UserPromptSubmit",
    Event.SESSION_START: "SessionStart",
    Event.STOP: "Stop",
    Event.PRE_COMPACT: "PreCompact",
    Event.SESSION_END: "SessionEnd",
}
PROJECT = "CLAUDE_PROJECT_DIR"
"""The variable that names the folder in which Claude Code was started, while ``cwd`` follows its shell."""

_RENEWED = ("compact", "clear")


class ClaudeCodeFormat:
    """See ``HookFormat``. ``project`` is the folder that ``CLAUDE_PROJECT_DIR`` names, if it is set."""

    def __init__(self, project: str = "") -> None:
        self._project = project

    def read(self, event: Event, payload: Payload) -> HookCall:
        """See ``HookFormat``."""
        session = named(payload, "session_id")
        prompt = said(payload, "prompt")
        transcript = path(payload, "transcript_path")
        # older versions give a prompt no id; how far the transcript had come tells two equal prompts apart
        turn = said(payload, "prompt_id") or _size(transcript)
        return HookCall(
            event=event,
            agent=AGENT,
            session=SessionId(session),
            message=made_id(session, turn, prompt),
            directory=self._folder(payload),
            text=prompt,
            answer=said(payload, "last_assistant_message"),
            transcript=transcript,
            is_subagent=bool(said(payload, "agent_id")),
            is_renewed=payload.get("source") in _RENEWED,
        )

    def write(self, event: Event, text: str | None) -> dict[str, object]:
        """See ``HookFormat``. An empty object lets Claude Code go on as if there were no hook."""
        if not text or event not in (Event.PROMPT, Event.SESSION_START):
            return {}
        return {"hookSpecificOutput": {"hookEventName": EVENTS[event], "additionalContext": text}}

    def _folder(self, payload: Payload) -> Path:
        if self._project and Path(self._project).is_absolute():
            return Path(self._project)
        return directory(payload, "cwd")


def _size(transcript: Path | None) -> str:
    try:
        return str(os.stat(transcript).st_size) if transcript is not None else ""  # noqa: PTH116 - one call
    except OSError:
        return ""
