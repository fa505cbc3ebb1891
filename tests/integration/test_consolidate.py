"""Consolidation with the local model, over the case rows; and origins that stay where they were accepted."""

from __future__ import annotations

import json
import subprocess
from collections import Counter
from datetime import timedelta
from functools import partial
from pathlib import Path

import anyio
import pytest

from backstory.adapters.clock import UlidSource
from backstory.adapters.embedders import minilm
from backstory.adapters.near_vectors import NearVectors
from backstory.adapters.project_folder import see_project
from backstory.adapters.stores.gitbranch.store import open_git
from backstory.adapters.stores.memory import open_memory_store
from backstory.domain.admission import TextLimits
from backstory.domain.ids import MemoryId, ProjectId
from backstory.domain.memory import Memory
from backstory.domain.provenance import Origin
from backstory.domain.scope import Audience, Viewer
from backstory.entrypoints.drive import drive
from backstory.services.consolidate import Consolidate, Plan
from backstory.services.conversation import at_once
from backstory.services.near_in_meaning import NearInMeaning
from backstory.services.reference import Reference
from backstory.services.remember import Remember
from backstory.services.review import Review
from backstory.services.synchronise import Synchronise
from backstory.testing.fakes import ORCHARD, START, FakeClock, SequentialIds, add_memories, sample_memory

CASES = Path(__file__).resolve().parents[3] / "shared" / "cases" / "near-duplicates.jsonl"
PERSON = Viewer(project=ORCHARD, audience=Audience.PERSON)


@pytest.fixture(scope="module")
def embedder() -> minilm.MiniLmEmbedder:
    if (missing := minilm.availability()) is not None:
        pytest.skip(missing)
    return minilm.MiniLmEmbedder(None)


def plan(embedder: minilm.MiniLmEmbedder, *texts: str) -> Plan:
    backend = open_memory_store()
    memories = [
        sample_memory(text, id=MemoryId(f"{n}"), at=START + timedelta(minutes=n)) for n, text in enumerate(texts)
    ]
    drive(add_memories(backend.memories, *memories))
    meaning = NearInMeaning(backend.vectors, embedder, no_embedder="", nearness=NearVectors, aside=at_once)
    service = Consolidate(backend.memories, meaning, clock=FakeClock(), ids=SequentialIds())
    return drive(service.plan(PERSON))


@pytest.mark.skipif(not CASES.exists(), reason="the case rows are not here")
def test_the_case_rows_are_decided_as_labelled_and_no_error_is_grave(embedder: minilm.MiniLmEmbedder) -> None:
    wrong = Counter[str]()
    for line in CASES.read_text(encoding="utf-8").splitlines():
        row = json.loads(line)
        found = plan(embedder, row["a"], row["b"])
        verdict = "same" if found.groups else "uncertain" if found.doubtful else "different"
        if row["tier"] == "core":
            assert verdict == row["verdict"], row["id"]
        if row["verdict"] != "same":
            assert not found.removed, row["id"]
        wrong[row["tier"]] += verdict != row["verdict"]
    assert wrong["extended"] <= 3


def test_the_local_model_finds_what_is_said_in_other_words(embedder: minilm.MiniLmEmbedder) -> None:
    found = plan(
        embedder,
        "Uploads live in /srv/up/ and rotate at 1,000 MB.",
        "Rotation of the uploads under /srv/up happens at 1000 MB.",
        "Rotation of the uploads under /srv/up happens at 900 MB.",
    )
    assert [[group.kept.n, *(memory.n for memory in group.removed)] for group in found.groups] == [[2, 1]]
    assert [(pair.memory.n, pair.other.n) for pair in found.doubtful] == [(3, 2)]


class Clone:
    """A clone of a repository with a store on its ref, and a person before it."""

    def __init__(self, remote: Path, folder: Path) -> None:
        subprocess.run(["git", "clone", "-q", str(remote), str(folder)], check=True, capture_output=True)
        for name, value in (("user.name", "Ada"), ("user.email", "ada@example.invalid")):
            subprocess.run(["git", "-C", str(folder), "config", name, value], check=True)
        self.backend = open_git(folder, index=folder.with_suffix(".db"))
        self.ids = UlidSource()
        identify = self.backend.projects.identify
        self.project = anyio.run(
            partial(identify, see_project(folder), now=START, new_id=ProjectId(self.ids.new_id()))
        ).id
        self.viewer = Viewer(project=self.project, audience=Audience.PERSON)

    def add(self, content: str, origin: Origin) -> None:
        memory = sample_memory(content, project=self.project, origin=origin)
        anyio.run(add_memories, self.backend.memories, memory)

    def accept(self, ref: str) -> None:
        store, clock = self.backend.memories, FakeClock(START + timedelta(hours=1))
        reference = Reference(store, self.backend.projects, clock=clock)
        remember = Remember(store, reference, clock=clock, ids=self.ids, limits=TextLimits())
        review = Review(store, reference, remember, clock=clock, ids=self.ids)
        anyio.run(partial(review.accept, [ref], viewer=self.viewer))

    def sync(self) -> None:
        anyio.run(Synchronise(self.backend).with_remote, None)

    def stored(self, n: int) -> Memory:
        memory = anyio.run(self.backend.memories.by_number, n)
        assert memory is not None
        return memory


def test_what_was_accepted_in_one_clone_waits_in_the_other(tmp_path: Path) -> None:
    remote = tmp_path / "remote.git"
    subprocess.run(["git", "init", "-q", "--bare", "-b", "main", str(remote)], check=True)
    here, there = Clone(remote, tmp_path / "here"), Clone(remote, tmp_path / "there")
    try:
        here.add("Deploys are on Mondays.", Origin.WEB)
        here.sync()
        there.sync()
        assert there.stored(1).origin is Origin.WEB
        here.accept("#1")
        here.sync()
        there.sync()
        assert here.stored(1).origin is Origin.USER
        assert there.stored(1).origin is Origin.WEB
    finally:
        for clone in (here, there):
            anyio.run(clone.backend.memories.close)
