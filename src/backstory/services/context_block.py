"""What is put in front of the model: the block beside a prompt and the snapshot of a session.

The one place that fails open: whatever goes wrong, the request goes on with less or nothing, and what was skipped is
kept with the frozen block, in the log and in ``inspect``.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from backstory.domain.context_block import with_notes
from backstory.domain.conversation import FrozenBlock, FrozenSnapshot
from backstory.domain.echo import strip_injected
from backstory.domain.history import NO_LONGER_SHOWN, QUOTE_TAKEN_BACK
from backstory.domain.ids import MessageId, SessionId
from backstory.domain.relevance import UNASKED, Relevance
from backstory.domain.scope import Audience, Viewer
from backstory.errors import BackstoryError
from backstory.ports.backend import Backend
from backstory.ports.store import Use
from backstory.ports.system import Clock, TokenCounter
from backstory.services.prompt_block import Context, PromptBlockComposer
from backstory.services.query import Query, Recalled
from backstory.services.recall import Recall

if TYPE_CHECKING:
    from backstory.services.evidence_quotes import EvidenceQuotes
    from backstory.services.shared_observations import SharedObservations
    from backstory.services.snapshot import OfferedSummaries

log = logging.getLogger(__name__)

_LATEST_BLOCKS = 200  # of a session: more prompts than a host keeps in one request


@dataclass(frozen=True, slots=True, kw_only=True)
class ContextPolicy:
    """Budgets in tokens; ``embed_within_s`` leaves room for the rest of the hook's deadline. ``core_slots`` is how many
    core memories a snapshot has at most."""

    inject: bool
    by_recency: bool
    relevance: Relevance
    block_budget_tokens: int
    snapshot_budget_tokens: int
    max_entries: int
    embed_within_s: float | None
    core_slots: int


class ContextBlocks:
    """Composes, freezes and replays what the model is shown."""

    def __init__(
        self,
        backend: Backend,
        recall: Recall,
        *,
        clock: Clock,
        tokens: TokenCounter,
        policy: ContextPolicy,
        quotes: EvidenceQuotes | None = None,
        summaries: OfferedSummaries | None = None,
        shared: SharedObservations | None = None,
    ) -> None:
        """``quotes`` gives what was said earlier where memories are silent; left out, nothing of it is shown.
        ``summaries`` stand at the beginning of snapshots, if they are given, and ``shared`` notes at their end."""
        self._shared_notes = shared
        self._summaries = summaries
        self._backend = backend
        self._quotes = quotes
        self._recall = recall
        self._clock = clock
        self._tokens = tokens
        self._policy = policy
        self._composer = PromptBlockComposer(
            backend,
            recall,
            clock=clock,
            tokens=tokens,
            budget_tokens=policy.block_budget_tokens,
            max_entries=policy.max_entries,
        )

    async def for_prompt(self, prompt: str, viewer: Viewer) -> Context:
        """The block for a prompt, not frozen. Raises what the store raises."""
        if not self._policy.inject:
            return Context(text=None, silent_because="injection is switched off")
        viewer = replace(viewer, audience=Audience.MODEL, all_projects=False)
        text = "" if self._policy.by_recency else strip_injected(prompt)
        if not text.strip() and not self._policy.by_recency:
            return Context(text=None, silent_because="the prompt has no text")
        started = time.monotonic()
        query = Query(
            text=text,
            viewer=viewer,
            limit=max(self._policy.max_entries * 2, 10),
            offerable=True,
            threshold=UNASKED[self._policy.relevance],
            embed_within_s=self._policy.embed_within_s,
        )
        recalled = await self._recall.recall(query)
        if recalled.results or self._quotes is None or not text:
            return await self._composer.compose(recalled, query)
        return await self._quote(self._quotes, text, viewer, recalled, started)

    async def for_prompt_or_nothing(self, prompt: str, viewer: Viewer) -> Context:
        """Like ``for_prompt``, but a store or a model that fails means no block, with the reason."""
        try:
            return await self.for_prompt(prompt, viewer)
        except BackstoryError as error:
            log.warning("event=block_skipped session=%s reason=%s", viewer.session, error)
            return Context(text=None, silent_because=f"recall failed: {error}")

    async def frozen(self, message: MessageId) -> FrozenBlock | None:
        """What was frozen for a message earlier, empty where it quotes what was taken back since; None if nothing was
        frozen, or the store does not answer."""
        try:
            known = (await self._backend.conversations.blocks([message])).get(message)
        except BackstoryError as error:
            log.warning("event=frozen_skipped message=%s reason=%s", message, error)
            return None
        if known is None:
            return None
        replayed = await self.replay([message])
        return known if known.text == replayed.get(message, "") else replace(known, text="", shown=())

    async def freeze(
        self, context: Context, *, notes: Sequence[str], message: MessageId, session: SessionId
    ) -> str | None:
        """Keep the text that goes beside a message, notes at its end; the same ever after. None when there is none.

        When the store cannot keep it, the text is still returned: this request gets it, a later replay may not.
        """
        text = with_notes(context.text, notes)
        block = FrozenBlock(
            message=message,
            session=session,
            text=text or "",
            shown=context.shown,
            silent_because=context.silent_because,
            created_at=self._clock.now(),
        )
        try:
            frozen = await self._backend.conversations.freeze_block(block)
        except BackstoryError as error:
            log.warning("event=freeze_skipped session=%s reason=%s", session, error)
            return text
        if frozen == block:  # another process may have been first, and has counted then
            await self._count(context, session)
        return frozen.text or None

    async def withdraw(self, message: MessageId) -> None:
        """The host stopped waiting and showed nothing; a replay must not add it later, or the prompt would change."""
        try:
            await self._backend.conversations.withdraw_block(message, because="the host did not wait for the answer")
        except BackstoryError as error:
            log.warning("event=withdraw_skipped message=%s reason=%s", message, error)

    async def withheld(self, session: SessionId) -> list[MessageId]:
        """The messages of a session whose texts show nothing any more, since what is in them was withheld."""
        try:
            blocks = await self._backend.conversations.recent_blocks(session=session, limit=_LATEST_BLOCKS)
            taken_back = await self._without_quotes_taken_back(blocks)
        except BackstoryError as error:
            log.warning("event=withheld_skipped session=%s reason=%s", session, error)
            return []
        return [
            block.message for block in blocks if block.message in taken_back or block.silent_because in NO_LONGER_SHOWN
        ]

    async def replay(self, messages: list[MessageId]) -> dict[MessageId, str]:
        """The frozen texts of messages, as they were; those without a block are left out."""
        try:
            blocks = await self._backend.conversations.blocks(messages)
            taken_back = await self._without_quotes_taken_back(blocks.values())
        except BackstoryError as error:
            log.warning("event=replay_skipped reason=%s", error)
            return {}
        return {message: block.text for message, block in blocks.items() if block.text and message not in taken_back}

    async def _without_quotes_taken_back(self, blocks: Iterable[FrozenBlock]) -> set[MessageId]:
        """Empty the blocks that quote what no model is to be shown any more; their messages."""
        told = [block for block in blocks if block.text and block.silent_because]  # only they may quote anything
        if not told:
            return set()
        from backstory.services.quotes_taken_back import QuotesTakenBack

        quotes = QuotesTakenBack(self._backend.memories, self._backend.conversations, clock=self._clock)
        taken_back = await quotes.among(told)
        for block in taken_back:
            await self._backend.conversations.withdraw_block(block.message, because=QUOTE_TAKEN_BACK)
        return {block.message for block in taken_back}

    async def snapshot(self, viewer: Viewer, *, session: SessionId) -> str | None:
        """The session's constant text: composed at the first call, the same ever after, until ``renew_snapshot``.

        None, and nothing kept, while injection is switched off. Raises what the store raises: an answer would hold for
        the session, so the host goes without for one request and asks again.
        """
        if not self._policy.inject:
            return None
        known = await self._backend.conversations.snapshot(session)
        if known is None:
            known = await self._backend.conversations.freeze_snapshot(await self._new_snapshot(viewer, session))
        return known.text or None

    async def briefing(self, viewer: Viewer) -> str | None:
        """What a snapshot would say now, for somebody who asks; nothing is kept. Raises what the store raises."""
        return (await self._new_snapshot(viewer, viewer.session or SessionId(""))).text or None

    async def renew_snapshot(self, session: SessionId) -> None:
        """Let the next request of the session compose its snapshot anew (after a compaction)."""
        try:
            await self._backend.conversations.thaw_snapshot(session)
        except BackstoryError as error:
            log.warning("event=thaw_skipped session=%s reason=%s", session, error)

    async def _quote(
        self, quotes: EvidenceQuotes, prompt: str, viewer: Viewer, recalled: Recalled, started: float
    ) -> Context:
        """What was said earlier, where no memory answers; what goes wrong there is one more reason for silence."""
        silent = await self._composer.why_silent(recalled, viewer)
        left = self._policy.embed_within_s
        if left is not None:
            left = max(0.0, left - (time.monotonic() - started))
        try:
            quoted = await quotes.quote(prompt, viewer, within_s=left)
        except BackstoryError as error:
            log.warning("event=evidence_skipped session=%s reason=%s", viewer.session, error)
            return Context(text=None, silent_because=f"{silent}; earlier sessions could not be searched: {error}")
        return Context(text=quoted.text, silent_because=f"{silent}; {quoted.told}")

    async def _new_snapshot(self, viewer: Viewer, session: SessionId) -> FrozenSnapshot:
        from backstory.services.snapshot import SnapshotComposer  # not needed beside a prompt

        composer = SnapshotComposer(
            self._backend,
            clock=self._clock,
            tokens=self._tokens,
            budget_tokens=self._policy.snapshot_budget_tokens,
            core_slots=self._policy.core_slots,
            summaries=self._summaries,
        )
        notes = await self._notes_of_others(replace(viewer, session=session))
        return await composer.compose(viewer, session, project_name=await self._composer.project_names(), notes=notes)

    async def _notes_of_others(self, viewer: Viewer) -> str | None:
        try:
            return None if self._shared_notes is None else await self._shared_notes.block(viewer)
        except BackstoryError as error:
            log.warning("event=shared_notes_skipped session=%s reason=%s", viewer.session, error)
            return None

    async def _count(self, context: Context, session: SessionId) -> None:
        if not context.shown:
            return
        shown = tuple(item.memory for item in context.shown)
        try:
            await self._backend.memories.record_use(
                Use(memories=shown, at=self._clock.now(), session=session, surfaced=True)
            )
        except BackstoryError as error:
            log.warning("event=count_skipped session=%s reason=%s", session, error)
