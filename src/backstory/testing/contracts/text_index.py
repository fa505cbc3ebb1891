"""The contract of the TextIndex."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

from backstory.domain.history import Edit
from backstory.domain.ids import MemoryId, ProjectId
from backstory.domain.memory import Deleted, Memory, Visibility, searchable_text
from backstory.domain.scope import Viewer
from backstory.domain.selection import EVERY_STATE, Selection
from backstory.domain.text import analyse, analyse_query
from backstory.ports.backend import Backend
from backstory.ports.index import COMMON_FROM_DOCUMENTS, TextHit, TextSearch
from backstory.testing.contracts.checks import Checks, MakeBackend
from backstory.testing.fakes import ORCHARD, START, add_memories, sample_change, sample_memory, ulid

TEXT_INDEX_CHECKS = Checks()
HERE = Selection(viewer=Viewer(project=ORCHARD), now=START)
CROWD = ProjectId(ulid(1, series=2))


async def found(backend: Backend, query: str, selection: Selection = HERE, limit: int = 20) -> list[MemoryId]:
    """The ids found for the words of a query, best first."""
    search = await backend.text.search_text([term.token for term in analyse_query(query)], selection, limit=limit)
    return [hit.id for hit in search.hits]


async def filled(make: MakeBackend, *contents: str) -> tuple[Backend, list[Memory]]:
    """A backend with a memory for each text."""
    backend = make()
    return backend, await add_memories(backend.memories, *map(sample_memory, contents))


@TEXT_INDEX_CHECKS
async def any_word_of_content_or_labels_finds_a_memory(make: MakeBackend) -> None:
    backend = make()
    memory = sample_memory("getUserById is slow", tags=("perf",), area="api/users", issue="OPS-4411")
    await add_memories(backend.memories, memory, sample_memory("unrelated"))
    for query in ("slow", "getUserById", "user", "perf", "api/users", "OPS-4411", "nosuchword slow"):
        assert await found(backend, query) == [memory.id]
    assert await found(backend, "nosuchword") == []


@TEXT_INDEX_CHECKS
async def a_hit_tells_how_often_each_word_matched(make: MakeBackend) -> None:
    backend, (first, _) = await filled(make, "helm helm deploy", "deploy")
    search = await backend.text.search_text(["helm", "deploy", "zebra"], HERE, limit=9)
    assert [hit for hit in search.hits if hit.id == first.id] == [
        TextHit(id=first.id, matched={"helm": 2, "deploy": 1}, length=3)
    ]


@TEXT_INDEX_CHECKS
async def statistics_count_the_whole_store(make: MakeBackend) -> None:
    backend = make()
    contents = ("helm chart", "helm and helm again", "something else")
    elsewhere = [sample_memory(content, project=CROWD) for content in contents]
    (memory,) = await add_memories(backend.memories, sample_memory("helm"))
    await add_memories(backend.memories, *elsewhere, first_change=2)
    await _forget(backend, memory, change=9)
    search = await backend.text.search_text(["helm", "zebra"], HERE, limit=9)
    assert search.hits == []
    assert search.frequency == {"helm": 3, "zebra": 0}
    assert search.documents == 4
    lengths = [len(analyse(searchable_text(item))) for item in (memory, *elsewhere)]
    assert abs(search.mean_length - sum(lengths) / 4) < 1e-9


@TEXT_INDEX_CHECKS
async def the_best_estimate_comes_first_and_the_limit_holds(make: MakeBackend) -> None:
    backend, stored = await filled(make, "deploy", "deploy a zebra now", "deploy on friday", "deploy again")
    assert (await found(backend, "zebra deploy", limit=2))[0] == stored[1].id
    assert len(await found(backend, "zebra deploy", limit=2)) == 2


@TEXT_INDEX_CHECKS
async def only_the_selection_is_searched(make: MakeBackend) -> None:
    backend = make()
    here, elsewhere = sample_memory("helm here"), sample_memory("helm elsewhere", project=CROWD)
    await add_memories(backend.memories, here, elsewhere)
    assert await found(backend, "helm") == [here.id]
    assert await found(backend, "helm", replace(HERE, tags=("x",))) == []
    everywhere = replace(HERE, viewer=replace(HERE.viewer, all_projects=True))
    assert set(await found(backend, "helm", everywhere)) == {here.id, elsewhere.id}


@TEXT_INDEX_CHECKS
async def a_changed_text_is_found_by_its_new_words_at_once(make: MakeBackend) -> None:
    backend, (memory,) = await filled(make, "helm chart")
    edit = Edit(before=memory, after=replace(memory, content="kustomize overlay", tags=("k8s",)))
    await backend.memories.commit(sample_change(2, edit))
    assert await found(backend, "helm") == []
    assert await found(backend, "kustomize") == await found(backend, "k8s") == [memory.id]
    search = await backend.text.search_text(["helm"], HERE, limit=9)
    assert (search.frequency, search.documents) == ({"helm": 0}, 1)


@TEXT_INDEX_CHECKS
async def forgotten_memories_are_found_only_when_asked_for(make: MakeBackend) -> None:
    backend, (memory,) = await filled(make, "helm chart")
    await _forget(backend, memory, change=2)
    assert await found(backend, "helm") == []
    assert await found(backend, "helm", replace(HERE, states=EVERY_STATE)) == [memory.id]


@TEXT_INDEX_CHECKS
async def no_words_find_nothing(make: MakeBackend) -> None:
    backend, _ = await filled(make, "helm chart")
    assert (await backend.text.search_text([], HERE, limit=9)).hits == []
    empty = await make().text.search_text(["helm"], HERE, limit=9)
    assert empty == TextSearch(hits=[], frequency={"helm": 0})


@TEXT_INDEX_CHECKS
async def no_token_has_power(make: MakeBackend) -> None:
    backend, (memory, *_) = await filled(make, "helm chart", "rate limit", "NOT near OR and")
    hostile = ['"', '""', "'", "*", "helm*", "^helm", "tokens:helm", "a-b", "(", ")", "{}", "--", ";", "\\", "%", "?"]
    for token in hostile:
        assert (await backend.text.search_text([token], HERE, limit=9)).hits == []
        search = await backend.text.search_text([token, "helm"], HERE, limit=9)
        assert [hit.id for hit in search.hits] == [memory.id]
    assert len((await backend.text.search_text(["not", "near", "or", "and"], HERE, limit=9)).hits) == 1


@TEXT_INDEX_CHECKS
async def thousands_of_words_are_searched(make: MakeBackend) -> None:
    backend, (memory,) = await filled(make, "helm chart")
    tokens = [f"word{n}" for n in range(3000)]
    search = await backend.text.search_text([*tokens, "helm"], HERE, limit=9)
    assert [hit.id for hit in search.hits] == [memory.id]


@TEXT_INDEX_CHECKS
async def a_token_given_twice_counts_once(make: MakeBackend) -> None:
    backend, _ = await filled(make, "helm chart")
    search = await backend.text.search_text(["helm", "helm"], HERE, limit=9)
    assert [hit.matched for hit in search.hits] == [{"helm": 1}]


@TEXT_INDEX_CHECKS
async def words_of_every_script_are_found(make: MakeBackend) -> None:
    backend, stored = await filled(
        make, "用户身份由网关校验", "Деплой во вторник", "배포는 화요일", "🚀 day", "naïve Straße"
    )
    for query, memory in zip(("身份", "вторник", "배포", "🚀", "naive STRASSE"), stored, strict=True):
        assert await found(backend, query) == [memory.id]


@TEXT_INDEX_CHECKS
async def common_words_are_dropped_while_rarer_ones_remain(make: MakeBackend) -> None:
    backend = make()
    crowd = [sample_memory(f"the crowd says helm {n}", project=CROWD) for n in range(COMMON_FROM_DOCUMENTS)]
    rare, common = sample_memory("helm zebra"), sample_memory("helm only")
    await backend.memories.commit(
        sample_change(1, *(Edit(before=None, after=memory) for memory in (*crowd, rare, common)))
    )
    search = await backend.text.search_text(["helm", "zebra"], HERE, limit=9)
    assert search.dropped == {"helm"}
    assert [(hit.id, hit.matched) for hit in search.hits] == [(rare.id, {"helm": 1, "zebra": 1})]
    alone = await backend.text.search_text(["helm"], HERE, limit=9)
    assert (alone.dropped, {hit.id for hit in alone.hits}) == (frozenset(), {rare.id, common.id})
    assert (await backend.text.search_text(["helm", "crowd"], HERE, limit=9)).dropped == {"helm"}


@TEXT_INDEX_CHECKS
async def the_newest_memories_stand_for_a_word_that_is_everywhere(make: MakeBackend) -> None:
    backend = make()
    memories = [sample_memory("helm " * (n % 7 + 1) + str(n)) for n in range(COMMON_FROM_DOCUMENTS)]
    elsewhere = [sample_memory(f"helm elsewhere {n}", project=CROWD) for n in range(20)]
    change = sample_change(1, *(Edit(before=None, after=memory) for memory in (*memories, *elsewhere)))
    await backend.memories.commit(change)
    newest = [memory.id for memory in memories[-9:]][::-1]
    assert [hit.id for hit in (await backend.text.search_text(["helm"], HERE, limit=9)).hits] == newest


@TEXT_INDEX_CHECKS
async def a_memory_that_moves_is_found_by_its_new_readers_alone(make: MakeBackend) -> None:
    backend, (memory,) = await filled(make, "heron deploys on tuesdays")
    there = replace(HERE, viewer=Viewer(project=CROWD))
    assert (await found(backend, "heron"), await found(backend, "heron", selection=there)) == ([memory.id], [])
    moved = replace(memory, project=CROWD)
    await backend.memories.commit(sample_change(2, Edit(before=memory, after=moved)))
    assert (await found(backend, "heron"), await found(backend, "heron", selection=there)) == ([], [memory.id])
    before = replace(moved, revision=memory.revision + 1)
    everybodys = replace(before, visibility=Visibility.GLOBAL)
    await backend.memories.commit(sample_change(3, Edit(before=before, after=everybodys)))
    assert await found(backend, "heron") == [memory.id]


async def _forget(backend: Backend, memory: Memory, *, change: int) -> None:
    gone = replace(memory, status=Deleted(since=START))
    await backend.memories.commit(
        sample_change(change, Edit(before=memory, after=gone), at=START + timedelta(seconds=change))
    )
