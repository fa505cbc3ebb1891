"""Whatever is done to digests, in whatever order: every store says what the one in dictionaries says."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from backstory.adapters.stores.memory import open_memory_store
from backstory.domain.digest import DigestState, DigestUpdate, Lease, Piece, Strategy
from backstory.domain.ids import MessageId, SessionId
from backstory.entrypoints.drive import drive
from backstory.errors import InputError
from backstory.ports.digests import DigestStore
from backstory.testing.fakes import START
from tests.stores import STORES

EXAMPLES = {"sqlite": 40, "postgres": 10, "git": 5}
"""What a few seconds allow."""
SESSIONS = [SessionId(name) for name in ("ses-1", "ses-2", "s é 日本")]
IDS = ["node0_001", "node0_002", "node0_003", "node1_001"]
TEXTS = st.text(st.characters(codec="utf-8", exclude_characters="\x00"), max_size=40)
MOMENTS = st.integers(0, 5).map(lambda count: START + timedelta(microseconds=count))

pieces = st.builds(
    Piece,
    session=st.sampled_from(SESSIONS[:2]),
    id=st.sampled_from(IDS),
    strategy=st.sampled_from(Strategy),
    level=st.integers(0, 9),
    text=TEXTS,
    start=st.integers(0, 10**6),
    end=st.integers(0, 10**6),
    sources=st.lists(TEXTS.map(MessageId), max_size=3).map(tuple),
    children=st.lists(st.sampled_from(IDS), max_size=3).map(tuple),
    parent=st.none() | st.sampled_from(IDS),
    active=st.booleans(),
    made_by=TEXTS,
    prompt=TEXTS,
    source_tokens=st.integers(0, 10**6),
    created_at=MOMENTS,
)
states = st.builds(
    DigestState,
    session=st.sampled_from(SESSIONS),
    strategy=st.sampled_from(Strategy),
    shown=st.lists(TEXTS, max_size=3).map(tuple),
    shown_for=st.none() | TEXTS.map(MessageId),
    current_task=st.none() | TEXTS,
    suggested_response=st.none() | TEXTS,
    system_prompt=st.none() | TEXTS,
    due=st.booleans(),
    forced=st.booleans(),
    lease=st.none() | st.builds(Lease, token=TEXTS, expires_at=MOMENTS),
    attempts=st.integers(0, 9),
    not_before=st.none() | MOMENTS,
    problem=st.none() | TEXTS,
    last_cycle_at=st.none() | MOMENTS,
    last_cycle=st.none() | TEXTS,
    updated_at=MOMENTS,
)
updates = st.builds(
    DigestUpdate,
    state=states,
    added=st.lists(pieces, max_size=3).map(tuple),
    changed=st.lists(pieces, max_size=2).map(tuple),
    dropped=st.lists(st.sampled_from(IDS), max_size=2).map(tuple),
)
Step = tuple[DigestUpdate, int, bool] | SessionId
"""A change, how far its revision is off, and whether its pieces are made the session's own; or a session to forget."""
OFF = st.sampled_from([0, 0, 0, -1, 1])
steps: st.SearchStrategy[list[Step]] = st.lists(
    st.tuples(updates, OFF, st.booleans()) | st.sampled_from(SESSIONS), max_size=12
)


@pytest.mark.parametrize("store", list(EXAMPLES))
def test_every_store_keeps_digests_as_the_one_in_dictionaries_does(store: str) -> None:
    @settings(deadline=None, suppress_health_check=list(HealthCheck), max_examples=EXAMPLES[store])
    @given(steps)
    def agree(steps: Sequence[Step]) -> None:
        with tempfile.TemporaryDirectory() as folder:
            other, memory = STORES[store](Path(folder)), open_memory_store()
            for step in steps:
                assert done(other.digests, step) == done(memory.digests, step)
                assert seen(other.digests) == seen(memory.digests)
            drive(other.memories.close())

    agree()


def done(store: DigestStore, step: Step) -> object:
    """What a store answers to a step."""
    if isinstance(step, str):
        return drive(store.forget(step))
    update, off, own = step
    session = update.state.session
    revision = drive(store.revision(session)) + off
    added = tuple(replace(piece, session=session) for piece in update.added) if own else update.added
    changed = tuple(replace(piece, session=session) for piece in update.changed) if own else update.changed
    state = replace(update.state, revision=max(revision, 0))
    try:
        return drive(store.apply(replace(update, state=state, added=added, changed=changed)))
    except InputError as error:
        return error.field


def seen(store: DigestStore) -> object:
    """All that a store tells."""
    digests = [drive(store.digest(session)) for session in SESSIONS]
    revisions = [drive(store.revision(session)) for session in SESSIONS]
    now = START + timedelta(microseconds=3)
    return digests, revisions, list(drive(store.due(now=now, limit=2))), list(drive(store.due(now=now, limit=9)))
