"""The question which new facts say what is known already; its fixed words are in ``dream_duplicates.md``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from backstory.domain.reranking import numbered
from backstory.prompts.prompt import Prompt, words

VERSION = "dream_duplicates/1"

SCHEMA: Mapping[str, object] = {
    "type": "object",
    "properties": {"duplicates": {"type": "array", "items": {"type": "integer"}}},
    "required": ["duplicates"],
    "additionalProperties": False,
}


def dream_duplicates_prompt(new: Sequence[str], *, known: Sequence[str]) -> Prompt:
    """Ask about the new texts, numbered from 1 in their order. All of them are outside text and come quoted."""
    text = "\n".join(
        [
            "<known>",
            numbered(known),
            "</known>",
            "<new>",
            numbered(new),
            "</new>",
            "Which of the new notes are not needed? Only the JSON object.",
        ]
    )
    return Prompt(version=VERSION, system=words("dream_duplicates"), text=text, schema=SCHEMA)
