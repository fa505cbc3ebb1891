"""The command line as people and scripts use it: real processes, a real SQLite file, real pipes and terminals."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.integration.shell import Shell
from tests.integration.shell import shell as shell


def test_what_is_remembered_is_recalled_by_a_later_process(shell: Shell) -> None:
    assert "Remembered #1 decision" in shell.ok("remember", "Pears are graded by hand", "--kind", "decision")
    found = shell.json("recall", "how are pears graded?")
    assert set(found) == {"results", "silent", "why_silent", "skipped"}
    assert (found["silent"], found["why_silent"]) == (False, None)
    (result,) = found["results"]
    assert set(result) == {
        "id",
        "n",
        "content",
        "score",
        "kind",
        "visibility",
        "project",
        "tags",
        "learned",
        "reasons",
        "doubt",
    }
    assert (result["n"], result["content"], result["project"]) == (1, "Pears are graded by hand", "orchard")
    assert 0 < result["score"] <= 1
    assert result["reasons"]


def test_a_newcomers_first_recall_is_silent_and_makes_nothing(shell: Shell) -> None:
    assert "no memory here yet" in shell.ok("recall", "anything")
    found = shell.json("recall", "anything")
    assert found["results"] == []
    assert found["silent"] is True
    assert "no memory here yet" in found["why_silent"]
    for command in ("list", "tags", "history", "status", "config"):
        shell.ok(command)
    assert shell.run("forget", "1").returncode == 3
    assert not shell.home.exists()


def test_a_recall_of_something_else_says_why_it_is_silent(shell: Shell) -> None:
    shell.ok("remember", "Pears are graded by hand")
    found = shell.json("recall", "zeppelin", "--lexical")
    assert found["silent"] is True
    assert found["why_silent"]
    assert found["why_silent"] in shell.ok("recall", "zeppelin", "--lexical")


def test_words_come_back_exactly_as_typed(shell: Shell) -> None:
    text = 'Use <b>"quotes"</b> & 100% of\n\tthe   blanks → ünï 🍐'
    shell.ok("remember", text)
    assert text in shell.ok("recall", "quotes blanks", "--lexical")
    assert text in shell.ok("show", "1")
    assert shell.json("show", "1")["content"] == text


@pytest.mark.parametrize("args", [("remember", "-"), ("remember",)])
def test_text_can_be_piped_in(shell: Shell, args: tuple[str, ...]) -> None:
    shell.ok(*args, stdin="two lines,\nboth kept\n")
    assert shell.json("show", "1")["content"] == "two lines,\nboth kept"
    assert shell.json("recall", "-", "--lexical", stdin="lines kept\n")["results"][0]["n"] == 1
    shell.ok("update", "1", "-", stdin="three\r\n")
    assert shell.json("show", "1")["content"] == "three"


@pytest.mark.parametrize(
    ("stdin", "reason"),
    [(b"\x89PNG\r\n\x1a\n\x00\x00", "binary"), (b"caf\xe9", "not UTF-8"), (b"", "empty"), (b"x" * 2**21, "larger")],
)
def test_input_that_is_no_text_is_refused_and_nothing_is_stored(shell: Shell, stdin: bytes, reason: str) -> None:
    told = shell.error("remember", "-", stdin=stdin)
    assert (told["type"], told["field"], told["exit_code"]) == ("InputError", "content", 2)
    assert reason in told["message"]
    assert shell.json("list")["total"] == 0


def test_an_argument_that_is_no_text_is_refused(shell: Shell) -> None:
    done = subprocess.run(
        [*(part.encode() for part in shell.command("remember")), b"caf\xe9"],
        capture_output=True,
        cwd=shell.folder,
        env=shell.env,
        timeout=240,
    )
    assert done.returncode == 2
    assert b"not UTF-8" in done.stderr


def test_global_options_may_stand_before_or_after_the_command(shell: Shell, tmp_path: Path) -> None:
    other = tmp_path / "vineyard"
    other.mkdir()
    shell.ok("--project", str(other), "remember", "Grapes are pressed on Mondays")
    assert shell.json("list")["total"] == 0
    assert json.loads(shell.ok("--json", "--project", str(other), "list"))["total"] == 1
    assert shell.json("list", "--all-projects")["memories"][0]["project_name"] == "vineyard"


def test_all_that_can_be_said_about_a_memory_is_kept(shell: Shell) -> None:
    shell.ok("remember", "Old prices were in francs")
    done = shell.json(
        "remember", "Prices", "are", "in", "euros", "--type", "stack_fact", "--area", "shop/prices", "--tag", "money",
        "--tag", "shop", "--issue", "SHOP-7", "--pin", "--core", "--private", "--supersedes", "francs",
    )  # fmt: skip
    memory = done["memory"]
    assert (memory["content"], memory["kind"], memory["visibility"]) == ("Prices are in euros", "fact", "global")
    assert (memory["area"], memory["tags"], memory["issue"]) == ("shop/prices", ["money", "shop"], "SHOP-7")
    assert (memory["pinned"], memory["tier"], memory["sensitivity"]) == (True, "core", "private")
    assert done["superseded"]["n"] == 1
    assert shell.json("show", "1")["status"]["state"] == "superseded"
    assert shell.json("remember", "Closed today", "--expires", "2h")["memory"]["tier"] == "temporary"


def test_a_scope_is_a_visibility_or_an_area(shell: Shell) -> None:
    assert shell.json("remember", "One", "--scope", "global")["memory"]["visibility"] == "global"
    assert shell.json("remember", "Two", "--scope", "deploy/eu")["memory"]["area"] == "deploy/eu"


def test_saying_it_twice_confirms_and_says_so(shell: Shell) -> None:
    shell.ok("remember", "Ladders hang in the shed")
    assert "Already known: #1" in shell.ok("remember", "ladders hang  in the shed")
    assert shell.json("list")["total"] == 1


def test_recall_and_list_share_their_filters(shell: Shell) -> None:
    shell.ok("remember", "Apples ripen in autumn", "--kind", "fact", "--tag", "apples", "--area", "field/north")
    shell.ok("remember", "Apples are sold by the crate", "--kind", "decision", "--area", "market")
    for args in (["--tag", "apples"], ["--kind", "project_fact"], ["--area", "field"]):
        assert [item["n"] for item in shell.json("recall", "apples", *args)["results"]] == [1]
        assert [item["n"] for item in shell.json("list", *args)["memories"]] == [1]
    assert shell.json("recall", "apples", "--since", "today", "--lexical")["silent"] is False
    assert shell.json("recall", "apples", "--until", "yesterday", "--lexical")["silent"] is True
    assert shell.json("list", "--until", "2001")["total"] == 0
    assert len(shell.json("recall", "apples", "--limit", "1")["results"]) == 1


def test_the_list_is_newest_first_and_tells_of_more(shell: Shell) -> None:
    for name in ("ash", "birch", "cedar"):
        shell.ok("remember", f"The {name} stands by the road")
    assert [item["n"] for item in shell.json("list")["memories"]] == [3, 2, 1]
    done = shell.run("list", "--limit", "1", "--offset", "1")
    (line,) = done.stdout.splitlines()
    assert line.split("\t")[0] == "2"
    assert "of 3" in done.stderr


def test_why_tells_the_story(shell: Shell) -> None:
    shell.ok("remember", "Cider ferments in March")
    shell.ok("pin", "1")
    story = shell.json("why", "1")
    assert story["state"] == "active"
    assert [change["action"] for change in story["changes"]] == ["pin", "add"]
    printed = shell.ok("why", "cider")
    assert "Said by user" in printed
    assert "pin by user" in printed


@pytest.mark.parametrize(
    ("args", "exit_code", "said"),
    [
        (["rember", "x"], 2, "did you mean remember"),
        (["recall", "x", "--limt", "3"], 2, "--limit"),
        (["recall", "x", "--limit", "0"], 2, "allowed: 1 to 100"),
        (["recall", "x", "--since", "someday"], 2, "2026-03-02"),
        (["remember", "x", "--kind", "desicion"], 2, "did you mean decision"),
        (["remember", "x", "--expires", "soon"], 2, "24h"),
        (["forget"], 2, "--match"),
        (["show", "77"], 3, "backstory list"),
        (["undo", "nothing"], 3, "history"),
        (["recall", "x", "--project", "/nowhere/at/all"], 2, "does not exist"),
        (["recall", "x", "--store", "floppy"], 6, "sqlite"),
        (["list", "--store", "sqlite:///proc/version"], 7, "permissions"),
        (["remember", "x", "--store", "sqlite:///proc/nowhere/a.db"], 7, "permissions"),
        (["completion", "tcsh"], 2, "bash"),
    ],
)
def test_errors_have_their_exit_code_and_say_what_to_do(
    shell: Shell, args: list[str], exit_code: int, said: str
) -> None:
    done = shell.run(*args)
    assert done.returncode == exit_code, done.stderr
    assert done.stdout == ""
    assert said in done.stderr
    assert "Traceback" not in done.stderr
    assert shell.error(*args)["exit_code"] == exit_code


def test_every_field_of_the_json_is_documented(shell: Shell, tmp_path: Path) -> None:
    page = (Path(__file__).parents[2] / "docs" / "reference" / "json-output.md").read_text(encoding="utf-8")
    file = str(tmp_path / "notes.jsonl")
    values = [
        shell.json("remember", "Geese keep the foxes away", "--tag", "geese"),
        shell.json("recall", "geese", "--lexical"),
        shell.json("list"),
        shell.json("tags"),
        shell.json("why", "1"),
        shell.json("pin", "1"),
        shell.json("history"),
        shell.json("forget", "1", "--dry-run"),
        shell.json("export", file),
        shell.json("import", file),
        shell.json("config"),
        shell.json("status"),
    ]
    fields = {field for value in values for field in _fields(value)}
    assert {field for field in fields if f"`{field}`" not in page and f'"{field}"' not in page} == set()


def _fields(value: Any) -> set[str]:  # Any: JSON of any shape
    """The names of an object and of the objects in its lists; what lies deeper has pages of its own."""
    names = set(value)
    for inner in value.values():
        for item in inner if isinstance(inner, list) else []:
            names |= set(item) if isinstance(item, dict) else set()
    return names


def test_modules_that_are_slow_to_import_stay_off_the_path_of_a_lexical_recall(shell: Shell) -> None:
    shell.ok("remember", "Frost comes in October")
    script = (
        "import sys; from backstory.entrypoints.cli.main import main; code = main(sys.argv[1:]);"
        " print('MODULES', *sys.modules); sys.exit(code)"
    )
    done = subprocess.run(
        [sys.executable, "-c", script, "recall", "frost", "--lexical"],
        capture_output=True,
        text=True,
        cwd=shell.folder,
        env=shell.env,
        timeout=240,
    )
    assert "Frost comes in October" in done.stdout
    loaded = set(done.stdout.rpartition("MODULES ")[2].split())
    slow = {"numpy", "onnxruntime", "rich", "pydantic", "asyncio", "anyio", "httpx", "subprocess"}
    slow |= {"mcp", "mcp_types", "starlette", "uvicorn", "httpx2"}
    assert slow & loaded == set()
    ours = {name for name in loaded if name.startswith("backstory.entrypoints.cli.")}
    others = {f"backstory.entrypoints.cli.{name}" for name in ("bridge", "doctor", "install", "mcp", "remember")}
    assert ours & others == set()


def test_completion_scripts_complete_commands_and_kinds(shell: Shell) -> None:
    for name in ("bash", "zsh", "fish"):
        assert "_BACKSTORY_COMPLETE" in shell.ok("completion", name)
    shell.variables |= {"_BACKSTORY_COMPLETE": "bash_complete", "COMP_WORDS": "backstory rec", "COMP_CWORD": "1"}
    assert "plain,recall" in shell.ok().splitlines()
    shell.variables |= {"COMP_WORDS": "backstory remember --kind dec", "COMP_CWORD": "3"}
    assert shell.ok().splitlines() == ["plain,decision"]


def test_a_project_name_stays_on_its_line(shell: Shell) -> None:
    folder = shell.folder.parent / "two\nlines"
    folder.mkdir()
    shell.ok("remember", "the port is 4000", "--project", str(folder))
    assert "  project   two lines, " in shell.ok("status", "--project", str(folder))
    assert "two lines" in shell.ok("show", "1", "--all-projects").splitlines()[0]
    assert "the project two lines" in shell.error("forget", "1")["message"]


def test_a_filter_that_leaves_nothing_is_named_as_the_reason(shell: Shell) -> None:
    shell.ok("remember", "the port is 4000", "--area", "deploy/")
    assert "asked for" in shell.ok("recall", "port", "--tag", "nope", "--lexical")
    assert "asked for" in shell.ok("recall", "--kind", "decision", "--lexical")
    assert "4000" in shell.ok("recall", "port", "--area", "/deploy/", "--lexical")
    assert "4000" in shell.ok("list", "--area", "deploy/")
