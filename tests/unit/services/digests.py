"""A session's archive and digest in memory, and a strategy that turns pairs of messages into one piece each."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import timedelta

from backstory.adapters.stores.memory import open_memory_store
from backstory.domain.conversation import Message, Part, Role
from backstory.domain.digest import Piece, Strategy
from backstory.domain.digest_plan import Listed, undigested
from backstory.domain.ids import MessageId, PartId, SessionId
from backstory.errors import ModelUnavailable
from backstory.ports.backend import Backend
from backstory.services.digest_strategy import Made, SessionView
from backstory.services.digesting import Digesting
from backstory.services.session_digest import SessionDigests
from backstory.services.session_views import SessionViews
from backstory.testing.fakes import START, FakeClock, SequentialIds

SESSION = SessionId("ses_1")


@dataclass(slots=True)
class Pairs:
    """Two messages make a piece that repeats their texts. ``failing`` fails like a model that is down; ``during`` is
    called while a piece is being made."""

    failing: bool = False
    asked: int = 0
    during: list[object] = field(default_factory=list)

    @property
    def strategy(self) -> Strategy:
        return Strategy.TREE

    def due(self, view: SessionView) -> bool:
        run = undigested(view.messages, view.digested())
        return run is not None and (len(run.messages) >= 2 or (view.forced and bool(run.messages)))

    async def work(self, view: SessionView) -> Made:
        self.asked += 1
        for action in self.during:
            await action()  # type: ignore[operator]
        if self.failing:
            raise ModelUnavailable("the model is down")
        run = undigested(view.messages, view.digested())
        assert run is not None
        pair = run.messages[:2]
        count = len(view.digest.pieces) + 1
        start = view.first_number + run.start
        piece = Piece(
            session=view.digest.state.session,
            id=f"node0_{count:03}",
            strategy=Strategy.TREE,
            level=0,
            text=" and ".join(part.text for message in pair for part in message.parts),
            start=start,
            end=start + len(pair) - 1,
            sources=tuple(message.id for message in pair),
            made_by="test",
            prompt="test/1",
            source_tokens=1,
            created_at=view.now,
        )
        return Made(added=(piece,), cycle="leaf")

    def shows(self, view: SessionView) -> tuple[str, ...]:
        return tuple(piece.id for piece in view.digest.active())


class LongSession:
    """A backend, a clock, and the services over them; a second process is another of these over the same backend."""

    def __init__(self, backend: Backend | None = None, *, strategy: Pairs | None = None, series: int = 1) -> None:
        self.backend = backend or open_memory_store()
        self.clock = FakeClock()
        self.strategy = strategy or Pairs()
        stores = (self.backend.digests, self.backend.conversations)
        self.views = SessionViews(*stores, strategy=Strategy.TREE, clock=self.clock)
        self.requests = SessionDigests(self.backend.digests, self.views, self.strategy, clock=self.clock)
        self.digesting = Digesting(
            *stores, self.views, self.strategy, clock=self.clock, ids=SequentialIds(series=series)
        )

    async def say(self, *names: str, session: SessionId = SESSION) -> list[Listed]:
        """Archive messages ``u1`` (a user's) and ``a1`` (the assistant's), whose texts are their names."""
        for at, name in enumerate(names):
            await self.backend.conversations.put_messages([message(name, at, session)])
        return listed(*names)


def message(name: str, at: int = 0, session: SessionId = SESSION) -> Message:
    role = Role.USER if name.startswith("u") else Role.ASSISTANT
    moment = START + timedelta(seconds=at)
    part = Part(id=PartId(f"prt_{name}"), kind="text", text=f"said {name}")
    return Message(
        id=MessageId(name), session=session, role=role, created_at=moment, completed_at=moment, parts=(part,)
    )


def listed(*names: str) -> list[Listed]:
    return [Listed(id=MessageId(name), role="user" if name.startswith("u") else "assistant") for name in names]


def texts(pieces: Sequence[Piece]) -> list[str]:
    return [piece.text for piece in pieces]
