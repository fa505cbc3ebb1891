"""Explain scores: how well a memory answers a prompt, part by part, and what else was considered beside it.

Scores are worked out anew, with what is known now: of an earlier prompt only what was shown is kept, with its score
and reasons. The language model is not asked.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime

from backstory.domain.considered import Considered, weigh_up
from backstory.domain.conversation import FrozenBlock, typed_text
from backstory.domain.echo import strip_injected
from backstory.domain.ids import MessageId
from backstory.domain.memory import status_name
from backstory.domain.ranking import Score
from backstory.domain.relevance import UNASKED, Fair, Relevance, sureness
from backstory.domain.scope import Audience, Viewer
from backstory.domain.score_parts import Part
from backstory.domain.selection import WITH_SUPERSEDED
from backstory.errors import NotFound
from backstory.ports.conversation import ConversationStore
from backstory.services.collapsing import stands_for
from backstory.services.inspection import Inspection, Story
from backstory.services.query import MAX_LIMIT, Query, Recalled
from backstory.services.recall import Recall

_EVERYTHING = Fair(similarity=-1.0, coverage=0.0)
_MODEL_WAITS_S = 2.0  # a tool call has no longer for the query's vector


@dataclass(frozen=True, slots=True, kw_only=True)
class Appraisal:
    """How well one memory answers a prompt now.

    ``asked_at`` is when the prompt was asked, None for one that was only given to explain. ``position`` counts from 1
    among the ``considered``; None, and no score, where the search does not come upon the memory: ``told`` says so, or
    how sure the gate is.
    """

    prompt: str
    asked_at: datetime | None
    score: Score | None
    parts: tuple[Part, ...]
    position: int | None
    considered: int
    told: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Weighing:
    """One prompt's block, and what was near the prompt. ``prompt`` is None where its text is not kept."""

    block: FrozenBlock
    prompt: str | None
    candidates: tuple[Considered, ...]
    skipped: tuple[str, ...]


class Explanation:
    """Answers "why this one" and "why not that one"."""

    def __init__(
        self,
        recall: Recall,
        inspection: Inspection,
        conversations: ConversationStore,
        *,
        relevance: Relevance,
    ) -> None:
        """``recall`` without a language model: an explanation must cost nothing."""
        self._recall = recall
        self._inspection = inspection
        self._conversations = conversations
        self._threshold = UNASKED[relevance]

    async def appraise(self, story: Story, viewer: Viewer, *, query: str | None = None) -> Appraisal | None:
        """How well a memory answers ``query``, or the prompt beside which it was shown last. None where it was never
        shown, or the text of that prompt is not kept."""
        asked_at = None
        if query is None:
            if not story.showings:
                return None
            asked_at = story.showings[0].block.created_at
            query = await self._prompt(story.showings[0].block.message)
        if not query:
            return None
        asked = self._query(query, viewer, with_superseded=True)
        recalled = await self._recall.recall(asked)
        found = next((hit for hit in recalled.results if hit.memory.id == story.memory.id), None)
        if found is None:
            return self._not_found(story, query, asked_at, recalled)
        return Appraisal(
            prompt=query,
            asked_at=asked_at,
            score=found.score,
            parts=self._recall.parts([found], asked)[0],
            position=recalled.results.index(found) + 1,
            considered=recalled.considered,
            told=sureness(found.score, self._threshold),
        )

    async def weighing(self, viewer: Viewer, *, message: MessageId | None = None, limit: int = 10) -> Weighing:
        """What was near a prompt, shown or not, and why; of ``message``, or of the latest prompt in sight.

        Raises NotFound where nothing was looked up yet, or not for that message.
        """
        block = await self._inspection.block(viewer, message=message)
        if block is None:
            nothing = "no prompt has come in yet, so nothing was kept back"
            raise NotFound(nothing if message is None else f"nothing is known of {message}")
        prompt = await self._prompt(block.message)
        if not prompt:
            return Weighing(block=block, prompt=prompt, candidates=(), skipped=())
        there = await self._as_there(viewer, block)
        recalled = await self._recall.recall(self._query(prompt, there, with_superseded=False))
        candidates = weigh_up(
            [(hit.memory, hit.score) for hit in recalled.results],
            threshold=self._threshold,
            shown={item.memory for item in block.shown},
            session=block.session,
        )
        return Weighing(
            block=block,
            prompt=prompt,
            candidates=tuple(candidates[:limit]),
            skipped=tuple(f"{item.part}: {item.reason}" for item in recalled.skipped),
        )

    async def _as_there(self, viewer: Viewer, block: FrozenBlock) -> Viewer:
        """The viewer as if in the session, and in its project, where the block was made."""
        session = await self._conversations.session(block.session)
        project = viewer.project if session is None else session.project
        return replace(viewer, session=block.session, project=project, all_projects=False)

    def _query(self, text: str, viewer: Viewer, *, with_superseded: bool) -> Query:
        """Everything that shares a word or a meaning with a text, as far as a search looks."""
        return Query(
            text=text,
            viewer=viewer,
            limit=MAX_LIMIT,
            with_superseded=with_superseded,
            threshold=_EVERYTHING,
            embed_within_s=_MODEL_WAITS_S if viewer.audience is Audience.MODEL else None,
        )

    async def _prompt(self, message: MessageId) -> str | None:
        """What the user typed, without what was put beside it; None where the message is not kept."""
        messages = await self._conversations.find_messages([message])
        return strip_injected(typed_text(messages[0])).strip() if messages else None

    def _not_found(self, story: Story, query: str, asked_at: datetime | None, recalled: Recalled) -> Appraisal:
        state = status_name(story.status)
        twin = next((hit for hit in recalled.results if stands_for(hit, story.memory.n)), None)
        told = f"not among the {recalled.considered} that share a word or a meaning with this"
        if state not in WITH_SUPERSEDED:
            told = f"it is {state}, so no search finds it"
        elif twin is not None:
            told = f"#{twin.memory.n} says the same, and stands for it"
        return Appraisal(
            prompt=query,
            asked_at=asked_at,
            score=None,
            parts=(),
            position=None,
            considered=recalled.considered,
            told=told,
        )
