"""The contract of the ProjectRegistry."""

from __future__ import annotations

from datetime import timedelta

from backstory.domain.ids import ProjectId
from backstory.domain.project import Project, ProjectSighting
from backstory.testing.contracts.checks import Checks, MakeBackend
from backstory.testing.fakes import START, ulid

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
