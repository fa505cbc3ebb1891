"""The options of distilling: when a session becomes facts, and how many of them are kept."""

from __future__ import annotations

from dataclasses import dataclass

from backstory.config.options import Group, option


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class DreamSettings(Group):
    """Distilling facts from a session once it is idle."""

    enabled: bool = option(
        True,
        aliases=("OPENCODE_MEMORY_DREAM",),
        project="off-only",
        help="Whether idle sessions are distilled into facts: by the language model, or without one by rules that keep"
        " fewer and surer ones. Needs `archive.enabled`.",
    )
    delay_ms: int = option(
        90_000,
        minimum=0,
        maximum=86_400_000,
        unit="milliseconds",
        aliases=("OPENCODE_MEMORY_DELAY_MS",),
        project="never",
        help="How long a session must be idle first. What was idle when its process ended is distilled at a later"
        " start.",
    )
    transcript_chars: int = option(
        12_000,
        minimum=1_000,
        maximum=200_000,
        unit="characters",
        project="safe",
        help="How much of a conversation is read at once; a longer one is read in several parts.",
    )
    sweep_batch: int = option(
        8,
        minimum=1,
        maximum=1_000,
        unit="sessions",
        project="never",
        help="How many sessions that were left undone are distilled at a start.",
    )
    summary: bool = option(
        True,
        aliases=("OPENCODE_MEMORY_SUMMARY",),
        project="off-only",
        help="Whether a summary of the project's memories is kept and offered at the start of a session. It is hidden,"
        " not deleted, while this is off.",
    )
    max_facts: int = option(
        400,
        minimum=1,
        maximum=100_000,
        unit="memories",
        project="never",
        help="How many distilled facts a project keeps; the least useful go first. What a person or an agent stored is"
        " never counted.",
    )
