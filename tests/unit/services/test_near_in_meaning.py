"""Stored vectors tell which memories may be near each other; only where labels blur that is a text embedded again."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import pytest

from backstory.adapters.near_vectors import NearVectors
from backstory.domain.memory import Memory, searchable_text
from backstory.ports.index import Embedded
from backstory.ports.models import EmbeddingModel, Vector
from backstory.services import near_in_meaning
from backstory.services.conversation import at_once
from backstory.services.near_in_meaning import NearInMeaning
from backstory.testing.fakes import HashEmbedder

if TYPE_CHECKING:
    from tests.unit.services.conftest import Shop

pytest.importorskip("numpy")

MODEL = EmbeddingModel(name="plumb line", dimension=3)
WEST, NORTH, BETWEEN = (1.0, 0.0, 0.0), (0.0, 1.0, 0.0), (0.7, 0.7, 0.14)


class Plumb(HashEmbedder):
    """Gives each text the vector it was told, and remembers which texts it was shown."""

    def __init__(self, **vectors: Vector) -> None:
        super().__init__()
        self.vectors = vectors
        self.shown: list[str] = []

    async def model(self) -> EmbeddingModel:
        return MODEL

    async def embed(self, texts: Sequence[str]) -> list[Vector | None]:
        self.shown += texts
        return [self.vectors[text] for text in texts]


def store(shop: Shop, memory: Memory, vector: Vector) -> None:
    embedded = Embedded(id=memory.id, revision=memory.revision, vector=vector)
    assert shop.do(shop.backend.vectors.put_vectors([embedded], model=MODEL)) == 1


def near(shop: Shop, embedder: Plumb, *memories: Memory) -> dict[int, list[int]]:
    service = NearInMeaning(shop.backend.vectors, embedder, no_embedder="", nearness=NearVectors, aside=at_once)
    found = shop.do(service.near(memories, None))
    return {place: list(earlier) for place, earlier in found.items() if earlier}


def test_what_bears_no_label_is_not_embedded_again(shop: Shop) -> None:
    plum, quince = shop.say("plum").memory, shop.say("quince").memory
    for memory in (plum, quince):
        store(shop, memory, WEST)
    embedder = Plumb()
    assert near(shop, embedder, plum, quince) == {1: [0]}
    assert embedder.shown == []


def test_labels_neither_hide_what_is_near_nor_make_it_so(shop: Shop) -> None:
    plum, quince = shop.say("plum", tags=("fruit",)).memory, shop.say("quince").memory
    rowan, sorrel = shop.say("rowan", tags=("leaf",)).memory, shop.say("sorrel", tags=("leaf",)).memory
    assert searchable_text(plum) != plum.content
    for memory, vector in ((plum, BETWEEN), (quince, WEST), (rowan, NORTH), (sorrel, NORTH)):
        store(shop, memory, vector)
    embedder = Plumb(plum=WEST, rowan=NORTH, sorrel=BETWEEN)
    assert near(shop, embedder, plum, quince, rowan, sorrel) == {1: [0]}
    assert sorted(embedder.shown) == ["plum", "rowan", "sorrel"]


def test_a_labelled_one_far_from_all_is_not_embedded_again(shop: Shop) -> None:
    plum, quince = shop.say("plum", tags=("fruit",)).memory, shop.say("quince", tags=("fruit",)).memory
    store(shop, plum, WEST)
    store(shop, quince, NORTH)
    embedder = Plumb()
    assert near(shop, embedder, plum, quince) == {}
    assert embedder.shown == []


def test_of_too_many_labelled_ones_those_with_the_nearest_others_are_embedded(
    shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(near_in_meaning, "MOST_EMBEDDED", 2)
    plum, quince, rowan = (shop.say(text, tags=("fruit",)).memory for text in ("plum", "quince", "rowan"))
    for memory, vector in ((plum, BETWEEN), (quince, WEST), (rowan, WEST)):
        store(shop, memory, vector)
    embedder = Plumb(quince=WEST, rowan=NORTH)
    assert near(shop, embedder, plum, quince, rowan) == {}
    assert embedder.shown == ["quince", "rowan"]


def test_what_has_no_stored_vector_is_embedded_once(shop: Shop) -> None:
    plum, quince = shop.say("plum", tags=("fruit",)).memory, shop.say("quince").memory
    store(shop, quince, WEST)
    embedder = Plumb(plum=WEST)
    assert near(shop, embedder, plum, quince) == {1: [0]}
    assert embedder.shown == ["plum"]


def test_a_circle_of_other_readers_makes_nothing_near(shop: Shop) -> None:
    plum = shop.say("plum", tags=("fruit",)).memory
    quince = shop.say("quince", viewer=shop.elsewhere).memory
    for memory in (plum, quince):
        store(shop, memory, WEST)
    embedder = Plumb()
    assert near(shop, embedder, plum, quince) == {}
    assert embedder.shown == []
