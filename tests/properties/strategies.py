"""Random memories, viewers and selections, drawn from few values so that they meet."""

from __future__ import annotations

from datetime import timedelta
from types import MappingProxyType

from hypothesis import strategies as st

from backstory.domain.ids import MemoryId, MessageId, ProjectId, SessionId
from backstory.domain.memory import (
    Active,
    Conflicted,
    Counters,
    Deleted,
    Kind,
    Memory,
    Sensitivity,
    Source,
    Superseded,
    Tier,
    Times,
    Visibility,
)
from backstory.domain.provenance import Origin, Provenance
from backstory.domain.scope import Audience, Viewer
from backstory.domain.selection import EVERY_STATE, Selection
from backstory.domain.time_range import TimeRange
from backstory.testing.fakes import START, ulid

PROJECTS = [ProjectId(ulid(n, series=2)) for n in (1, 2)]
SESSIONS = [SessionId("ses-1"), SessionId("ses-2")]
AREAS = ["a", "a/b", "ab", "ä/ö", "a%", "A", "a/"]
TAGS = ["x", "y", "ß", "X"]
WORDS = ["Use", "TABS", "ß", "ss", "café", "cafe\u0301", "100%", "_", "  ", "\n", "'", "日本"]

ids = st.integers(1, 6).map(lambda n: MemoryId(ulid(n)))
moments = st.integers(-3, 3).map(lambda n: START + timedelta(microseconds=n))
texts = st.lists(st.sampled_from(WORDS), min_size=1, max_size=4).map(" ".join)
# every text that can be written down: no halves of characters
any_text = st.text(st.characters(codec="utf-8"), min_size=1)

statuses = st.one_of(
    st.just(Active()),
    st.builds(Conflicted, evidence=texts, since=moments, against=st.none() | ids),
    st.builds(Superseded, by=ids, since=moments),
    st.builds(Deleted, since=moments, reason=st.none() | texts),
)
provenances = st.builds(
    Provenance,
    session=st.none() | st.sampled_from(SESSIONS),
    messages=st.lists(any_text.map(MessageId), max_size=2).map(tuple),
    derived_from=st.lists(ids, max_size=2).map(tuple),
    tool=st.none() | any_text,
    agent=st.none() | any_text,
    extracted_at=st.none() | moments,
    origin_system=st.none() | any_text,
    origin_id=st.none() | any_text,
    raw=st.dictionaries(any_text, any_text, max_size=2).map(MappingProxyType),
)


def memories(content: st.SearchStrategy[str] = texts) -> st.SearchStrategy[Memory]:
    """Memories in every state and place, without a number."""
    counts = st.integers(0, 9)
    return st.builds(
        Memory,
        id=st.integers(1, 10**9).map(lambda n: MemoryId(ulid(n))),
        content=content,
        kind=st.sampled_from(Kind),
        visibility=st.sampled_from(Visibility),
        project=st.none() | st.sampled_from(PROJECTS),
        session=st.none() | st.sampled_from(SESSIONS),
        area=st.none() | st.sampled_from(AREAS),
        tags=st.lists(st.sampled_from(TAGS), max_size=3, unique=True).map(tuple),
        issue=st.none() | any_text,
        tier=st.sampled_from(Tier),
        pinned=st.booleans(),
        expires_at=st.none() | moments,
        sensitivity=st.sampled_from(Sensitivity),
        status=statuses,
        origin=st.sampled_from(Origin),
        source=st.sampled_from(Source),
        confidence=st.floats(0, 1),
        weight=st.floats(0, 1),
        provenance=provenances,
        times=st.builds(
            Times,
            learned=moments,
            updated=moments,
            confirmed=moments,
            surfaced=st.none() | moments,
            used=st.none() | moments,
        ),
        counters=st.builds(
            Counters, helpful=counts, irrelevant=counts, surfaced=counts, recalled=counts, sessions=counts
        ),
    )


viewers = st.builds(
    Viewer,
    project=st.none() | st.sampled_from(PROJECTS),
    session=st.none() | st.sampled_from(SESSIONS),
    audience=st.sampled_from(Audience),
    all_projects=st.booleans(),
)
selections = st.builds(
    Selection,
    viewer=viewers,
    now=moments,
    states=st.just(EVERY_STATE) | st.frozensets(st.sampled_from(sorted(EVERY_STATE))),
    kinds=st.just(frozenset()) | st.frozensets(st.sampled_from(Kind)),
    tags=st.just(()) | st.lists(st.sampled_from(TAGS), max_size=2).map(tuple),
    area=st.none() | st.sampled_from(AREAS),
    learned=st.none() | st.builds(TimeRange, since=st.none() | moments, until=st.none() | moments),
    visibility=st.none() | st.sampled_from(Visibility),
    sensitivity=st.none() | st.sampled_from(Sensitivity),
    tier=st.none() | st.sampled_from(Tier),
    pinned=st.none() | st.booleans(),
    same_text=st.none() | texts,
    contains=st.none() | texts,
    superseded_by=st.none() | ids,
    offerable=st.none() | st.booleans(),
)
