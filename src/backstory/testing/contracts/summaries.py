"""The contract of the DreamStore on summaries: each lives only as long as what it was made from."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime

from anyio import create_task_group

from backstory.domain.dream_state import Summary
from backstory.domain.history import Edit
from backstory.domain.ids import MemoryId, ProjectId
from backstory.domain.memory import Conflicted, Deleted, Memory, Sensitivity, Superseded, Tier, Visibility
from backstory.errors import Conflict, InputError
from backstory.ports.store import Use
from backstory.testing.contracts.checks import Checks, MakeBackend, expect_error
from backstory.testing.fakes import ORCHARD, START, add_memories, sample_change, sample_memory, ulid

SUMMARY_CHECKS = Checks()
MOMENT = datetime(2026, 3, 2, 12, 0, 0, 123456, tzinfo=UTC)
ELSEWHERE = ProjectId(ulid(9, series=2))
LOSSES: dict[str, dict[str, object]] = {
    "reworded": {"content": "Cherries are picked in July"},
    "superseded": {"status": Superseded(by=MemoryId(ulid(8)), since=START)},
    "forgotten": {"status": Deleted(since=START)},
    "private": {"sensitivity": Sensitivity.PRIVATE},
    "local-only": {"sensitivity": Sensitivity.LOCAL_ONLY},
    "moved": {"project": ELSEWHERE},
    "narrowed": {"visibility": Visibility.SESSION, "session": "ses-1"},
}
"""What a change may do to a memory so that no summary is made from it any more."""


def summary_of(*sources: Memory, project: ProjectId | None = ORCHARD, text: str = "Cherries, mostly") -> Summary:
    """What the memories come to."""
    return Summary(
        project=project,
        text=text,
        sources=tuple(memory.id for memory in sources),
        made_by="m",
        prompt="dream-1",
        created_at=START,
    )


@SUMMARY_CHECKS
async def a_project_has_no_summary_before_one_is_put(make: MakeBackend) -> None:
    store = make().dreams
    for project in (None, ORCHARD):
        assert await store.summary(project) is None
        assert not await store.drop_summary(project)


@SUMMARY_CHECKS
async def a_summary_comes_back_as_it_was_put_in_place_of_the_one_before(make: MakeBackend) -> None:
    backend = make()
    store = backend.dreams
    one, two = await add_memories(backend.memories, sample_memory("one"), sample_memory("two"))
    for project in (ORCHARD, None):
        full = Summary(
            project=project,
            text="Cherries 日本 🚀\n\n- “when?”\u2029 \\ {}",
            sources=(two.id, one.id, two.id),
            made_by="openai:größe-1",
            prompt="",
            created_at=MOMENT,
        )
        await store.put_summary(full)
        assert await store.summary(project) == full
        await store.put_summary(summary_of(one, project=project, text=""))
        assert await store.summary(project) == summary_of(one, project=project, text="")
        await store.put_summary(summary_of(project=project))
        assert await store.summary(project) == summary_of(project=project)


@SUMMARY_CHECKS
async def each_project_has_its_own_summary_and_what_is_global_too(make: MakeBackend) -> None:
    backend = make()
    store = backend.dreams
    (one,) = await add_memories(backend.memories, sample_memory("one"))
    all_of_them = [summary_of(one, project=project, text=str(project)) for project in (ORCHARD, ELSEWHERE, None)]
    for summary in all_of_them:
        await store.put_summary(summary)
    assert [await store.summary(summary.project) for summary in all_of_them] == all_of_them
    assert await store.drop_summary(None)
    assert not await store.drop_summary(None)
    assert [await store.summary(summary.project) for summary in all_of_them] == [*all_of_them[:2], None]


@SUMMARY_CHECKS
async def a_summary_goes_in_the_commit_that_takes_one_of_its_sources_away(make: MakeBackend) -> None:
    backend = make()
    store = backend.dreams
    number = 50
    for name, fields in LOSSES.items():
        samples = [sample_memory(f"{name} {side}") for side in ("kept", "source")]
        kept, source = await add_memories(backend.memories, *samples, first_change=number)
        await store.put_summary(summary_of(kept, source))
        await store.put_summary(summary_of(source, project=None))
        await store.put_summary(summary_of(kept, project=ELSEWHERE))
        after = replace(source, **fields)  # type: ignore[arg-type]  # fields of Memory
        await backend.memories.commit(sample_change(number + 2, Edit(before=source, after=after)))
        assert await store.summary(ORCHARD) is None, name
        assert await store.summary(None) is None, name
        assert await store.summary(ELSEWHERE) == summary_of(kept, project=ELSEWHERE), name
        number += 10


@SUMMARY_CHECKS
async def a_summary_stays_when_its_sources_change_in_what_it_does_not_say(make: MakeBackend) -> None:
    backend = make()
    (source,) = await add_memories(backend.memories, sample_memory("one"))
    summary = summary_of(source)
    await backend.dreams.put_summary(summary)
    for number, fields in enumerate(
        ({"tags": ("ripe",)}, {"pinned": True}, {"tier": Tier.CORE}, {"status": Conflicted(evidence="?", since=START)}),
        start=2,
    ):
        edit = Edit(before=source, after=replace(source, **fields))  # type: ignore[arg-type]  # fields of Memory
        source = (await backend.memories.commit(sample_change(number, edit))).edits[0].after
        await backend.memories.record_use(Use(memories=(source.id,), at=START, session=None, surfaced=True))
        assert await backend.dreams.summary(ORCHARD) == summary
    await add_memories(backend.memories, sample_memory("two"), first_change=9)
    assert await backend.dreams.summary(ORCHARD) == summary


@SUMMARY_CHECKS
async def a_change_that_is_refused_lets_go_of_nothing(make: MakeBackend) -> None:
    backend = make()
    one, two = await add_memories(backend.memories, sample_memory("one"), sample_memory("two"))
    await backend.dreams.put_summary(summary_of(one))
    stale = replace(two, revision=7)
    edits = [Edit(before=memory, after=replace(memory, content="other")) for memory in (one, stale)]
    await expect_error(Conflict, backend.memories.commit(sample_change(3, *edits)))
    assert await backend.dreams.summary(ORCHARD) == summary_of(one)


@SUMMARY_CHECKS
async def a_summary_of_what_may_not_be_summed_up_is_not_kept(make: MakeBackend) -> None:
    backend = make()
    store = backend.dreams
    fit = sample_memory("fit", status=Conflicted(evidence="?", since=START))
    unfit = [
        sample_memory("superseded", status=Superseded(by=MemoryId(ulid(8)), since=START)),
        sample_memory("forgotten", status=Deleted(since=START)),
        sample_memory("private", sensitivity=Sensitivity.PRIVATE),
        sample_memory("local-only", sensitivity=Sensitivity.LOCAL_ONLY),
    ]
    await add_memories(backend.memories, fit, *unfit)
    for number, source in enumerate((*unfit, sample_memory("unknown"))):
        project = (ORCHARD, None)[number % 2]
        await store.put_summary(summary_of(fit, project=project))
        await store.put_summary(summary_of(fit, source, project=project, text="stolen"))
        assert await store.summary(project) is None, source.content  # the one before is not what it was, either
    await store.put_summary(summary_of(fit))
    assert await store.summary(ORCHARD) == summary_of(fit)


@SUMMARY_CHECKS
async def no_summary_outlives_a_source_that_goes_while_it_is_put(make: MakeBackend) -> None:
    backend = make()
    for number in range(1, 9, 2):
        (source,) = await add_memories(backend.memories, sample_memory(f"fact {number}"), first_change=number)
        gone = Edit(before=source, after=replace(source, status=Deleted(since=START)))
        async with create_task_group() as group:
            group.start_soon(backend.dreams.put_summary, summary_of(source))
            group.start_soon(backend.memories.commit, sample_change(number + 1, gone))
        assert await backend.dreams.summary(ORCHARD) is None


@SUMMARY_CHECKS
async def summaries_may_hold_any_character(make: MakeBackend) -> None:
    backend = make()
    store = backend.dreams
    (one,) = await add_memories(backend.memories, sample_memory("one"))
    for odd in ("a\x00b", "' OR 1=1 --", "日本 🚀", "", "\u2028\r\n\t\x7f", "%_\\", "é é"):
        await store.put_summary(replace(summary_of(one, text=odd), made_by=odd, prompt=odd))
        found = await store.summary(ORCHARD)
        assert found is not None
        kept = odd if found.text == odd else odd.replace("\x00", "\ufffd")
        assert (found.text, found.made_by, found.prompt) == (kept, kept, kept)
        stray = replace(summary_of(one), sources=(MemoryId(odd),))
        await store.put_summary(stray)
        assert await store.summary(ORCHARD) is None


@SUMMARY_CHECKS
async def half_a_character_in_a_summary_is_refused_or_kept_as_well_as_can_be(make: MakeBackend) -> None:
    store = make().dreams
    await store.put_summary(summary_of())
    try:
        await store.put_summary(summary_of(text="half \ud83d of it"))
    except InputError:
        assert await store.summary(ORCHARD) == summary_of()
    else:
        found = await store.summary(ORCHARD)
        assert found is not None
        assert found.text.startswith("half ")


@SUMMARY_CHECKS
async def stores_do_not_share_summaries(make: MakeBackend) -> None:
    ours, theirs = make(), make()
    (one,) = await add_memories(ours.memories, sample_memory("one"))
    await ours.dreams.put_summary(summary_of(one))
    await theirs.dreams.put_summary(summary_of(one))
    assert await theirs.dreams.summary(ORCHARD) is None
    assert await ours.dreams.summary(ORCHARD) == summary_of(one)
