"""Quotes of earlier sessions for a prompt that no memory answers: found, checked against what is withheld, rendered.

Finding is ``evidence.py``'s; when there is room for quotes at all is decided in ``context_block.py``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from backstory.domain.context_block import said_block
from backstory.domain.erasure import ERASED
from backstory.domain.evidence_offer import OfferedPassage, told_quotes
from backstory.domain.evidence_passages import EvidencePassage
from backstory.domain.grounding import ground
from backstory.domain.interchange import is_imported
from backstory.domain.provenance import is_injectable
from backstory.domain.scope import Audience, Viewer
from backstory.domain.utterance import utterances
from backstory.ports.conversation import Archive
from backstory.ports.store import MemoryStore
from backstory.ports.system import Clock, TokenCounter
from backstory.services.corrections import Corrections
from backstory.services.evidence import EvidenceRecall
from backstory.services.quotes_taken_back import QuotesTakenBack

_BACKGROUND = 100
"""Messages up to a passage's that are read for what it repeats: up to 50 ms where tools answered at length."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Quoted:
    """A block of quotes, or None; and in words what was quoted, or why nothing was."""

    text: str | None
    told: str


class EvidenceQuotes:
    """Quotes what was said earlier where that surely answers."""

    def __init__(
        self,
        evidence: EvidenceRecall,
        memories: MemoryStore,
        archive: Archive,
        *,
        clock: Clock,
        tokens: TokenCounter,
        budget_tokens: int,
    ) -> None:
        self._evidence = evidence
        self._archive = archive
        self._taken_back = QuotesTakenBack(memories, archive, clock=clock)
        self._tokens = tokens
        self._budget_tokens = budget_tokens
        self._corrections = evidence.corrections or Corrections(memories, None, clock=clock)

    async def quote(self, prompt: str, viewer: Viewer, *, within_s: float | None) -> Quoted:
        """The block for a prompt. ``within_s`` bounds the search; None waits. Raises what the store raises."""
        offered = await self._evidence.offer(prompt, viewer=viewer, within_s=within_s)
        if not offered.passages:
            return Quoted(text=None, told=offered.silent_because or "nothing was said")
        own = [item for item in offered.passages if await self._is_own(item.passage)]
        if own[:1] != [offered.passages[0]]:  # the others were let through beside the best
            return Quoted(text=None, told="what was said earlier was pasted, imported, or repeats text from outside")
        own = [item for item in own if ERASED not in item.passage.text]  # nobody could tell one that is erased later
        open_ones = await self._not_withheld(own, viewer)
        if not open_ones:
            return Quoted(text=None, told="what was said earlier was forgotten, or made private or local-only")
        valid = await self._not_outdated(open_ones, viewer)
        if not valid:
            return Quoted(text=None, told="what was said earlier was corrected since")
        block = said_block(
            [item.passage for item in valid], budget_tokens=self._budget_tokens, count_tokens=self._tokens.count
        )
        if block is None:
            return Quoted(text=None, told="what was said earlier does not fit into the budget of the block")
        shown = [item for item in valid if item.passage in block.quoted]
        return Quoted(text=block.text, told=told_quotes(shown))

    async def _is_own(self, passage: EvidencePassage) -> bool:
        """Whether who said it said it of themselves. What a user pasted, or an assistant repeats of what a tool, a file
        or a page told, is outside text, whoever's message holds it; and so is all of a session that a file told."""
        session = await self._archive.session(passage.session)
        if session is not None and is_imported(session):
            return False
        ids = await self._archive.message_ids(passage.session)
        end = ids.index(passage.message) + 1 if passage.message in ids else 0
        start = max(0, end - _BACKGROUND)
        messages = await self._archive.messages(passage.session, limit=end - start, offset=start) if end else []
        return is_injectable(ground(passage.text, utterances(messages)).origin)

    async def _not_withheld(self, passages: Sequence[OfferedPassage], viewer: Viewer) -> list[OfferedPassage]:
        """Those of messages that neither are the source of a memory that no model is to be shown any more, nor repeat
        one."""
        named = dict.fromkeys(item.passage.message for item in passages)
        standing = await self._taken_back.standing(named, shown_in=viewer.session)
        return [item for item in passages if item.passage.message in standing]

    async def _not_outdated(self, passages: Sequence[OfferedPassage], viewer: Viewer) -> list[OfferedPassage]:
        """Those that do not state what was corrected since, also where only a person may know of the correction. None
        where the best does: the others were let through beside it."""
        everyone = replace(viewer, audience=Audience.PERSON)
        outdated = await self._corrections.outdated([item.passage for item in passages], everyone)
        if passages[0].passage.number in outdated:
            return []
        return [item for item in passages if item.passage.number not in outdated]
