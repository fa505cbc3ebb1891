"""The invariants of dream states, summaries and doubts, as checks."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from backstory.adapters.stores.sqlite.doubts import SETTLED, unreadable_doubts
from backstory.adapters.stores.sqlite.dreams import GLOBAL, UNFIT_SOURCES, unreadable_states, unreadable_summaries
from backstory.adapters.stores.sqlite.looking import Look, Rule
from backstory.ports.upkeep import Invariant, Severity


def _dreams(look: Look) -> Iterator[str]:
    unfit = {project for (project,) in look.raw.execute(UNFIT_SOURCES)}
    yield from dream_trouble(unreadable_states(look.raw), unreadable_summaries(look.raw), unfit)


def dream_trouble(states: Iterable[str], summaries: Iterable[str], unfit: Iterable[str]) -> Iterator[str]:
    """What is told of states and summaries that cannot be read, and of summaries of what may not be summed up."""
    for session in states:
        yield f"session {session}: how far it is distilled cannot be read"
    for project in summaries:
        yield f"{_summary_of(project)}: cannot be read"
    for project in sorted(unfit):
        yield f"{_summary_of(project)}: was made from a memory that is gone, superseded, forgotten or private"


def _summary_of(project: str) -> str:
    return "the global summary" if project == GLOBAL else f"the summary of project {project}"


def _doubts(look: Look) -> Iterator[str]:
    yield from doubt_trouble(unreadable_doubts(look.raw), (memory for (memory,) in look.raw.execute(SETTLED)))


def doubt_trouble(unreadable: Iterable[str], settled: Iterable[str]) -> Iterator[str]:
    """What is told of doubts that cannot be read, and of those about what is forgotten."""
    for memory in unreadable:
        yield f"memory {memory}: the doubt about it cannot be read"
    for memory in settled:
        yield f"memory {memory}: it is forgotten, and there is a doubt about it"


DREAM_RULES = (
    Rule(invariant=Invariant.DREAMS, severity=Severity.OUT_OF_STEP, check=_dreams),
    Rule(invariant=Invariant.DOUBTS, severity=Severity.OUT_OF_STEP, check=_doubts),
)
