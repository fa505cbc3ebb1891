"""What answers a query, why, and what is said when nothing does."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Coroutine, Sequence
from dataclasses import replace
from datetime import timedelta
from typing import TYPE_CHECKING, Any, TypeVar

import anyio
import anyio.to_thread
import pytest

from backstory.domain.memory import Kind, Sensitivity, Visibility
from backstory.domain.provenance import Origin
from backstory.domain.ranking import RankingPolicy
from backstory.errors import InputError, StoreUnavailable
from backstory.ports.models import Passage
from backstory.services.query import Query
from backstory.services.recall import Recall
from backstory.testing.fakes import HashEmbedder, failing_backend, hash_vector

if TYPE_CHECKING:
    from tests.unit.services.conftest import Shop

T = TypeVar("T")
FACTS = ("The invoice service runs on port 8443", "We deploy on Fridays", "Tests need a real Postgres")


def with_facts(shop: Shop, *, embedded: bool = False) -> Shop:
    for fact in FACTS:
        shop.say(fact)
    if embedded:
        shop.embedder = HashEmbedder()
        shop.do(shop.maintenance.embed_missing())
    return shop


def test_the_memory_that_shares_words_comes_first_and_says_why(shop: Shop) -> None:
    recalled = with_facts(shop).ask("which port has the invoice service?")
    assert recalled.results[0].memory.content == FACTS[0]
    assert "words" in recalled.results[0].reasons[0]
    assert "invoic" in recalled.results[0].reasons[0]
    assert recalled.silent_because is None


def test_meaning_takes_part_when_there_are_vectors(shop: Shop) -> None:
    recalled = with_facts(shop, embedded=True).ask("invoice port")
    assert recalled.results[0].memory.content == FACTS[0]
    assert recalled.results[0].reasons[0].startswith("meaning 0.")
    assert recalled.skipped == ()


class AsksElsewhere(HashEmbedder):
    """Looks for whatever it is asked as if it were the second fact."""

    async def read(self, texts: Sequence[str]) -> list[Passage | None]:
        passages = await super().read(texts)
        if len(texts) > 1:
            return passages
        return [passage and replace(passage, query=hash_vector(FACTS[1])) for passage in passages]


def test_memories_are_looked_for_with_the_vector_that_the_model_gives_for_that(shop: Shop) -> None:
    shop.embedder = AsksElsewhere()
    for fact in FACTS:
        shop.say(fact)
    shop.do(shop.maintenance.embed_missing())
    similarity = {hit.memory.content: hit.score.similarity for hit in shop.ask("Postgres").results}
    assert similarity[FACTS[1]] == pytest.approx(1.0, abs=0.01)
    assert similarity[FACTS[1]] == max(filter(None, similarity.values()))


def test_silence_has_a_reason(shop: Shop) -> None:
    assert with_facts(shop).ask("zebra crossing").silent_because == "no memory shares a word or a meaning with this"
    assert shop.ask("???").results == ()
    assert shop.ask("", viewer=replace(shop.model, project=None)).silent_because is not None


def test_no_query_lists_the_newest(shop: Shop) -> None:
    with_facts(shop)
    assert shop.found("  ") == list(FACTS[::-1])
    assert shop.ask("", limit=1).results[0].reasons == ("newest",)


def test_what_could_not_be_searched_is_told(shop: Shop) -> None:
    (skipped,) = with_facts(shop).ask("invoice").skipped
    assert (skipped.part, skipped.reason) == ("meaning", "none is set")
    assert shop.ask("invoice", lexical_only=True).skipped == ()


def test_a_failing_embedder_leaves_the_words(shop: Shop) -> None:
    with_facts(shop, embedded=True)
    assert shop.embedder is not None
    shop.embedder.failing = True
    recalled = shop.ask("invoice port")
    assert recalled.results[0].memory.content == FACTS[0]
    assert "told to fail" in recalled.skipped[0].reason


def test_vectors_of_another_model_are_not_compared(shop: Shop) -> None:
    with_facts(shop, embedded=True)
    shop.embedder = HashEmbedder(name="new model")
    recalled = shop.ask("invoice port")
    assert recalled.results[0].score.similarity is None
    assert "hash-embedder, not yet by new model" in recalled.skipped[0].reason


def test_a_store_without_vectors_does_not_load_the_model(shop: Shop) -> None:
    with_facts(shop)
    shop.embedder = HashEmbedder()
    shop.embedder.failing = True
    assert shop.ask("invoice").skipped == ()


def test_the_same_words_are_shown_once(shop: Shop) -> None:
    shop.say("We deploy on Fridays")
    shop.say("we deploy on FRIDAYS", visibility=Visibility.GLOBAL)
    assert len(shop.found("deploy fridays")) == 1


def test_replaced_memories_come_only_when_asked_for(shop: Shop) -> None:
    shop.say("We use npm for packages")
    shop.say("We use pnpm for packages", supersedes="#1")
    assert shop.found("packages") == ["We use pnpm for packages"]
    assert shop.found("packages npm", with_superseded=True)[0] == "We use npm for packages"


def test_expired_and_forgotten_memories_never_come(shop: Shop) -> None:
    shop.say("the vpn is down", expires_in=timedelta(hours=1))
    shop.say("the vpn is slow")
    shop.forget(2)
    assert shop.found("vpn") == ["the vpn is down"]
    shop.clock.advance(timedelta(hours=1))
    for text in ("vpn", ""):
        assert shop.found(text, with_superseded=True) == []


def test_filters_narrow(shop: Shop) -> None:
    shop.say("deploy a", tags=["x"], kind=Kind.DECISION, area="ops/ci")
    shop.say("deploy b")
    for filters in ({"tags": ("x",)}, {"kinds": frozenset({Kind.DECISION})}, {"area": "ops"}):
        assert shop.found("deploy", **filters) == ["deploy a"]


def test_borders_hold(shop: Shop) -> None:
    shop.say("deploy secret", sensitivity=Sensitivity.LOCAL_ONLY)
    shop.say("deploy theirs", viewer=shop.elsewhere)
    assert shop.found("deploy") == []
    assert shop.found("deploy", viewer=shop.person) == ["deploy secret"]
    assert shop.found("deploy", viewer=replace(shop.model, all_projects=True)) == ["deploy theirs"]


def test_limits_are_checked(shop: Shop) -> None:
    for limit in (0, -1, 101):
        with pytest.raises(InputError, match="limit"):
            shop.ask("x", limit=limit)


def test_only_asking_counts_as_recalled(shop: Shop) -> None:
    with_facts(shop)
    shop.ask("invoice")
    assert shop.stored(1).counters.recalled == 0
    shop.do(shop.recall.recall_and_count(Query(text="invoice", viewer=shop.model)))
    assert (shop.stored(1).counters.recalled, shop.stored(1).counters.sessions) == (1, 1)
    assert shop.stored(2).counters.recalled == 0


def test_a_store_that_cannot_count_still_answers(shop: Shop) -> None:
    with_facts(shop)
    shop.backend = failing_backend(only="record_use", over=shop.backend)
    assert shop.do(shop.recall.recall_and_count(Query(text="invoice", viewer=shop.model))).results


def test_a_store_that_fails_is_told(shop: Shop) -> None:
    shop.backend = failing_backend(over=shop.backend)
    with pytest.raises(StoreUnavailable):
        shop.ask("invoice")


def test_of_those_that_say_the_same_the_most_trusted_is_shown_and_the_others_are_named(shop: Shop) -> None:
    shop.say("The invoice service runs on port 8443", origin=Origin.IMPORTED)
    shop.say("the invoice service runs on port 8443.", visibility=Visibility.GLOBAL)
    shop.say("The invoice service runs on port 8444", visibility=Visibility.GLOBAL)
    shop.say("Invoice service runs on port 8443", origin=Origin.AGENT)
    results = shop.ask("which port does the invoice service run on?").results
    assert {result.memory.n: result.reasons[-1] for result in results if result.memory.n != 3} == {
        2: "also said in #1, #4"
    }
    assert 3 in [result.memory.n for result in results]
    assert [result.score.total for result in results] == sorted((r.score.total for r in results), reverse=True)


def test_what_was_replaced_by_the_same_words_does_not_stand_for_them(shop: Shop) -> None:
    shop.say("The invoice service runs on port 8443")
    shop.say("The invoice service runs on port 8443.", supersedes="#1", origin=Origin.AGENT)
    results = shop.ask("invoice service port", with_superseded=True).results
    assert [result.memory.n for result in results] == [2]


def test_a_very_long_query_is_answered(shop: Shop) -> None:
    with_facts(shop)
    assert shop.found("invoice port " + "x" * 1_000_000)[0] == FACTS[0]


@pytest.mark.parametrize("limit", [1, 5, 10])
def test_a_memory_of_the_project_is_not_crowded_out_by_global_ones_that_match_a_little_better(
    shop: Shop, limit: int
) -> None:
    own = "Ferries of this harbour leave from the northern quay whenever the tide allows it"
    shop.say(own)
    for number in range(35):
        shop.say(f"ferries harbour quay {number} berth{number}", visibility=Visibility.GLOBAL)
    assert shop.found("ferries harbour quay", limit=limit)[0] == own


class NeverReady(HashEmbedder):
    """A model that does not come to an answer."""

    async def read(self, texts: Sequence[str]) -> list[Passage | None]:
        await anyio.sleep_forever()
        raise AssertionError(texts)


def test_a_cancelled_recall_does_not_wait_for_its_search(shop: Shop) -> None:
    with_facts(shop, embedded=True)
    hangs = threading.Event()

    async def aside(work: Callable[[], Coroutine[Any, Any, T]]) -> T:  # Any: as in Aside
        await anyio.to_thread.run_sync(hangs.wait, abandon_on_cancel=True)
        return await work()

    async def main() -> bool:
        recall = Recall(
            shop.backend, NeverReady(), clock=shop.clock, policy=RankingPolicy(), no_embedder="", aside=aside
        )
        asked = asyncio.ensure_future(recall.recall(Query(text="invoice port", viewer=shop.model)))
        await asyncio.sleep(0.02)
        asked.cancel()
        await asyncio.wait([asked], timeout=60)
        hangs.set()
        return asked.cancelled()

    assert asyncio.run(main())
