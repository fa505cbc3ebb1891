"""Where keys may come from, where they go, and that nothing shows them."""

from __future__ import annotations

import traceback
from typing import TYPE_CHECKING

import pytest

from backstory.config.reference import describe

if TYPE_CHECKING:
    from tests.unit.config.conftest import Person

KEY = "sk-test-3141592653"


def test_a_key_comes_from_its_variable_and_is_never_shown(person: Person) -> None:
    person.variables["BACKSTORY_EMBEDDER_API_KEY"] = f" {KEY}\n"
    resolved = person.load()
    assert resolved.settings.embedder.api_key == KEY
    assert KEY not in repr(resolved)
    assert KEY not in repr(resolved.settings.embedder)
    rows = {row.name: row for row in describe(resolved)}
    assert rows["embedder.api_key"].value == "set, hidden"
    assert rows["models.api_key"].value == "not set"
    assert all(KEY not in row.value + row.source for row in rows.values())


def test_a_key_may_stand_in_a_variable_the_user_names(person: Person) -> None:
    person.writes("[models]\napi_key_env = 'TEAM_KEY'")
    person.variables["TEAM_KEY"] = KEY
    resolved = person.load()
    assert resolved.settings.models.api_key == KEY
    assert resolved.sources["models.api_key"] == "environment TEAM_KEY"


def test_a_named_variable_that_is_not_set_is_a_warning(person: Person) -> None:
    person.writes("[models]\napi_key_env = 'TEAM_KEY'")
    (warning,) = person.load().warnings
    assert "models.api_key_env" in warning
    assert "not set" in warning


def test_the_options_own_variable_beats_a_named_one(person: Person) -> None:
    person.variables |= {"OM_API_KEY": "own", "BACKSTORY_MODELS_API_KEY_ENV": "TEAM_KEY", "TEAM_KEY": KEY}
    resolved = person.load()
    assert (resolved.settings.models.api_key, resolved.warnings) == ("own", ())


@pytest.mark.parametrize("group", ["embedder", "models"])
def test_openais_own_key_is_used_for_openais_own_endpoint_only(person: Person, group: str) -> None:
    person.variables["OPENAI_API_KEY"] = KEY
    assert getattr(person.load().settings, group).api_key is None
    person.variables[f"BACKSTORY_{group.upper()}_PROVIDER"] = "openai"
    assert getattr(person.load().settings, group).api_key == KEY
    person.variables[f"BACKSTORY_{group.upper()}_BASE_URL"] = "https://other.example.net/v1"
    assert getattr(person.load().settings, group).api_key is None


def test_a_key_in_the_users_file_is_an_error_with_advice_and_without_the_key(person: Person) -> None:
    person.writes(f"[models]\napi_key = '{KEY}'")
    error = person.error()
    assert error.option == "models.api_key"
    assert "set BACKSTORY_MODELS_API_KEY, or name a variable of your own in models.api_key_env" in str(error)
    assert KEY not in str(error)


def test_a_key_in_a_flag_is_an_error_without_the_key(person: Person) -> None:
    error = person.error({"models.api_key": KEY})
    assert error.option == "--models-api-key"
    assert KEY not in str(error)


@pytest.mark.parametrize("key", ["two words", "line\nbreak", "schl\xfcssel", "x" * 4_097])
def test_a_key_that_no_header_can_hold_is_an_error_that_does_not_show_it(person: Person, key: str) -> None:
    person.variables["OM_API_KEY"] = key
    error = person.error()
    assert error.option == "OM_API_KEY"
    assert key not in "".join(traceback.format_exception(error))


@pytest.mark.parametrize("pasted", [KEY, "abcdef0123456789"])
def test_a_key_pasted_where_a_variables_name_belongs_is_not_repeated(person: Person, pasted: str) -> None:
    person.writes(f"[embedder]\napi_key_env = '{pasted}'")
    assert pasted not in str(person.error())


def test_a_password_in_an_address_is_refused_and_not_repeated(person: Person) -> None:
    person.variables["BACKSTORY_MODELS_BASE_URL"] = "https://me:hunter2@llm.example.net/v1"
    assert "hunter2" not in str(person.error())
    person.variables = {"BACKSTORY_STORE": "postgresql://me:hunter2@db.example.net/memory"}
    assert "hunter2" not in str(person.error())


def test_what_follows_the_question_mark_of_an_address_is_not_shown(person: Person) -> None:
    person.variables["BACKSTORY_MODELS_BASE_URL"] = "https://llm.example.net/v1?token=hunter2"
    resolved = person.load()
    assert resolved.settings.models.base_url == "https://llm.example.net/v1?token=hunter2"
    assert all("hunter2" not in row.value for row in describe(resolved))
