"""The question which of some memories help with a prompt; its fixed words are in ``rerank.md``."""

from __future__ import annotations

from collections.abc import Sequence

from backstory.domain.reranking import QUESTION_MAX_CHARS, SCHEMA, numbered, quoted
from backstory.prompts.prompt import Prompt, words

VERSION = "rerank/1"


def rerank_prompt(question: str, notes: Sequence[str]) -> Prompt:
    """Ask about ``notes``, numbered from 1 in their order. Both are outside text and come quoted."""
    text = "\n".join(
        [
            "<question>",
            quoted(question, max_chars=QUESTION_MAX_CHARS),
            "</question>",
            "<notes>",
            numbered(notes),
            "</notes>",
            "Which of these notes help with the question? Only the JSON object.",
        ]
    )
    return Prompt(version=VERSION, system=words("rerank"), text=text, schema=SCHEMA)
