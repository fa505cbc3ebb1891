"""The services over an in-memory store, with a clock that stands still and an embedder made of words."""

from __future__ import annotations

from collections.abc import Coroutine
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

import pytest

from backstory.adapters.project_evidence import FolderEvidence
from backstory.adapters.stores.memory import open_memory_store
from backstory.adapters.tokens import EstimatedTokens
from backstory.domain.admission import TextLimits
from backstory.domain.core_slots import CORE_SLOTS
from backstory.domain.history import Author, Change
from backstory.domain.ids import ProjectId, SessionId
from backstory.domain.lifecycle import Revision
from backstory.domain.memory import Memory, status_name
from backstory.domain.provenance import Origin
from backstory.domain.ranking import RankingPolicy
from backstory.domain.relevance import Relevance
from backstory.domain.scope import Audience, Viewer
from backstory.entrypoints.drive import drive
from backstory.ports.backend import Backend
from backstory.services.context_block import ContextBlocks, ContextPolicy
from backstory.services.conversation import Conversations
from backstory.services.importing import Importing
from backstory.services.inspection import Inspection
from backstory.services.maintenance import Maintenance
from backstory.services.project_identity import ProjectIdentity
from backstory.services.prompt import Prompts
from backstory.services.query import Query, Recalled
from backstory.services.recall import Recall
from backstory.services.reference import Reference
from backstory.services.remember import Draft, Remember, Remembered
from backstory.services.transfer import Transfer
from backstory.testing.fakes import ORCHARD, FakeClock, HashEmbedder, SequentialIds, ulid

T = TypeVar("T")

MODEL = Viewer(project=ORCHARD, session=SessionId("ses-1"))
PERSON = replace(MODEL, audience=Audience.PERSON)
ELSEWHERE = Viewer(project=ProjectId(ulid(9, series=2)), session=SessionId("ses-9"))
POLICY = ContextPolicy(
    inject=True,
    by_recency=False,
    relevance=Relevance.KEEN,
    block_budget_tokens=1200,
    snapshot_budget_tokens=1200,
    max_entries=8,
    embed_within_s=None,
    core_slots=CORE_SLOTS,
)


@dataclass
class Shop:
    """Every service over one backend; set ``embedder`` or ``policy`` before their first use."""

    backend: Backend = field(default_factory=open_memory_store)
    clock: FakeClock = field(default_factory=FakeClock)
    ids: SequentialIds = field(default_factory=SequentialIds)
    limits: TextLimits = field(default_factory=TextLimits)
    embedder: HashEmbedder | None = None
    policy: ContextPolicy = POLICY

    model = MODEL
    person = PERSON
    elsewhere = ELSEWHERE

    @property
    def reference(self) -> Reference:
        return Reference(self.backend.memories, self.backend.projects, clock=self.clock)

    @property
    def remember(self) -> Remember:
        return Remember(
            self.backend.memories, self.reference, clock=self.clock, ids=self.ids, limits=self.limits,
            text=self.backend.text,
        )  # fmt: skip

    @property
    def recall(self) -> Recall:
        return Recall(self.backend, self.embedder, clock=self.clock, policy=RankingPolicy(), no_embedder="none is set")

    @property
    def blocks(self) -> ContextBlocks:
        return ContextBlocks(self.backend, self.recall, clock=self.clock, tokens=EstimatedTokens(), policy=self.policy)

    @property
    def conversations(self) -> Conversations:
        return Conversations(self.backend.conversations, self.remember, clock=self.clock, archive=True, capture=True)

    @property
    def prompts(self) -> Prompts:
        return Prompts(self.blocks, self.conversations)

    @property
    def inspection(self) -> Inspection:
        return Inspection(self.backend, self.reference, clock=self.clock)

    @property
    def transfer(self) -> Transfer:
        return Transfer(self.backend, self.importing, clock=self.clock)

    @property
    def importing(self) -> Importing:
        identity = ProjectIdentity(self.backend.projects, FolderEvidence(), clock=self.clock, ids=self.ids)
        return Importing(self.backend, identity, clock=self.clock, ids=self.ids, max_chars=self.limits.max_chars)

    @property
    def maintenance(self) -> Maintenance:
        return Maintenance(self.backend, self.embedder, no_embedder="none is set")

    def do(self, coroutine: Coroutine[Any, Any, T]) -> T:  # Any: nothing is sent in and nothing is yielded
        """Run a service call to its end."""
        return drive(coroutine)

    def say(self, content: str, *, viewer: Viewer = PERSON, **fields: Any) -> Remembered:
        """Remember a text; fields are those of a Draft."""
        draft = replace(Draft(content=content, origin=Origin.USER), **fields)
        return drive(self.remember.remember(draft, viewer=viewer, author=Author.USER))

    def forget(self, *numbers: int, viewer: Viewer = PERSON) -> Change:
        """Forget memories by number."""
        refs = [f"#{number}" for number in numbers]
        return drive(self.remember.forget(refs, viewer=viewer, author=Author.USER))

    def update(self, n: int, **fields: Any) -> Memory:
        """Change memory #n for the person. Any: the fields of a ``Revision``."""
        change = self.do(self.remember.update(f"#{n}", Revision(**fields), viewer=PERSON, author=Author.USER))
        assert change is not None
        return change.edits[0].after

    def undo(self, change: Change | None = None, *, viewer: Viewer = PERSON) -> Change:
        """Undo a change, or the last."""
        return drive(self.remember.undo(change.id if change else None, viewer=viewer, author=Author.USER))

    def stored(self, n: int) -> Memory:
        """The memory with that number, as it is now."""
        memory = drive(self.backend.memories.by_number(n))
        assert memory is not None
        return memory

    def state(self, n: int) -> str:
        return status_name(self.stored(n).status)

    def ask(self, text: str, *, viewer: Viewer = MODEL, **fields: Any) -> Recalled:
        """Recall; fields are those of a Query."""
        return drive(self.recall.recall(replace(Query(text=text, viewer=viewer), **fields)))

    def found(self, text: str, *, viewer: Viewer = MODEL, **fields: Any) -> list[str]:
        """The texts recalled, best first."""
        return [result.memory.content for result in self.ask(text, viewer=viewer, **fields).results]


@pytest.fixture
def shop() -> Shop:
    return Shop()
