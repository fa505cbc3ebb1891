"""The request to distil a stretch of a conversation into memories; its fixed words are in ``dream.md``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from backstory.domain.dreaming_known import known_line
from backstory.domain.memory import Memory
from backstory.prompts.prompt import Prompt, words

VERSION = "dream/1"

_ITEMS: Mapping[str, object] = {"type": "array", "items": {"type": "integer"}}
_NEW: Mapping[str, object] = {
    "type": "object",
    "properties": {
        "text": {"type": "string"},
        "type": {"type": "string"},
        "scope": {"type": "string", "enum": ["project", "global"]},
        "confidence": {"type": "number"},
        "sources": _ITEMS,
    },
    "required": ["text", "type", "scope", "confidence", "sources"],
    "additionalProperties": False,
}
_UPDATE: Mapping[str, object] = {
    "type": "object",
    "properties": {"id": {"type": "string"}, "text": {"type": "string"}, "sources": _ITEMS},
    "required": ["id", "text", "sources"],
    "additionalProperties": False,
}
_CONFLICT: Mapping[str, object] = {
    "type": "object",
    "properties": {"id": {"type": "string"}, "evidence": {"type": "string"}},
    "required": ["id", "evidence"],
    "additionalProperties": False,
}
SCHEMA: Mapping[str, object] = {
    "type": "object",
    "properties": {
        "new": {"type": "array", "items": _NEW},
        "update": {"type": "array", "items": _UPDATE},
        "delete": {"type": "array", "items": {"type": "string"}},
        "conflicts": {"type": "array", "items": _CONFLICT},
    },
    "required": ["new", "update", "delete", "conflicts"],
    "additionalProperties": False,
}


def dream_prompt(conversation: str, *, known: Sequence[Memory]) -> Prompt:
    """Ask for proposals about a stretch (``dreaming.shown_talk``); ``known`` are the memories shown with it."""
    memories = [known_line(memory) for memory in known] or ["(none)"]
    text = "\n".join(
        [
            "<memories>",
            *memories,
            "</memories>",
            "<conversation>",
            conversation,
            "</conversation>",
            "What is to be kept of this conversation? Only the JSON object.",
        ]
    )
    return Prompt(version=VERSION, system=words("dream"), text=text, schema=SCHEMA)
