"""What there is, in numbers, and a project's summaries: as lines for people and as JSON."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from backstory.codecs.record import format_time
from backstory.entrypoints.counted import counted, memories_counted
from backstory.entrypoints.local_time import shown_day
from backstory.entrypoints.render import Line, state_word
from backstory.entrypoints.shapes import Shape

if TYPE_CHECKING:
    from backstory.domain.dream_state import Summary
    from backstory.domain.overview import Overview


def overview_lines(told: Overview, by_state: Mapping[str, int], summaries: Sequence[Summary] | None) -> Iterator[Line]:
    """Counts of what is in sight; ``summaries`` None where they are switched off."""
    yield f"{memories_counted(told.memories)} in sight, about {counted(told.tokens, 'token')}", "strong"
    for name, counts in (
        ("state", {state_word(state): count for state, count in by_state.items() if count}),
        ("source", told.by_source),
        ("scope", told.by_visibility),
        ("tier", told.by_tier),
        ("kind", told.by_kind),
    ):
        yield f"  {name:<8} {listed(counts) or 'none'}", "plain"
    yield f"  pinned   {told.pinned}", "plain"
    yield f"  private  {told.private}", "plain"
    yield f"  shown    {told.surfaced} of {told.memories} stood beside a prompt at least once", "plain"
    yield f"  summary  {summary_size(summaries)}", "plain"


def overview_shape(told: Overview, by_state: Mapping[str, int], summaries: Sequence[Summary] | None) -> Shape:
    """Counts of what is in sight; ``summary_chars`` is null where summaries are switched off."""
    return {
        "memories": told.memories,
        "by_state": dict(by_state),
        "by_source": dict(told.by_source),
        "by_visibility": dict(told.by_visibility),
        "by_tier": dict(told.by_tier),
        "by_kind": dict(told.by_kind),
        "pinned": told.pinned,
        "private": told.private,
        "shown": told.surfaced,
        "tokens": told.tokens,
        "summary_chars": None if summaries is None else sum(len(summary.text) for summary in summaries),
    }


def summary_lines(summaries: Sequence[Summary] | None) -> Iterator[Line]:
    """What the memories come to, of the project and of what holds everywhere."""
    for summary in summaries or ():
        place = "Everywhere" if summary.project is None else "This project"
        yield (
            f"{place}, summed up on {shown_day(summary.created_at)} from {memories_counted(len(summary.sources))}",
            "strong",
        )
        yield summary.text, "plain"
        yield "", "plain"


def summaries_shape(summaries: Sequence[Summary] | None) -> list[Shape]:
    """Summaries as they are offered."""
    return [
        {
            "project": summary.project,
            "text": summary.text,
            "derived_from": list(summary.sources),
            "made_by": summary.made_by,
            "created_at": format_time(summary.created_at),
        }
        for summary in summaries or ()
    ]


def listed(counts: Mapping[str, int]) -> str:
    """Counts in one line: ``3 explicit, 1 dreamed``."""
    return ", ".join(f"{count} {name}" for name, count in counts.items())


def summary_size(summaries: Sequence[Summary] | None) -> str:
    """How long the summaries are, or that there are none."""
    if summaries is None:
        return "switched off"
    chars = sum(len(summary.text) for summary in summaries)
    return f"{chars} characters" if chars else "none yet"
