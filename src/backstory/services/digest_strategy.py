"""What a strategy for long sessions must do: say whether work is due, do a bit of it, choose what is shown."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

from backstory.domain.conversation import Message
from backstory.domain.digest import Piece, SessionDigest, Strategy, messages_of
from backstory.domain.ids import MessageId, ProjectId


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionView:
    """A session as a strategy sees it.

    ``messages`` are those before the current turn, in the host's order, cleaned as the archive keeps them; those that
    pieces stand for come without their parts, and the last ones may be unfinished (``transcript.is_settled``).
    ``current`` is how many messages the current turn has. ``forced``: the host is about to compact the session, so what
    is there is to be digested whatever its size. ``first_number`` is the number in the session of the first of
    ``messages``, which is not 0 after the host dropped older ones.
    """

    digest: SessionDigest
    messages: tuple[Message, ...]
    project: ProjectId | None
    now: datetime
    current: int = 0
    forced: bool = False
    first_number: int = 0

    def digested(self) -> frozenset[MessageId]:
        """The messages that some piece stands for."""
        return frozenset(messages_of(self.digest.pieces, self.digest))


@dataclass(frozen=True, slots=True, kw_only=True)
class Made:
    """What one step of work came to. ``changed`` are the pieces that a new one covers (``digest.under_parent``).

    ``current_task`` and ``suggested_response`` replace what is known unless they are None. ``cycle`` says in a word
    what was done (``leaf``, ``merge``, ``observe``, ``reflect``). Without anything added, nothing was due after all.
    """

    added: tuple[Piece, ...] = ()
    changed: tuple[Piece, ...] = ()
    current_task: str | None = None
    suggested_response: str | None = None
    cycle: str = ""


class DigestStrategy(Protocol):
    """Makes the pieces of a session's digest. Holds no state of its own: all of it is in the view."""

    @property
    def strategy(self) -> Strategy:
        """Which one."""
        ...

    def due(self, view: SessionView) -> bool:
        """Whether ``work`` has something to do. Asked at every request: at most some milliseconds."""
        ...

    async def work(self, view: SessionView) -> Made:
        """One step: at most one call of a model, whose failure leaves everything as it was.

        Without a model, or at a cap (CapReached), a digest is made by rule. Raises ModelError when the model fails or
        answers something that cannot be used.
        """
        ...

    def shows(self, view: SessionView) -> tuple[str, ...]:
        """The ids of the pieces that requests show from the next user message on, by place. Those that are shown now
        stay unless enough has come together: each change costs the host its cached prompt."""
        ...
