"""What people are told about mistakes in their flags, variables and their own file."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from backstory.config import load
from backstory.errors import ConfigError

if TYPE_CHECKING:
    from tests.unit.config.conftest import Person


def test_a_bad_number_is_named_with_its_value_and_what_is_allowed(person: Person) -> None:
    person.variables["OM_OBSERVATION_MESSAGE_TOKENS"] = "a lot"
    error = person.error()
    assert (error.option, error.source) == (
        "OM_OBSERVATION_MESSAGE_TOKENS",
        "environment OM_OBSERVATION_MESSAGE_TOKENS",
    )
    assert str(error) == (
        "environment OM_OBSERVATION_MESSAGE_TOKENS: 'a lot' is not a whole number; allowed: 1,000 to 1,000,000 tokens"
    )


def test_the_same_mistake_in_a_file_is_named_as_the_file_has_it(person: Person) -> None:
    person.writes("[recall]\nlimit = 500")
    error = person.error()
    assert error.option == "recall.limit"
    assert str(error) == (
        f"user file {person.home / 'config.toml'}, recall.limit: 500 is too large; allowed: 1 to 100 memories"
    )


def test_the_same_mistake_in_a_flag_is_named_as_the_flag(person: Person) -> None:
    error = person.error({"recall.limit": "0"})
    assert (error.option, error.source) == ("--recall-limit", "flag --recall-limit")
    assert "'0' is too small" in str(error)


@pytest.mark.parametrize(
    "toml",
    [
        "[recall]\nlimit = '10'",
        "[recall]\nlimit = 10.0",
        "[recall]\nlimit = true",
        "[recall]\nlimit = [10]",
        "[recall]\nlimit = 2026-01-01",
        "[recall.limit]\nx = 1",
        "[recall]\nlimit = 0x" + "f" * 9_000,
        "[capture]\nenabled = 1",
        "[capture]\nenabled = 'yes'",
        "[recall]\nmode = 'psychic'",
        "[models]\nmodel = 7",
        "[models]\nmodel = '" + "m" * 201 + "'",
        '[observation]\ncustom_instruction = "bell \\u0007"',
        "[store]\ndir = 'relative/folder'",
        "[models]\napi_key_env = 'sk-live-0000'",
    ],
)
def test_a_wrong_type_or_value_in_the_users_file_is_an_error_that_says_what_is_allowed(
    person: Person, toml: str
) -> None:
    person.writes(toml)
    error = person.error()
    assert "; allowed: " in str(error)
    assert error.option in toml.replace("]\n", ".").replace("[", "") or error.option == "recall.limit"
    assert len(str(error)) < 500


@pytest.mark.parametrize("value", ["٣", "1e3", "10.0", "--5", "9" * 5_000, "1__0", "0x10"])
def test_only_plain_decimal_digits_make_a_number(person: Person, value: str) -> None:
    person.variables["BACKSTORY_RECALL_LIMIT"] = value
    assert "is not a whole number" in str(person.error())


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("[recal]\nlimit = 3", "recall.limit"),
        ("[recall]\nLimit = 3", "recall.limit"),
        ("[observation]\nmessageTokens = 3000", "observation.message_tokens"),
        ("[observation]\nmesageTokns = 3000", "observation.message_tokens"),
        ("relevance = 'keen'", "recall.relevance"),
        ("[memory]\ndeadline_ms = 10", "context.deadline_ms"),
    ],
)
def test_an_unknown_name_is_an_error_with_the_nearest_known_one(person: Person, written: str, meant: str) -> None:
    person.writes(written)
    error = person.error()
    assert str(error).endswith(f"there is no such setting; did you mean {meant}?")
    assert error.option.rpartition(".")[2] in written


def test_a_name_that_is_like_nothing_gets_no_wild_guess(person: Person) -> None:
    person.writes("[zebra]\nstripes = 1")
    assert "did you mean" not in str(person.error())
    person.writes("[zebra]\nenabled = true")
    assert "did you mean" not in str(person.error())


def test_a_value_where_a_group_belongs_says_how_to_write_it(person: Person) -> None:
    person.writes("recall = 5")
    assert "write its settings under [recall]" in str(person.error())


def test_an_empty_group_is_fine_but_an_unknown_one_is_not(person: Person) -> None:
    person.writes("[recall]\n")
    assert person.load().warnings == ()
    person.writes("[recalll]\n")
    assert person.error().option == "recalll"


def test_a_misspelt_variable_of_ours_is_an_error_with_the_nearest_one(person: Person) -> None:
    person.variables["BACKSTORY_RECAL_LIMIT"] = "5"
    assert str(person.error()) == (
        "environment BACKSTORY_RECAL_LIMIT: there is no such setting; did you mean BACKSTORY_RECALL_LIMIT?"
    )


def test_an_unknown_flag_is_an_error(person: Person) -> None:
    assert person.error({"recal.limit": 5}).option == "recal.limit"


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"[recall\nlimit = 1", "is not TOML"),
        (b"[recall]\nlimit = 1\nlimit = 2", "is not TOML"),
        ("[log]\nlevel = 'd\xe9bug'".encode("latin-1"), "is not UTF-8"),
        (b"# " + b"x" * 65_600, "is larger than 64 KiB"),
        (b"a = " + b"[" * 20_000, "TOML"),
        (b"a = " + b"9" * 9_000, "TOML"),
    ],
)
def test_a_users_file_that_cannot_be_used_is_an_error_that_names_it(person: Person, content: bytes, said: str) -> None:
    person.writes(content)
    error = person.error()
    assert said in str(error)
    assert str(person.home / "config.toml") in str(error)


def test_a_folder_or_a_pipe_in_place_of_the_users_file_is_an_error_and_never_waited_for(person: Person) -> None:
    (person.home / "config.toml").mkdir()
    assert "is not a regular file" in str(person.error())
    (person.home / "config.toml").rmdir()
    os.mkfifo(person.home / "config.toml")
    assert "is not a regular file" in str(person.error())


def test_a_users_file_may_have_a_byte_order_mark_windows_lines_and_be_a_link(person: Person, tmp_path: Path) -> None:
    elsewhere = tmp_path / "dotfiles.toml"
    elsewhere.write_bytes(b"\xef\xbb\xbf[recall]\r\nlimit = 4\r\n")
    (person.home / "config.toml").symlink_to(elsewhere)
    assert person.load().settings.recall.limit == 4


def test_a_file_asked_for_by_name_must_exist_and_replaces_the_users_own(person: Person, tmp_path: Path) -> None:
    person.writes("[recall]\nlimit = 4")
    other = tmp_path / "other.toml"
    person.variables["BACKSTORY_CONFIG"] = str(other)
    assert "does not exist" in str(person.error())
    other.write_text("[context]\nmax_entries = 2")
    settings = person.load().settings
    assert (settings.recall.limit, settings.context.max_entries) == (10, 2)
    with pytest.raises(ConfigError, match="does not exist"):
        load(env={"BACKSTORY_HOME": str(person.home)}, project_root=None, user_file=tmp_path / "third.toml")


def test_the_null_device_as_file_means_no_file(person: Person) -> None:
    person.writes("[recall]\nlimit = 4")
    person.variables["BACKSTORY_CONFIG"] = os.devnull
    assert person.load().settings.recall.limit == 10


@pytest.mark.parametrize("variable", ["BACKSTORY_HOME", "BACKSTORY_CONFIG", "BACKSTORY_STORE_DIR"])
def test_a_folder_or_file_relative_to_wherever_one_stands_is_refused(variable: str) -> None:
    with pytest.raises(ConfigError) as caught:
        load(env={"BACKSTORY_HOME": "/srv/b", variable: "here/b"}, project_root=None)
    assert caught.value.option == variable
    assert "is not an absolute path" in str(caught.value)


def test_messages_hold_no_control_characters(person: Person) -> None:
    person.writes('"\\u001b[2J\\nlimit" = 1')
    assert str(person.error()).isprintable()
    person.writes("")
    person.variables["BACKSTORY_RECALL_MODE"] = "\x1b]0;title\x07"
    assert str(person.error()).isprintable()
