"""The messages of a tree as its files have them, turned into ours and back.

A leaf tells of a message who spoke and what was said; the buffer of those that are in no leaf yet has their parts too.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

from backstory.adapters.formats.js_json import stringify
from backstory.adapters.formats.kept_json import bounded_json
from backstory.adapters.formats.opencode_ids import is_opencode_id, time_of_id
from backstory.adapters.formats.outside_files import Unfit, is_id
from backstory.domain.conversation import Message, Part, Role
from backstory.domain.ids import MessageId, PartId, SessionId

Json = Mapping[str, Any]
_SAID = frozenset({"text", "reasoning"})
_STANDARD = ("role", "content", "original_id", "_span", "_parts")
_EARLIEST_MS, _LATEST_MS = 1_577_836_800_000, 4_102_444_800_000  # 2020 to 2100: others are no times
_STEP = timedelta(milliseconds=1)
_ROLES = {role.value: role for role in (Role.USER, Role.ASSISTANT, Role.SYSTEM)}


@dataclass(frozen=True, slots=True, kw_only=True)
class Item:
    """A message before it has a time: its ``parts``, and what its record says that they do not (``beside``)."""

    id: MessageId
    role: Role
    parts: tuple[Part, ...]
    at: datetime | None = None
    beside: dict[str, Any] = field(default_factory=dict)


def leaf_item(told: Json, derived: str) -> Item:
    """A message of a leaf's details. ``derived`` is its id where it names none."""
    name, beside = _name(told, derived)
    content = told.get("content")
    parts = (_spoken(name, content),) if isinstance(content, str) and content else ()
    return Item(id=name, role=_role(told, beside), parts=parts, beside=beside)


def buffer_item(told: Json, derived: str) -> Item:
    """A message of the buffer that stands for no node."""
    name, beside = _name(told, derived)
    role = _role(told, beside)
    raw, content = told.get("_parts"), told.get("content")
    listed = [item for item in raw if isinstance(item, Mapping)] if isinstance(raw, list) else []
    if listed:
        parts = tuple(_part(item, part_id) for item, part_id in zip(listed, _part_ids(name, listed), strict=True))
    else:
        parts = (_spoken(name, content),) if isinstance(content, str) and content else ()
    if isinstance(content, str) and content != _said(parts):
        beside["content"] = content
    keys = tuple(told)
    if keys != _STANDARD:
        beside["keys"] = list(keys)
    more = {key: value for key, value in told.items() if key not in _STANDARD}
    if told.get("_span") != 1 and "_span" in told:
        more["_span"] = told["_span"]
    if more:
        beside["more"] = more
    return Item(id=name, role=role, parts=parts, at=_time(listed), beside=beside)


def timed(items: Sequence[Item], *, session: SessionId, started: datetime, before: datetime) -> list[Message]:
    """The messages of a session in their order, the first not before ``started``. A store tells times of few of them:
    any other was said right after the one before it."""
    messages: list[Message] = []
    moment = started
    for item in items:
        known = time_of_id(item.id, before=before) or item.at
        moment = max(moment, known) if known is not None else moment
        messages.append(
            Message(
                id=item.id, session=session, role=item.role, created_at=moment, completed_at=moment, parts=item.parts
            )
        )
        moment += _STEP
    return messages


def detail_record(message: Message, beside: Json) -> dict[str, Any]:
    """A message as a leaf's details have it."""
    record = {"role": beside.get("role", message.role.value), "content": _said(message.parts)}
    return record if beside.get("anonymous") else {**record, "original_id": message.id}


def buffer_record(message: Message, beside: Json) -> dict[str, Any]:
    """A message as the buffer has it."""
    more = beside.get("more", {})
    known: dict[str, Any] = {
        "role": beside.get("role", message.role.value),
        "content": beside.get("content", _said(message.parts)),
        "original_id": message.id,
        "_span": 1,
        "_parts": [_raw_part(part, message) for part in message.parts],
        **(more if isinstance(more, Mapping) else {}),
    }
    keys = beside.get("keys")
    return {key: known[key] for key in keys if key in known} if isinstance(keys, list) else known


def _name(told: Json, derived: str) -> tuple[MessageId, dict[str, Any]]:
    name = told.get("original_id")
    known = isinstance(name, str) and is_id(name)
    return (MessageId(str(name)), {}) if known else (MessageId(derived), {"anonymous": True})


def _role(told: Json, beside: dict[str, Any]) -> Role:
    word = told.get("role")
    role = _ROLES.get(word) if isinstance(word, str) else Role.USER
    if role is None:  # a tool's result in a message of its own
        beside["role"] = word
        return Role.ASSISTANT
    return role


def _said(parts: Sequence[Part]) -> str:
    """The texts of parts as the plugin joins them: what was said and thought, no tool's answers."""
    return "\n".join(part.text for part in parts if part.kind in _SAID or "text" in _frame(part))


def _spoken(message: MessageId, content: str) -> Part:
    return Part(id=PartId(f"{message}-000"), kind="text", text=content)


def _part_ids(message: MessageId, listed: Sequence[Json]) -> list[PartId]:
    """The host's ids, as long as they keep the parts in order; the ids of parts are their order here."""
    told = [item.get("id") for item in listed]
    names = [name for name in told if isinstance(name, str) and is_opencode_id(name, "prt")]
    if len(names) == len(told) and names == sorted(set(names)):
        return [PartId(name) for name in names]
    return [PartId(f"{message}-{number:03d}") for number in range(len(told))]


def _part(told: Json, part_id: PartId) -> Part:
    kind = told.get("type") if isinstance(told.get("type"), str) and told.get("type") else "unknown"
    state, tool = told.get("state"), told.get("tool")
    frame, text = dict(told), told.get("text")
    if isinstance(text, str):
        frame["text"] = ""
    if kind == "tool" and isinstance(state, Mapping):
        output = state.get("output")
        if isinstance(output, str):
            frame["state"] = {**state, "output": ""}
        answered = output or state.get("error")
        text = answered if not isinstance(text, str) and isinstance(answered, str) else text
    return Part(
        id=part_id,
        kind=str(kind),
        text=text if isinstance(text, str) else "",
        tool=tool if kind == "tool" and isinstance(tool, str) and tool else None,
        synthetic=told.get("synthetic") is True or told.get("ignored") is True,
        detail=stringify(frame),
    )


def _raw_part(part: Part, message: Message) -> dict[str, Any]:
    """A part as its host told it: as it stood in the buffer, or put together from what we keep of it."""
    frame = _frame(part)
    if "type" not in frame:
        frame = {"id": part.id, "sessionID": message.session, "messageID": message.id, "type": part.kind, **frame}
        if part.kind in _SAID:
            frame["text"] = ""
        elif part.tool is not None and isinstance(frame.get("state"), Mapping) and "error" not in frame["state"]:
            state = frame["state"]
            asked = {key: state[key] for key in ("status", "input") if key in state}
            frame["state"] = {**asked, "output": "", **{key: state[key] for key in state if key not in asked}}
    if "text" in frame:
        frame["text"] = part.text
    elif isinstance(frame.get("state"), Mapping) and "output" in frame["state"]:
        frame["state"] = {**frame["state"], "output": part.text}
    return frame


def _frame(part: Part) -> dict[str, Any]:
    if part.detail is None:
        return {}
    try:
        frame = bounded_json(part.detail)
    except Unfit:
        return {}
    return dict(frame) if isinstance(frame, dict) else {}


def _time(listed: Sequence[Json]) -> datetime | None:
    """The first time that parts tell of."""
    found = (time for item in listed for time in (item.get("time"), _time_of(item.get("state"))))
    starts: list[Any] = [time.get("start") for time in found if isinstance(time, Mapping)]
    known = [moment for moment in starts if _is_moment(moment)]
    return datetime.fromtimestamp(min(known) / 1000, UTC) if known else None


def _time_of(state: object) -> object:
    return state.get("time") if isinstance(state, Mapping) else None


def _is_moment(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and _EARLIEST_MS <= value <= _LATEST_MS


def details_text(records: Sequence[Json]) -> str:
    """The details of a leaf: JSON on one line."""
    return stringify(list(records))


def parsed_details(text: str) -> list[Json] | None:
    """The messages of a leaf; None where its details are no list of messages."""
    try:
        found = bounded_json(text)
    except Unfit:
        return None
    return found if isinstance(found, list) and all(isinstance(item, dict) for item in found) else None
