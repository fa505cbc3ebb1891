"""Embedding what has no vector yet."""

from __future__ import annotations

from typing import TYPE_CHECKING

from backstory.domain.conversation import Message, Part, Role
from backstory.domain.evidence_passages import PassageNumber
from backstory.domain.evidence_talk import MAX_WORDS
from backstory.domain.ids import MessageId, PartId, SessionId
from backstory.ports.models import EmbeddingModel, Passage
from backstory.testing.fakes import START, HashEmbedder, hash_words

if TYPE_CHECKING:
    from collections.abc import Sequence

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


def said(shop: Shop, *texts: str, kind: str = "text") -> dict[str, PassageNumber]:
    """Passages of what was said, embedded; their numbers."""
    for n, text in enumerate(texts):
        part = Part(id=PartId(f"p{n}"), kind=kind, text=text, tool="Bash")
        told = Message(id=MessageId(f"m{n}"), session=SessionId("s"), role=Role.USER, created_at=START, parts=(part,))
        shop.do(shop.backend.conversations.put_messages([told]))
    missing = shop.do(shop.backend.evidence.unembedded(model=EmbeddingModel(name="none", dimension=1), limit=99))
    assert shop.do(shop.maintenance.embed_missing()).passages == len(texts)
    return {item.text: item.number for item in missing}


def has_word(shop: Shop, word: str, at: dict[str, PassageNumber]) -> dict[str, bool]:
    """Which passages have vectors of words, and whether that of a word is among them."""
    assert shop.embedder is not None
    model = shop.do(shop.embedder.model())
    cosines = shop.do(shop.backend.evidence.compare_words(hash_words(word), list(at.values()), model=model))
    texts = {number: text for text, number in at.items()}
    return {texts[number]: cosine > 0.999 for number, (cosine,) in cosines.items()}


def test_a_passage_keeps_the_telling_words_of_a_speaker(shop: Shop) -> None:
    shop.embedder = HashEmbedder()
    at = said(shop, named := "Ada: the heron is back", "the heron is back", "note: the heron is back")
    assert has_word(shop, "heron", at) == {named: True}
    assert has_word(shop, "the", at) == has_word(shop, "otter", at) == {named: False}


def test_a_call_of_a_tool_keeps_no_words(shop: Shop) -> None:
    shop.embedder = HashEmbedder()
    at = said(shop, "the heron is back", kind="tool")
    assert [text[:6] for text in at] == ["Bash: "]
    assert has_word(shop, "heron", at) == {}


def test_a_passage_keeps_so_many_words_and_no_more(shop: Shop) -> None:
    shop.embedder = HashEmbedder()
    words = [f"heron{n}" for n in range(MAX_WORDS)]
    at = said(shop, long := f"Ada: {' '.join(words)}")
    assert has_word(shop, words[-2], at) == {long: True}  # "ada:" is the first
    assert has_word(shop, words[-1], at) == {long: False}


class Wordless(HashEmbedder):
    """As embedders behind an endpoint are."""

    async def read(self, texts: Sequence[str]) -> list[Passage | None]:
        return [None if vector is None else Passage(vector=vector) for vector in await self.embed(texts)]


def test_passages_are_embedded_by_models_that_give_no_words(shop: Shop) -> None:
    shop.embedder = Wordless()
    assert has_word(shop, "heron", said(shop, "Ada: the heron is back")) == {}
