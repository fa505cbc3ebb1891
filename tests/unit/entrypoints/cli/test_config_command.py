"""``config set`` and ``config unset``: one setting of the user's own file, checked first, told with what it was."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from backstory.config.own_file import apply, plan_set
from backstory.errors import ConfigError
from tests.command_line import CommandLine


@pytest.fixture
def cli(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> CommandLine:
    monkeypatch.delenv("BACKSTORY_CALLER", raising=False)
    return CommandLine(tmp_path, monkeypatch, capsys, name="garden")


def file(cli: CommandLine) -> Path:
    return cli.path.with_name("config.toml")


def test_a_setting_is_written_holds_at_once_and_can_be_taken_back(cli: CommandLine) -> None:
    assert "recall.limit = 3 (was not set)" in cli.ok("config", "set", "recall.limit", "3")
    assert cli.ok("config", "get", "recall.limit") == "3\n"
    said = cli.ok("config", "set", "recall.limit", "4")
    assert "(was 3)" in said
    assert "backstory config set recall.limit 3" in said
    cli.ok("config", "unset", "recall.limit")
    assert cli.ok("config", "get", "recall.limit") == "10\n"


def test_comments_and_the_files_mode_stay(cli: CommandLine) -> None:
    file(cli).write_text("# mine\n[recall]\nlimit = 3 # few\n")
    file(cli).chmod(0o640)
    cli.ok("config", "set", "recall.limit", "5")
    assert file(cli).read_text() == "# mine\n[recall]\nlimit = 5 # few\n"
    assert file(cli).stat().st_mode & 0o777 == 0o640


def test_a_new_file_is_for_its_owner_and_its_folder_is_made(cli: CommandLine, tmp_path: Path) -> None:
    cli.set(CONFIG=str(tmp_path / "new" / "mine.toml"))
    cli.ok("config", "set", "recall.limit", "5")
    assert (tmp_path / "new" / "mine.toml").stat().st_mode & 0o777 == 0o600


def test_a_link_is_followed_not_replaced(cli: CommandLine, tmp_path: Path) -> None:
    (tmp_path / "dotfiles.toml").write_text("")
    file(cli).symlink_to(tmp_path / "dotfiles.toml")
    cli.ok("config", "set", "recall.limit", "5")
    assert file(cli).is_symlink()
    assert "limit = 5" in (tmp_path / "dotfiles.toml").read_text()


@pytest.mark.parametrize(
    ("key", "value", "said"),
    [
        ("recall.limit", "500", "recall.limit: '500' is too large; allowed: 1 to 100 memories"),
        ("recall.limit", "many", "recall.limit: 'many' is not a whole number"),
        ("recall.relevance", "loud", "allowed: quiet, balanced, keen"),
        ("context.inject", "maybe", "context.inject: 'maybe' is neither true nor false; allowed: true or false"),
        ("recall.limt", "3", "did you mean recall.limit?"),
        ("recall", "3", "this is a group, not a setting such as recall.mode"),
        ("models.api_key", "hunter2", "a secret does not belong in a file"),
    ],
)
def test_what_no_setting_takes_is_refused_and_nothing_is_written(
    cli: CommandLine, key: str, value: str, said: str
) -> None:
    done = cli.run("config", "set", key, value)
    assert done.returncode == 6
    assert said in done.stderr
    assert "hunter2" not in done.stderr
    assert not file(cli).exists()


def test_a_dry_run_tells_and_writes_nothing(cli: CommandLine) -> None:
    assert "Would write: recall.limit = 3" in cli.ok("config", "set", "recall.limit", "3", "--dry-run")
    assert not file(cli).exists()


def test_json_tells_before_and_after(cli: CommandLine) -> None:
    cli.ok("config", "set", "context.inject", "off")
    assert cli.json("config", "unset", "context.inject") == {
        "name": "context.inject",
        "file": str(file(cli)),
        "before": "false",
        "after": None,
        "changed": True,
        "dry_run": False,
        "overridden_by": None,
    }
    refused = cli.run("config", "set", "recall.limit", "0", "--json")
    assert json.loads(refused.stderr)["error"]["field"] == "recall.limit"


def test_what_is_so_already_is_not_written_again(cli: CommandLine) -> None:
    cli.ok("config", "set", "recall.limit", "3")
    assert "nothing was changed" in cli.ok("config", "set", "recall.limit", "3")
    assert "nothing was changed" in cli.ok("config", "unset", "recall.mode")


def test_it_says_when_a_variable_counts_before_the_file(cli: CommandLine) -> None:
    done = cli.run("config", "set", "recall.mode", "hybrid")
    assert done.returncode == 0
    assert "environment BACKSTORY_RECALL_MODE counts first" in done.stderr


def test_a_misspelt_name_that_stops_every_command_can_be_unset(cli: CommandLine) -> None:
    file(cli).write_text("[recall]\nlimt = 3\n")
    assert cli.run("list").returncode == 6
    assert "Undo" not in cli.ok("config", "unset", "recall.limt")
    cli.ok("list")


def test_a_misspelt_group_that_holds_a_comment_stops_no_command_once_its_setting_is_gone(cli: CommandLine) -> None:
    file(cli).write_text("[recal]\n# few\nlimit = 3\n")
    cli.ok("config", "unset", "recal.limit")
    assert file(cli).read_text() == "# few\n"
    cli.ok("list")


def test_what_stands_in_braces_is_not_called_absent_nor_the_file_damaged(cli: CommandLine) -> None:
    file(cli).write_text("recall = { limit = 5 }\n")
    for arguments in (("unset", "recall.limit"), ("set", "recall.limit", "3")):
        done = cli.run("config", *arguments)
        assert done.returncode == 6
        assert "edit it by hand" in done.stderr
    assert file(cli).read_text() == "recall = { limit = 5 }\n"


def test_a_group_cannot_be_unset(cli: CommandLine) -> None:
    cli.ok("config", "set", "recall.limit", "3")
    assert "this is a group" in cli.run("config", "unset", "recall").stderr
    file(cli).write_text("recall = 3\n")
    cli.ok("config", "unset", "recall")
    cli.ok("list")


@pytest.mark.parametrize("name", ["api_key_env", "api_key", "api_ky"])
def test_a_key_that_stood_in_the_file_by_mistake_is_not_repeated(cli: CommandLine, name: str) -> None:
    key = "sk-" + "proj-" + "Zq7Lw2Rt9Xv4Bn6Mk1Hs8Pd3"
    file(cli).write_text(f'[models]\n{name} = "{key}"\n')
    said = cli.ok("config", "unset", f"models.{name}")
    assert "(was hidden)" in said
    assert key not in said


def test_an_empty_text_is_seen(cli: CommandLine) -> None:
    assert "models.model = '' (was not set)" in cli.ok("config", "set", "models.model", "")
    assert "(was '')" in cli.ok("config", "set", "models.model", "it's 'small'")
    assert "models.model is it's 'small' already" in cli.ok("config", "set", "models.model", "it's 'small'")


def test_a_file_changed_meanwhile_is_left_as_it_is(
    cli: CommandLine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("BACKSTORY_CONFIG", str(tmp_path / "mine.toml"))
    edit = plan_set(os.environ, "recall.limit", "3")
    (tmp_path / "mine.toml").mkdir()
    with pytest.raises(ConfigError, match="changed by somebody else in this moment"):
        apply(edit)
    (tmp_path / "mine.toml").rmdir()
    (tmp_path / "mine.toml").write_text("[recall]\nlimit = 9\n")
    with pytest.raises(ConfigError, match="changed by somebody else in this moment"):
        apply(edit)
    assert [path.read_text() for path in tmp_path.glob("*mine.toml*")] == ["[recall]\nlimit = 9\n"]


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everything")
def test_a_file_that_may_not_be_written_is_not_replaced(cli: CommandLine) -> None:
    file(cli).write_text("[recall]\nlimit = 9\n")
    file(cli).chmod(0o444)
    assert "may not be written" in cli.run("config", "set", "recall.limit", "3").stderr
    assert file(cli).read_text() == "[recall]\nlimit = 9\n"


def test_a_file_that_is_not_toml_is_left_as_it_is(cli: CommandLine) -> None:
    file(cli).write_text("[recall\n")
    done = cli.run("config", "set", "recall.limit", "3")
    assert done.returncode == 6
    assert "is not TOML" in done.stderr
    assert file(cli).read_text() == "[recall\n"


def test_an_agent_in_its_shell_may_not(cli: CommandLine) -> None:
    cli.set(CALLER="agent")
    assert "only a person changes settings" in cli.run("config", "set", "recall.limit", "3").stderr
    assert not file(cli).exists()


def test_a_wrong_value_that_stops_every_command_can_be_set_right(cli: CommandLine) -> None:
    file(cli).write_text('[recall]\nlimit = "x"\n')
    assert cli.run("list").returncode == 6
    said = cli.ok("config", "set", "recall.limit", "3")
    assert "(was x)" in said
    assert "Undo" not in said
    cli.ok("list")
