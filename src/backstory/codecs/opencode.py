"""OpenCode's sessions, messages and parts, as its events, its API and its files tell them, turned into ours.

The shapes are those of OpenCode 1.18. Anything unexpected is left out rather than guessed.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from backstory.domain.conversation import Message, Part, Role, Session
from backstory.domain.ids import MessageId, PartId, ProjectId, SessionId

HOST = "opencode"
HELPER = "backstory-helper"
"""Begins the title of sessions that ask OpenCode's model something for us, and names the agent that answers in them."""

Json = Mapping[str, Any]

_OWN_PART = "prt_backstory_"
_PLAIN_KINDS = frozenset({"text", "reasoning"})
_UNTOLD_KINDS = frozenset({"step-start", "step-finish", "snapshot"})  # bookkeeping of the host, nothing that was said
_HELPER_TITLE = re.compile(
    rf"{HELPER} [a-z0-9_]{{1,40}} [0-9a-f]{{32}}"
)  # as the plugin makes it; people's only begin so


def to_session(
    info: Json, *, project: ProjectId | None, directory: str, now: datetime, host: str = HOST
) -> Session | None:
    """A session from its ``info``; None without an id."""
    session_id = _text(info.get("id"))
    if session_id is None:
        return None
    times = _object(info.get("time"))
    created = moment(times.get("created")) or now
    parent = _text(info.get("parentID"))
    return Session(
        id=SessionId(session_id),
        project=project,
        host=host,
        directory=_text(info.get("directory")) or directory,
        parent=None if parent is None else SessionId(parent),
        title=_text(info.get("title")),
        created_at=created,
        updated_at=moment(times.get("updated")) or created,
    )


def to_message(info: object, parts: object, *, child: bool, now: datetime) -> Message | None:
    """A message from its ``info`` and its list of parts, if that is told; None when it is not one.

    ``child``: the session belongs to a sub-agent, whose user messages no person typed.
    """
    info = _object(info)
    message_id, session_id = _text(info.get("id")), _text(info.get("sessionID"))
    role = _text(info.get("role"))
    if message_id is None or session_id is None or role not in ("user", "assistant"):
        return None
    times = _object(info.get("time"))
    model = _object(info.get("model"))
    untyped = child and role == "user"
    items = parts if isinstance(parts, list) else []
    return Message(
        id=MessageId(message_id),
        session=SessionId(session_id),
        role=Role(role),
        agent=_text(info.get("agent")) or _text(info.get("mode")),
        model=_text(info.get("modelID")) or _text(model.get("modelID")),
        created_at=moment(times.get("created")) or now,
        completed_at=moment(times.get("completed")),
        parts=tuple(part for item in items if (part := to_part(_object(item), untyped=untyped)) is not None),
    )


def to_part(part: Json, *, untyped: bool = False) -> Part | None:
    """A part; None for the host's bookkeeping and for what we added ourselves."""
    part_id, kind = _text(part.get("id")), _text(part.get("type"))
    if part_id is None or kind is None or kind in _UNTOLD_KINDS or part_id.startswith(_OWN_PART):
        return None
    text = _text(part.get("text")) or ""
    tool = _text(part.get("tool")) if kind == "tool" else None
    if tool is not None:
        text = _text(_object(part.get("state")).get("output")) or _text(_object(part.get("state")).get("error")) or ""
    return Part(
        id=PartId(part_id),
        kind=kind,
        text=text,
        tool=tool,
        synthetic=untyped or bool(part.get("synthetic")) or bool(part.get("ignored")),
        detail=None if kind in _PLAIN_KINDS else _detail(part),
    )


def is_helper_titled(info: Json) -> bool:
    """Whether a session's ``info`` has the title of one that only asked something for us."""
    title = info.get("title")
    return isinstance(title, str) and _HELPER_TITLE.fullmatch(title) is not None


def is_helper_message(info: Json) -> bool:
    """Whether a message's ``info`` names our agent."""
    return HELPER in (info.get("agent"), info.get("mode"))


def moment(value: object) -> datetime | None:
    """A time of OpenCode's, which counts milliseconds since 1970; None for anything else."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < 1e14:
        return None
    return datetime.fromtimestamp(value / 1000, tz=UTC)


def _detail(part: Json) -> str:
    """All that is told of a part but its text. Attachments stay in it as data: addresses."""
    told = ("id", "messageID", "sessionID", "type", "text")
    known = {key: value for key, value in part.items() if key not in told}
    state = _object(known.get("state"))
    if "output" in state:  # stands in the part's text already
        known["state"] = {key: value for key, value in state.items() if key != "output"}
    return json.dumps(known, ensure_ascii=False, default=str)


def _text(value: object) -> str | None:
    return value if isinstance(value, str) and value else None


def _object(value: object) -> Json:
    return value if isinstance(value, Mapping) else {}
