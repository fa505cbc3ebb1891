"""What is wrong is left out, the rest holds, and where it matters less is done."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from backstory.config import Settings, load_leniently

if TYPE_CHECKING:
    from tests.unit.config.conftest import Person


def lenient(person: Person) -> tuple[Settings, tuple[str, ...]]:
    env = {"BACKSTORY_HOME": str(person.home), **person.variables}
    resolved, faults = load_leniently(env=env, project_root=person.project)
    return resolved.settings, faults


def test_without_faults_nothing_is_left_out(person: Person) -> None:
    person.writes("[recall]\nlimit = 7\n")
    person.variables["BACKSTORY_CONTEXT_MAX_ENTRIES"] = "3"
    settings, faults = lenient(person)
    assert settings == person.load().settings
    assert faults == ()


def test_each_fault_is_told_and_all_else_holds(person: Person) -> None:
    person.writes("[recall]\nlimit = 7\nlimmit = 8\n[context]\nmax_entries = 'all'\n[log]\nlevel = 'error'\n")
    person.variables.update({"BACKSTORY_FOO": "1", "BACKSTORY_RECALL_RELEVANCE": "loud"})
    settings, faults = lenient(person)
    assert (settings.recall.limit, settings.log.level, settings.context.max_entries) == (7, "error", 5)
    assert len(faults) == 4
    assert settings.archive.enabled


def test_a_file_that_cannot_be_read_leaves_the_environment_and_neither_archives_nor_embeds(person: Person) -> None:
    person.writes("[recall\n")
    person.variables["BACKSTORY_RECALL_LIMIT"] = "7"
    settings, faults = lenient(person)
    assert (settings.recall.limit, settings.archive.enabled, settings.embedder.provider) == (7, False, "none")
    assert len(faults) == 1


def test_a_named_file_that_is_not_there_is_told(person: Person, tmp_path: Path) -> None:
    person.variables["BACKSTORY_CONFIG"] = str(tmp_path / "none.toml")
    settings, faults = lenient(person)
    assert "does not exist" in faults[0]
    assert not settings.archive.enabled


@pytest.mark.parametrize("text", ["[archive]\nenabled = 'of'\n", "[archive]\nenabled = 0\n"])
def test_a_wrong_switch_of_the_archive_is_off(person: Person, text: str) -> None:
    person.writes(text)
    assert not lenient(person)[0].archive.enabled


def test_a_wrong_address_of_the_embedder_sends_nothing_anywhere(person: Person) -> None:
    person.writes("[embedder]\nprovider = 'openai'\nmodel = 'm'\nbase_url = 'not an address'\n")
    assert lenient(person)[0].embedder.provider == "none"


def test_a_wrong_place_of_the_store_is_no_place(person: Person) -> None:
    resolved, faults = load_leniently(env={"BACKSTORY_HOME": "here", "HOME": str(person.home)}, project_root=None)
    assert len(faults) == 1
    with pytest.raises(NotADirectoryError):
        resolved.settings.data_dir.mkdir()
