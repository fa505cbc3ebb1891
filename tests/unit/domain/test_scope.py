"""Who may read and who may change."""

from __future__ import annotations

from dataclasses import replace

import pytest

from backstory.domain.ids import ProjectId, SessionId
from backstory.domain.memory import Memory, Sensitivity, Visibility
from backstory.domain.scope import Audience, Viewer, circle, circles, may_change, visible
from backstory.testing.fakes import ORCHARD, sample_memory

HERE = Viewer(project=ORCHARD, session=SessionId("s1"))
PERSON = replace(HERE, audience=Audience.PERSON)
WIDE = replace(HERE, all_projects=True)
AWAY = replace(HERE, project=ProjectId("away"), session=SessionId("s2"))
OUTSIDE = Viewer(project=None)
VIEWERS = (HERE, PERSON, WIDE, AWAY, replace(AWAY, audience=Audience.PERSON), OUTSIDE)

GLOBAL = sample_memory(visibility=Visibility.GLOBAL)
PROJECT = sample_memory()
OURS = sample_memory(visibility=Visibility.SESSION, session=SessionId("s1"))
OTHERS = sample_memory(visibility=Visibility.SESSION, session=SessionId("s3"))
NOBODYS = sample_memory(visibility=Visibility.SESSION)
HOMELESS = sample_memory(project=None)


@pytest.mark.parametrize(
    ("memory", "readers"),
    [
        (GLOBAL, VIEWERS),
        (PROJECT, (HERE, PERSON, WIDE)),
        (OURS, (HERE, PERSON, WIDE)),
        (OTHERS, (PERSON,)),
        (NOBODYS, (PERSON,)),
        (HOMELESS, (WIDE,)),
    ],
    ids=["global", "project", "ours", "others", "nobodys", "homeless"],
)
def test_each_visibility_has_its_readers(memory: Memory, readers: tuple[Viewer, ...]) -> None:
    assert [viewer for viewer in VIEWERS if visible(memory, viewer)] == [v for v in VIEWERS if v in readers]


@pytest.mark.parametrize("memory", [GLOBAL, PROJECT, OURS, OTHERS, NOBODYS, HOMELESS])
def test_local_only_is_for_the_same_people_and_no_model(memory: Memory) -> None:
    local = replace(memory, sensitivity=Sensitivity.LOCAL_ONLY)
    for viewer in VIEWERS:
        person = viewer.audience is Audience.PERSON
        assert visible(local, viewer) == (person and visible(memory, viewer))
        assert may_change(local, viewer) == (person and may_change(memory, viewer))


def test_reading_everywhere_is_not_changing_everywhere() -> None:
    theirs = replace(PROJECT, project=ProjectId("theirs"))
    assert visible(theirs, WIDE)
    assert not may_change(theirs, WIDE)


@pytest.mark.parametrize("memory", [GLOBAL, PROJECT, OURS, OTHERS, NOBODYS, HOMELESS])
def test_what_may_be_changed_may_be_seen(memory: Memory) -> None:
    assert all(visible(memory, viewer) for viewer in VIEWERS if may_change(memory, viewer))


@pytest.mark.parametrize("memory", [GLOBAL, PROJECT, OURS, OTHERS, NOBODYS, HOMELESS])
def test_what_a_viewer_may_read_stands_in_one_of_its_circles(memory: Memory) -> None:
    for viewer in VIEWERS:
        within = circles(viewer)
        assert not visible(memory, viewer) or within is None or circle(memory) in within


def test_another_projects_memories_stand_outside_a_viewers_circles() -> None:
    assert circle(PROJECT) not in (circles(AWAY) or ())
