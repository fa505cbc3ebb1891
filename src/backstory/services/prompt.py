"""A user's prompt arrives: find what belongs beside it, store what it asks to be remembered, answer in time."""

from __future__ import annotations

import logging
from typing import Protocol

from backstory.domain.context_block import with_notes
from backstory.domain.scope import Viewer
from backstory.errors import BackstoryError
from backstory.services.context_block import ContextBlocks
from backstory.services.wishes import Captured, Prompt

log = logging.getLogger(__name__)

_NOT_STORED = "What this message asks to be remembered could NOT be stored: memory is not available. Say so."


class Capture(Protocol):
    """What of ``Conversations`` a prompt needs."""

    async def capture(self, prompt: Prompt, viewer: Viewer) -> Captured:
        """Store what the prompt asks to be remembered."""
        ...

    def asks(self, prompt: Prompt) -> bool:
        """Whether the prompt asks for anything to be remembered."""
        ...


class Prompts:
    """One call for each user message, whichever host it comes from."""

    def __init__(self, blocks: ContextBlocks, conversations: Capture) -> None:
        self._blocks = blocks
        self._conversations = conversations

    async def take(self, prompt: Prompt, viewer: Viewer) -> str | None:
        """The text that goes beside this message, or None; what the prompt asks to remember is stored before this
        returns. Recall comes first, so that a statement is not offered back to the prompt that makes it.

        The same message again gets the same answer and stores nothing more. Never raises for a failing store.
        """
        known = await self._blocks.frozen(prompt.message)
        if known is not None:
            return known.text or None
        context = await self._blocks.for_prompt_or_nothing(prompt.text, viewer)
        notes = [*prompt.notes, *await self._capture(prompt, viewer)]
        return await self._blocks.freeze(context, notes=notes, message=prompt.message, session=prompt.session)

    def without_store(self, prompt: Prompt) -> str | None:
        """The text beside a message when there is no store to ask: only what the user must know, or None."""
        unkept = [_NOT_STORED] if self._conversations.asks(prompt) else []
        return with_notes(None, [*prompt.notes, *unkept])

    def asks(self, prompt: Prompt) -> bool:
        """Whether the prompt asks for anything to be remembered."""
        return self._conversations.asks(prompt)

    async def _capture(self, prompt: Prompt, viewer: Viewer) -> list[str]:
        try:
            captured = await self._conversations.capture(prompt, viewer)
        except BackstoryError as error:
            log.warning("event=capture_failed session=%s reason=%s", prompt.session, error)
            return [_NOT_STORED]
        return _notes(captured)


def _notes(captured: Captured) -> list[str]:
    notes = []
    if captured.remembered:
        numbers = ", ".join(f"#{item.memory.n}" for item in captured.remembered)
        notes.append(f"What this message asks to be remembered is stored already as {numbers}; do not store it again.")
    notes += [f"Something in this message was NOT stored, say so: {reason}" for reason in captured.refused]
    return notes
