"""Every store tells of the sessions with work left, also of those that another process has, or that rest."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest

from backstory.domain.digest import DigestState, DigestUpdate, Lease, Strategy
from backstory.domain.ids import SessionId
from backstory.entrypoints.drive import drive
from backstory.ports.backend import Backend
from backstory.services.digest_inspection import DigestInspection
from backstory.testing.fakes import START, FakeClock
from tests.stores import STORES

NAMES = ("leased", "resting", "due", "forced", "done")


@pytest.fixture(params=list(STORES))
def backend(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Backend]:
    backend = STORES[request.param](tmp_path)
    yield backend
    drive(backend.memories.close())


def test_all_that_waits_is_told_the_latest_first(backend: Backend) -> None:
    later = START + timedelta(minutes=3)
    states = {
        "leased": {"due": True, "lease": Lease(token="theirs", expires_at=later)},
        "resting": {"due": True, "not_before": later, "problem": "no answer", "attempts": 2},
        "due": {"due": True},
        "forced": {"forced": True},
        "done": {},
    }
    for minute, name in enumerate(NAMES):
        at = START - timedelta(minutes=minute)
        plain = DigestState(session=SessionId(name), strategy=Strategy.TREE, updated_at=at)
        state = replace(plain, **states[name])  # type: ignore[arg-type]  # fields of DigestState
        assert drive(backend.digests.apply(DigestUpdate(state=state)))
    inspection = DigestInspection(backend.digests, clock=FakeClock())
    waiting = drive(inspection.waiting())
    assert [card.session for card in waiting] == list(NAMES[:-1])
    assert [card.worked_on_until(START) for card in waiting] == [later, None, None, None]
    assert [card.resting_until(START) for card in waiting] == [None, later, None, None]
    assert [card.problem for card in waiting] == [None, "no answer", None, None]
    assert drive(inspection.card(SessionId("done"))) is not None
