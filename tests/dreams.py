"""A session and what distils it, over an in-memory store, with a model that says what a test tells it to."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import Any

from backstory.adapters.stores.memory import open_memory_store
from backstory.domain.admission import TextLimits
from backstory.domain.conversation import Message, Part, Role, Session
from backstory.domain.dream_state import DreamState
from backstory.domain.history import Action, Author, Change, Edit
from backstory.domain.ids import ChangeId, MessageId, PartId, SessionId
from backstory.domain.memory import Memory
from backstory.domain.pruning import PruningPolicy
from backstory.domain.scope import Audience, Viewer
from backstory.domain.selection import EVERY_STATE, Selection
from backstory.errors import ModelError
from backstory.ports.backend import Backend
from backstory.ports.text_models import TextModel
from backstory.services.dreaming import Dreaming
from backstory.services.dreaming_journal import DreamPolicy
from backstory.services.dreaming_questions import Questions
from backstory.services.dreaming_summary import SummaryWriter
from backstory.services.dreaming_work import Distilling
from backstory.services.pruning import Pruning
from backstory.services.repercussions import Repercussions
from backstory.testing.fakes import ORCHARD, START, FakeClock, SequentialIds
from backstory.testing.text_model import ScriptedTextModel

SESSION = SessionId("ses_night")
POLICY = DreamPolicy(enabled=True, subagents=False, transcript_chars=12_000)
Json = Any  # JSON of any shape


def said(number: int, text: str, *, user: bool = True, done: bool = True, parts: Sequence[Part] = ()) -> Message:
    """The ``number``-th message of the session, a minute after the one before."""
    at = START + timedelta(minutes=number)
    name = f"msg_{number:03}"
    own = (Part(id=PartId(f"{name}_0"), kind="text", text=text),) if text else ()
    return Message(
        id=MessageId(name),
        session=SESSION,
        role=Role.USER if user else Role.ASSISTANT,
        created_at=at,
        completed_at=at if done else None,
        parts=(*own, *parts),
    )


def tool(number: int, output: str, *, name: str = "bash", status: str = "completed") -> Part:
    """What a tool answered, as the archive keeps it."""
    detail = {"state": {"status": status, "input": {"command": "run"}, "output": output}}
    return Part(id=PartId(f"msg_{number:03}_9"), kind="tool", tool=name, text=output, detail=json.dumps(detail))


def fact(text: str, *sources: int, **fields: Json) -> Json:
    """A new fact as a model proposes it."""
    return {"text": text, "type": "fact", "scope": "project", "confidence": 0.9, "sources": list(sources)} | fields


def answer(*new: Json, update: Json = (), delete: Json = (), conflicts: Json = ()) -> str:
    """What a model answers to the first question."""
    return json.dumps({"new": list(new), "update": list(update), "delete": list(delete), "conflicts": list(conflicts)})


@dataclass
class Night:
    """Everything around one session. ``answers`` are the model's, in order; None: there is no model."""

    answers: Sequence[str | ModelError] | None = (answer(),)
    backend: Backend = field(default_factory=open_memory_store)
    clock: FakeClock = field(default_factory=FakeClock)
    ids: SequentialIds = field(default_factory=SequentialIds)
    policy: DreamPolicy = POLICY
    summary: bool = False
    at_most: int = 400
    model: TextModel | None = field(init=False, default=None)

    def __post_init__(self) -> None:
        self.clock.advance(timedelta(hours=1))
        if self.answers is not None:
            self.model = ScriptedTextModel(self.answers)

    @property
    def asked(self) -> ScriptedTextModel:
        assert isinstance(self.model, ScriptedTextModel)
        return self.model

    @property
    def dreaming(self) -> Dreaming:
        questions = Questions(self.model, timeout_s=5, max_chars=self.policy.transcript_chars)
        distilling = Distilling(
            self.backend.memories,
            self.backend.conversations,
            questions,
            Repercussions(self.backend.memories, self.backend.text),
            clock=self.clock,
            ids=self.ids,
            limits=TextLimits(),
        )
        return Dreaming(
            self.backend.dreams,
            self.backend.memories,
            self.backend.conversations,
            distilling,
            self.writer if self.summary else None,
            Pruning(self.backend.memories, clock=self.clock, ids=self.ids, policy=PruningPolicy(at_most=self.at_most)),
            policy=self.policy,
            clock=self.clock,
            ids=self.ids,
        )

    @property
    def writer(self) -> SummaryWriter:
        assert self.model is not None
        return SummaryWriter(self.backend.dreams, self.backend.memories, self.model, clock=self.clock, timeout_s=5)

    async def tell(self, *messages: Message, **fields: Json) -> None:
        """Take messages into the session's archive; fields are those of the session."""
        session = Session(
            id=SESSION, project=ORCHARD, host="opencode", directory="/farm", created_at=START, updated_at=START
        )
        updated = max([START, *(message.created_at for message in messages)])
        named: dict[str, Json] = {"updated_at": updated} | fields
        await self.backend.conversations.put_session(replace(session, **named))
        await self.backend.conversations.put_messages(messages)

    async def keep(self, *memories: Memory) -> list[Memory]:
        """Store memories, and return them with their numbers."""
        edits = tuple(Edit(before=None, after=memory) for memory in memories)
        change = Change(
            id=ChangeId(self.ids.new_id()), at=self.clock.now(), author=Author.USER, action=Action.ADD, edits=edits
        )
        return [edit.after for edit in (await self.backend.memories.commit(change)).edits]

    async def kept(self, *, states: frozenset[str] = EVERY_STATE) -> list[Memory]:
        """All memories in the order of their numbers."""
        viewer = Viewer(project=ORCHARD, session=SESSION, audience=Audience.PERSON)
        selection = Selection(viewer=viewer, now=self.clock.now(), states=states)
        return sorted(await self.backend.memories.select(selection, limit=500), key=lambda memory: memory.n)

    async def texts(self) -> list[str]:
        """What is current, in order."""
        return [memory.content for memory in await self.kept(states=frozenset({"active", "conflicted"}))]

    async def state(self) -> DreamState:
        state = await self.backend.dreams.state(SESSION)
        assert state is not None
        return state
