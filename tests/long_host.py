"""A host with long sessions, in one process: what it tells is kept, its requests are answered, work is done beside it.

The services are the real ones, over any store; the model says what a test tells it to.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import timedelta

from backstory.adapters.stores.memory import open_memory_store
from backstory.adapters.tokens import EstimatedTokens
from backstory.domain.conversation import Message, Part, Role, typed_text
from backstory.domain.digest import Piece, SessionDigest
from backstory.domain.digest_plan import Listed
from backstory.domain.ids import MessageId, PartId, SessionId
from backstory.domain.observation import ObservationPolicy
from backstory.domain.summary_tree import TreePolicy
from backstory.errors import ModelError
from backstory.ports.backend import Backend
from backstory.ports.text_models import TextModel
from backstory.services.digest_strategy import DigestStrategy
from backstory.services.digesting import Digesting
from backstory.services.observation import Observing
from backstory.services.session_digest import Outlook, SessionDigests
from backstory.services.session_views import SessionViews
from backstory.services.summary_tree import SummaryTree
from backstory.services.tree_lookup import TreeLookup
from backstory.testing.fakes import START, FakeClock, SequentialIds
from backstory.testing.text_model import ScriptedTextModel

EAGER = ObservationPolicy(message_tokens=1, keep_share=0)
"""Observes whatever is past, and shows it at once."""


@dataclass
class LongHost:
    """One process, whose model gives ``answers`` unless it has one of its own.

    ``policy`` chooses the strategy. Another process is another of these over the same ``backend``.
    """

    answers: Sequence[str | ModelError] = ("",)
    policy: TreePolicy | ObservationPolicy = field(default_factory=TreePolicy)
    backend: Backend = field(default_factory=open_memory_store)
    clock: FakeClock = field(default_factory=FakeClock)
    series: int = 1
    own_model: TextModel | None = None

    def __post_init__(self) -> None:
        self.model = ScriptedTextModel(self.answers)
        model = self.own_model or self.model
        tokens = EstimatedTokens()
        self.strategy: DigestStrategy
        if isinstance(self.policy, TreePolicy):
            self.strategy = SummaryTree(model, policy=self.policy, tokens=tokens, timeout_s=5)
        else:
            self.strategy = Observing(model, policy=self.policy, tokens=tokens, timeout_s=5)
        digests, conversations = self.backend.digests, self.backend.conversations
        views = SessionViews(digests, conversations, strategy=self.strategy.strategy, clock=self.clock)
        self.requests = SessionDigests(digests, views, self.strategy, clock=self.clock)
        self.digesting = Digesting(
            digests, conversations, views, self.strategy, clock=self.clock, ids=SequentialIds(series=self.series)
        )
        self.lookup = TreeLookup(digests, conversations)

    async def told(self, messages: Sequence[Message]) -> None:
        """Keep messages as the archive does."""
        await self.backend.conversations.put_messages(messages)

    async def request(self, messages: Sequence[Message]) -> Outlook:
        """What a request with these messages shows; they are told before it."""
        await self.told(messages)
        return await self.requests.outlook(listed(messages), session=messages[0].session, project=None)

    async def injected(self, messages: Sequence[Message]) -> str:
        """The text in the place of a request's first messages; empty where they stay."""
        outlook = await self.request(messages)
        return "" if outlook.replaced is None else outlook.replaced.text

    async def work(self, messages: Sequence[Message]) -> int:
        """Do what is due after a request; how many steps that took."""
        await self.told(messages)
        return await self.digesting.work(messages[0].session, listed=listed(messages))

    async def undo(self, *messages: Message) -> None:
        """The host takes messages back."""
        for message in messages:
            await self.backend.conversations.mark_removed(message.id, at=self.clock.now())
        await self.digesting.undone(messages[0].session, [message.id for message in messages])

    async def digest(self, session: SessionId) -> SessionDigest | None:
        return await self.backend.digests.digest(session)

    async def pieces(self, session: SessionId) -> tuple[Piece, ...]:
        found = await self.digest(session)
        return () if found is None else found.pieces


def listed(messages: Sequence[Message]) -> list[Listed]:
    """Messages as a request lists them."""
    return [Listed(id=message.id, role=message.role.value, synthetic=not typed_text(message)) for message in messages]


def turn(number: int, text: str, session: str = "ses_long", *, role: Role | None = None, user: bool = False) -> Message:
    """Message ``number`` of a session, which says ``text``; the assistant's unless ``user``."""
    name = MessageId(f"{session}-{number:03}")
    at = START + timedelta(minutes=number)
    part = Part(id=PartId(f"{name}-p"), kind="text", text=text)
    return Message(
        id=name,
        session=SessionId(session),
        role=role or (Role.USER if user else Role.ASSISTANT),
        created_at=at,
        completed_at=at,
        parts=(part,),
    )
