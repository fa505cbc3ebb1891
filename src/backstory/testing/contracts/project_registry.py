"""The contract of the ProjectRegistry."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

from backstory.domain.conversation import Session
from backstory.domain.dream_state import DreamState
from backstory.domain.history import Action, Author, Change, Edit
from backstory.domain.ids import ChangeId, MemoryId, ProjectId, SessionId
from backstory.domain.memory import Memory
from backstory.domain.project import Alias, Project, ProjectSighting, past
from backstory.errors import Conflict, NotFound
from backstory.ports.backend import Backend
from backstory.ports.store import ProjectMove
from backstory.testing.contracts.checks import Checks, MakeBackend
from backstory.testing.fakes import START, sample_memory, ulid

PROJECT_REGISTRY_CHECKS = Checks()
FIRST, SECOND, THIRD = (ProjectId(ulid(n, series=2)) for n in (1, 2, 3))
LATER = START + timedelta(days=1)


def sighting(name: str, *aliases: str) -> ProjectSighting:
    """A folder of that name with these aliases, the strongest first."""
    return ProjectSighting(name=name, root=f"/repo/{name}", aliases=aliases)


@PROJECT_REGISTRY_CHECKS
async def a_new_folder_becomes_a_project_and_stays_one(make: MakeBackend) -> None:
    registry = make().projects
    shop = await registry.identify(sighting("shop", "git:a", "dir:a"), now=START, new_id=FIRST)
    assert shop == Project(id=FIRST, name="shop", root="/repo/shop")
    assert await registry.identify(sighting("shop", "git:a", "dir:a"), now=LATER, new_id=SECOND) == shop
    assert await registry.projects() == {FIRST: shop}


@PROJECT_REGISTRY_CHECKS
async def one_alias_in_common_is_enough_and_others_are_learned(make: MakeBackend) -> None:
    registry = make().projects
    await registry.identify(sighting("shop", "dir:a"), now=START, new_id=FIRST)
    moved = await registry.identify(sighting("market", "git:a", "dir:a"), now=LATER, new_id=SECOND)
    assert moved == Project(id=FIRST, name="shop", root="/repo/market")
    by_new_alias = await registry.identify(sighting("clone", "git:a"), now=LATER, new_id=THIRD)
    assert by_new_alias.id == FIRST
    assert (await registry.projects())[FIRST].root == "/repo/clone"


@PROJECT_REGISTRY_CHECKS
async def the_strongest_known_alias_decides_and_nothing_is_merged(make: MakeBackend) -> None:
    registry = make().projects
    await registry.identify(sighting("a", "dir:a"), now=START, new_id=FIRST)
    await registry.identify(sighting("b", "git:b"), now=START, new_id=SECOND)
    both = await registry.identify(sighting("b", "git:b", "dir:a"), now=LATER, new_id=THIRD)
    assert both.id == SECOND
    assert (await registry.identify(sighting("a", "dir:a"), now=LATER, new_id=THIRD)).id == FIRST
    assert set(await registry.projects()) == {FIRST, SECOND}


@PROJECT_REGISTRY_CHECKS
async def strangers_have_projects_of_their_own(make: MakeBackend) -> None:
    registry = make().projects
    for new_id, alias in ((FIRST, "dir:a"), (SECOND, "dir:A"), (THIRD, "dir:a/")):
        assert (await registry.identify(sighting("same name", alias), now=START, new_id=new_id)).id == new_id


@PROJECT_REGISTRY_CHECKS
async def finding_answers_as_identifying_would_and_keeps_nothing(make: MakeBackend) -> None:
    registry = make().projects
    assert await registry.find(sighting("shop", "dir:a")) is None
    assert await registry.projects() == {}
    shop = await registry.identify(sighting("shop", "dir:a"), now=START, new_id=FIRST)
    moved = await registry.find(sighting("market", "git:a", "dir:a"))
    assert moved == Project(id=FIRST, name="shop", root="/repo/market")
    assert await registry.projects() == {FIRST: shop}
    assert await registry.find(sighting("clone", "git:a")) is None


# --- stamps, traits and places that change hands ----------------------------------------------------------------------


@PROJECT_REGISTRY_CHECKS
async def aliases_are_told_with_their_times_stamps_and_traits(make: MakeBackend) -> None:
    registry = make().projects
    seen = replace(
        sighting("shop", "git:/a/.git", "dir:/a", "clone:c1 host/a"),
        stamps={"git:/a/.git": "1:2:3", "dir:/a": "1:1"},
        looked="commits:7",
        traits=("remote:host/a", "root:c1"),
    )
    await registry.identify(seen, now=START, new_id=FIRST)
    clone = Alias(name="clone:c1 host/a", project=FIRST, first_seen=START, last_seen=START)
    folder = replace(clone, name="dir:/a", stamp="1:1")
    git = replace(clone, name="git:/a/.git", stamp="1:2:3", looked="commits:7", traits=("remote:host/a", "root:c1"))
    assert await registry.aliases() == [clone, folder, git]
    assert await registry.aliases(["git:/a/.git", "dir:/nowhere", "git:/a/.git"]) == [git]
    assert await registry.aliases([]) == []


@PROJECT_REGISTRY_CHECKS
async def what_is_seen_again_is_renewed_and_nothing_is_lost_by_a_quick_look(make: MakeBackend) -> None:
    registry = make().projects
    seen = replace(sighting("shop", "git:a", "dir:a"), stamps={"git:a": "1:2:3"}, looked="empty:1", traits=("root:c1",))
    await registry.identify(seen, now=START, new_id=FIRST)
    await registry.identify(sighting("shop", "git:a", "dir:a"), now=LATER, new_id=SECOND)
    [git] = await registry.aliases(["git:a"])
    assert (git.stamp, git.looked, git.traits, git.first_seen) == ("1:2:3", "empty:1", ("root:c1",), START)
    assert git.last_seen == LATER
    anew = replace(seen, stamps={"git:a": "1:2:9"}, looked="commits:2", traits=("remote:h", "root:c2"))
    await registry.identify(anew, now=LATER, new_id=SECOND)
    [git] = await registry.aliases(["git:a"])
    assert (git.stamp, git.looked, git.traits) == ("1:2:9", "commits:2", ("remote:h", "root:c2"))


@PROJECT_REGISTRY_CHECKS
async def a_project_that_is_named_comes_before_the_aliases(make: MakeBackend) -> None:
    registry = make().projects
    await registry.identify(sighting("a", "dir:a"), now=START, new_id=FIRST)
    await registry.identify(sighting("b", "dir:b"), now=START, new_id=SECOND)
    joining = replace(sighting("c", "git:c", "dir:a"), joins=SECOND)
    assert (await registry.find(joining)) == Project(id=SECOND, name="b", root="/repo/c")
    assert (await registry.identify(joining, now=LATER, new_id=THIRD)).id == SECOND
    owners = {alias.name: alias.project for alias in await registry.aliases()}
    assert owners == {"dir:a": FIRST, "dir:b": SECOND, "git:c": SECOND}
    unknown = replace(sighting("d", "dir:a"), joins=THIRD)
    assert (await registry.identify(unknown, now=LATER, new_id=THIRD)).id == FIRST


@PROJECT_REGISTRY_CHECKS
async def a_place_that_is_taken_passes_to_the_newcomer_and_stays_known_as_past(make: MakeBackend) -> None:
    registry = make().projects
    old = replace(sighting("old", "git:a", "dir:a"), stamps={"git:a": "1:2:3", "dir:a": "1:1"}, traits=("root:c1",))
    await registry.identify(old, now=START, new_id=FIRST)
    [before] = await registry.aliases(["git:a"])
    stamps = {"git:a": "1:7:8", "dir:a": "1:6"}
    new = replace(sighting("new", "git:a", "dir:a"), stamps=stamps, traits=("root:c2",), taken=("git:a", "dir:a"))
    assert await registry.find(new) is None
    assert (await registry.identify(new, now=LATER, new_id=SECOND)).id == SECOND
    # another process that saw the same joins it, and nothing is taken twice
    assert (await registry.identify(new, now=LATER, new_id=THIRD)).id == SECOND
    named = {alias.name: alias for alias in await registry.aliases()}
    assert named[past(before)] == replace(before, name=past(before))
    assert (named["git:a"].project, named["git:a"].traits, named["git:a"].stamp) == (SECOND, ("root:c2",), "1:7:8")
    assert {alias.project for alias in named.values() if alias.kind == "past"} == {FIRST}
    assert len(named) == 4


@PROJECT_REGISTRY_CHECKS
async def a_project_gets_another_name(make: MakeBackend) -> None:
    registry = make().projects
    await registry.identify(sighting("shop", "dir:a"), now=START, new_id=FIRST)
    assert await registry.rename(FIRST, "market") == Project(id=FIRST, name="market", root="/repo/shop")
    assert (await registry.identify(sighting("shop", "dir:a"), now=LATER, new_id=SECOND)).name == "market"
    try:
        await registry.rename(SECOND, "nobody")
    except NotFound:
        return
    raise AssertionError("a project that does not exist was renamed")


# --- moving -----------------------------------------------------------------------------------------------------------


async def two_projects(backend: Backend) -> tuple[Memory, Session]:
    """FIRST with a memory and a session, and SECOND."""
    await backend.projects.identify(sighting("a", "git:a", "dir:a"), now=START, new_id=FIRST)
    await backend.projects.identify(sighting("b", "dir:b"), now=START, new_id=SECOND)
    memory = sample_memory(id=MemoryId(ulid(1, series=4)), project=FIRST)
    added = await backend.memories.commit(_change(1, Edit(before=None, after=memory)))
    session = Session(id=SessionId("s1"), project=FIRST, host="h", directory="/a", created_at=START, updated_at=START)
    await backend.conversations.put_session(session)
    return added.edits[0].after, session


def _change(n: int, *edits: Edit, undoes: ChangeId | None = None) -> Change:
    action = Action.UNDO if undoes else Action.UPDATE
    change_id = ChangeId(ulid(n, series=5))
    return Change(id=change_id, at=START, author=Author.USER, action=action, edits=edits, undoes=undoes)


def _merge(change: Change | None) -> ProjectMove:
    target = Project(id=SECOND, name="b", root="/repo/b")
    return ProjectMove(source=FIRST, target=target, aliases=("git:a", "dir:a"), sessions=None, change=change)


async def _owners(backend: Backend) -> set[ProjectId | None]:
    """Whose the memory, the session and the folder of ``two_projects`` are."""
    memory_id = MemoryId(ulid(1, series=4))
    session = await backend.conversations.session(SessionId("s1"))
    assert session is not None
    distilled = [await backend.dreams.state(SessionId(name)) for name in ("s1", "of no archive")]
    folders = {alias.project for alias in await backend.projects.aliases(["git:a", "dir:a"])}
    return {(await backend.memories.get([memory_id]))[memory_id].project, session.project, *folders} | {
        state.project for state in distilled if state is not None
    }


@PROJECT_REGISTRY_CHECKS
async def a_move_takes_memories_sessions_and_aliases_and_undoing_brings_all_back(make: MakeBackend) -> None:
    backend = make()
    memory, session = await two_projects(backend)
    other = SessionId("another project's")
    for name, owner in ((session.id, FIRST), (SessionId("of no archive"), FIRST), (other, THIRD)):
        await backend.dreams.apply(DreamState(session=name, project=owner, updated_at=LATER))
    change = _change(2, Edit(before=memory, after=replace(memory, project=SECOND)))
    stored = await backend.projects.move(_merge(change), now=LATER)
    assert stored is not None
    assert await backend.memories.change(change.id) == stored
    assert await _owners(backend) == {SECOND}
    assert (await backend.projects.identify(sighting("a", "git:a"), now=LATER, new_id=THIRD)).id == SECOND
    for n, owner in ((3, FIRST), (4, SECOND), (5, FIRST)):
        current = (await backend.memories.get([memory.id]))[memory.id]
        undoes = ChangeId(ulid(n - 1, series=5))
        await backend.memories.commit(
            _change(n, Edit(before=current, after=replace(current, project=owner)), undoes=undoes)
        )
        assert await _owners(backend) == {owner}
    state = await backend.dreams.state(other)
    assert state is not None
    assert (state.project, state.revision) == (THIRD, 1)
    late = DreamState(session=session.id, project=FIRST, revision=1, updated_at=LATER)
    assert not await backend.dreams.apply(late)  # it was read before the move
    assert set(await backend.projects.projects()) == {FIRST, SECOND}


@PROJECT_REGISTRY_CHECKS
async def a_move_can_make_its_target_and_take_only_some(make: MakeBackend) -> None:
    backend = make()
    memory, session = await two_projects(backend)
    target = Project(id=THIRD, name="part", root="/a")
    move = ProjectMove(source=FIRST, target=target, aliases=("git:a",), sessions=(session.id,), change=None)
    assert await backend.projects.move(move, now=LATER) is None
    assert (await backend.projects.projects())[THIRD] == target
    assert [alias.project for alias in await backend.projects.aliases(["dir:a", "git:a"])] == [FIRST, THIRD]
    assert [found.id for found in await backend.conversations.sessions(limit=9, project=THIRD)] == [session.id]
    assert (await backend.memories.get([memory.id]))[memory.id].project == FIRST


@PROJECT_REGISTRY_CHECKS
async def a_move_that_cannot_be_done_whole_is_not_begun(make: MakeBackend) -> None:
    backend = make()
    memory, _ = await two_projects(backend)
    stale = _change(2, Edit(before=replace(memory, revision=9), after=replace(memory, project=SECOND)))
    whole = _change(3, Edit(before=memory, after=replace(memory, project=SECOND)))
    elsewhere = replace(_merge(whole), aliases=("git:a", "dir:b"))
    nobody = replace(_merge(whole), source=THIRD)
    for move, error in ((_merge(stale), Conflict), (_merge(None), Conflict), (elsewhere, Conflict), (nobody, NotFound)):
        try:
            await backend.projects.move(move, now=LATER)
        except error:
            assert await _owners(backend) == {FIRST}
            assert await backend.memories.change(whole.id) is None
        else:
            raise AssertionError(f"{move} was done")
