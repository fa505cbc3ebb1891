"""What an EvidenceIndex promises about the vectors of words that are kept beside those of passages."""

from __future__ import annotations

import tempfile
from pathlib import Path

from backstory.domain.evidence_passages import PassageNumber
from backstory.domain.ids import MessageId
from backstory.errors import StoreUnavailable
from backstory.ports.backend import Backend
from backstory.ports.evidence import EmbeddedPassage
from backstory.ports.models import EmbeddingModel
from backstory.testing.contracts.checks import Checks, MakeBackend
from backstory.testing.contracts.evidence_index import HERE, MODEL, OTHER_MODEL, message, numbers, told
from backstory.testing.fakes import START, hash_words

EVIDENCE_WORDS_CHECKS = Checks()
GATE, DOOR = "Ada: the gate is shut", "Ben: a door stands open"
WIDER = EmbeddingModel(name=MODEL.name, dimension=3)
MANY = 600


async def _read(make: MakeBackend, *said: str) -> tuple[Backend, dict[str, PassageNumber]]:
    """A backend with passages that are embedded with the vectors of all their words, and their numbers."""
    backend = await told(make, *(message(f"m{n}", text, second=n) for n, text in enumerate(said)))
    missing = await backend.evidence.unembedded(model=MODEL, limit=len(said))
    at = {item.text: item.number for item in missing}
    read = [EmbeddedPassage(number=at[text], vector=(1.0, 0.0), words=hash_words(text)) for text in said]
    assert await backend.evidence.put_vectors(read, model=MODEL) == len(said)
    return backend, at


async def _compared(backend: Backend, *which: PassageNumber, model: EmbeddingModel = MODEL) -> set[PassageNumber]:
    return set(await backend.evidence.compare_words(hash_words("gate"), which, model=model))


@EVIDENCE_WORDS_CHECKS
async def each_word_asked_for_is_compared_with_the_nearest_of_a_passage(make: MakeBackend) -> None:
    backend, at = await _read(make, GATE, DOOR)
    cosines = await backend.evidence.compare_words(hash_words("gate open"), [at[DOOR], at[GATE]], model=MODEL)
    assert cosines.keys() == {at[GATE], at[DOOR]}
    (gate, not_open), (no_gate, is_open) = cosines[at[GATE]], cosines[at[DOOR]]
    assert min(gate, is_open) > 0.99
    assert max(not_open, no_gate) < 0.9
    assert all(-1.001 <= cosine <= 1.001 for cosine in (gate, not_open, no_gate, is_open))
    assert set(await backend.evidence.compare_words(hash_words("gate"), [at[DOOR]], model=MODEL)) == {at[DOOR]}


@EVIDENCE_WORDS_CHECKS
async def where_there_are_no_words_nothing_is_compared(make: MakeBackend) -> None:
    backend, at = await _read(make, GATE)
    await backend.conversations.put_messages([message("bare", "no words", second=8), message("new", "new", second=9)])
    others = await numbers(backend)
    bare = EmbeddedPassage(number=others["no words"], vector=(1.0, 0.0))
    assert await backend.evidence.put_vectors([bare], model=MODEL) == 1
    assert await _compared(backend, at[GATE], others["no words"], others["new"], PassageNumber(999_999)) == {at[GATE]}
    assert await _compared(backend) == set()
    assert dict(await backend.evidence.compare_words(hash_words(""), [at[GATE]], model=MODEL)) == {}


@EVIDENCE_WORDS_CHECKS
async def words_of_another_model_or_width_are_not_compared(make: MakeBackend) -> None:
    backend, at = await _read(make, GATE)
    assert await _compared(backend, at[GATE], model=OTHER_MODEL) == set()
    assert await _compared(backend, at[GATE], model=WIDER) == set()
    narrow = hash_words("gate", dimension=14)
    assert dict(await backend.evidence.compare_words(narrow, [at[GATE]], model=MODEL)) == {}


@EVIDENCE_WORDS_CHECKS
async def words_go_with_their_passage(make: MakeBackend) -> None:
    backend, at = await _read(make, GATE, DOOR)
    await backend.conversations.put_messages([message("m0", "Ada: the gate is open")])
    assert await _compared(backend, *at.values()) == {at[DOOR]}
    await backend.conversations.mark_removed(MessageId("m1"), at=START)
    assert await _compared(backend, *at.values()) == set()


@EVIDENCE_WORDS_CHECKS
async def vectors_stored_again_without_words_have_none(make: MakeBackend) -> None:
    backend, at = await _read(make, GATE)
    again = EmbeddedPassage(number=at[GATE], vector=(0.0, 1.0))
    assert await backend.evidence.put_vectors([again], model=MODEL) == 1
    assert await _compared(backend, at[GATE]) == set()


@EVIDENCE_WORDS_CHECKS
async def words_stay_when_passages_are_made_anew(make: MakeBackend) -> None:
    backend, at = await _read(make, GATE)
    assert await backend.evidence.reindex() == 1
    assert await _compared(backend, at[GATE]) == {at[GATE]}


@EVIDENCE_WORDS_CHECKS
async def words_go_with_the_vectors_of_their_model(make: MakeBackend) -> None:
    backend, at = await _read(make, GATE)
    assert await backend.evidence.drop_vectors(model_name=MODEL.name) == 1
    assert await _compared(backend, at[GATE]) == set()


@EVIDENCE_WORDS_CHECKS
async def many_passages_are_compared_at_once(make: MakeBackend) -> None:
    backend, at = await _read(make, *(f"Ada: gate {n}" for n in range(MANY)))
    cosines = await backend.evidence.compare_words(hash_words("gate 7"), list(at.values()), model=MODEL)
    assert cosines.keys() == set(at.values())
    assert [number for number, (_, seven) in cosines.items() if seven > 0.99] == [at["Ada: gate 7"]]
    assert all(gate > 0.99 for gate, _ in cosines.values())


@EVIDENCE_WORDS_CHECKS
async def a_backup_keeps_the_words(make: MakeBackend) -> None:
    backend, _ = await _read(make, GATE)
    assert backend.upkeep is not None
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "backup"
        try:
            await backend.upkeep.backup(path)
        except StoreUnavailable:
            return  # this store cannot be copied
        await backend.evidence.drop_vectors(model_name=MODEL.name)
        await backend.upkeep.restore(path)
    numbers_now = (await backend.evidence.search_text(["gate"], HERE, limit=9)).numbers
    assert len(numbers_now) == 1
    assert await _compared(backend, *numbers_now) == set(numbers_now)
    assert await backend.evidence.unembedded(model=MODEL, limit=9) == []
