"""Rules that hold for every memory, every selection and every order of operations, on all stores alike."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, reject, settings
from hypothesis import strategies as st

from backstory.adapters.project_evidence import FolderEvidence
from backstory.adapters.stores.memory import open_memory_store
from backstory.adapters.stores.sqlite.store import open_sqlite
from backstory.adapters.tokens import EstimatedTokens
from backstory.bootstrap import App
from backstory.codecs.jsonl import decode_lines, encode_lines
from backstory.codecs.record import decode_memory, encode_memory
from backstory.config import Settings
from backstory.domain.admission import TextLimits
from backstory.domain.context_block import recall_block
from backstory.domain.core_slots import CORE_SLOTS
from backstory.domain.history import Edit
from backstory.domain.ids import SessionId
from backstory.domain.memory import Memory, Sensitivity, is_offerable
from backstory.domain.outline import outline_of
from backstory.domain.project import Project
from backstory.domain.ranking import RankingPolicy
from backstory.domain.relevance import Relevance
from backstory.domain.scope import Audience, Viewer, visible
from backstory.domain.selection import EVERY_STATE, Selection, selects
from backstory.entrypoints.drive import drive
from backstory.entrypoints.tools import Call, find_tool, run_tool
from backstory.errors import BackstoryError, InputError
from backstory.ports.backend import Backend
from backstory.ports.store import Order
from backstory.services.context_block import ContextBlocks, ContextPolicy
from backstory.services.importing import Importing
from backstory.services.inspection import Inspection
from backstory.services.project_identity import ProjectIdentity
from backstory.services.query import Query
from backstory.services.recall import Recall
from backstory.services.reference import Reference
from backstory.services.transfer import Transfer
from backstory.testing.fakes import START, FakeClock, HashEmbedder, SequentialIds, sample_change
from tests.properties.strategies import PROJECTS, any_text, memories, selections, viewers
from tests.stores import STORES

QUICK = settings(deadline=None, suppress_health_check=list(HealthCheck))
LIMITS = TextLimits()


def many(size: int) -> st.SearchStrategy[list[Memory]]:
    """Up to so many memories with different ids."""
    return st.lists(memories(), min_size=1, max_size=size, unique_by=lambda memory: memory.id)


def fill(backend: Backend, items: Sequence[Memory]) -> list[Memory]:
    """Commit them all as one change."""
    change = drive(backend.memories.commit(sample_change(1, *(Edit(before=None, after=item) for item in items))))
    return [edit.after for edit in change.edits]


# --- selections -------------------------------------------------------------------------------------------------------


OTHERS = [name for name in STORES if name != "memory"]
EXAMPLES = {"sqlite": 25, "postgres": 8, "git": 4}
"""What a few seconds allow: one operation takes 2, 10 and 50 ms."""


@pytest.mark.parametrize("store", OTHERS)
def test_every_store_selects_what_the_rule_says_in_the_same_order(store: str) -> None:
    @settings(QUICK, max_examples=EXAMPLES[store])
    @given(many(12), st.lists(selections, min_size=1, max_size=12), st.sampled_from(Order))
    def agree(items: list[Memory], wanted: list[Selection], order: Order) -> None:
        with tempfile.TemporaryDirectory() as folder:
            other, memory = STORES[store](Path(folder)), open_memory_store()
            try:
                stored = fill(other, items)
            except InputError:  # half a character, which a store may refuse
                reject()
            assert fill(memory, items) == stored
            for selection in wanted:
                _select_alike(other, memory, stored, selection, order)
            drive(other.memories.close())

    agree()


def _select_alike(
    other: Backend, memory: Backend, stored: Sequence[Memory], selection: Selection, order: Order
) -> None:
    meant = [item for item in stored if selects(selection, item)]
    meant.sort(key=lambda item: (item.times.learned, item.n), reverse=order is Order.NEWEST)
    for backend in (other, memory):
        assert drive(backend.memories.select(selection, limit=100, order=order)) == meant
        assert drive(backend.memories.count(selection)) == len(meant)
        outlined = sorted(map(outline_of, meant), key=lambda item: (item.updated, item.n))
        assert drive(backend.memories.outlines(selection)) == outlined
        assert drive(backend.memories.select(selection, limit=2, offset=1, order=order)) == meant[1:3]
        search = drive(backend.text.search_text(["use", "tab", "cafe"], selection, limit=100))
        assert {hit.id for hit in search.hits} <= {item.id for item in meant}
    tags = [drive(backend.memories.tag_counts(selection, limit=9)) for backend in (other, memory)]
    assert tags[0] == tags[1]


@settings(QUICK, max_examples=200)
@given(memories(), viewers)
def test_nothing_selected_is_out_of_sight(memory: Memory, viewer: Viewer) -> None:
    selection = Selection(viewer=viewer, now=START, states=EVERY_STATE)
    assert selects(selection, memory) == visible(memory, viewer)


# --- codecs -----------------------------------------------------------------------------------------------------------


@settings(QUICK, max_examples=150)
@given(memories(any_text))
def test_a_record_comes_back_as_it_was(memory: Memory) -> None:
    assert decode_memory(encode_memory(memory)) == memory


@settings(QUICK, max_examples=60)
@given(st.lists(memories(any_text), max_size=4))
def test_an_export_comes_back_as_it_was_however_its_lines_are_cut(items: list[Memory]) -> None:
    projects = {project: Project(id=project, name="näme\u2028", root="/r") for project in PROJECTS[:1]}
    text = "\n".join(encode_lines(items, projects=projects, exported_at=START))
    for lines in (text.split("\n"), text.splitlines(), text.encode().decode().splitlines(keepends=True)):
        read = list(decode_lines(lines))
        assert [line.memory for line in read] == items
        assert [line.project_name for line in read] == [
            projects[item.project].name if item.project in projects else None for item in items
        ]


# --- the border of privacy --------------------------------------------------------------------------------------------

CANARY = "zebracanary"


def everything_a_model_is_told(backend: Backend, viewer: Viewer) -> str:
    """All that recall, block, snapshot, history and export say to this viewer, as one text."""
    clock, embedder = FakeClock(), HashEmbedder()
    reference = Reference(backend.memories, backend.projects, clock=clock)
    recall = Recall(backend, embedder, clock=clock, policy=RankingPolicy(), no_embedder="")
    policy = ContextPolicy(
        inject=True,
        by_recency=False,
        relevance=Relevance.KEEN,
        block_budget_tokens=4000,
        snapshot_budget_tokens=4000,
        max_entries=50,
        embed_within_s=None,
        core_slots=CORE_SLOTS,
    )
    blocks = ContextBlocks(backend, recall, clock=clock, tokens=EstimatedTokens(), policy=policy)
    inspection = Inspection(backend, reference, clock=clock)
    identity = ProjectIdentity(backend.projects, FolderEvidence(), clock=clock, ids=SequentialIds())
    importing = Importing(backend, identity, clock=clock, ids=SequentialIds(), max_chars=LIMITS.max_chars)
    transfer = Transfer(backend, importing, clock=clock)
    told: list[object] = []
    for text in (CANARY, ""):
        told.append(drive(recall.recall(Query(text=text, viewer=viewer, limit=100, with_superseded=True))).results)
    told.append(drive(blocks.for_prompt(CANARY, viewer)))
    told.append(drive(blocks.snapshot(viewer, session=SessionId("any"))))
    told.append(drive(inspection.history(viewer, limit=100)))
    for number in range(1, 8):
        for ref in (f"#{number}", CANARY):
            try:
                told.append(drive(inspection.why(ref, viewer)).memory)
            except BackstoryError as error:
                told.append(error)
    told += list(drive(transfer.export(viewer, with_forgotten=True)))
    told += tool_answers(backend, viewer)
    return repr(told)


def tool_answers(backend: Backend, viewer: Viewer) -> list[str]:
    """What the tools answer that only read."""
    app = App(Settings(), backend, HashEmbedder(), no_embedder="", clock=FakeClock(), ids=SequentialIds())
    call = Call(app=app, viewer=viewer)
    calls: list[tuple[str, dict[str, object]]] = [
        ("memory_recall", {"query": CANARY, "all_projects": True, "superseded": True, "limit": 100}),
        ("memory_recall", {"all_projects": True}),
    ]
    calls += [("memory_inspect", {"view": view}) for view in ("recent", "tags", "shown", "stats")]
    calls += [("memory_inspect", {"view": "why", "id": number}) for number in range(1, 8)]
    answers = []
    for name, arguments in calls:
        tool = find_tool(name)
        assert tool is not None
        answers.append(drive(run_tool(tool, arguments, call)).text)
    return answers


@settings(QUICK, max_examples=15)
@given(many(6), viewers.map(lambda viewer: replace(viewer, audience=Audience.MODEL)), st.data())
def test_nothing_local_only_ever_reaches_a_model(items: list[Memory], viewer: Viewer, data: st.DataObject) -> None:
    secret = [
        replace(item, content=f"{CANARY} {item.content}", tags=(CANARY,))
        if item.sensitivity is Sensitivity.LOCAL_ONLY
        else item
        for item in items
    ]
    with tempfile.TemporaryDirectory() as folder:
        for backend in (open_sqlite(Path(folder) / "memory.db"), open_memory_store()):
            stored = fill(backend, secret)
            hidden = data.draw(st.sampled_from(stored))  # said openly, and made local-only later
            said = replace(hidden, content=f"{CANARY} again", sensitivity=Sensitivity.NORMAL)
            opened = drive(backend.memories.commit(sample_change(2, Edit(before=hidden, after=said)))).edits[0].after
            closed = replace(opened, sensitivity=Sensitivity.LOCAL_ONLY)
            drive(backend.memories.commit(sample_change(3, Edit(before=opened, after=closed))))
            told = everything_a_model_is_told(backend, viewer)
            assert CANARY not in told.replace(f"no memory here contains '{CANARY}'", "")
            drive(backend.memories.close())


# --- blocks -----------------------------------------------------------------------------------------------------------


@settings(QUICK, max_examples=100)
@given(st.lists(memories(any_text), max_size=8), st.integers(0, 400), st.integers(0, 8))
def test_a_block_never_exceeds_its_budget(items: list[Memory], budget: int, most: int) -> None:
    numbered = [replace(item, n=number) for number, item in enumerate(items, start=1)]
    for count in (EstimatedTokens().count, len):
        block = recall_block(
            numbered,
            budget_tokens=budget,
            max_entries=most,
            count_tokens=count,
            here=PROJECTS[0],
            project_name=lambda project: "other",
        )
        if block is None:
            continue
        assert count(block.text) <= budget
        assert 1 <= len(block.shown) <= most
        assert all(is_offerable(item) for item in block.shown)
        assert len(block.text.splitlines()) == len(block.shown) + 3
        assert all(item in numbered for item in block.shown)
