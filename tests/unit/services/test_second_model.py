"""A second model beside the embedder: candidates from both, one score, and no harm where it fails or is late."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import anyio
import pytest

from backstory.domain.ranking import RankingPolicy
from backstory.errors import ModelUnavailable
from backstory.ports.models import EmbeddingModel, Vector
from backstory.services.maintenance import Maintenance
from backstory.services.query import Query, Recalled
from backstory.services.recall import Recall
from backstory.testing.fakes import HashEmbedder

if TYPE_CHECKING:
    from tests.unit.services.conftest import Shop

HERON = "El despliegue sale los martes por la tarde."
OTHERS = [f"Module {number} keeps its fixtures in a folder of its own." for number in range(60)]


class Bilingual:
    """Knows which texts are about deployment, whatever their language; everything else is alike to it."""

    def __init__(self) -> None:
        self.failing = False
        self.asked: list[str] = []
        self.read: list[str] = []
        self.closed = False

    async def model(self) -> EmbeddingModel:
        if self.failing:
            raise ModelUnavailable("the second model was told to fail")
        return EmbeddingModel(name="bilingual", dimension=2)

    async def passages(self, texts: Sequence[str]) -> list[Vector | None]:
        await self.model()
        self.read += texts
        return [self._vector(text) for text in texts]

    async def query(self, text: str) -> Vector | None:
        await self.model()
        self.asked.append(text)
        return self._vector(text)

    async def close(self) -> None:
        self.closed = True

    def _vector(self, text: str) -> Vector:
        about = "despliegue" in text or "deployment" in text
        return [1.0, 0.0] if about else [0.6, 0.8]


class Late(Bilingual):
    """Never done with a query."""

    async def query(self, text: str) -> Vector | None:
        await anyio.sleep_forever()
        return None


def embedded(shop: Shop, second: Bilingual | None) -> Recall:
    shop.embedder = HashEmbedder()
    maintenance = Maintenance(shop.backend, shop.embedder, no_embedder="", second=second)
    report = shop.do(maintenance.embed_missing())
    assert report.stopped_because is None
    return over(shop, second)


def over(shop: Shop, second: Bilingual | None) -> Recall:
    return Recall(shop.backend, shop.embedder, clock=shop.clock, policy=RankingPolicy(), no_embedder="", second=second)


def filled(shop: Shop) -> Shop:
    for text in [HERON, *OTHERS]:
        shop.say(text)
    return shop


def ask(shop: Shop, recall: Recall, text: str = "when does deployment happen") -> Recalled:
    return shop.do(recall.recall(Query(text=text, viewer=shop.person)))


def test_what_only_the_second_model_finds_near_is_found(shop: Shop) -> None:
    filled(shop)
    assert HERON not in [result.memory.content for result in ask(shop, embedded(shop, None)).results]
    found = ask(shop, embedded(shop, Bilingual()))
    assert found.results[0].memory.content == HERON
    assert found.skipped == ()
    assert "by the second model" in found.results[0].reasons[0]


def test_each_model_has_vectors_of_its_own_and_is_asked_for_its_own_alone(shop: Shop) -> None:
    second = Bilingual()
    embedded(filled(shop), second)
    assert shop.do(shop.backend.vectors.vector_counts()) == {"hash-embedder": 61, "bilingual": 61}
    assert sorted(second.read) == sorted([HERON, *OTHERS])


def test_a_second_model_that_fails_is_named_and_the_first_goes_on(shop: Shop) -> None:
    second = Bilingual()
    recall = embedded(filled(shop), second)
    second.failing = True
    question = "which folder has the fixtures of module 7"
    found = ask(shop, recall, question)
    assert [(part.part, part.reason) for part in found.skipped] == [
        ("second model", "the second model was told to fail")
    ]
    assert found.results == ask(shop, over(shop, None), question).results


@pytest.mark.anyio
async def test_a_second_model_that_is_late_is_not_waited_for(shop: Shop) -> None:
    for text in OTHERS[:3]:
        shop.say(text)
    late = Late()
    shop.embedder = HashEmbedder()
    await Maintenance(shop.backend, shop.embedder, no_embedder="", second=late).embed_missing()
    query = Query(text="fixtures folder", viewer=shop.person, embed_within_s=0.05)
    found = await over(shop, late).recall(query)
    assert len(found.results) == 3
    assert [part.part for part in found.skipped] == ["second model"]


def test_before_it_has_read_any_memory_the_second_model_is_not_loaded(shop: Shop) -> None:
    filled(shop)
    embedded(shop, None)
    second = Bilingual()
    found = ask(shop, over(shop, second), "module 3 fixtures")
    assert second.asked == []
    assert found.skipped == ()


def test_memories_that_the_second_model_has_not_read_are_ranked_by_the_first(shop: Shop) -> None:
    recall = embedded(filled(shop), Bilingual())
    shop.say("Module 99 keeps its fixtures in a folder called heron.")
    shop.do(Maintenance(shop.backend, shop.embedder, no_embedder="").embed_missing(at_most=5))
    found = ask(shop, recall, "where are the fixtures of module 99 in a folder called heron")
    assert "heron" in found.results[0].memory.content


def test_without_the_embedder_there_is_no_second_either(shop: Shop) -> None:
    second = Bilingual()
    embedded(filled(shop), second)
    shop.embedder = None
    found = ask(shop, over(shop, second), "module 3 fixtures")
    assert second.asked == []
    assert [part.part for part in found.skipped] == ["meaning"]


def test_vectors_of_the_second_model_stay_as_long_as_it_is_set(shop: Shop) -> None:
    second = Bilingual()
    embedded(filled(shop), second)
    second.failing = True
    report = shop.do(Maintenance(shop.backend, shop.embedder, no_embedder="", second=second).embed_missing())
    assert (report.model, report.dropped) == ("hash-embedder", 0)
    assert "told to fail" in (report.stopped_because or "")
    assert shop.do(shop.maintenance.embed_missing()).dropped == 61
    assert shop.do(shop.backend.vectors.vector_counts()) == {"hash-embedder": 61}


def test_a_share_of_the_work_leaves_the_second_model_and_its_vectors_alone(shop: Shop) -> None:
    second = Bilingual()
    embedded(filled(shop), second)
    second.failing = True
    shop.say("One more about herons.")
    report = shop.do(Maintenance(shop.backend, shop.embedder, no_embedder="", second=second).embed_missing(at_most=5))
    assert (report.embedded, report.second, report.dropped, report.stopped_because) == (1, 0, 0, None)
