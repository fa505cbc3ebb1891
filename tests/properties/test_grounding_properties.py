"""Grounding: no statement is trusted more than the best of what was said, and no outside text ever helps one."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from hypothesis import given, settings
from hypothesis import strategies as st

from backstory.domain.conversation import Role
from backstory.domain.grounding import ground
from backstory.domain.ids import MessageId
from backstory.domain.provenance import Origin, is_injectable, trust
from backstory.domain.utterance import Utterance

START = datetime(2026, 3, 2, 8, tzinfo=UTC)
WORDS = ("always", "run", "sluice", "never", "gate.py", "45", "not", "oats", "--force", "mill", "because", "yes", "?")
texts = st.lists(st.sampled_from(WORDS), min_size=1, max_size=8).map(" ".join)
speakers = st.sampled_from([Origin.USER, Origin.AGENT])
outsiders = st.sampled_from([Origin.TOOL, Origin.FILE, Origin.WEB])


@st.composite
def utterances(draw: st.DrawFn, origins: st.SearchStrategy[Origin]) -> Utterance:
    origin = draw(origins)
    return Utterance(
        message=MessageId(f"m{draw(st.integers(0, 30))}"),
        at=START + timedelta(minutes=draw(st.integers(0, 60))),
        role=Role.USER if origin is Origin.USER else Role.ASSISTANT,
        origin=origin,
        text=draw(texts),
        turn=draw(st.integers(0, 3)),
        is_echo=origin is not Origin.USER and draw(st.booleans()),
    )


talks = st.lists(utterances(speakers | outsiders), max_size=6)


@settings(max_examples=150, deadline=None)
@given(text=texts, said=talks)
def test_no_origin_is_above_the_best_of_what_was_said(text: str, said: list[Utterance]) -> None:
    found = ground(text, said)
    assert 0.0 <= found.support <= 1.0
    if found.support:
        assert trust(found.origin) <= max(trust(one.origin) for one in said)
    assert set(found.messages) <= {one.message for one in said}


@settings(max_examples=150, deadline=None)
@given(text=texts, said=talks, place=st.integers(0, 6), outside=utterances(outsiders))
def test_outside_text_never_raises_an_origin(text: str, said: list[Utterance], place: int, outside: Utterance) -> None:
    before = ground(text, said)
    after = ground(text, [*said[:place], outside, *said[place:]])
    if before.support:
        assert trust(after.origin) <= trust(before.origin)
    else:
        assert not (after.support and is_injectable(after.origin))


@settings(max_examples=100, deadline=None)
@given(text=texts, said=talks, named=st.sets(st.integers(0, 30).map(lambda n: MessageId(f"m{n}"))))
def test_a_claim_never_raises_an_origin(text: str, said: list[Utterance], named: set[MessageId]) -> None:
    free, claimed = ground(text, said), ground(text, said, named=named)
    assert claimed.support == free.support
    assert trust(claimed.origin) <= trust(free.origin)


@settings(max_examples=60, deadline=None)
@given(said=talks)
def test_what_nobody_said_has_no_support(said: list[Utterance]) -> None:
    assert ground("Zürich tramway 9917", said).support == 0.0
