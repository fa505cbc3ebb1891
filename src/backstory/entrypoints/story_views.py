"""One memory's whole story and its score taken apart: as lines for people. As JSON it is in ``story_shapes.py``."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import timedelta
from typing import TYPE_CHECKING

from backstory.domain.interchange import imported_from
from backstory.domain.memory import Conflicted, Deleted, Memory, Superseded, Tier, status_name
from backstory.domain.ranking import EVEN_EVIDENCE
from backstory.domain.worth import MOST_WORTH
from backstory.entrypoints.local_time import shown_day, shown_time
from backstory.entrypoints.render import Line, head_of, shortened, state_word

if TYPE_CHECKING:
    from backstory.domain.conversation import Message
    from backstory.domain.history import Change
    from backstory.domain.ids import ProjectId
    from backstory.domain.project import Project
    from backstory.services.explanation import Appraisal
    from backstory.services.inspection import Showing, Story

_QUOTED_CHARS = 400


def story_lines(
    story: Story, appraisal: Appraisal | None, projects: Mapping[ProjectId, Project], here: ProjectId | None
) -> Iterator[Line]:
    """Where a memory comes from, how it stands, what happened to it, and when it was shown and why."""
    memory = story.memory
    yield head_of(memory, projects, here), "strong"
    yield memory.content, "plain"
    yield "", "plain"
    yield from _source_lines(story)
    yield from _standing_lines(story)
    yield "", "plain"
    yield from _worth_lines(story)
    yield "", "plain"
    yield "What happened", "strong"
    for change in story.changes:
        yield f"  {_happened(change)}", "plain"
    yield "", "plain"
    yield from _showing_lines(story)
    if appraisal is not None:
        yield "", "plain"
        yield from appraisal_lines(appraisal)


def _source_lines(story: Story) -> Iterator[Line]:
    memory, source = story.memory, story.memory.provenance
    yield f"Said by {memory.origin.value} on {shown_time(memory.times.learned)}{_occasion(story)}.", "plain"
    for message in story.messages:
        yield from _quoted(message, memory)
    if story.session is not None and (product := imported_from(story.session)):
        yield f"  that session is imported from {product}, not heard here", "faint"
    missing = [name for name in source.messages if name not in {message.id for message in story.messages}]
    if missing:
        yield f"  from messages that are not kept: {', '.join(missing)}", "faint"
    told = [f"by {source.tool}" if source.tool else "", f"agent {source.agent}" if source.agent else ""]
    if source.extracted_at is not None:
        told.append(f"distilled on {shown_day(source.extracted_at)}")
    yield f"  {', '.join(filter(None, [memory.source.value, *told, f'confidence {memory.confidence:.0%}']))}", "faint"
    for other in story.sources:
        yield f"It was made from #{other.n}: {shortened(other.content)}", "plain"


def lifecycle(story: Story) -> str:
    """State, pin, tier and expiry, in one line."""
    memory = story.memory
    told = [state_word(status_name(story.status))]
    if memory.pinned:
        told.append("pinned, so it never fades")
    if memory.tier is not Tier.ARCHIVAL:
        told.append(memory.tier.value)
    if memory.expires_at is not None:
        told.append(f"expires {shown_time(memory.expires_at)}")
    if isinstance(memory.status, Deleted) and memory.status.reason:
        told.append(memory.status.reason)
    return ", ".join(told)


def _standing_lines(story: Story) -> Iterator[Line]:
    yield f"State: {lifecycle(story)}", "plain"
    status = story.memory.status
    if isinstance(status, Conflicted):
        yield f"Disputed since {shown_day(status.since)}: {shortened(status.evidence, _QUOTED_CHARS)}", "bad"
    for other in story.against:
        yield f"  the other side is {_named(other)}", "bad"
    if story.doubt is not None:
        yield f"To check since {shown_day(story.doubt.since)}: {story.doubt.reason}", "bad"
    for successor in story.successors:
        yield f"Replaced by {_named(successor)}", "plain"
    if isinstance(status, Superseded) and not story.successors:
        yield f"Replaced on {shown_day(status.since)} by one that cannot be seen from here", "plain"
    for older in story.replaced:
        yield f"It replaced {_named(older)}", "plain"


def _worth_lines(story: Story) -> Iterator[Line]:
    worth, counters = story.worth, story.memory.counters
    yield f"Worth {worth.total:.2f} now, of {MOST_WORTH:g} at most", "strong"
    yield f"  weight {worth.base:.2f}" + (f", stated {worth.stated:+.2f}" if worth.stated else ""), "plain"
    if counters.helpful or counters.irrelevant:
        found = f"found useful {_times(counters.helpful)}, irrelevant {_times(counters.irrelevant)}"
        yield f"  feedback {worth.usefulness:+.2f} ({found})", "plain"
    faded = "pinned" if story.memory.pinned else f"confirmed {_ago(worth.age)}"
    yield f"  × {worth.decay:.2f} ({faded})", "plain"


def _showing_lines(story: Story) -> Iterator[Line]:
    count = max(len(story.showings), story.memory.counters.surfaced)
    if not count:
        yield "It was not shown to a model yet.", "faint"
        return
    yield f"Shown to a model {_times(count)}", "strong"
    if count > len(story.showings):
        listed = "the latest beside a prompt" if story.showings else "none of them beside a prompt that is still known"
        yield f"  {listed}:" if story.showings else f"  {listed}", "faint"
    for showing in story.showings:
        yield f"  {_shown(showing)}", "plain"
    if story.showings and story.showings[0].parts:
        yield f"  the latest was made up of {added(story.showings[0].parts)}", "faint"


def appraisal_lines(appraisal: Appraisal) -> Iterator[Line]:
    """How well the memory answers a prompt now, part by part."""
    asked = "" if appraisal.asked_at is None else f", the prompt of {shown_time(appraisal.asked_at)}"
    yield f"Now, for “{shortened(appraisal.prompt)}”{asked}", "strong"
    if appraisal.score is None:
        yield f"  no score: {appraisal.told}", "plain"
        return
    place = f"number {appraisal.position} of {appraisal.considered}"
    yield f"  score {appraisal.score.total:.2f}, {place} that came near; {appraisal.told}", "plain"
    for part in appraisal.parts:
        yield f"  {part.value:+7.2f}  {part.name}" + (f": {part.detail}" if part.detail else ""), "plain"
    whole = sum(part.value for part in appraisal.parts)
    yield f"  {whole:7.2f}  in all, where {EVEN_EVIDENCE:g} is a score of 0.50", "faint"


def added(parts: tuple[tuple[str, float], ...]) -> str:
    """The parts of a score, in one line."""
    return ", ".join(f"{name} {value:+.2f}" for name, value in parts)


def _occasion(story: Story) -> str:
    session = story.session
    if session is None:
        return ""
    title = f" “{shortened(session.title)}”" if session.title else ""
    return f", in the {session.host} session{title} ({session.id})"


def _quoted(message: Message, memory: Memory) -> Iterator[Line]:
    """The sentence that a memory comes from; the beginning of the message where none is nearest."""
    from backstory.domain.conversation import typed_text
    from backstory.domain.source_sentence import sentence_about

    text = typed_text(message)
    yield f"  {message.role.value}, {shown_time(message.created_at)} ({message.id}):", "faint"
    yield f"  > {sentence_about(text, memory.content) or shortened(text, _QUOTED_CHARS)}", "plain"


def _named(memory: Memory) -> str:
    return f"#{memory.n} (from {memory.origin.value}): {shortened(memory.content)}"


def _happened(change: Change) -> str:
    reason = f" ({change.reason})" if change.reason else ""
    return f"{shown_time(change.at)}  {change.action.value} by {change.author.value}{reason}  {change.id}"


def _shown(showing: Showing) -> str:
    block = showing.block
    where = f"(session {block.session}, message {block.message})"
    return f"{shown_time(block.created_at)}  {showing.score:.2f}  {showing.reason}  {where}"


def _times(count: int) -> str:
    return "once" if count == 1 else f"{count} times"


def _ago(age: timedelta) -> str:
    days = age // timedelta(days=1)
    return "today" if days == 0 else "yesterday" if days == 1 else f"{days} days ago"
