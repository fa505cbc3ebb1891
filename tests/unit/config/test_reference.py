"""What `backstory config` and the reference page show."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import TYPE_CHECKING

from backstory.config import options
from backstory.config.reference import describe, render_reference

if TYPE_CHECKING:
    from tests.unit.config.conftest import Person

PAGE = Path(__file__).parents[3] / "docs" / "reference" / "settings.md"


def test_the_committed_page_is_the_one_the_table_makes() -> None:
    assert PAGE.read_text(encoding="utf-8") == render_reference()


def test_the_page_names_every_option_and_every_variable() -> None:
    page = render_reference()
    for option in options():
        assert all(f"`{name}`" in page for name in (option.name, option.env, *option.aliases))


def test_the_example_on_the_page_can_be_loaded(person: Person) -> None:
    example = render_reference().rpartition("```toml\n")[2].removesuffix("```\n")
    assert tomllib.loads(example)
    person.writes(example)
    person.variables["TEAM_LLM_KEY"] = "k"
    assert person.load().warnings == ()


def test_every_setting_is_described_once_in_the_order_of_the_table(person: Person) -> None:
    rows = describe(person.load())
    assert [row.name for row in rows] == [option.name for option in options()]


def test_values_are_described_as_one_would_write_them(person: Person) -> None:
    person.writes("[observation]\ncustom_instruction = 'one\\ntwo'\n[dream]\nenabled = false")
    person.variables["BACKSTORY_OBSERVATION_CUSTOM_INSTRUCTION"] = "first\nsecond " + "x" * 100
    rows = {row.name: row.value for row in describe(person.load())}
    assert rows["dream.enabled"] == "false"
    assert rows["recall.limit"] == "10"
    assert rows["store.dir"] == str(person.home)
    assert rows["models.base_url"] == "not set"
    assert rows["observation.custom_instruction"].startswith("first\\nsecond xxx")
    assert len(rows["observation.custom_instruction"]) < 100
