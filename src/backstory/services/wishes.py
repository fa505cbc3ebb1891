"""A user's prompt, and what it asks to be remembered. Whether it asks for anything is told without a store."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from backstory.domain.capture import Captured as Statement
from backstory.domain.capture import capture
from backstory.domain.echo import strip_injected
from backstory.domain.history import Author
from backstory.domain.ids import MessageId, SessionId
from backstory.domain.redaction import strip_private

if TYPE_CHECKING:
    from backstory.services.remember import Remembered


@dataclass(frozen=True, slots=True, kw_only=True)
class Prompt:
    """A user's message, before the model sees it.

    ``typed`` is what a person typed of it, if that is not the whole text. ``author`` is the agent for a sub-agent's.
    ``notes`` are sentences for the block beside it, whatever else stands there.
    """

    text: str
    message: MessageId
    session: SessionId
    agent: str | None = None
    typed: str | None = None
    author: Author = Author.USER
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Captured:
    """What a prompt asked to be remembered: what was stored, and what could not be and why."""

    remembered: tuple[Remembered, ...] = ()
    refused: tuple[str, ...] = ()


def wishes(prompt: Prompt) -> list[Statement]:
    """What the prompt asks to be remembered, in its order: nothing private, and nothing that we put there."""
    text = prompt.text if prompt.typed is None else prompt.typed
    return capture(strip_injected(strip_private(text)))
