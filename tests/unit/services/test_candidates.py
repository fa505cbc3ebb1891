"""Which memories come into question at all: a project's own are not crowded out by what holds everywhere."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from backstory.domain.memory import Visibility
from backstory.testing.fakes import HashEmbedder

if TYPE_CHECKING:
    from tests.unit.services.conftest import Shop

OWN = "The staging gateway listens on port 9443 today"
QUESTION = "which port does the staging gateway listen on?"


def crowded(shop: Shop, *, embedded: bool, others: int = 200) -> Shop:
    """One memory of the project behind many global ones that say nearly the same (this store lists equals by age)."""
    for number in range(others):
        shop.say(f"The staging gateway listens on port 8{number:03}", visibility=Visibility.GLOBAL)
    shop.say(OWN)
    if embedded:
        shop.embedder = HashEmbedder()
        shop.do(shop.maintenance.embed_missing())
    return shop


@pytest.mark.parametrize("embedded", [False, True])
def test_a_projects_own_memory_is_found_among_many_global_ones(shop: Shop, embedded: bool) -> None:
    crowded(shop, embedded=embedded)
    assert OWN in shop.found(QUESTION, limit=5)
    assert OWN not in shop.found(QUESTION, limit=5, viewer=shop.elsewhere)


def test_who_reads_all_projects_has_none_of_its_own(shop: Shop) -> None:
    crowded(shop, embedded=True, others=60)
    wide = replace(shop.model, all_projects=True)
    assert len(shop.found(QUESTION, viewer=wide)) == 10
