"""Texts taken out of memories, changes and other JSON; ids, numbers and times stay."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import timedelta

from backstory.codecs.change import decode_change, encode_change
from backstory.codecs.erasure import (
    rewritten_change,
    rewritten_detail,
    rewritten_image,
    rewritten_text,
    rewritten_value,
    without,
)
from backstory.codecs.record import encode_memory
from backstory.domain.erasure import ERASED, eraser_of
from backstory.domain.history import Action, Author, Change, Edit
from backstory.domain.ids import ChangeId, MessageId, SessionId
from backstory.domain.memory import Conflicted, Deleted
from backstory.domain.provenance import Provenance
from backstory.testing.fakes import START, sample_memory, ulid

WORDS = "the cellar key is blue"
REWRITE = eraser_of([WORDS])
LATER = START + timedelta(days=1)


def test_of_an_erased_memory_only_ids_numbers_and_times_are_left() -> None:
    provenance = Provenance(session=SessionId("s"), messages=(MessageId("m"),), tool="bash", raw={"line": WORDS})
    memory = replace(
        sample_memory(WORDS), n=4, tags=("cellar",), area="cellar", issue="#9", pinned=True,
        provenance=provenance,
    )  # fmt: skip
    kept = without(memory, {memory.id}, REWRITE, at=LATER)
    assert (kept.id, kept.n, kept.revision, kept.times) == (memory.id, 4, memory.revision, memory.times)
    assert kept.content == ERASED
    assert kept.status == Deleted(since=LATER, reason="erased for good")
    assert (kept.tags, kept.area, kept.issue, kept.pinned) == ((), None, None, False)
    assert kept.provenance == Provenance(session=SessionId("s"), messages=(MessageId("m"),))
    assert without(kept, {memory.id}, REWRITE, at=LATER + timedelta(days=1)) is kept


def test_another_memory_loses_the_words_wherever_they_stand() -> None:
    memory = replace(
        sample_memory(f"Note: {WORDS}!"), tags=(WORDS, "cellar"), area=WORDS,
        status=Conflicted(evidence=f"it said {WORDS}", since=START), provenance=Provenance(raw={"line": WORDS}),
    )  # fmt: skip
    kept = without(memory, set(), REWRITE, at=LATER)
    assert WORDS not in json.dumps(encode_memory(kept))
    assert kept.content == f"Note: {ERASED}!"
    assert kept.tags == (ERASED, "cellar")
    assert isinstance(kept.status, Conflicted)


def test_a_memory_without_the_words_is_the_same_object() -> None:
    memory = sample_memory("Pears are weighed")
    assert without(memory, {ulid(9)}, REWRITE, at=LATER) is memory


def test_a_change_is_read_as_one_afterwards_and_its_key_is_its_own() -> None:
    memory = sample_memory(WORDS)
    change = Change(
        id=ChangeId(ulid(5)), at=START, author=Author.USER, action=Action.ADD, edits=(Edit(before=None, after=memory),),
        reason=f"since {WORDS}", key=f"key of {WORDS}",
    )  # fmt: skip
    kept = decode_change(rewritten_change(encode_change(change), {memory.id}, REWRITE, at=LATER))
    assert kept.reason == f"since {ERASED}"
    assert kept.key == f"erased:{change.id}"
    assert kept.edits[0].after.content == ERASED
    plums = Edit(before=None, after=sample_memory("Plums ripen late"))
    other = encode_change(replace(change, reason=None, key=None, edits=(plums,)))
    assert rewritten_change(other, {memory.id}, REWRITE, at=LATER) == other


def test_what_is_no_json_is_a_text() -> None:
    for function in (rewritten_text, rewritten_detail):
        assert function(f"{{ {WORDS}", REWRITE) == f"{{ {ERASED}"
    assert rewritten_image(f"[ {WORDS}", set(), REWRITE, at=LATER) == f"[ {ERASED}"
    assert rewritten_image(json.dumps([WORDS]), set(), REWRITE, at=LATER) == json.dumps([ERASED])


def test_a_value_of_the_domain_keeps_its_names() -> None:
    session = SessionId(WORDS)
    provenance = Provenance(session=session, tool=f"run {WORDS}")
    kept = rewritten_value(provenance, REWRITE)
    assert kept == replace(provenance, tool=f"run {ERASED}")
    assert rewritten_value(kept, REWRITE) is kept
