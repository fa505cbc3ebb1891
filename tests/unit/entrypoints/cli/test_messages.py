"""What a person reads when a command line is wrong, and that small numbers are said well."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.command_line import KNOWN, CommandLine


@pytest.fixture
def shell(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> CommandLine:
    return CommandLine(tmp_path, monkeypatch, capsys, name="orchard")


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (("list", "--limit", "0"), "invalid value for '--limit': 0 is too small; allowed: 1 to 1,000,000"),
        (("list", "--limit", "9999999"), "9999999 is too large; allowed: 1 to 1,000,000"),
        (("list", "--limit", "soon"), "'soon' is not a whole number; allowed: 1 to 1,000,000"),
        (("list", "--offset", "-1"), "-1 is too small; allowed: 0 or more"),
        (("recall", "x", "--limit", "many"), "'many' is not a whole number; allowed: 1 to 100"),
        (("completion",), "missing argument 'SHELL'. Choose from: bash, zsh, fish"),
        (("recal", "x"), "did you mean recall?"),
        (("remember", ""), "content is empty\n  give a text as an argument, or pipe one in"),
    ],
)
def test_a_wrong_command_line_is_told_what_is_allowed(shell: CommandLine, given: tuple[str, ...], said: str) -> None:
    done = shell.run(*given)
    assert done.returncode == 2
    assert said in done.stderr


@pytest.mark.parametrize(
    ("given", "where"),
    [
        (("show", "99"), "`backstory list`"),
        (("undo", "01ABCDEFGH"), "`backstory history`"),
        (("session", "ses_none"), "`backstory sessions`"),
        (("projects", "show", "barn"), "`backstory projects`"),
        (("shown", "--message", "msg_none"), "`backstory shown`"),
        (("retag", "pears", "apples"), "`backstory tags`"),
    ],
)
def test_what_is_not_found_is_told_where_to_look(shell: CommandLine, given: tuple[str, ...], where: str) -> None:
    done = shell.run(*given)
    assert done.returncode == 3
    assert where in done.stderr.splitlines()[1]


def test_a_change_is_taken_back_by_the_beginning_of_its_name(shell: CommandLine) -> None:
    change = shell.json("history")["changes"][0]["id"]
    assert KNOWN in shell.ok("undo", change[:16].lower())


def test_the_beginning_of_several_changes_takes_none_back(shell: CommandLine) -> None:
    shell.ok("remember", "The hedge is cut in autumn")
    ids = [change["id"] for change in shell.json("history")["changes"]]
    begun = next(ids[0][:n] for n in range(25, 0, -1) if ids[0][:n] == ids[1][:n])
    done = shell.run("undo", begun)
    assert done.returncode == 2
    assert "2 changes begin with" in done.stderr
    assert KNOWN in shell.ok("list")


def test_too_short_a_beginning_names_no_change(shell: CommandLine) -> None:
    done = shell.run("undo", "01")
    assert done.returncode == 3
    assert "'01' is too short to name a change: 6 characters" in done.stderr


def test_one_is_not_said_as_many(shell: CommandLine) -> None:
    told = shell.ok("status") + shell.run("forget", "1", "--dry-run").stderr + shell.ok("inspect")
    assert "1 project known" in told
    assert "1 memory; nothing was changed" in told
    assert "1 memory in sight" in told
    assert "1 memories" not in told


def test_an_export_says_what_it_leaves_out(shell: CommandLine, tmp_path: Path) -> None:
    shell.ok("remember", "The spare key hangs in the barn", "--local-only")
    shell.ok("remember", "The neighbour borrows the ladder", "--private")
    done = shell.run("export", str(tmp_path / "out.jsonl"))
    assert done.stdout == f"Exported 1 memory to {tmp_path / 'out.jsonl'}\n"
    assert "left out: 1 local-only, 1 private (--private takes them along)" in done.stderr
    assert "1 private" not in shell.run("export", str(tmp_path / "out.jsonl"), "--private").stderr
    assert "left out" in shell.run("export").stderr


def test_undo_says_what_it_undid_and_how_to_have_it_again(shell: CommandLine) -> None:
    shell.ok("pin", "1")
    told = shell.ok("undo")
    assert "That undid the pin of " in told
    again = told.rsplit("Have it again with: backstory ", 1)[1].split()
    shell.ok(*again)
    assert "pinned" in shell.ok("show", "1")


@pytest.mark.parametrize(
    "given",
    [
        ("remember", "x", "--core", "--temporary"),
        ("update", "1", "--tag", "a", "--no-tags"),
        ("update", "1", "--core", "--archival"),
    ],
)
def test_options_that_contradict_each_other_are_refused(shell: CommandLine, given: tuple[str, ...]) -> None:
    done = shell.run(*given)
    assert done.returncode == 2
    assert "contradict each other" in done.stderr


def test_what_was_forgotten_is_called_so(shell: CommandLine) -> None:
    shell.ok("forget", "1")
    told = shell.ok("status") + shell.ok("show", "1") + shell.ok("why", "1") + shell.ok("inspect")
    assert told.count("forgotten") >= 4
    assert "deleted" not in told


def test_a_file_in_the_place_of_the_folder_is_named(shell: CommandLine, tmp_path: Path) -> None:
    (tmp_path / "taken").write_text("")
    shell.set(HOME=str(tmp_path / "taken"))
    done = shell.run("remember", "The well is deep")
    assert done.returncode == 7
    assert f"{tmp_path / 'taken'} is no folder" in done.stderr


def test_an_agent_is_told_to_ask_a_person_for_what_only_a_person_may_do(shell: CommandLine) -> None:
    shell.set(CALLER="agent")
    done = shell.run("erase", "1", "--yes")
    assert done.returncode == 4
    assert "ask the person to run it" in done.stderr
    assert "--project" not in done.stderr


def test_a_list_with_what_was_replaced_says_which_that_is(shell: CommandLine) -> None:
    shell.ok("remember", "The gate is oiled in autumn", "--supersedes", "1")
    rows = [line.split("\t") for line in shell.ok("list", "--superseded").splitlines()]
    assert [row[6] for row in rows] == ["", "superseded"]
    assert {len(row.split("\t")) for row in shell.ok("list").splitlines()} == {6}


def test_an_update_shows_the_labels_that_it_changed(shell: CommandLine) -> None:
    said = shell.ok("update", "1", "--kind", "decision", "--tag", "oil", "--scope", "global")
    assert said.splitlines()[1].startswith("  decision · global · ")
    assert said.splitlines()[1].endswith(" · +oil")


def test_a_backup_says_which_folder_it_made(shell: CommandLine) -> None:
    assert shell.ok("backup", "new/deep/copy.db").startswith("Made the folder new/deep\nBacked up to ")
    assert "Made" not in shell.ok("backup", "new/deep/copy.db", "--force")
    assert shell.json("backup", "other/copy.db")["made_folder"] == "other"


def test_what_would_be_erased_is_quoted_as_it_was_said(shell: CommandLine) -> None:
    said = shell.ok("erase", "1", "--dry-run")
    assert f": {KNOWN}\n" in said
    assert '"content"' not in said


def test_a_product_that_is_not_here_is_said_to_be_nowhere(shell: CommandLine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(shell.path.parent))
    monkeypatch.delenv("XDG_DATA_HOME", raising=False)
    done = shell.run("import", "opencode")
    assert done.returncode == 2
    assert "nothing of opencode was found where it usually is" in done.stderr


def test_a_replaced_memory_names_what_took_its_place(shell: CommandLine) -> None:
    shell.ok("remember", "The gate is oiled in autumn", "--supersedes", "1")
    assert "replaced   by #2 The gate is oiled in autumn" in shell.ok("show", "1")
    assert "Replaced by #2" in shell.ok("why", "1")
