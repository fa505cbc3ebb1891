"""Embedding what has no vector yet."""

from __future__ import annotations

from typing import TYPE_CHECKING

from backstory.testing.fakes import HashEmbedder

if TYPE_CHECKING:
    from tests.unit.services.conftest import Shop


def filled(shop: Shop, count: int) -> Shop:
    for number in range(count):
        shop.say(f"fact {number}")
    shop.embedder = HashEmbedder()
    return shop


def counts(shop: Shop) -> dict[str, int]:
    return dict(shop.do(shop.backend.vectors.vector_counts()))


def test_every_memory_gets_a_vector_and_no_second_one(shop: Shop) -> None:
    filled(shop, 70)
    steps: list[int] = []
    report = shop.do(shop.maintenance.embed_missing(progress=steps.append))
    assert (report.model, report.embedded, sum(steps)) == ("hash-embedder", 70, 70)
    assert shop.do(shop.maintenance.embed_missing()).embedded == 0
    assert counts(shop) == {"hash-embedder": 70}


def test_a_share_of_the_work_may_be_done(shop: Shop) -> None:
    filled(shop, 40)
    assert shop.do(shop.maintenance.embed_missing(at_most=35)).embedded == 35
    assert counts(shop) == {"hash-embedder": 35}


def test_vectors_of_a_former_model_go_once_the_new_one_is_done(shop: Shop) -> None:
    filled(shop, 3)
    shop.do(shop.maintenance.embed_missing())
    shop.embedder = HashEmbedder(name="new", dimension=32)
    assert shop.do(shop.maintenance.embed_missing(at_most=2)).dropped == 0
    assert counts(shop) == {"hash-embedder": 3, "new": 2}
    report = shop.do(shop.maintenance.embed_missing())
    assert (report.embedded, report.dropped) == (1, 3)
    assert counts(shop) == {"new": 3}


def test_a_failing_embedder_ends_the_run_with_a_reason(shop: Shop) -> None:
    filled(shop, 1)
    assert shop.embedder is not None
    shop.embedder.failing = True
    assert "told to fail" in (shop.do(shop.maintenance.embed_missing()).stopped_because or "")
    shop.embedder = None
    assert shop.do(shop.maintenance.embed_missing()).stopped_because == "none is set"


def test_a_memory_that_changes_meanwhile_is_embedded_anew(shop: Shop) -> None:
    filled(shop, 2)
    shop.do(shop.maintenance.embed_missing())
    shop.say("fact new", supersedes="#1")
    shop.forget(2)
    assert shop.do(shop.maintenance.embed_missing()).embedded == 1
