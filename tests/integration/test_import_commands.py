"""``import`` and ``export`` as people type them: what is found, what is told, what hostile files cannot do."""

from __future__ import annotations

import gzip
import json
import os
import signal
import stat
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from backstory.bootstrap.exchange import READERS, WRITERS, check_target, find_stores, shown_place
from backstory.errors import InputError
from backstory.testing.fakes import ulid
from tests.command_line import KNOWN, CommandLine

HEADER = {"format": "backstory-memories", "version": 1}
LEARNED = {"learned": "2026-03-02T12:00:00Z"}


@pytest.fixture
def shell(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> CommandLine:
    return CommandLine(tmp_path, monkeypatch, capsys, name="meadow")


def record(number: int, content: str, **fields: Any) -> dict[str, Any]:
    return {"id": ulid(number, series=5), "content": content, "times": LEARNED} | fields


def written(path: Path, *lines: object, header: dict[str, Any] | None = None) -> str:
    """A file of our own format; texts and bytes are written as they are."""
    with path.open("wb") as sink:
        for line in (HEADER if header is None else header, *lines):
            data = line if isinstance(line, bytes) else (line if isinstance(line, str) else json.dumps(line)).encode()
            sink.write(data + b"\n")
    return str(path)


def contents(shell: CommandLine) -> list[str]:
    return sorted(memory["content"] for memory in shell.json("list")["memories"])


def test_a_file_comes_in_once_and_is_counted(shell: CommandLine, tmp_path: Path) -> None:
    file = written(tmp_path / "a.jsonl", record(1, "Hay is cut in June"), record(2, "The scythe is new"))
    planned = shell.json("import", file, "--dry-run")
    assert (planned["imported"], planned["dry_run"], planned["changes"]) == (2, True, [])
    assert contents(shell) == [KNOWN]
    done = shell.json("import", file)
    assert (done["imported"], done["skipped"], done["conflicts"], done["refused"]) == (2, 0, 0, [])
    assert done["by_kind"]["memories"] == 2
    assert [(store["format"], store["place"], store["label"]) for store in done["stores"]] == [("backstory", file, "")]
    again = shell.json("import", file)
    assert (again["imported"], again["skipped"], again["changes"]) == (0, 2, [])


def test_people_are_told_what_becomes_of_imported_memories(shell: CommandLine, tmp_path: Path) -> None:
    file = written(tmp_path / "a.jsonl", record(1, "Hay is cut in June", origin="user"))
    told = shell.ok("import", file)
    assert "Imported 1 memories" in told
    assert "backstory review" in told
    assert "--trust" not in shell.ok("import", file, "--trust").splitlines()[-1]
    assert shell.json("show", "#2")["origin"] == "user"


def test_a_folder_brings_all_its_files_each_with_its_name(shell: CommandLine, tmp_path: Path) -> None:
    folder = tmp_path / "exports"
    folder.mkdir()
    written(folder / "a.jsonl", record(1, "Hay is cut in June"))
    written(folder / "b.jsonl", record(2, "The scythe is new"))
    (folder / "notes.jsonl").write_text('{"some": "other"}\n')
    done = shell.json("import", str(folder))
    assert [(store["label"], store["imported"]) for store in done["stores"]] == [("a.jsonl", 1), ("b.jsonl", 1)]


def test_what_is_no_store_is_refused_with_what_was_looked_for(shell: CommandLine, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    for place, words in ((tmp_path / "empty", "no store"), (tmp_path / "gone", "nothing at")):
        done = shell.run("import", str(place))
        assert done.returncode == 2
        assert words in done.stderr
        assert "backstory" in done.stderr
    assert "is not known" in shell.run("import", str(tmp_path), "--format", "poem").stderr
    assert shell.run("import").returncode == 2
    assert shell.run("import", "x", "--here", "--keep-projects").returncode == 2


def test_the_formats_are_listed(shell: CommandLine) -> None:
    listed = {item["name"]: item for item in shell.json("import", "--list")["formats"]}
    assert listed.keys() == {*READERS, *WRITERS}
    assert listed["backstory"]["import"]
    assert listed["backstory"]["export"]
    assert all(item["what"] for item in listed.values())
    assert "backstory" in shell.ok("import", "--list")


def test_an_agent_vouches_for_nothing(shell: CommandLine, tmp_path: Path) -> None:
    file = written(tmp_path / "a.jsonl", record(1, "Hay is cut in June", origin="user"))
    shell.set(CALLER="agent")
    assert shell.run("import", file, "--trust").returncode != 0
    assert shell.run("import", file).returncode == 0


def test_projects_are_kept_where_the_file_says_where_they_are(shell: CommandLine, tmp_path: Path) -> None:
    barn = tmp_path / "barn"
    places = [{"id": ulid(7, series=6), "name": "barn", "root": str(barn)}]
    header = HEADER | {"version": 2, "projects": places}
    file = written(tmp_path / "a.jsonl", record(1, "Hens", project=ulid(7, series=6)), header=header)
    [project] = shell.json("import", file)["projects"]
    assert (project["name"], project["root"]) == ("barn", str(barn))
    assert contents(shell) == [KNOWN]
    barn.mkdir()
    there = shell.json("list", "--project", str(barn))["memories"]
    assert [memory["content"] for memory in there] == ["Hens"]
    here = written(tmp_path / "b.jsonl", record(2, "Hay", project=ulid(7, series=6)), header=header)
    shell.ok("import", here, "--here")
    assert contents(shell) == ["Hay", KNOWN]


def test_everything_goes_out_and_comes_in_elsewhere(shell: CommandLine, tmp_path: Path) -> None:
    shell.ok("update", "#1", "The gate is oiled in autumn")
    file = tmp_path / "all.jsonl"
    assert shell.json("export", str(file), "--everything") == {"exported": 3, "file": str(file)}
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    shell.set(HOME=str(tmp_path / "second"))
    done = shell.json("import", str(file), "--trust")
    assert (done["imported"], done["by_kind"]["history"], done["refused"]) == (1, 2, [])
    assert [change["action"] for change in shell.json("history")["changes"]] == ["update", "add"]
    assert shell.json("import", str(file), "--trust")["imported"] == 0
    assert "Exported" in shell.ok("export", str(file), "--with", "history")
    assert shell.run("export", str(file), "--with", "poems").returncode == 2


def test_an_export_in_another_format_needs_a_place_of_its_own(shell: CommandLine, tmp_path: Path) -> None:
    name = next(iter(WRITERS))
    assert "name a PLACE" in shell.run("export", "--format", name).stderr
    full = tmp_path / "full"
    full.mkdir()
    (full / "letter.txt").write_text("dear")
    refused = shell.run("export", str(full), "--format", name)
    assert (refused.returncode, (full / "letter.txt").read_text()) == (2, "dear")
    assert "--force" in refused.stderr
    assert shell.run("export", str(full), "--format", name, "--force").returncode == 0
    assert (full / "letter.txt").read_text() == "dear"


@pytest.mark.parametrize("label", ["../out", "/etc", "a/../../b", "c:\\x", "a\nb", "x:y"])
def test_no_label_leads_out_of_the_target(tmp_path: Path, label: str) -> None:
    with pytest.raises(InputError, match="no path below another"):
        check_target(tmp_path / "new", "backstory", ["", label], force=True)


def test_no_link_leads_out_of_the_target(tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "barn").symlink_to(tmp_path)
    with pytest.raises(InputError, match="leads out of"):
        check_target(tmp_path / "out", "ocpg", ["barn/x"], force=True)


def test_the_address_of_a_database_is_shown_without_its_user_and_password() -> None:
    assert shown_place("postgresql://me:hunter2@db.example/x") == "postgresql://db.example/x"


# --- hostile files ----------------------------------------------------------------------------------------------------

GOOD = record(1, "Hay is cut in June")
LONG = "x" * 200_000
PACKED = gzip.compress(b"{}" * 1000)
HOSTILE: dict[str, tuple[object, str]] = {
    "no JSON": (b"{", "not JSON"),
    "half a line": (b'{"id": "01', "not JSON"),
    "latin-1": (json.dumps(record(2, "caf\xe9"), ensure_ascii=False).encode("latin-1"), "not UTF-8"),
    "UTF-16": (json.dumps(record(2, "x")).encode("utf-16"), "not UTF-8"),
    "half a character": (record(2, "x", area="\ud83d"), "half a character"),
    "a huge line": (b'{"id": "' + b"x" * 9_000_000 + b'"}', "longer than"),
    "deep nesting": (b'{"id":' + b"[" * 100_000 + b"]" * 100_000 + b"}", "not JSON"),
    "a number beyond all": (b'{"n": ' + b"9" * 5000 + b"}", "not JSON"),
    "a number for a text": (record(2, "x", area=7), "area"),
    "a list for an object": ([1, 2], "not an object"),
    "a text without end": (record(2, LONG), "limit is 100000"),
    "an id to escape by": (record(2, "x") | {"id": "../../etc/passwd"}, "ULID"),
    "a date of no calendar": (record(2, "x", times={"learned": "2026-13-45"}), "times.learned"),
    "no number": (record(2, "x", weight=float("nan")), "weight"),
}


@pytest.mark.parametrize(("line", "reason"), HOSTILE.values(), ids=HOSTILE)
def test_a_hostile_line_is_told_and_the_good_ones_come_in(
    shell: CommandLine, tmp_path: Path, line: object, reason: str
) -> None:
    # a line in UTF-16 holds a zero byte after its line end, which stands at the start of the next line
    rest = () if reason == "not UTF-8" else (record(3, "The scythe is new"),)
    done = shell.run("import", written(tmp_path / "bad.jsonl", GOOD, line, *rest), "--json")
    report = json.loads(done.stdout)
    assert (done.returncode, report["imported"]) == (2, 1 + len(rest))
    assert report["refused"][0].startswith("line 3: ")
    assert any(reason in refusal for refusal in report["refused"])
    assert len(done.stdout) < 20_000


def test_a_text_with_nul_comes_in_without_it(shell: CommandLine, tmp_path: Path) -> None:
    shell.ok("import", written(tmp_path / "a.jsonl", record(1, "Hay\x00 is \x1b[31mcut")))
    assert contents(shell) == ["Hay is cut", KNOWN]


@pytest.mark.parametrize("content", [b"", b"\xff\xfe{\x00", b"\x00" * 4096, PACKED, b"{}\n" * 9], ids=range(5))
def test_a_file_of_something_else_is_no_store(shell: CommandLine, tmp_path: Path, content: bytes) -> None:
    (tmp_path / "odd").write_bytes(content)
    assert shell.run("import", str(tmp_path / "odd")).returncode == 2
    assert shell.run("import", str(tmp_path / "odd"), "--format", "backstory").returncode == 2


def test_a_million_empty_records_are_counted_not_kept(shell: CommandLine, tmp_path: Path) -> None:
    file = tmp_path / "many.jsonl"
    file.write_bytes(json.dumps(HEADER).encode() + b"\n" + b"{}\n" * 50_000)
    done = shell.run("import", str(file), "--json")
    report = json.loads(done.stdout)
    assert (done.returncode, report["refused_count"], len(report["refused"])) == (2, 50_000, 1000)


def test_a_link_in_a_folder_is_not_followed_out_of_it(shell: CommandLine, tmp_path: Path) -> None:
    outside = written(tmp_path / "outside.jsonl", GOOD)
    folder = tmp_path / "exports"
    folder.mkdir()
    (folder / "link.jsonl").symlink_to(outside)
    assert shell.run("import", str(folder)).returncode == 2
    assert find_stores(outside)[0].place == outside


def test_a_file_from_a_pipe_comes_in_and_leaves_no_trace(shell: CommandLine, tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    file = written(tmp_path / "a.jsonl", GOOD)
    with subprocess.Popen(["sh", "-c", f"cat '{file}' > '{pipe}'"]):
        done = shell.json("import", str(pipe))
    assert (done["imported"], done["stores"][0]["place"]) == (1, str(pipe))


def test_a_format_that_is_known_by_a_files_name_comes_in_from_standard_input_and_once(
    shell: CommandLine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "said"
    line = {"ts": "2026-03-02T08:16:30.500Z", "type": "pattern", "scope": "barn", "content": "Gates are oiled"}
    file.write_text(json.dumps([line], indent=2))
    for count in (1, 0):
        with file.open() as stream:
            monkeypatch.setattr("sys.stdin", stream)
            done = shell.json("import", "-")
        assert (done["imported"], done["by_kind"]["keepsakes"], done["stores"][0]["place"]) == (count, count, "-")
    file.write_text("nothing of the sort")
    with file.open() as stream:
        monkeypatch.setattr("sys.stdin", stream)
        assert "no store at 'standard input'" in shell.run("import", "-").stderr


def test_what_was_taken_back_is_told_when_it_is_imported_again(shell: CommandLine, tmp_path: Path) -> None:
    file = written(tmp_path / "a.jsonl", GOOD)
    shell.ok("undo", shell.json("import", file)["changes"][0])
    done = shell.json("import", file)
    assert (done["imported"], done["skipped"]) == (0, 1)
    assert done["remarks"][0].startswith("1 of these memories were forgotten or taken back here")


def test_an_import_that_is_killed_and_run_again_is_the_same_as_one(shell: CommandLine, tmp_path: Path) -> None:
    count = 3000
    file = written(tmp_path / "many.jsonl", *(record(n, f"Bale {n} is in row {n % 7}") for n in range(1, count + 1)))
    program = "import sys; from backstory.entrypoints.cli.main import main; sys.exit(main(sys.argv[1:]))"
    with subprocess.Popen([sys.executable, "-c", program, "import", file], stdout=subprocess.DEVNULL) as killed:
        while killed.poll() is None and shell.json("status")["memories"]["current"] < 300:
            pass
        killed.send_signal(signal.SIGKILL)
    there = shell.json("status")["memories"]["current"] - 1
    assert there % 200 == 0 or there == count
    done = shell.json("import", file)
    assert (done["imported"], done["skipped"]) == (count - there, there)
    assert shell.json("import", file)["imported"] == 0
