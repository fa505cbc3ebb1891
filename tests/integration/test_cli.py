"""The command line as people and scripts use it: real processes, a real SQLite file, real pipes and terminals."""

from __future__ import annotations

import fcntl
import json
import os
import pty
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from backstory.adapters.embedders import minilm


@dataclass
class Shell:
    """A person's shell in a project of theirs. What a command starts in the background is switched off."""

    home: Path
    folder: Path
    variables: dict[str, str] = field(default_factory=lambda: {"BACKSTORY_NO_BACKGROUND": "1"})

    @property
    def env(self) -> dict[str, str]:
        kept = {name: value for name, value in os.environ.items() if not name.startswith(("BACKSTORY_", "NO_COLOR"))}
        return {**kept, "BACKSTORY_HOME": str(self.home), "COLUMNS": "100", "TERM": "xterm-256color", **self.variables}

    def command(self, *args: str) -> list[str]:
        return [sys.executable, "-m", "backstory", *args]

    def run(self, *args: str, stdin: str | bytes = b"") -> subprocess.CompletedProcess[str]:
        data = stdin.encode() if isinstance(stdin, str) else stdin
        done = subprocess.run(
            self.command(*args), input=data, capture_output=True, cwd=self.folder, env=self.env, timeout=60
        )
        encoding = self.variables.get("PYTHONIOENCODING", "utf-8")
        stdout, stderr = done.stdout.decode(encoding), done.stderr.decode(encoding)
        return subprocess.CompletedProcess(args, done.returncode, stdout, stderr)

    def ok(self, *args: str, stdin: str | bytes = b"") -> str:
        done = self.run(*args, stdin=stdin)
        assert (done.returncode, done.stderr) == (0, "")
        return done.stdout

    def json(self, *args: str, stdin: str | bytes = b"") -> Any:  # Any: JSON of any shape
        return json.loads(self.ok(*args, "--json", stdin=stdin))

    def error(self, *args: str, stdin: str | bytes = b"") -> dict[str, Any]:
        done = self.run(*args, "--json", stdin=stdin)
        assert done.stdout == ""
        told: dict[str, Any] = json.loads(done.stderr)["error"]
        assert set(told) - {"candidates"} == {"type", "message", "field", "hint", "exit_code"}
        assert done.returncode == told["exit_code"]
        return told

    def on_a_terminal(self, *args: str) -> str:
        """What the command prints where standard output is a terminal."""
        ours, theirs = pty.openpty()
        process = subprocess.Popen(
            self.command(*args), stdin=theirs, stdout=theirs, stderr=theirs, cwd=self.folder, env=self.env
        )
        os.close(theirs)
        printed = b""
        while chunk := _read(ours):
            printed += chunk
        os.close(ours)
        assert process.wait(timeout=60) == 0
        return printed.decode()


def _read(terminal: int) -> bytes:
    try:
        return os.read(terminal, 65536)
    except OSError:  # Linux: the other side is closed
        return b""


def eventually(holds: Callable[[], bool], *, seconds: float = 60) -> bool:
    """Whether something comes true within a time."""
    end = time.monotonic() + seconds
    while not holds():
        if time.monotonic() > end:
            return False
        time.sleep(0.1)
    return True


@pytest.fixture
def shell(tmp_path: Path) -> Shell:
    folder = tmp_path / "orchard"
    folder.mkdir()
    return Shell(home=tmp_path / "home", folder=folder)


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
        timeout=60,
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


def test_another_store_can_be_named(shell: Shell, tmp_path: Path) -> None:
    url = f"sqlite://{tmp_path}/other.db"
    shell.ok("remember", "Kept elsewhere", "--store", url)
    assert shell.json("--store", url, "list")["total"] == 1
    assert not shell.home.exists()


def test_a_store_that_keeps_nothing_is_said_to(shell: Shell) -> None:
    assert "keeps nothing" in shell.run("remember", "Gone soon", "--store", "memory").stderr


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


def test_forgetting_is_undone_by_name_and_by_default(shell: Shell) -> None:
    shell.ok("remember", "The well is deep")
    shell.ok("remember", "The barn is red")
    printed = shell.ok("forget", "1", "barn", "--reason", "moved away")
    assert "Forgotten #1" in printed
    change = printed.rpartition("backstory undo ")[2].strip()
    assert shell.json("list")["total"] == 0
    assert shell.json("list", "--forgotten")["total"] == 2
    assert "Restored #2" in shell.ok("undo", change.lower())
    assert shell.json("list")["total"] == 2
    shell.ok("pin", "1")
    assert shell.json("undo")["action"] == "undo"
    assert shell.json("show", "1")["pinned"] is False


def test_a_match_that_fits_several_is_listed_and_changes_nothing(shell: Shell) -> None:
    shell.ok("remember", "The north gate is open")
    shell.ok("remember", "The south gate is shut")
    told = shell.error("forget", "--match", "gate")
    assert (told["type"], told["exit_code"], len(told["candidates"])) == ("AmbiguousMatch", 5, 2)
    assert "#1: The north gate is open" in told["message"]
    assert shell.error("show", "gate")["exit_code"] == 5
    assert shell.json("forget", "--match", "gate", "--all", "--dry-run")["dry_run"] is True
    assert shell.json("list")["total"] == 2
    assert len(shell.json("forget", "--match", "gate", "--all")["edits"]) == 2
    assert shell.error("forget", "--match", "gate")["exit_code"] == 3


def test_a_tag_is_renamed_after_a_look_at_what_would_change(shell: Shell) -> None:
    shell.ok("remember", "Bees live behind the barn", "--tag", "beez")
    assert len(shell.json("retag", "beez", "bees", "--dry-run")["memories"]) == 1
    assert shell.json("tags") == {"tags": [{"tag": "beez", "count": 1}]}
    shell.ok("retag", "beez", "bees")
    assert shell.ok("tags") == "bees\t1\n"
    assert shell.error("retag", "beez", "wasps")["exit_code"] == 3


def test_an_update_changes_what_it_names_and_keeps_the_rest(shell: Shell) -> None:
    shell.ok("remember", "The press runs at 4 bar", "--tag", "press", "--kind", "decision")
    shell.ok("update", "press runs", "The press runs at 5 bar", "--reason", "new seals")
    memory = shell.json("show", "1")
    assert (memory["content"], memory["tags"], memory["kind"]) == ("The press runs at 5 bar", ["press"], "decision")
    assert shell.error("update", "1")["message"] == "content is empty"
    shell.ok("update", "1", "--no-tags", "--kind", "fact")
    assert shell.json("show", "1")["tags"] == []
    rows = [line.split("\t") for line in shell.ok("history", "1").splitlines()]
    assert [row[3] for row in rows] == ["update", "update", "add"]
    assert rows[1][5] == "new seals"


def test_why_tells_the_story(shell: Shell) -> None:
    shell.ok("remember", "Cider ferments in March")
    shell.ok("pin", "1")
    story = shell.json("why", "1")
    assert story["state"] == "active"
    assert [change["action"] for change in story["changes"]] == ["pin", "add"]
    printed = shell.ok("why", "cider")
    assert "Said by user" in printed
    assert "pin by user" in printed


def test_an_export_can_be_imported_elsewhere_and_twice(shell: Shell, tmp_path: Path) -> None:
    shell.ok("remember", "Juice is pasteurised at 72 degrees", "--tag", "juice")
    shell.ok("remember", "The safe is behind the clock", "--local-only")
    file = tmp_path / "notes.jsonl"
    assert shell.json("export", str(file)) == {"exported": 1, "file": str(file)}
    assert file.stat().st_mode & 0o077 == 0
    assert file.read_text().splitlines()[1:] == shell.ok("export").splitlines()[1:]
    other = Shell(home=tmp_path / "other-home", folder=shell.folder)
    assert other.json("import", str(file), "--dry-run")["imported"] == 1
    assert not other.home.exists()
    assert other.json("import", "-", stdin=file.read_bytes())["imported"] == 1
    assert other.json("import", str(file))["skipped"] == 1
    assert other.json("list")["memories"][0]["content"] == "Juice is pasteurised at 72 degrees"


def test_bad_lines_of_an_import_are_named_and_do_not_stop_the_good_ones(shell: Shell, tmp_path: Path) -> None:
    shell.ok("remember", "Hedges are cut in June")
    header, line = shell.ok("export").splitlines()
    other = Shell(home=tmp_path / "other-home", folder=shell.folder)
    content = b"\xef\xbb\xbf" + "\n".join([header, "{oops", line]).encode() + b'\n{"id": "caf\xe9"}\n'
    done = other.run("import", "-", "--json", stdin=content)
    report = json.loads(done.stdout)
    assert (done.returncode, report["imported"], len(report["refused"])) == (2, 1, 2)
    assert [refusal.partition(":")[0] for refusal in report["refused"]] == ["line 2", "line 4"]
    assert other.error("import", "-", stdin="not an export")["exit_code"] == 2


def test_status_tells_where_memories_are_and_what_recall_works_with(shell: Shell) -> None:
    (shell.folder / ".backstory.toml").write_text("[store]\nurl = 'memory'\n")
    shell.ok("remember", "Sheep graze below the trees")
    done = shell.run("status", "--json")
    told = json.loads(done.stdout)
    assert told["store"]["location"] == str(shell.home / "backstory.db")
    assert (told["store"]["exists"], told["project"]["name"], told["memories"]["current"]) == (True, "orchard", 1)
    assert any("a project may not set this" in warning for warning in told["warnings"])
    if told["embedder"]["available"]:
        assert told["vectors"]["without"] == 1
    else:
        assert told["embedder"]["reason"]
    printed = shell.run("status")
    assert str(shell.home) in printed.stdout
    assert "a project may not set this" in printed.stderr


def test_config_shows_values_and_sources(shell: Shell) -> None:
    shell.variables["BACKSTORY_RECALL_LIMIT"] = "7"
    assert shell.ok("config", "get", "recall.limit") == "7\n"
    (row,) = [row for row in shell.json("config")["settings"] if row["name"] == "recall.limit"]
    assert (row["value"], row["source"]) == ("7", "environment BACKSTORY_RECALL_LIMIT")
    told = shell.error("config", "get", "recall.limits")
    assert told["exit_code"] == 6
    assert "recall.limit" in told["message"]
    shell.variables["BACKSTORY_RECALL_LIMIT"] = "many"
    assert shell.error("recall", "x")["type"] == "ConfigError"


@pytest.mark.parametrize(
    ("args", "exit_code", "said"),
    [
        (["rember", "x"], 2, "did you mean remember"),
        (["recall", "x", "--limt", "3"], 2, "--limit"),
        (["recall", "x", "--limit", "0"], 2, "between 1 and 100"),
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


def test_a_memory_of_another_project_is_out_of_scope(shell: Shell, tmp_path: Path) -> None:
    (tmp_path / "vineyard").mkdir()
    shell.ok("remember", "Grapes are pressed on Mondays", "--project", str(tmp_path / "vineyard"))
    told = shell.error("forget", "1")
    assert (told["type"], told["exit_code"]) == ("OutOfScope", 4)
    assert "vineyard" in told["message"]


def test_a_damaged_store_is_left_as_it_is(shell: Shell) -> None:
    shell.ok("remember", "Hay is dry")
    store = shell.home / "backstory.db"
    for extra in ("-wal", "-shm"):
        Path(f"{store}{extra}").unlink(missing_ok=True)
    store.write_bytes(b"no database at all, just words " * 200)
    before = store.read_bytes()
    assert shell.error("recall", "hay")["exit_code"] == 8
    assert shell.error("remember", "x")["exit_code"] == 8
    assert store.read_bytes() == before


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


def test_a_file_that_cannot_be_written_is_named(shell: Shell, tmp_path: Path) -> None:
    shell.ok("remember", "Hedgehogs sleep in winter")
    done = shell.run("export", str(tmp_path / "nowhere" / "notes.jsonl"))
    assert done.returncode == 1
    assert "nowhere" in done.stderr
    assert "No such file" in done.stderr


def test_an_existing_export_survives_one_that_fails(shell: Shell, tmp_path: Path) -> None:
    file = tmp_path / "notes.jsonl"
    file.write_text("what was there")
    assert shell.run("export", str(file), "--store", "sqlite:///proc/version").returncode == 7
    assert file.read_text() == "what was there"
    shell.ok("export", str(file))
    assert file.read_text().startswith('{"format"')
    assert [path.name for path in tmp_path.iterdir() if path.is_file()] == ["notes.jsonl"]


def test_a_pipe_gets_plain_text_and_a_terminal_gets_colour(shell: Shell) -> None:
    shell.ok("remember", "Swallows nest in the barn", "--tag", "birds")
    for args in (["recall", "swallows", "--lexical"], ["list"], ["history"], ["status"], ["config"], ["tags"]):
        plain = shell.ok(*args)
        assert "\x1b" not in plain
        assert not set(plain) & set("│┃─━┏┗")
        assert shell.on_a_terminal(*args).strip()
    assert "\x1b[1m#1 fact" in shell.on_a_terminal("recall", "swallows", "--lexical")
    table = shell.on_a_terminal("list")
    assert "learned" in table
    assert "Swallows nest in the barn" in table
    shell.variables["NO_COLOR"] = "1"
    assert "\x1b[1m" not in shell.on_a_terminal("recall", "swallows", "--lexical")


def test_a_long_list_fits_the_terminal(shell: Shell) -> None:
    shell.ok("remember", "A very long line " * 40 + "\nwith another below")
    shell.variables["NO_COLOR"] = "1"
    assert all(len(line.rstrip("\r")) <= 100 for line in shell.on_a_terminal("list").splitlines())


def test_a_folders_name_cannot_command_the_terminal(shell: Shell, tmp_path: Path) -> None:
    hostile = tmp_path / "x\x1b]0;owned\x07y"
    hostile.mkdir()
    shell.ok("remember", "Harmless", "--project", str(hostile))
    for args in (["list"], ["recall", "harmless", "--lexical"], ["status"]):
        assert "\x1b]0;" not in shell.on_a_terminal(*args, "--all-projects" if args[0] != "status" else "--verbose")
    assert "\x1b]0;" not in shell.on_a_terminal("status", "--project", str(hostile))


def test_a_reader_that_goes_away_is_no_error_message(shell: Shell) -> None:
    for number in range(3):
        shell.ok("remember", f"Row {number} " + "long " * 500)
    read, write = os.pipe()
    os.close(read)
    done = subprocess.run(
        shell.command("export"), stdout=write, stderr=subprocess.PIPE, cwd=shell.folder, env=shell.env, timeout=60
    )
    os.close(write)
    assert (done.returncode, done.stderr) == (141, b"")


def test_a_full_disk_behind_the_output_is_said(shell: Shell) -> None:
    with Path("/dev/full").open("wb") as full:
        done = subprocess.run(
            shell.command("config"), stdout=full, stderr=subprocess.PIPE, cwd=shell.folder, env=shell.env, timeout=60
        )
    assert done.returncode != 0
    assert b"No space left" in done.stderr
    assert b"Traceback" not in done.stderr


def test_a_closed_output_is_no_failure(shell: Shell) -> None:
    script = f'{sys.executable} -m backstory remember "Said to nobody" >&- 2>&-'
    done = subprocess.run(["sh", "-c", script], cwd=shell.folder, env=shell.env, timeout=60)
    assert done.returncode == 0
    assert shell.json("list")["total"] == 1


def test_ctrl_c_ends_it_without_a_traceback(shell: Shell) -> None:
    process = subprocess.Popen(
        shell.command("remember", "-"),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        cwd=shell.folder,
        env=shell.env,
    )
    assert eventually(lambda: _waits_for_input(process.pid))
    process.send_signal(signal.SIGINT)
    _, stderr = process.communicate(timeout=60)
    assert process.returncode == 130
    assert b"Traceback" not in stderr


def _waits_for_input(pid: int) -> bool:
    """Whether the process sleeps in a read of a pipe, as the kernel tells."""
    where = Path(f"/proc/{pid}/wchan").read_text()
    state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    return state == "S" and ("pipe" in where or where in ("0", ""))


@pytest.mark.parametrize(
    "locale",
    [
        {"PYTHONIOENCODING": "ascii"},
        {"PYTHONIOENCODING": "latin-1"},
        {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"},
    ],
)
def test_no_locale_is_too_small_for_a_memory(shell: Shell, locale: dict[str, str]) -> None:
    shell.variables |= locale
    text = "Birnen → 🍐 süß"
    shell.ok("remember", text)
    assert shell.json("show", "1")["content"] == text
    assert "Birnen" in shell.ok("list")
    assert shell.json("recall", "süß", "--lexical")["results"][0]["n"] == 1


def test_a_folder_that_was_removed_is_said(shell: Shell, tmp_path: Path) -> None:
    gone = tmp_path / "gone"
    gone.mkdir()
    script = f'cd "{gone}" && rmdir "{gone}" && {sys.executable} -P -m backstory recall x'
    done = subprocess.run(["sh", "-c", script], capture_output=True, env=shell.env, timeout=60)
    assert done.returncode == 2
    assert b"--project" in done.stderr


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
        timeout=60,
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


def test_what_is_stored_is_embedded_in_the_background(shell: Shell) -> None:
    if minilm.availability() is not None:
        pytest.skip("the local model is not installed")
    shell.variables.clear()
    shell.ok("remember", "The orchard keeper is called Marta")

    def embedded() -> bool:
        told = shell.json("status")
        return (told["vectors"]["by_model"], told["vectors"]["without"]) == ({minilm.MODEL.name: 1}, 0)

    assert eventually(embedded)
    found = shell.json("recall", "who looks after the fruit trees?")
    assert found["results"][0]["content"] == "The orchard keeper is called Marta"


def test_no_second_process_embeds_while_one_is_at_it(shell: Shell) -> None:
    if minilm.availability() is not None:
        pytest.skip("the local model is not installed")
    shell.ok("remember", "The pond is frozen")
    (shell.home / "cache").mkdir(exist_ok=True)
    with (shell.home / "cache" / "embedding.lock").open("wb") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        assert shell.ok("embed", "--quiet") == ""
        assert shell.json("status")["vectors"]["without"] == 1
    assert shell.json("embed")["embedded"] == 1
    assert shell.json("embed")["embedded"] == 0


def test_embedding_without_an_embedder_says_why(shell: Shell) -> None:
    shell.variables["BACKSTORY_EMBEDDER_PROVIDER"] = "none"
    shell.ok("remember", "The pond is frozen")
    told = shell.error("embed")
    assert told["exit_code"] == 10
    assert "embedder.provider" in told["message"]
    assert "was not searched" in shell.run("recall", "pond").stderr


READING = ("list", "tags", "status", "history", "recall --lexical x", "export")


def test_reading_writes_nothing_not_even_that_the_folder_was_seen(shell: Shell) -> None:
    shell.ok("remember", "the port is 4000", "--global")
    elsewhere = shell.folder.parent / "elsewhere"
    elsewhere.mkdir()
    for line in READING:
        assert shell.run(*line.split(), "--project", str(elsewhere)).returncode == 0, line
    assert shell.json("status")["projects"] == 1
    assert shell.json("status", "--project", str(elsewhere))["project"]["name"] == "elsewhere"
    shell.ok("update", "1", "--scope", "project", "--project", str(elsewhere))
    assert shell.json("status")["projects"] == 2


def test_a_full_output_does_not_make_a_stored_memory_look_lost(shell: Shell) -> None:
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(
            shell.command("remember", "kept all the same"),
            stdin=subprocess.DEVNULL, stdout=full, stderr=subprocess.PIPE, cwd=shell.folder, env=shell.env,
            text=True, timeout=60,
        )  # fmt: skip
    assert done.returncode == 1
    assert "what the command had to do is done" in done.stderr
    assert len(done.stderr.splitlines()) == 1
    assert "kept all the same" in shell.ok("list")


def test_what_is_so_already_is_no_change(shell: Shell) -> None:
    shell.ok("remember", "the port is 4000", "--pin")
    assert "already" in shell.ok("pin", "1")
    assert shell.json("update", "1", "the port is 4000")["change"] is None
    assert len(shell.json("history")["changes"]) == 1


def test_an_update_takes_expiry_and_sensitivity_back(shell: Shell) -> None:
    shell.ok("remember", "the port is 4000", "--expires", "2h", "--local-only")
    (edit,) = shell.json("update", "1", "--normal", "--no-expiry")["edits"]
    assert (edit["after"]["sensitivity"], edit["after"]["expires_at"], edit["after"]["tier"]) == (
        "normal", None, "archival",
    )  # fmt: skip
    assert shell.error("update", "1", "--normal", "--private")["exit_code"] == 2
    assert shell.error("update", "1", "--expires", "1h", "--no-expiry")["exit_code"] == 2


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
