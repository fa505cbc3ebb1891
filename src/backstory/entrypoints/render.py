"""Results as text for people: lines, each with a tone. Tables are in ``tables.py``, JSON in ``shapes.py``.

What a memory says is shown as it was written. Nothing here knows where the text goes.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Literal

from backstory.domain.memory import Conflicted, Deleted, Memory, Tier, Visibility, status_name
from backstory.entrypoints.counted import counted
from backstory.entrypoints.local_time import shown_day, shown_time

if TYPE_CHECKING:
    from backstory.domain.conversation import FrozenBlock
    from backstory.domain.doubt import Doubt
    from backstory.domain.evidence_passages import EvidencePassage
    from backstory.domain.history import Change
    from backstory.domain.ids import ProjectId
    from backstory.domain.project import Project
    from backstory.entrypoints.cli.status import Status
    from backstory.services.digest_search import DigestHit
    from backstory.services.evidence_found import EvidenceFound
    from backstory.services.query import Recalled
    from backstory.services.remember import Remembered

Tone = Literal["strong", "plain", "faint", "good", "bad"]
Line = tuple[str, Tone]

_BESIDE_CHARS = 160


def recalled_lines(recalled: Recalled, projects: Mapping[ProjectId, Project], here: ProjectId | None) -> Iterator[Line]:
    """The answer to a query, best first, each with its reasons; or why there is none."""
    if recalled.silent_because is not None:
        yield f"Nothing found: {recalled.silent_because}.", "faint"
    for position, result in enumerate(recalled.results):
        if position:
            yield "", "plain"
        score = f" · score {result.score.total:.2f}" if result.score.total else ""
        yield head_of(result.memory, projects, here) + score, "strong"
        yield result.memory.content, "plain"
        yield f"  {'; '.join(result.reasons)}", "faint" if result.doubt is None else "bad"


def evidence_lines(found: EvidenceFound) -> Iterator[Line]:
    """What was said, best first: the message with the passage before and after it, and the reasons."""
    if found.silent_because is not None:
        yield f"Nothing found in sessions: {found.silent_because}.", "faint"
    for position, result in enumerate(found.results):
        if position:
            yield "", "plain"
        said = result.passage
        by = f"{said.role.value}'s {said.kind}" if said.kind != "text" else said.role.value
        agent = " · sub-agent" if said.by_sub_agent else ""
        yield f"{by}, {shown_time(said.at)}{agent} · session {said.session} · score {result.score:.2f}", "strong"
        if result.before is not None:
            yield _beside(result.before), "faint"
        yield said.text, "plain"
        if result.after is not None:
            yield _beside(result.after), "faint"
        if result.outdated is not None:
            yield f"  {result.outdated}", "bad"
        imported = f"imported from {result.imported_from}; " if result.imported_from else ""
        yield f"  {imported}{'; '.join(result.reasons)}", "faint"


def note_lines(notes: Sequence[DigestHit]) -> Iterator[Line]:
    """What sessions were condensed to, best first: the line that fits, and where it stands."""
    from backstory.domain.interchange import UNVOUCHED_NOTE

    for hit in notes:
        yield hit.line, "plain"
        made = shown_time(hit.piece.created_at)
        yield f"  {hit.piece.id} of session {hit.piece.session}, {made} · score {hit.score:.2f}", "faint"
        if hit.is_unvouched:
            yield f"  {UNVOUCHED_NOTE}", "faint"


def _beside(passage: EvidencePassage) -> str:
    return f"  [{passage.role.value}] {shortened(passage.text, _BESIDE_CHARS)}"


def head_of(memory: Memory, projects: Mapping[ProjectId, Project], here: ProjectId | None) -> str:
    """What a memory is, in one line: number, kind, where it holds, state, date, labels."""
    facts = [f"#{memory.n} {memory.kind.value}", place_of(memory, projects, here)]
    if memory.pinned:
        facts.append("pinned")
    if memory.tier is not Tier.ARCHIVAL:
        facts.append(memory.tier.value)
    if (state := status_name(memory.status)) != "active":
        facts.append(_state(memory) or state_word(state))
    if memory.sensitivity.value != "normal":
        facts.append(memory.sensitivity.value)
    facts.append(shown_day(memory.times.learned))
    facts += [label for label in (memory.area, memory.issue) if label]
    if memory.tags:
        facts.append(" ".join(f"+{tag}" for tag in memory.tags))
    return " · ".join(facts)


def state_word(name: str) -> str:
    """A state as people know it: what `forget` did is called forgotten."""
    return "forgotten" if name == "deleted" else name


def memory_lines(
    memory: Memory, projects: Mapping[ProjectId, Project], here: ProjectId | None, doubt: Doubt | None = None,
    successor: Memory | None = None,
) -> Iterator[Line]:  # fmt: skip
    """One memory in full; ``successor`` took its place."""
    yield head_of(memory, projects, here), "strong"
    yield memory.content, "plain"
    if doubt is not None:
        yield f"  check: {doubt.reason}", "bad"
    yield "", "plain"
    facts = {
        "id": memory.id,
        "area": memory.area,
        "issue": memory.issue,
        "tags": ", ".join(memory.tags),
        "said by": f"{memory.origin.value} ({memory.source.value})",
        "learned": shown_time(memory.times.learned),
        "updated": shown_time(memory.times.updated) if memory.times.updated != memory.times.learned else None,
        "confirmed": shown_time(memory.times.confirmed) if memory.times.confirmed != memory.times.updated else None,
        "expires": shown_time(memory.expires_at) if memory.expires_at else None,
        "shown": counted(memory.counters.surfaced, "time") if memory.counters.surfaced else None,
        "replaced": f"by #{successor.n} {shortened(successor.content)}" if successor is not None else None,
    }
    for name, value in facts.items():
        if value:
            yield f"  {name:<10} {value}", "faint"


def remembered_lines(done: Remembered, projects: Mapping[ProjectId, Project], here: ProjectId | None) -> Iterator[Line]:
    """What became of a text to remember."""
    if done.fresh:
        yield f"Remembered {head_of(done.memory, projects, here)}", "good"
    else:
        yield f"Already known: {head_of(done.memory, projects, here)}", "plain"
    if done.superseded is not None:
        yield f"It replaces #{done.superseded.n}: {shortened(done.superseded.content)}", "plain"
    for note in done.notes if done.fresh else ():
        yield f"Note: {note}.", "plain"


def changed_lines(done: str, memories: Sequence[Memory]) -> Iterator[Line]:
    """``done`` (a word such as "Forgotten") and each memory it was done to."""
    for memory in memories:
        yield f"{done} #{memory.n}: {shortened(memory.content)}", "plain"


def undone_lines(change: Change, undone: Change | None) -> Iterator[Line]:
    """What taking a change back did to each memory, what change that was, and how to have it again."""
    for edit in change.edits:
        memory = edit.after
        gone = isinstance(memory.status, Deleted)
        yield f"{'Taken back' if gone else 'Restored'} #{memory.n}: {shortened(memory.content)}", "plain"
    what = "" if undone is None else f"That undid the {undone.action.value} of {shown_time(undone.at)}. "
    yield f"{what}Have it again with: backstory undo {change.id}", "faint"


def status_lines(told: Status) -> Iterator[Line]:
    """The whole of ``status`` but for its warnings."""
    yield f"Backstory {told.version}", "strong"
    store, counts, meaning = told.store, told.statistics.by_state, told.meaning
    state = "" if store.exists else " (not made yet)"
    yield (
        f"  store     {store.kind}, {_folded(store.location)}{state}{', read-only' if store.read_only else ''}",
        "plain",
    )
    yield f"  project   {_folded(told.project.name)}, {_folded(told.project.root)}", "plain"
    for candidate, other in told.candidates:
        yield f"            may be {_folded(other.name)}, {_folded(other.root)}: {candidate.reason}", "plain"
    if told.candidates:
        yield "            `backstory projects show` tells more, and how to merge them", "faint"
    others = [
        f"{count:,} {state_word(name)}"
        for name, count in counts.items()
        if count and name not in ("active", "conflicted")
    ]
    rest = f" (and {', '.join(others)})" if others else ""
    yield f"  memories  {told.statistics.current:,} seen from here{rest}", "plain"
    messages, known = counted(told.statistics.messages, "message"), counted(told.statistics.projects, "project")
    yield f"  sessions  {messages} kept, {known} known", "plain"
    if meaning.model is None:
        yield f"  meaning   off: {meaning.reason}", "bad"
    else:
        lack = "lacks" if meaning.without_vector == 1 else "lack"
        lacking = f"; {meaning.without_vector:,} {lack} a vector: `backstory embed`" if meaning.without_vector else ""
        yield f"  meaning   {meaning.model}{lacking}", "plain"
    for each in told.stopped:
        yield f"  models    {each.feature} works without the model: {each.reached.reason}", "bad"
    if told.blocks:
        yield "Offered lately", "strong"
        yield from (block_line(block) for block in told.blocks)


def block_line(block: FrozenBlock) -> Line:
    """One time something was put beside a prompt, or nothing was."""
    when = shown_time(block.created_at)
    if block.shown:
        numbers = ", ".join(f"#{item.n} ({item.reason})" for item in block.shown)
        return f"  {when}  shown: {numbers}", "plain"
    said = "no memory shown" if "quoted instead" in (block.silent_because or "") else "silent"
    return f"  {when}  {said}: {block.silent_because or 'nothing to say'}", "faint"


def shortened(text: str, chars: int = 100) -> str:
    """The beginning of a text, on one line."""
    line = " ".join(text.split())
    return line if len(line) <= chars else line[: chars - 1] + "…"


def project_name(memory: Memory, projects: Mapping[ProjectId, Project]) -> str | None:
    """What the memory's project is called; None outside of all, or where it is not known."""
    owner = projects.get(memory.project) if memory.project is not None else None
    return None if owner is None else owner.name


def _folded(name: str) -> str:
    """A name on one line: a folder's may hold line breaks."""
    return " ".join(name.split())


def place_of(memory: Memory, projects: Mapping[ProjectId, Project], here: ProjectId | None) -> str:
    """Where a memory holds."""
    if memory.visibility is Visibility.GLOBAL:
        return "global"
    name = project_name(memory, projects)
    place = "this project" if memory.project == here else "unknown project" if name is None else _folded(name)
    return f"{place}, one session" if memory.visibility is Visibility.SESSION else place


def _state(memory: Memory) -> str | None:
    match memory.status:
        case Conflicted(evidence=evidence) if evidence:
            return f"conflicted: {shortened(evidence)}"
        case _:
            return None
