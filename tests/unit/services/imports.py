"""Imports into the stores of tests, and what came of them.

Test modules take the fixture by its name.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from backstory.domain.conversation import Session
from backstory.domain.ids import SessionId
from backstory.domain.interchange import ForeignRecord, Keepsake, Remark, Unreadable
from backstory.domain.memory import Memory, Visibility
from backstory.domain.selection import EVERY_STATE, Selection
from backstory.services.import_report import ImportReport
from backstory.services.imported_memories import ImportPolicy
from tests.stores import STORES
from tests.unit.services.conftest import Shop
from tests.unit.services.foreign import NIGHT, foreign, foreign_digest, foreign_messages, foreign_session


@pytest.fixture(params=["memory", "sqlite"])
def shop(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Shop]:
    made = Shop(backend=STORES[request.param](tmp_path))
    yield made
    made.do(made.backend.memories.close())


def bring(shop: Shop, *records: ForeignRecord, label: str = "", **policy: bool) -> ImportReport:
    return shop.do(shop.importing.bring_in(records, shop.person, ImportPolicy(**policy), label=label))


def kept(shop: Shop) -> list[Memory]:
    everything = Selection(viewer=replace(shop.person, all_projects=True), now=shop.clock.now(), states=EVERY_STATE)
    return sorted(shop.do(shop.backend.memories.select(everything, limit=1000)), key=lambda memory: memory.n)


def session(shop: Shop, name: str = NIGHT) -> Session:
    found = shop.do(shop.backend.conversations.session(SessionId(name)))
    assert found is not None
    return found


def whole() -> list[ForeignRecord]:
    return [
        foreign("Hens are fed at six"),
        foreign("Eggs are sorted by size", visibility=Visibility.GLOBAL, place=None),
        foreign_session(),
        foreign_messages("Who feeds the hens?", "Whoever is up first"),
        foreign_digest("The hens are fed by whoever is up first"),
        Keepsake(format="notebook", store="", key="settings", text='{"paper": "lined"}'),
        Remark(where="settings", text="the paper is kept for an export alone"),
        Unreadable(where="row 7", reason="it has no text"),
    ]
