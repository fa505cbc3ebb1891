"""What a tool part of an archived message tells: which tool, with what input, and how it ended.

The host's own JSON is read here and nowhere else in the domain. Whatever is not as expected counts as not told.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from backstory.domain.conversation import Part

_UNFINISHED = frozenset({"pending", "running"})
# Ours, and those of the older stores whose data we take over; a host may put the name of the server in front.
_OWN_TOOL = re.compile(
    r"(?:mcp__[\w-]+?__|(?:opencode-)?backstory[_-])?(?:memory_\w+|session_recall|om_\w+|search_memory_tree)"
)

Json = Mapping[str, Any]  # Any: the host's JSON of any shape


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolUse:
    """One call. ``status`` is the host's word, empty if it told none; ``exit_code`` is a shell command's.

    ``output`` and ``error`` are what it answered; ``attached`` names the files that came with the answer.
    """

    name: str
    status: str
    input: Json
    output: str
    error: str
    exit_code: int | None
    attached: tuple[str, ...]

    @property
    def unfinished(self) -> bool:
        """Whether it has no outcome yet."""
        return self.status in _UNFINISHED

    @property
    def failed(self) -> bool:
        """Whether the host, or the command it ran, says that it did not work."""
        return self.status == "error" or bool(self.error) or self.exit_code not in (None, 0)


def tool_use(part: Part) -> ToolUse | None:
    """The call that a part tells of; None for parts of other kinds."""
    if part.kind != "tool" and part.tool is None:
        return None
    detail = part_detail(part)
    state = as_object(detail.get("state"))
    error = as_text(state.get("error"))
    exit_code = as_object(state.get("metadata")).get("exit")
    return ToolUse(
        name=part.tool or as_text(detail.get("tool")) or "tool",
        status=as_text(state.get("status")),
        input=as_object(state.get("input")),
        output="" if part.text == error else part.text,
        error=error,
        exit_code=exit_code if isinstance(exit_code, int) and not isinstance(exit_code, bool) else None,
        attached=tuple(file_label(as_object(item)) for item in as_list(state.get("attachments"))),
    )


def is_own_tool(name: str) -> bool:
    """Whether a tool hands out what we, or a store like us, remember: its results are no new evidence."""
    return _OWN_TOOL.fullmatch(name.lower()) is not None


def part_detail(part: Part) -> Json:
    """The host's part as an object; empty when nothing readable was kept."""
    try:
        return as_object(json.loads(part.detail or "{}"))
    except (ValueError, RecursionError):
        return {}


def file_label(detail: Json) -> str:
    """A file as a placeholder: its name and media type, never its data."""
    source = as_object(detail.get("source"))
    url = as_text(detail.get("url"))
    name = as_text(detail.get("filename")) or as_text(source.get("path"))
    if not name and url and not url.startswith("data:"):
        name = url.split("?", 1)[0].rstrip("/").rsplit("/", 1)[-1]
    mime = as_text(detail.get("mime"))
    return " ".join(filter(None, ["file", name, f"({mime})" if mime else ""]))


def as_object(value: object) -> Json:
    """``value`` if it is a JSON object, else an empty one."""
    return value if isinstance(value, Mapping) else {}


def as_list(value: object) -> Sequence[Any]:
    """``value`` if it is a JSON list, else an empty one."""
    return value if isinstance(value, list) else ()


def as_text(value: object) -> str:
    """``value`` if it is a text, else the empty one."""
    return value if isinstance(value, str) else ""
