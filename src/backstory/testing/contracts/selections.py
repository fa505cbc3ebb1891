"""What each condition of a Selection means to a store: the corners of what ``domain/selection.py`` says."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from types import MappingProxyType

from backstory.domain.ids import MemoryId, MessageId, ProjectId, SessionId
from backstory.domain.memory import Conflicted, Deleted, Kind, Memory, Sensitivity, Superseded, Tier, Visibility
from backstory.domain.provenance import Origin, Provenance
from backstory.domain.scope import Audience, Viewer
from backstory.domain.selection import EVERY_STATE, WITH_SUPERSEDED, Selection
from backstory.domain.time_range import TimeRange
from backstory.ports.store import MemoryStore, Order
from backstory.testing.contracts.checks import Checks, MakeBackend
from backstory.testing.fakes import ORCHARD, START, add_memories, sample_memory, ulid

SELECTION_CHECKS = Checks()
ELSEWHERE = ProjectId("01BX5ZZKBKACTAV9WEVGEMMVS0")
SESSION, OTHER_SESSION = SessionId("ses-1"), SessionId("ses-2")
MODEL = Viewer(project=ORCHARD, session=SESSION)
PERSON = replace(MODEL, audience=Audience.PERSON)


def seen(viewer: Viewer = MODEL, **conditions: object) -> Selection:
    """What a viewer selects."""
    return replace(Selection(viewer=viewer, now=START), **conditions)  # type: ignore[arg-type]  # fields of Selection


async def texts(store: MemoryStore, selection: Selection, order: Order = Order.OLDEST) -> list[str]:
    """The texts of the memories meant, by default in the order in which they were added."""
    found = [memory.content for memory in await store.select(selection, limit=100, order=order)]
    assert await store.count(selection) == len(found)
    return found


async def filled(make: MakeBackend, *memories: Memory) -> MemoryStore:
    """A store with these memories."""
    store = make().memories
    await add_memories(store, *memories)
    return store


@SELECTION_CHECKS
async def selecting_sorts_by_learned_date_and_then_by_number(make: MakeBackend) -> None:
    late = START + timedelta(microseconds=1)
    store = await filled(
        make, sample_memory("c", at=late), sample_memory("a"), sample_memory("b"), sample_memory("d", at=late)
    )
    assert await texts(store, seen(), Order.NEWEST) == ["d", "c", "b", "a"]
    assert await texts(store, seen(), Order.OLDEST) == ["a", "b", "c", "d"]


@SELECTION_CHECKS
async def pages_follow_each_other_without_gap(make: MakeBackend) -> None:
    store = await filled(make, *(sample_memory(str(n)) for n in range(7)))
    pages = [await store.select(seen(), limit=3, offset=offset) for offset in (0, 3, 6, 9)]
    assert [[memory.content for memory in page] for page in pages] == [["6", "5", "4"], ["3", "2", "1"], ["0"], []]


@SELECTION_CHECKS
async def a_model_sees_its_project_its_session_and_what_is_global(make: MakeBackend) -> None:
    store = await filled(
        make,
        sample_memory("global", visibility=Visibility.GLOBAL, project=ELSEWHERE),
        sample_memory("here"),
        sample_memory("elsewhere", project=ELSEWHERE),
        sample_memory("nowhere", project=None),
        sample_memory("this session", visibility=Visibility.SESSION, session=SESSION),
        sample_memory("other session", visibility=Visibility.SESSION, session=OTHER_SESSION),
        sample_memory("no session", visibility=Visibility.SESSION),
    )
    assert await texts(store, seen()) == ["global", "here", "this session"]
    assert await texts(store, seen(PERSON)) == ["global", "here", "this session", "other session", "no session"]
    outside = Viewer(project=None)
    assert await texts(store, seen(outside)) == ["global"]
    assert await texts(store, seen(replace(outside, audience=Audience.PERSON))) == ["global"]
    everywhere = ["global", "here", "elsewhere", "nowhere", "this session"]
    assert await texts(store, seen(replace(MODEL, all_projects=True))) == everywhere


@SELECTION_CHECKS
async def local_only_is_for_people(make: MakeBackend) -> None:
    store = await filled(
        make,
        sample_memory("secret", sensitivity=Sensitivity.LOCAL_ONLY, visibility=Visibility.GLOBAL),
        sample_memory("private", sensitivity=Sensitivity.PRIVATE),
    )
    assert await texts(store, seen()) == ["private"]
    assert await texts(store, seen(replace(MODEL, all_projects=True))) == ["private"]
    assert await texts(store, seen(PERSON)) == ["secret", "private"]


@SELECTION_CHECKS
async def states_are_as_of_the_moment(make: MakeBackend) -> None:
    second = timedelta(seconds=1)
    store = await filled(
        make,
        sample_memory("active"),
        sample_memory("disputed", status=Conflicted(evidence="x", since=START)),
        sample_memory("replaced", status=Superseded(by=MemoryId(ulid(1)), since=START)),
        sample_memory("forgotten", status=Deleted(since=START)),
        sample_memory("expires later", expires_at=START + second),
        sample_memory("expires now", expires_at=START),
        sample_memory("disputed and expired", status=Conflicted(evidence="x", since=START), expires_at=START - second),
        sample_memory("forgotten and expired", status=Deleted(since=START), expires_at=START - second),
    )
    assert await texts(store, seen()) == ["active", "disputed", "expires later"]
    assert await texts(store, seen(states=frozenset({"expired"}))) == ["expires now", "disputed and expired"]
    assert await texts(store, seen(states=frozenset({"deleted"}))) == ["forgotten", "forgotten and expired"]
    assert await texts(store, seen(states=frozenset({"conflicted"}))) == ["disputed"]
    assert await texts(store, seen(states=WITH_SUPERSEDED)) == ["active", "disputed", "replaced", "expires later"]
    assert len(await texts(store, seen(states=EVERY_STATE))) == 8
    assert await texts(store, seen(states=frozenset())) == []


@SELECTION_CHECKS
async def all_tags_must_be_there(make: MakeBackend) -> None:
    store = await filled(
        make, sample_memory("both", tags=("a", "b")), sample_memory("one", tags=("a",)), sample_memory("none")
    )
    assert await texts(store, seen(tags=("a",))) == ["both", "one"]
    assert await texts(store, seen(tags=("b", "a"))) == ["both"]
    assert await texts(store, seen(tags=("A",))) == []


@SELECTION_CHECKS
async def any_of_the_kinds_will_do(make: MakeBackend) -> None:
    store = await filled(
        make, sample_memory("d", kind=Kind.DECISION), sample_memory("p", kind=Kind.PREFERENCE), sample_memory("f")
    )
    assert await texts(store, seen(kinds=frozenset({Kind.DECISION, Kind.PREFERENCE}))) == ["d", "p"]


@SELECTION_CHECKS
async def an_area_holds_what_is_below_it(make: MakeBackend) -> None:
    areas = ("deploy", "deploy/staging", "deployment", "deploy_", "dépl/oy", "dépl/oy/x", "a%", "a%/b", "ab/b", None)
    store = await filled(make, *(sample_memory(f"in {area}", area=area) for area in areas))
    assert await texts(store, seen(area="deploy")) == ["in deploy", "in deploy/staging"]
    assert await texts(store, seen(area="dépl/oy")) == ["in dépl/oy", "in dépl/oy/x"]
    assert await texts(store, seen(area="a%")) == ["in a%", "in a%/b"]
    assert await texts(store, seen(area=" /de\u0301pl/oy// ")) == ["in dépl/oy", "in dépl/oy/x"]
    assert len(await texts(store, seen(area=""))) == len(areas)


@SELECTION_CHECKS
async def labels_are_looked_for_in_the_form_in_which_they_are_kept(make: MakeBackend) -> None:
    store = await filled(make, sample_memory("tagged", tags=("café",)), sample_memory("plain"))
    assert await texts(store, seen(tags=(" cafe\u0301 ",))) == ["tagged"]


@SELECTION_CHECKS
async def both_ends_of_a_time_range_are_included(make: MakeBackend) -> None:
    tick = timedelta(microseconds=1)
    store = await filled(make, *(sample_memory(str(n), at=START + n * tick) for n in range(-1, 3)))
    assert await texts(store, seen(learned=TimeRange(since=START, until=START + tick))) == ["0", "1"]
    assert await texts(store, seen(learned=TimeRange(since=START + tick))) == ["1", "2"]
    assert await texts(store, seen(learned=TimeRange(until=START))) == ["-1", "0"]
    assert await texts(store, seen(learned=TimeRange(since=START, until=START - tick))) == []
    assert len(await texts(store, seen(learned=TimeRange()))) == 4


@SELECTION_CHECKS
async def labels_select_exactly(make: MakeBackend) -> None:
    store = await filled(
        make,
        sample_memory("core", tier=Tier.CORE),
        sample_memory("pinned", pinned=True),
        sample_memory("global", visibility=Visibility.GLOBAL),
        sample_memory("private", sensitivity=Sensitivity.PRIVATE),
    )
    assert await texts(store, seen(tier=Tier.CORE)) == ["core"]
    assert await texts(store, seen(pinned=True)) == ["pinned"]
    assert await texts(store, seen(pinned=False)) == ["core", "global", "private"]
    assert await texts(store, seen(visibility=Visibility.GLOBAL)) == ["global"]
    assert await texts(store, seen(sensitivity=Sensitivity.PRIVATE)) == ["private"]


@SELECTION_CHECKS
async def what_may_be_offered_unasked_is_open_and_said_by_people_or_the_agent(make: MakeBackend) -> None:
    store = await filled(
        make,
        *(sample_memory(origin.value, origin=origin) for origin in Origin),
        sample_memory("private", sensitivity=Sensitivity.PRIVATE),
        sample_memory("secret", sensitivity=Sensitivity.LOCAL_ONLY),
    )
    assert await texts(store, seen(PERSON, offerable=True)) == ["user", "agent"]
    others = ["tool", "file", "web", "imported", "peer", "private", "secret"]
    assert await texts(store, seen(PERSON, offerable=False)) == others


@SELECTION_CHECKS
async def the_same_text_is_the_same_in_any_case_spacing_and_composition(make: MakeBackend) -> None:
    store = await filled(make, sample_memory("Die  Straße\tam Café"), sample_memory("Die Strasse am Cafe"))
    assert await texts(store, seen(same_text="die STRASSE am cafe\u0301")) == ["Die  Straße\tam Café"]
    assert await texts(store, seen(same_text="die straße am")) == []


@SELECTION_CHECKS
async def the_same_text_has_the_same_names_to_the_letter(make: MakeBackend) -> None:
    store = await filled(make, sample_memory("The flag is `useLive`."), sample_memory("The path is src/User.ts."))
    assert await texts(store, seen(same_text="the FLAG is `useLive`.")) == ["The flag is `useLive`."]
    assert await texts(store, seen(same_text="The flag is `uselive`.")) == []
    assert await texts(store, seen(same_text="The path is src/user.ts.")) == []


@SELECTION_CHECKS
async def a_part_of_a_text_is_found_without_wildcards(make: MakeBackend) -> None:
    store = await filled(
        make, sample_memory("100% of Äpfel"), sample_memory("100 of Apples"), sample_memory("under_score?*[a]")
    )
    assert await texts(store, seen(contains="% OF äPFEL")) == ["100% of Äpfel"]
    assert await texts(store, seen(contains="0%o")) == []
    assert await texts(store, seen(contains="_score?*[A]")) == ["under_score?*[a]"]
    assert await texts(store, seen(contains="  ")) == ["100% of Äpfel", "100 of Apples", "under_score?*[a]"]
    assert await texts(store, seen(contains="'; DROP TABLE memories; --")) == []


@SELECTION_CHECKS
async def what_a_memory_replaced_is_found_through_it(make: MakeBackend) -> None:
    newer = MemoryId(ulid(1))
    store = await filled(
        make,
        sample_memory("a", status=Superseded(by=newer, since=START)),
        sample_memory("b", status=Superseded(by=MemoryId(ulid(2)), since=START)),
        sample_memory("c"),
    )
    assert await texts(store, seen(states=EVERY_STATE, superseded_by=newer)) == ["a"]
    assert await texts(store, seen(superseded_by=newer)) == []


@SELECTION_CHECKS
async def what_was_made_from_a_memory_is_found_through_it(make: MakeBackend) -> None:
    source, other = MemoryId(ulid(1)), MemoryId(ulid(2))
    told = MappingProxyType({"derived_from": source, "note": f'"derived_from":["{source}"]'})
    store = await filled(
        make,
        sample_memory("a", provenance=Provenance(derived_from=(other, source))),
        sample_memory("b", provenance=Provenance(derived_from=(other,))),
        sample_memory("c", provenance=Provenance(messages=(MessageId(source),), raw=told)),
        sample_memory("d", provenance=Provenance(derived_from=(other,), messages=(MessageId(source),), raw=told)),
    )
    assert await texts(store, seen(derived_from=source)) == ["a"]
    assert await texts(store, seen(derived_from=MemoryId(ulid(3)))) == []


@SELECTION_CHECKS
async def what_is_in_conflict_with_a_memory_is_found_through_it(make: MakeBackend) -> None:
    one, other = MemoryId(ulid(1)), MemoryId(ulid(2))
    store = await filled(
        make,
        sample_memory("a", status=Conflicted(evidence="8080", since=START, against=one)),
        sample_memory("b", status=Conflicted(evidence=f'"against":"{one}"', since=START, against=other)),
        sample_memory("c", status=Conflicted(evidence=one, since=START)),
        sample_memory("d", status=Superseded(by=one, since=START)),
    )
    assert await texts(store, seen(against=one)) == ["a"]
    assert await texts(store, seen(states=EVERY_STATE, against=other)) == ["b"]
