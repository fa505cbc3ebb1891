"""The outermost loop: parsing, suggestions, and how failures are told. With a store that keeps nothing."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from backstory.entrypoints.cli import main as main_module
from backstory.entrypoints.cli.main import main


@pytest.fixture(autouse=True)
def own_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BACKSTORY_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("BACKSTORY_STORE", "memory")
    monkeypatch.setenv("BACKSTORY_EMBEDDER_PROVIDER", "none")
    monkeypatch.delenv("BACKSTORY_RENEW_GOLDEN", raising=False)
    monkeypatch.chdir(tmp_path)


def test_no_arguments_show_the_help(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([]) == 0
    assert "Every day:" in capsys.readouterr().out


def test_the_version_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--version"]) == 0
    assert capsys.readouterr().out.startswith("backstory ")


def test_an_unknown_command_names_the_nearest(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["lsit"]) == 2
    told = capsys.readouterr()
    assert told.out == ""
    assert "did you mean list" in told.err


def test_a_command_is_needed(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--json"]) == 2
    assert json.loads(capsys.readouterr().err)["error"]["type"] == "UsageError"


def test_a_usage_error_names_the_argument_and_the_help(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["show", "--json"]) == 2
    error = json.loads(capsys.readouterr().err)["error"]
    assert error["field"] == "ref"
    assert error["hint"] == "`backstory show --help` shows how it is used"


def test_what_follows_two_dashes_is_text_and_no_option(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["remember", "--", "--json", "-x"]) == 0
    assert "Remembered #1" in capsys.readouterr().out
    assert main(["show", "--", "--json"]) == 3
    assert capsys.readouterr().err.startswith("backstory: no memory here contains '--json'")


def test_a_bug_is_told_without_a_traceback_unless_asked(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(main_module.COMMANDS, "tags", "backstory.entrypoints.cli.main:PROGRAM")
    assert main(["tags"]) == 1
    told = capsys.readouterr().err
    assert "unexpected AssertionError" in told
    assert "Traceback" not in told
    assert main(["--verbose", "tags"]) == 1
    assert "Traceback" in capsys.readouterr().err


def test_a_command_whose_module_is_missing_is_no_command(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(main_module.COMMANDS, "tags", "backstory.entrypoints.cli.not_there:tags")
    assert main(["tags"]) == 2
    assert main(["--help"]) == 0
    assert "  tags" not in capsys.readouterr().out


def test_warnings_about_settings_are_told_when_asked(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    (tmp_path / ".backstory.toml").write_text("[store]\nurl = 'sqlite'\n")
    assert main(["tags"]) == 0
    assert capsys.readouterr().err == ""
    assert main(["tags", "--verbose"]) == 0
    assert "warning: " in capsys.readouterr().err
