"""What a language model is asked when a session is distilled: for proposals, and which of them are known already.

Without one, at a cap, or when its answers cannot be used again and again, rules propose what was plainly stated.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass

from backstory.domain.answers import Unusable
from backstory.domain.dreaming import Stretch, Talk, shown_talk
from backstory.domain.dreaming_answers import read_duplicates
from backstory.domain.dreaming_facts import Fact
from backstory.domain.dreaming_known import keyed
from backstory.domain.dreaming_rules import by_rules
from backstory.domain.ids import ProjectId, SessionId
from backstory.domain.memory import Memory
from backstory.domain.proposals import Proposals, read_proposals
from backstory.errors import CapReached, ModelError, ModelOutputInvalid
from backstory.ports.text_models import TextModel, TextRequest
from backstory.prompts.dream import dream_prompt
from backstory.prompts.dream_duplicates import dream_duplicates_prompt
from backstory.prompts.prompt import Prompt
from backstory.services.conversation import Aside, at_once

FEATURE = "dream"
RULES = "rules"
"""Who made what no model made."""
PATIENCE = 3
"""Answers in a row that cannot be used, after which the rules take over."""
MAX_OUTPUT_TOKENS = 3_000
"""Room for twice as many facts as a stretch usually gives."""
_DUPLICATES_TOKENS = 300

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class Subject:
    """What is distilled: a stretch of a session, what was said in it, and the memories shown beside it."""

    session: SessionId
    project: ProjectId
    stretch: Stretch
    talk: Talk
    shown: Sequence[Memory]
    attempts: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Proposed:
    """Proposals, and who made them."""

    proposals: Proposals
    made_by: str


class Questions:
    """Asks ``model``, each question within ``timeout_s``; ``max_chars`` bounds how much of a conversation it is
    shown."""

    def __init__(self, model: TextModel | None, *, timeout_s: float, max_chars: int, aside: Aside = at_once) -> None:
        """``aside`` runs the rules, which take up to a second for a long stretch."""
        self._aside = aside
        self._model = model
        self._timeout_s = timeout_s
        self._max_chars = max_chars

    async def proposals(self, subject: Subject) -> Proposed:
        """What is to be kept of a stretch. Raises ModelError, ModelOutputInvalid too while another try may help."""
        if not subject.talk.trusted():
            return Proposed(proposals=Proposals(), made_by=RULES)
        if self._model is None:
            return await self._ruled(subject)
        conversation = shown_talk(subject.stretch, subject.talk, max_chars=self._max_chars)
        prompt = dream_prompt(conversation, known=subject.shown)
        try:
            answer = await self._model.generate(self._request(subject, prompt, MAX_OUTPUT_TOKENS))
        except CapReached as error:
            _log.info("event=dream_by_rule session=%s reason=%s", subject.session, error)
            return await self._ruled(subject)
        read = read_proposals(answer.text, known=keyed(subject.shown), finish=answer.finish)
        if isinstance(read, Unusable):
            problem = f"{self._model.name} proposed nothing that can be used ({read.reason.value})"
            if subject.attempts < PATIENCE:
                raise ModelOutputInvalid(problem)
            _log.warning("event=dream_by_rule session=%s reason=%s", subject.session, problem)
            return await self._ruled(subject)
        return Proposed(proposals=read, made_by=self._model.name)

    async def duplicates(self, facts: Sequence[Fact], subject: Subject, *, made_by: str) -> frozenset[int]:
        """The positions of facts that say what a shown memory says in other words; none where no answer is to be had,
        since what is kept twice can be merged later, and what is lost cannot."""
        if self._model is None or made_by == RULES or not facts or not subject.shown:
            return frozenset()
        prompt = dream_duplicates_prompt(
            [fact.text for fact in facts], known=[memory.content for memory in subject.shown]
        )
        try:
            answer = await self._model.generate(self._request(subject, prompt, _DUPLICATES_TOKENS))
        except ModelError as error:
            _log.info("event=dream_duplicates_skipped session=%s reason=%s", subject.session, error)
            return frozenset()
        read = read_duplicates(answer.text, count=len(facts), finish=answer.finish)
        if isinstance(read, Unusable):
            _log.info("event=dream_duplicates_skipped session=%s reason=%s", subject.session, read.reason.value)
            return frozenset()
        return read

    def _request(self, subject: Subject, prompt: Prompt, max_output_tokens: int) -> TextRequest:
        return TextRequest(
            feature=FEATURE,
            system=prompt.system,
            prompt=prompt.text,
            schema=prompt.schema,
            max_output_tokens=max_output_tokens,
            deadline_s=self._timeout_s,
            session=subject.session,
            project=subject.project,
        )

    async def _ruled(self, subject: Subject) -> Proposed:
        stated = await self._aside(lambda: by_rules(subject.talk))
        return Proposed(proposals=Proposals(new=stated), made_by=RULES)
