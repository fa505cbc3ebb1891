"""The request to sum up memories for the beginning of a session; its fixed words are in ``dream_summary.md``."""

from __future__ import annotations

from collections.abc import Sequence

from backstory.domain.reranking import numbered
from backstory.prompts.prompt import Prompt, words

VERSION = "dream_summary/1"


def dream_summary_prompt(memories: Sequence[str]) -> Prompt:
    """Ask for the summary of some memories' texts, which are outside text and come quoted."""
    text = "\n".join(["<memories>", numbered(memories), "</memories>", "Summary:"])
    return Prompt(version=VERSION, system=words("dream_summary"), text=text)
