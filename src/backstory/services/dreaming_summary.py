"""The summaries that stand at the beginning of a session: written after a dream, offered while all they say holds."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import replace

from backstory.domain.admission import admit_evidence
from backstory.domain.answers import Unusable
from backstory.domain.digest_answers import read_summary
from backstory.domain.dream_state import Summary
from backstory.domain.ids import ProjectId, SessionId
from backstory.domain.memory import Conflicted, Memory, Visibility, is_offerable, status_at, status_name
from backstory.domain.scope import Viewer
from backstory.domain.selection import CURRENT, Selection
from backstory.domain.transcript import outside_text
from backstory.domain.truncation import truncate_chars
from backstory.errors import ModelError
from backstory.ports.dreams import DreamStore
from backstory.ports.store import MemoryStore
from backstory.ports.system import Clock
from backstory.ports.text_models import TextModel, TextRequest
from backstory.prompts.dream_summary import dream_summary_prompt

FEATURE = "dream"
SUMMARY_MAX_CHARS = 3_000
MIN_SOURCES = 4
"""Fewer memories are read as quickly as their summary."""
MAX_SOURCES = 60
_MAX_OUTPUT_TOKENS = 600

log = logging.getLogger(__name__)


class Summaries:
    """Reads the summaries that may be shown."""

    def __init__(self, dreams: DreamStore, memories: MemoryStore, *, clock: Clock) -> None:
        self._dreams = dreams
        self._memories = memories
        self._clock = clock

    async def offered(self, project: ProjectId | None) -> list[Summary]:
        """The summary of a project and the global one, those that are kept and of which every source still may be
        shown unasked."""
        places = [None] if project is None else [project, None]
        kept = [await self._dreams.summary(place) for place in places]
        return [summary for summary in kept if summary is not None and await self._holds(summary)]

    async def _holds(self, summary: Summary) -> bool:
        found = await self._memories.get(summary.sources)
        now = self._clock.now()
        fitting = [memory for memory in found.values() if is_offerable(memory) and _is_of(memory, summary.project)]
        current = [memory for memory in fitting if status_name(status_at(memory, now)) in CURRENT]
        return bool(summary.sources) and len(current) == len(summary.sources)


class SummaryWriter:
    """Asks ``model``, within ``timeout_s`` each time, for summaries of memories that may be shown unasked."""

    def __init__(
        self, dreams: DreamStore, memories: MemoryStore, model: TextModel, *, clock: Clock, timeout_s: float
    ) -> None:
        self._dreams = dreams
        self._memories = memories
        self._model = model
        self._clock = clock
        self._timeout_s = timeout_s

    async def renew(self, project: ProjectId, *, session: SessionId, changed: bool) -> None:
        """Write the project's summary and the global one anew where there is none, or where memories ``changed`` and it
        was made from others. What fails leaves the one before, and is tried again after the next dream."""
        for place in (project, None):
            try:
                await self._renew(place, project, session=session, changed=changed)
            except ModelError as error:
                log.info("event=summary_skipped session=%s reason=%s", session, error)

    async def _renew(self, place: ProjectId | None, project: ProjectId, *, session: SessionId, changed: bool) -> None:
        known = await self._dreams.summary(place)
        if known is not None and not changed:
            return
        sources = await self._sources(place)
        ids = tuple(memory.id for memory in sources)
        if len(sources) < MIN_SOURCES:
            await self._dreams.drop_summary(place)
            return
        if known is not None and frozenset(known.sources) == frozenset(ids):
            return
        text = await self._written([_told(memory) for memory in sources], project=project, session=session)
        if text is not None and await self._are_as_they_were(sources):
            await self._dreams.put_summary(
                Summary(
                    project=place,
                    text=text,
                    sources=ids,
                    made_by=self._model.name,
                    prompt=dream_summary_prompt([]).version,
                    created_at=self._clock.now(),
                )
            )

    async def _are_as_they_were(self, sources: Sequence[Memory]) -> bool:
        """Whether no memory was put into other words while the model wrote: what it wrote would outlive them."""
        now = await self._memories.get([memory.id for memory in sources])
        return all(memory.id in now and now[memory.id].content == memory.content for memory in sources)

    async def _written(self, texts: Sequence[str], *, project: ProjectId, session: SessionId) -> str | None:
        prompt = dream_summary_prompt(texts)
        answer = await self._model.generate(
            TextRequest(
                feature=FEATURE,
                system=prompt.system,
                prompt=prompt.text,
                max_output_tokens=_MAX_OUTPUT_TOKENS,
                deadline_s=self._timeout_s,
                session=session,
                project=project,
            )
        )
        read = read_summary(answer.text, source="\n".join(texts), instruction=prompt.system, finish=answer.finish)
        if isinstance(read, Unusable):
            log.info("event=summary_skipped session=%s reason=%s", session, read.reason.value)
            return None
        return truncate_chars(admit_evidence(outside_text(read)).strip(), SUMMARY_MAX_CHARS) or None

    async def _sources(self, place: ProjectId | None) -> list[Memory]:
        """The memories that a summary is made from: pinned ones first, then those confirmed last. A project's are read
        by nobody else, so what is everybody's is summed up apart."""
        visibility = Visibility.GLOBAL if place is None else Visibility.PROJECT
        selection = Selection(
            viewer=Viewer(project=place), now=self._clock.now(), visibility=visibility, offerable=True
        )
        pinned = await self._memories.select(replace(selection, pinned=True), limit=MAX_SOURCES)
        others = await self._memories.select(selection, limit=10 * MAX_SOURCES)
        others.sort(key=lambda memory: memory.times.confirmed, reverse=True)
        return list({memory.id: memory for memory in [*pinned, *others]}.values())[:MAX_SOURCES]


def _is_of(memory: Memory, project: ProjectId | None) -> bool:
    if project is None:
        return memory.visibility is Visibility.GLOBAL
    return memory.visibility is Visibility.PROJECT and memory.project == project


def _told(memory: Memory) -> str:
    return f"(disputed) {memory.content}" if isinstance(memory.status, Conflicted) else memory.content
