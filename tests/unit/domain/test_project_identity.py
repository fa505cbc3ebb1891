"""What is certain at a glance, what joins after a look, and what is only a candidate."""

from __future__ import annotations

from dataclasses import replace

import pytest

from backstory.domain.ids import ProjectId
from backstory.domain.project import Alias, ProjectSighting, past
from backstory.domain.project_identity import candidates, clone_aliases, decide, is_stale, kept_roots, recognised
from backstory.testing.fakes import START

ONE, TWO = ProjectId("one"), ProjectId("two")
GIT, DIR = "git:/a/.git", "dir:/a"
SEEN = ProjectSighting(
    name="a", root="/a", aliases=(GIT, DIR), stamps={GIT: "1:5:99", DIR: "1:4"}, looked="commits:1", traits=("root:c1",)
)


def alias(name: str, project: ProjectId = ONE, **fields: object) -> Alias:
    return replace(Alias(name=name, project=project, first_seen=START, last_seen=START), **fields)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("stamp", "certain"),
    [
        ("", True),  # stored before stamps were
        ("1:5:99", True),
        ("7:8:99", True),  # another device and inode after a restart, made at the same time
        ("1:5:98", False),  # the inode was given to another
        ("1:6", False),
        ("1:5", True),
    ],
)
def test_a_known_place_is_certain_while_the_same_thing_stands_there(stamp: str, certain: bool) -> None:
    assert (recognised(SEEN, [alias(GIT, stamp=stamp)]) is not None) is certain


def test_a_place_that_is_not_known_takes_a_look() -> None:
    assert recognised(SEEN, []) is None
    assert recognised(SEEN, [alias(DIR, stamp="1:4")]) is None


def test_the_nearest_known_folder_below_the_root_counts() -> None:
    inner = ("dir:/a/b/c", "dir:/a/b")
    seen = replace(SEEN, inner=inner, stamps={**SEEN.stamps, "dir:/a/b/c": "1:7", "dir:/a/b": "1:6"})
    found = recognised(seen, [alias(GIT, TWO), alias("dir:/a/b", stamp="1:6")])
    assert found is not None
    assert (found.aliases, found.root, found.name, found.git) == (("dir:/a/b",), "/a/b", "b", None)
    other = recognised(seen, [alias(GIT, TWO), alias("dir:/a/b", stamp="1:66")])
    assert other == seen


def test_new_commits_and_new_settings_are_worth_a_second_look_and_only_commits_ask_git() -> None:
    known = alias(GIT, stamp="1:5:99", looked="commits:1", traits=("root:c1", "remote:h/x"))
    assert not is_stale(SEEN, [known])
    settings = replace(SEEN, looked="commits:2")
    assert is_stale(settings, [known])
    assert kept_roots(settings, [known]) == {"root:c1"}
    complete = replace(SEEN, looked="commits:1")
    assert kept_roots(complete, [replace(known, looked="shallow:1", traits=())]) == frozenset()


def test_clones_have_each_root_commit_with_the_remote_in_common() -> None:
    assert clone_aliases(("remote:h/x", "root:c1", "root:c2")) == ("clone:c1 h/x", "clone:c2 h/x")
    assert clone_aliases(("root:c1",)) == clone_aliases(("remote:h/x",)) == ()


@pytest.mark.parametrize(
    ("then", "now", "same"),
    [
        (("root:c1",), ("root:c1",), True),
        (("root:c1", "root:c2"), ("root:c2",), True),
        (("root:c1", "remote:x"), ("root:c1",), True),
        (("root:c1", "remote:x"), ("root:c1", "remote:y"), False),
        (("root:c1", "remote:x"), ("root:c2", "remote:x"), False),
        (("root:c1", "remote:x"), ("remote:x",), True),
        (("root:c1",), (), False),
        ((), ("root:c1",), False),
        ((), (), False),
    ],
)
def test_another_git_directory_at_a_known_place_must_prove_itself(
    then: tuple[str, ...], now: tuple[str, ...], same: bool
) -> None:
    known = [alias(GIT, stamp="1:3:3", traits=then), alias(DIR, stamp="1:4")]
    found = decide(replace(SEEN, traits=now), known, gone=())
    assert (found.joins, found.taken) == ((ONE, ()) if same else (None, (GIT, DIR)))


def test_a_folder_that_stays_in_place_is_its_project_before_any_clone_is() -> None:
    known = [alias(DIR, stamp="1:4"), alias("clone:c1 h/x", TWO)]
    assert decide(replace(SEEN, traits=("remote:h/x", "root:c1")), known, gone=()).joins == ONE


def test_a_moved_git_directory_is_its_project_only_when_it_is_gone_from_where_it_was() -> None:
    known = [alias("git:/old/.git", stamp="1:5:99")]
    assert decide(SEEN, known, gone=["git:/old/.git"]).joins == ONE
    assert decide(SEEN, known, gone=[]).joins is None
    retired = alias(past(known[0]), stamp="1:5:99")
    assert decide(SEEN, [retired], gone=[]).joins == ONE
    without_time = alias("git:/old/.git", stamp="1:5")
    seen = replace(SEEN, stamps={GIT: "1:5"})
    assert decide(seen, [without_time], gone=["git:/old/.git"]).joins is None


def test_the_same_root_without_remotes_joins_only_the_one_project_that_is_nowhere_any_more() -> None:
    known = [alias("git:/old/.git", stamp="1:3:3", traits=("root:c1",))]
    assert decide(SEEN, known, gone=["git:/old/.git"]).joins == ONE
    assert decide(SEEN, known, gone=[]).joins is None
    rival = alias("git:/rival/.git", TWO, stamp="1:2:2", traits=("root:c1",))
    assert decide(SEEN, [*known, rival], gone=["git:/old/.git", "git:/rival/.git"]).joins is None
    named = replace(known[0], traits=("remote:h/x", "root:c1"))
    assert decide(SEEN, [named], gone=["git:/old/.git"]).joins is None
    assert decide(replace(SEEN, traits=("remote:h/y", "root:c1")), known, gone=["git:/old/.git"]).joins is None


def test_a_plain_folder_goes_by_its_path_unless_a_repository_stood_there() -> None:
    seen = ProjectSighting(name="a", root="/a", aliases=(DIR,), stamps={DIR: "1:9"}, traits=())
    assert decide(seen, [alias(DIR, stamp="1:4")], gone=()).joins == ONE
    had_git = [alias(GIT, stamp="1:5:99"), alias(DIR, stamp="1:4")]
    assert decide(seen, had_git, gone=()).taken == (DIR,)


def test_candidates_are_told_once_each_with_the_best_reason() -> None:
    known = [
        alias(GIT, traits=("remote:h/x", "root:c1")),
        alias(DIR),
        alias("git:/b/.git", TWO, traits=("remote:h/y", "root:c1")),
        alias("dir:/a/b", TWO),
        alias("git:/c/.git", ProjectId("three"), traits=("remote:h/x",)),
        alias("dir:/a/d", ProjectId("four")),
        alias("dir:/ab", ProjectId("five")),
    ]
    found = {item.project: item.reason for item in candidates(ONE, known)}
    assert set(found) == {TWO, "three", "four"}
    assert "another remote" in found[TWO]
    assert "shallow" in found[ProjectId("three")]
    assert "inside this repository" in found[ProjectId("four")]
    assert [item.project for item in candidates(TWO, known)] == [ONE]
    assert candidates(ProjectId("five"), known) == ()


def test_a_past_alias_knows_its_place() -> None:
    was = alias("git:/home/me@work/a/.git", stamp="1:2:3")
    gone = replace(was, name=past(was))
    assert (gone.kind, gone.place, gone.path) == ("past", was.name, "/home/me@work/a/.git")
    assert alias("clone:c1 h/x").path is None
