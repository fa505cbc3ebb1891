"""The command /memory: written on request, renewed, taken away, and never in the place of somebody else's file."""

from __future__ import annotations

from pathlib import Path

import pytest

from backstory.domain.capture import capture
from backstory.domain.echo import strip_injected
from backstory.entrypoints.opencode.command_file import NAME, content, to_remove, to_write
from backstory.entrypoints.opencode.files import remove, write_whole
from backstory.entrypoints.opencode.locations import Place
from backstory.errors import InstallError

FOREIGN = b"---\ndescription: mine\n---\nDo something.\n"


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(scope="project", config=tmp_path / "project" / ".opencode", root=tmp_path / "project")


def install(place: Place, *, wanted: bool = True) -> list[str]:
    changes = to_write(place, wanted=wanted)
    for change in changes:
        assert change.content is not None
        write_whole(change.path, change.content)
    return [change.action for change in changes]


def uninstall(place: Place) -> list[Path]:
    changes = to_remove(place)
    for change in changes:
        remove(change.path)
    return [change.path for change in changes]


def ours(place: Place) -> Path:
    return place.config / "command" / NAME


def test_it_is_written_only_where_it_is_asked_for(place: Place) -> None:
    assert install(place, wanted=False) == []
    assert install(place) == ["create"]
    assert ours(place).read_bytes() == content()
    assert install(place) == ["keep"]


def test_an_older_one_is_renewed_by_any_installation(place: Place) -> None:
    install(place)
    ours(place).write_bytes(content().split(b"<backstory-command>")[0])
    assert install(place, wanted=False) == ["update"]
    assert ours(place).read_bytes() == content()


def test_uninstalling_takes_it_away_and_a_second_time_does_nothing(place: Place) -> None:
    install(place)
    assert uninstall(place) == [ours(place)]
    assert uninstall(place) == []


@pytest.mark.parametrize("folder", ["command", "commands"])
def test_a_file_of_somebody_else_is_neither_replaced_nor_removed(place: Place, folder: str) -> None:
    foreign = place.config / folder / NAME
    foreign.parent.mkdir(parents=True)
    foreign.write_bytes(FOREIGN)
    with pytest.raises(InstallError, match="not written by Backstory"):
        install(place)
    assert install(place, wanted=False) == []
    assert uninstall(place) == []
    assert foreign.read_bytes() == FOREIGN


def test_what_cannot_be_read_stops_only_who_asks_for_it(place: Place) -> None:
    ours(place).mkdir(parents=True)
    assert install(place, wanted=False) == []
    assert uninstall(place) == []
    with pytest.raises(InstallError, match="cannot be read"):
        install(place)


def test_nothing_is_written_or_removed_through_a_link_out_of_the_project(place: Place, tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / NAME).write_bytes(content())
    place.config.mkdir(parents=True)
    (place.config / "command").symlink_to(elsewhere)
    with pytest.raises(InstallError, match="leads out"):
        install(place)
    assert uninstall(place) == []
    assert (elsewhere / NAME).exists()


@pytest.mark.parametrize("typed", ["", "what do you know about tides?", "forget #3"])
def test_its_instructions_are_nobody_s_wish(typed: str) -> None:
    prompt = content().decode().rpartition("---\n")[2].replace("$ARGUMENTS", typed)
    assert strip_injected(prompt) == typed
    assert capture(strip_injected(prompt)) == capture(typed)


def test_what_the_user_wants_remembered_is_captured_from_it() -> None:
    prompt = content().decode().replace("$ARGUMENTS", "remember that the lantern is oiled weekly")
    assert "the lantern is oiled weekly" in str(capture(strip_injected(prompt)))
