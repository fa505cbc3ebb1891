"""What the file that came with a repository can do, and that it can break nothing."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from backstory.config import Settings, options

if TYPE_CHECKING:
    from tests.unit.config.conftest import Person

NEVER = [option.name for option in options() if option.project == "never"]


def test_a_project_may_tune(person: Person) -> None:
    person.clones(
        "[recall]\nlimit = 25\nrelevance = 'quiet'\n[context]\ndeadline_ms = 300\n"
        "[observation]\nmessage_tokens = 12000\ncustom_instruction = 'Note which tests are slow.'"
    )
    resolved = person.load()
    settings = resolved.settings
    assert (settings.recall.limit, settings.recall.relevance, settings.context.deadline_ms) == (25, "quiet", 300)
    assert settings.observation.custom_instruction == "Note which tests are slow."
    assert resolved.warnings == ()


@pytest.mark.parametrize("name", NEVER)
def test_a_project_may_set_no_protected_option_whatever_the_value(person: Person, name: str) -> None:
    group, _, key = name.partition(".")
    for value in ("'/tmp/x'", "'http://127.0.0.1:1/v1'", "'memory'", "'debug'", "7"):
        person.clones(f"[{group}]\n{key} = {value}")
        resolved = person.load()
        assert not resolved.sources[name].startswith("project")
        (warning,) = resolved.warnings
        assert f"{name}: a project may not set this; it is ignored" in warning


def test_stores_folders_addresses_models_and_keys_are_all_protected() -> None:
    words = ("url", "dir", "base_url", "model", "api_key", "api_key_env")
    assert {name for name in (option.name for option in options()) if name.split(".")[1] in words} <= set(NEVER)


def test_a_warning_about_a_key_does_not_repeat_it(person: Person) -> None:
    person.clones("[models]\napi_key = 'sk-from-the-repository'")
    assert "sk-from" not in " ".join(person.load().warnings)


def test_a_project_may_switch_features_off(person: Person) -> None:
    person.clones(
        "[context]\ninject = false\n[capture]\nenabled = false\n[archive]\nenabled = false\n[dream]\nenabled = false\n"
        "[opencode]\ntools = false\n[recall]\nmode = 'lexical'\n"
        "[embedder]\nprovider = 'none'\n[models]\nprovider = 'none'"
    )
    resolved = person.load()
    settings = resolved.settings
    switches = (settings.context.inject, settings.capture.enabled, settings.archive.enabled, settings.dream.enabled)
    assert switches == (False, False, False, False)
    assert (settings.recall.mode, settings.embedder.provider, settings.models.provider) == ("lexical", "none", "none")
    assert resolved.warnings == ()


@pytest.mark.parametrize("layer", ["file", "environment", "flag"])
def test_a_project_cannot_switch_on_what_the_user_switched_off(person: Person, layer: str) -> None:
    person.clones("[dream]\nenabled = true\n[recall]\nmode = 'hybrid'\n[embedder]\nprovider = 'openai'")
    flags: dict[str, object] = {}
    if layer == "file":
        person.writes("[dream]\nenabled = false\n[recall]\nmode = 'lexical'\n[embedder]\nprovider = 'none'")
    elif layer == "environment":
        person.variables |= {"OPENCODE_MEMORY_DREAM": "0", "BACKSTORY_RECALL_MODE": "lexical"}
        person.variables["BACKSTORY_EMBEDDER_PROVIDER"] = "none"
    else:
        flags = {"dream.enabled": "off", "recall.mode": "lexical", "embedder.provider": "none"}
    resolved = person.load(flags)
    settings = resolved.settings
    assert (settings.dream.enabled, settings.recall.mode, settings.embedder.provider) == (False, "lexical", "none")
    assert len(resolved.warnings) == 3
    assert "a project may only set this to false" in resolved.warnings[0]


def test_a_project_cannot_switch_on_what_is_off_by_default(person: Person) -> None:
    person.clones("[opencode]\nsubagents = true\n[models]\nprovider = 'host'")
    resolved = person.load()
    assert (resolved.settings.opencode.subagents, resolved.settings.models.provider) == (False, "auto")
    assert len(resolved.warnings) == 2


def test_saying_what_holds_anyway_is_neither_a_warning_nor_a_source(person: Person) -> None:
    person.clones("[dream]\nenabled = true")
    resolved = person.load()
    assert (resolved.warnings, resolved.sources["dream.enabled"]) == ((), "default")


def test_a_project_may_not_leave_the_limits(person: Person) -> None:
    person.clones("[context]\nblock_budget_tokens = 2000000\ndeadline_ms = 0\nmax_entries = 'all'")
    resolved = person.load()
    assert resolved.settings.context == Settings().context
    assert len(resolved.warnings) == 3
    assert "allowed: 50 to 8,000 tokens; it is ignored" in resolved.warnings[0]


def test_a_fault_in_one_setting_does_not_cost_the_others(person: Person) -> None:
    person.clones("[recal]\nlimit = 3\n[recall]\nlimit = 7\nlimt = 8")
    resolved = person.load()
    assert resolved.settings.recall.limit == 7
    assert len(resolved.warnings) == 2
    assert all("did you mean recall.limit?" in warning for warning in resolved.warnings)


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"[recall\nlimit = 7", "is not TOML"),
        (b"[recall]\nlimit = 7 # caf\xe9", "is not UTF-8"),
        (b"[recall]\nlimit = 7\n# " + b"x" * 65_536, "is larger than 64 KiB"),
        (b"\x00" * 100, "is not TOML"),
        (b"a." * 32_000 + b"a = 1", "more than 64 dots in one line"),
        (b"a = " + b"{b = " * 12_000, "TOML"),
        (b"a = " + b"9" * 60_000, "TOML"),
    ],
)
def test_a_file_that_cannot_be_used_is_ignored_with_one_warning(person: Person, content: bytes, said: str) -> None:
    person.clones(content)
    resolved = person.load()
    (warning,) = resolved.warnings
    assert said in warning
    assert str(person.project / ".backstory.toml") in warning
    assert resolved.settings.recall == Settings().recall


def test_a_link_out_of_the_project_is_not_followed_even_to_a_good_file(person: Person, tmp_path: Path) -> None:
    outside = tmp_path / "project-2.toml"  # its path begins like the project's own
    outside.write_text("[recall]\nlimit = 7")
    for target in (outside, Path("../project-2.toml"), Path("/etc/passwd"), tmp_path / "missing"):
        link = person.project / ".backstory.toml"
        link.symlink_to(target)
        resolved = person.load()
        assert "leads out of the project" in resolved.warnings[0]
        assert resolved.settings.recall.limit == 10
        link.unlink()


def test_a_link_within_the_project_is_followed(person: Person) -> None:
    (person.project / "settings.toml").write_text("[recall]\nlimit = 7")
    (person.project / ".backstory.toml").symlink_to("settings.toml")
    assert person.load().settings.recall.limit == 7


def test_a_project_reached_through_a_link_keeps_its_settings(person: Person, tmp_path: Path) -> None:
    person.clones("[recall]\nlimit = 7")
    (tmp_path / "shortcut").symlink_to(person.project)
    person.project = tmp_path / "shortcut"
    assert person.load().settings.recall.limit == 7


def test_loops_pipes_folders_and_closed_files_are_warnings(person: Person) -> None:
    path = person.project / ".backstory.toml"
    path.symlink_to(".backstory.toml")
    assert len(person.load().warnings) == 1
    path.unlink()
    os.mkfifo(path)
    assert "is not a regular file" in person.load().warnings[0]
    path.unlink()
    path.mkdir()
    assert "is not a regular file" in person.load().warnings[0]


def test_a_project_that_is_not_there_has_no_file(person: Person) -> None:
    person.project /= "gone"
    assert person.load().warnings == ()
    person.project = Path("/dev/null")
    assert person.load().warnings == ()


def test_thousands_of_faults_make_ten_warnings_and_a_count(person: Person) -> None:
    person.clones("".join(f"recall_limit_{n} = 1\n" for n in range(2_500)) + "[recall]\nlimit = 7\n")
    resolved = person.load()
    assert resolved.settings.recall.limit == 7
    assert len(resolved.warnings) == 11
    assert resolved.warnings[-1].endswith("2,490 more settings are ignored")


def test_warnings_hold_no_control_characters(person: Person) -> None:
    person.clones('"\\u001b[2J\\u202elimit" = 1\n[context]\nselection = "\\u001b[31mred"')
    warnings = person.load().warnings
    assert len(warnings) == 2
    assert all(warning.isprintable() for warning in warnings)
