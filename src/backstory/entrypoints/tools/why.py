"""The story of one memory, for a model: short, and nothing of what it may not see."""

from __future__ import annotations

from collections.abc import Iterator

from backstory.domain.context_block import quote
from backstory.domain.conversation import typed_text
from backstory.domain.interchange import imported_from
from backstory.domain.memory import Conflicted, Deleted, Memory, Tier, status_name
from backstory.domain.source_sentence import sentence_about
from backstory.domain.truncation import truncate_chars
from backstory.entrypoints.tools.say import memory_lines, project_names
from backstory.entrypoints.tools.tool import Answer, Call
from backstory.services.explanation import Appraisal
from backstory.services.inspection import Showing, Story

QUOTE_CHARS = 300
_SHOWINGS = 5


async def why(ref: str, query: str | None, call: Call) -> Answer:
    """Where a memory comes from, how it stands, what happened to it, and why it was shown; of a forgotten one only that
    it was."""
    story = await call.app.inspection.why(ref, call.viewer)
    if isinstance(story.memory.status, Deleted):  # a person reads on with ``backstory why``
        return Answer(text=f"Memory #{story.memory.n} was forgotten; models are not shown it.", title="forgotten")
    appraisal = await call.app.truth.explanation.appraise(story, call.viewer, query=query)
    names = await project_names(call.app)
    lines = [
        memory_lines(story.memory, here=call.viewer.project, names=names, doubt=story.doubt),
        *_source(story, call),
        *_standing(story),
        _worth(story),
        *_history(story),
        *(_shown(showing) for showing in story.showings[:_SHOWINGS]),
    ]
    if not story.showings and story.memory.counters.surfaced:
        lines.append(f"- shown {story.memory.counters.surfaced} times, not beside messages of this project's sessions")
    if appraisal is not None:
        lines.append(_appraised(appraisal, given=query is not None))
    return Answer(text="\n".join(lines), title=f"#{story.memory.n}")


def _source(story: Story, call: Call) -> Iterator[str]:
    memory = story.memory
    yield f"{memory.source.value}, from {memory.origin.value}, confidence {memory.confidence:.0%}"
    session = memory.provenance.session
    if session is not None and (story.session is not None or session == call.viewer.session):
        yield f"learned in session {quote(session)} on {memory.times.learned:%Y-%m-%d}"
    if story.session is not None and (product := imported_from(story.session)):
        yield f"that session is imported from {quote(product)}, not heard here"
    for message in story.messages:
        text = typed_text(message)
        said = sentence_about(text, memory.content) or truncate_chars(text, QUOTE_CHARS)
        when = f"{message.created_at:%Y-%m-%d %H:%M}"
        yield f"source, {message.role.value} on {when}, message {quote(message.id)}: “{quote(said)}”"
    if story.sources:
        yield f"made from {_numbers(story.sources)}"


def _standing(story: Story) -> Iterator[str]:
    memory = story.memory
    told = [f"status {status_name(story.status)}"]
    if memory.pinned:
        told.append("pinned")
    if memory.tier is not Tier.ARCHIVAL:
        told.append(memory.tier.value)
    if memory.expires_at is not None:
        told.append(f"expires {memory.expires_at:%Y-%m-%d %H:%M}")
    yield ", ".join(told)
    if isinstance(memory.status, Conflicted):
        evidence = truncate_chars(memory.status.evidence, QUOTE_CHARS)
        yield f"disputed since {memory.status.since:%Y-%m-%d}: {quote(evidence)}"
    if story.against:
        yield f"the other side: {_named(story.against)}"
    if story.doubt is not None:
        yield f"to check: {quote(story.doubt.reason)}"
    if story.successors:
        yield f"replaced by {_named(story.successors)}"
    if story.replaced:
        yield f"it replaced {_named(story.replaced)}"


def _worth(story: Story) -> str:
    worth, counters = story.worth, story.memory.counters
    parts = f"weight {worth.base:.2f} + stated {worth.stated:.2f} + feedback {worth.usefulness:.2f}"
    found = f"{counters.helpful} useful, {counters.irrelevant} irrelevant"
    return f"worth {worth.total:.2f} = ({parts}; {found}) × {worth.decay:.2f} for {worth.age.days} days unconfirmed"


def _history(story: Story) -> Iterator[str]:
    for change in story.changes:
        reason = f", because {quote(change.reason)}" if change.reason else ""
        yield f"- {change.at:%Y-%m-%d %H:%M} {change.action.value} by {change.author.value}{reason}"


def _shown(showing: Showing) -> str:
    block = showing.block
    parts = f"; {added(showing.parts)}" if showing.parts else ""
    where = f"in session {quote(block.session)} beside message {quote(block.message)}"
    shown = f"- shown {block.created_at:%Y-%m-%d %H:%M} {where}"
    return f"{shown}: {quote(showing.reason)} (score {showing.score:.2f}{parts})"


def _appraised(appraisal: Appraisal, *, given: bool) -> str:
    prompt = "that text" if given else "the prompt it was shown with last"
    if appraisal.score is None:
        return f"score now for {prompt}: none, {appraisal.told}"
    place = f"number {appraisal.position} of {appraisal.considered}, {appraisal.told}"
    parts = added(tuple((part.name, part.value) for part in appraisal.parts))
    return f"score now for {prompt}: {appraisal.score.total:.2f} ({place}; {parts})"


def added(parts: tuple[tuple[str, float], ...]) -> str:
    """The parts of a score, in one line."""
    return ", ".join(f"{quote(name)} {value:+.2f}" for name, value in parts)


def _named(memories: tuple[Memory, ...]) -> str:
    return "; ".join(map(_quoted, memories))


def _quoted(memory: Memory) -> str:
    if isinstance(memory.status, Deleted):  # one that was pruned is still what another one was replaced by
        return f"#{memory.n}, which was forgotten since"
    return f"#{memory.n} “{quote(truncate_chars(memory.content, QUOTE_CHARS))}”"


def _numbers(memories: tuple[Memory, ...]) -> str:
    return ", ".join(f"#{memory.n}" for memory in memories)
