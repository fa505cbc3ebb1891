"""Every order of operations: each store answers, and refuses, as one in a dict does."""

from __future__ import annotations

import tempfile
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, invariant, rule, run_state_machine_as_test

from backstory.adapters.stores.memory import open_memory_store
from backstory.domain.admission import TextLimits
from backstory.domain.history import Author, Change
from backstory.domain.ids import MemoryId, SessionId
from backstory.domain.lifecycle import Revision
from backstory.domain.memory import Memory, Tier, Visibility
from backstory.domain.provenance import Origin
from backstory.domain.scope import Audience, Viewer
from backstory.domain.selection import EVERY_STATE, Selection
from backstory.entrypoints.drive import drive
from backstory.errors import BackstoryError
from backstory.ports.backend import Backend
from backstory.ports.store import Use
from backstory.services.reference import Reference
from backstory.services.remember import Draft, Remember
from backstory.testing.fakes import FakeClock, SequentialIds, sample_memory
from tests.properties.strategies import PROJECTS, SESSIONS
from tests.stores import STORES

QUICK = settings(deadline=None, suppress_health_check=list(HealthCheck))
LIMITS = TextLimits()
OTHERS = [name for name in STORES if name != "memory"]
EXAMPLES = {"sqlite": 25, "postgres": 8, "git": 4}
PERSON = Viewer(project=PROJECTS[0], session=SESSIONS[0], audience=Audience.PERSON)
SAID = st.sampled_from([f"Fact {letter}" for letter in "abcdefgh"] + ["fact A", " FACT  b "])


class World:
    """One store with the services over it; ids and time are the same in every world."""

    def __init__(self, backend: Backend) -> None:
        self.backend = backend
        self.clock = FakeClock()
        reference = Reference(backend.memories, backend.projects, clock=self.clock)
        self.remember = Remember(backend.memories, reference, clock=self.clock, ids=SequentialIds(), limits=LIMITS)

    def everything(self) -> list[Memory]:
        viewer = replace(PERSON, all_projects=True)
        selection = Selection(viewer=viewer, now=self.clock.now(), states=EVERY_STATE)
        return drive(self.backend.memories.select(selection, limit=1000))

    def searched(self) -> dict[MemoryId, dict[str, int]]:
        selection = Selection(viewer=PERSON, now=self.clock.now(), states=EVERY_STATE)
        search = drive(self.backend.text.search_text(["fact", "a", "tag"], selection, limit=1000))
        return {hit.id: dict(hit.matched) for hit in search.hits}


class StoresAgree(RuleBasedStateMachine):
    """Drives a world on each store with the same operations; whatever one answers or refuses, so does the other."""

    store = "sqlite"
    changes = Bundle("changes")

    def __init__(self) -> None:
        super().__init__()
        self.folder = tempfile.TemporaryDirectory()
        self.worlds = [World(open_memory_store()), World(STORES[self.store](Path(self.folder.name)))]

    def both(self, method: str, *arguments: object, **options: object) -> object:
        """Call one method of Remember in both worlds; the answer, or the error's kind and words."""
        answers: list[object] = []
        for world in self.worlds:
            world.clock.advance(timedelta(seconds=1))
            call = getattr(world.remember, method)
            try:
                answers.append(drive(call(*arguments, author=Author.USER, **options)))
            except BackstoryError as error:
                answers.append((type(error), str(error)))
        assert _plain(answers[0]) == _plain(answers[1])
        return answers[1]

    @rule(
        target=changes,
        content=SAID,
        tag=st.sampled_from(["tag", "other"]),
        visibility=st.sampled_from(Visibility),
        replaced=st.none() | st.integers(1, 12),
        hours=st.none() | st.integers(1, 3),
        viewer=st.sampled_from([PERSON, replace(PERSON, session=SESSIONS[1]), replace(PERSON, project=PROJECTS[1])]),
        key=st.none() | st.sampled_from(["k1", "k2"]),
    )
    def remember(
        self, content: str, tag: str, visibility: Visibility, replaced: int | None, hours: int | None, viewer: Viewer,
        key: str | None,
    ) -> object:  # fmt: skip
        draft = Draft(
            content=content,
            tags=(tag,),
            visibility=visibility,
            origin=Origin.USER,
            supersedes=None if replaced is None else f"#{replaced}",
            expires_in=None if hours is None else timedelta(hours=hours),
            key=key,
        )
        before = {memory.id: memory.content for memory in self.worlds[1].everything()}
        answer = self.both("remember", draft, viewer=viewer)
        after = {memory.id: memory.content for memory in self.worlds[1].everything()}
        assert before.items() <= after.items()  # neither adding nor superseding loses a text
        return getattr(answer, "change", None)

    @rule(
        target=changes,
        number=st.integers(1, 12),
        content=st.none() | SAID,
        tier=st.none() | st.sampled_from(Tier),
        visibility=st.none() | st.sampled_from(Visibility),
        tags=st.none() | st.just(("tag",)),
    )
    def update(
        self, number: int, content: str | None, tier: Tier | None, visibility: Visibility | None,
        tags: tuple[str, ...] | None,
    ) -> object:  # fmt: skip
        revision = Revision(content=content, tier=tier, visibility=visibility, tags=tags)
        return self.both("update", f"#{number}", revision, viewer=PERSON)

    @rule(target=changes, numbers=st.lists(st.integers(1, 12), min_size=1, max_size=3))
    def forget(self, numbers: list[int]) -> object:
        return self.both("forget", [f"#{number}" for number in numbers], viewer=PERSON, reason="said so")

    @rule(target=changes, number=st.integers(1, 12), pinned=st.booleans())
    def pin(self, number: int, pinned: bool) -> object:
        return self.both("pin", f"#{number}", pinned=pinned, viewer=PERSON)

    @rule(target=changes)
    def retag(self) -> object:
        return self.both("retag", "tag", "other", viewer=PERSON)

    @rule(target=changes)
    def undo_the_last(self) -> object:
        return self.both("undo", None, viewer=PERSON)

    @rule(target=changes, change=changes)
    def undo(self, change: object) -> object:
        if not isinstance(change, Change):
            return None
        answer = self.both("undo", change.id, viewer=PERSON)
        if isinstance(answer, Change):
            stored = drive(self.worlds[1].backend.memories.get([edit.after.id for edit in change.edits]))
            for edit in change.edits:
                assert edit.before is None or _decided(stored[edit.after.id]) == _decided(edit.before)
        return answer

    @rule(
        numbers=st.lists(st.integers(1, 12), max_size=3),
        session=st.sampled_from([None, *SESSIONS]),
        surfaced=st.booleans(),
    )
    def use(self, numbers: list[int], session: SessionId | None, surfaced: bool) -> None:
        for world in self.worlds:
            ids = tuple(memory.id for memory in world.everything() if memory.n in numbers)
            use = Use(memories=ids, at=world.clock.now(), session=session, surfaced=surfaced)
            drive(world.backend.memories.record_use(use))

    @rule(hours=st.integers(0, 2))
    def wait(self, hours: int) -> None:
        for world in self.worlds:
            world.clock.advance(timedelta(hours=hours))

    @invariant()
    def both_hold_the_same(self) -> None:
        ours, theirs = self.worlds
        assert ours.everything() == theirs.everything()
        assert ours.searched() == theirs.searched()
        newest = [_plain(drive(world.backend.memories.history(limit=3))) for world in self.worlds]
        assert newest[0] == newest[1]

    def teardown(self) -> None:
        drive(self.worlds[1].backend.memories.close())
        self.folder.cleanup()


def _decided(memory: Memory) -> Memory:
    """A memory without what is only counted."""
    times = replace(memory.times, surfaced=None, used=None)
    return replace(memory, n=0, revision=0, counters=sample_memory().counters, times=times)


def _plain(answer: object) -> object:
    """An answer without counters, which a change carries as its caller last saw them."""
    if isinstance(answer, list):
        return [_plain(item) for item in answer]
    if isinstance(answer, Change):
        return replace(answer, edits=()), [
            (edit.before and _decided(edit.before), _decided(edit.after), edit.after.n, edit.after.revision)
            for edit in answer.edits
        ]
    change = getattr(answer, "change", None)
    return answer if change is None else (_plain(change), getattr(answer, "fresh", None))


@pytest.mark.parametrize("store", OTHERS)
def test_every_store_agrees_with_a_dict_whatever_is_done_to_both(store: str) -> None:
    machine = type("StoresAgree", (StoresAgree,), {"store": store})
    run_state_machine_as_test(machine, settings=settings(QUICK, max_examples=EXAMPLES[store], stateful_step_count=20))
