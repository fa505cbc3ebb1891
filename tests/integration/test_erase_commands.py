"""``erase`` and ``scan`` as a person uses them, in this process and on a real file."""

from __future__ import annotations

import io
import json
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from backstory.entrypoints.cli.main import main
from tests.erased import files_with

NOT_PROVEN, USAGE, NOT_FOUND = 1, 2, 3
TOKEN = "ghp_" + "Kq7vW2nLx9" * 3 + "Zr4TbY"

Run = Callable[..., tuple[int, str, str]]


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    """Runs a command in a folder of its own; gives the exit code and both outputs."""
    monkeypatch.setenv("BACKSTORY_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("BACKSTORY_EMBEDDER_PROVIDER", "none")
    (tmp_path / "work").mkdir()
    monkeypatch.chdir(tmp_path / "work")

    def call(*arguments: str) -> tuple[int, str, str]:
        code = main(list(arguments))
        told = capsys.readouterr()
        return code, told.out, told.err

    return call


def as_json(run: Run, *arguments: str, code: int = 0) -> Any:  # Any: JSON of any shape
    done, out, err = run(*arguments, "--json")
    assert (done, err) == (code, "")
    return json.loads(out)


def test_a_dry_run_shows_what_would_go_and_nothing_goes_unasked(run: Run, tmp_path: Path) -> None:
    run("remember", "The key lies in the Zwetschgenkorb")
    run("remember", "Nobody but Anna knows: the key lies in the Zwetschgenkorb")
    code, out, _ = run("erase", "1", "--dry-run")
    assert code == 0
    assert "Would erase #1: The key lies in the Zwetschgenkorb" in out
    assert "take it out of 1 other memory" in out
    assert "cannot be undone" in out
    code, _, err = run("erase", "1")
    assert code == USAGE
    assert "--yes" in err
    assert files_with(tmp_path / "home", "Zwetschgenkorb") == ["backstory.db"]


def test_an_erasure_tells_what_it_did_and_can_be_shown_again(run: Run, tmp_path: Path) -> None:
    run("remember", "The key lies in the Zwetschgenkorb")
    code, out, _ = run("erase", "1", "--yes")
    assert code == 0
    assert "searched every byte of the store: nothing of it was found" in out
    assert "It may still be in:" in out
    assert files_with(tmp_path / "home", "Zwetschgenkorb") == []
    (receipt,) = as_json(run, "erase", "--receipts")["receipts"]
    assert (receipt["finished"], receipt["traces"], len(receipt["memories"])) == (True, [], 1)
    assert as_json(run, "erase", "1", "--yes") == {"receipts": []}
    assert "Nothing is left to finish" in run("erase")[1]
    assert run("check")[0] == 0


def test_a_text_may_come_from_standard_input(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run("remember", "The key lies in the Zwetschgenkorb by the door")
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(b"zwetschgenkorb\n")))
    assert as_json(run, "erase", "--text", "-", "--yes")["receipts"][0]["places"] == {"memories": 1, "history": 1}
    assert files_with(tmp_path / "home", "Zwetschgenkorb") == []
    assert "The key lies in the [erased] by the door" in run("list")[1]


def test_what_does_not_exist_is_not_erased(run: Run) -> None:
    run("remember", "Pears are weighed on Tuesdays")
    assert run("erase", "7", "--yes")[0] == NOT_FOUND
    assert run("erase", "--text", "abc", "--yes")[0] == USAGE
    assert as_json(run, "erase", "--text", "nothing says this", "--yes") == {"receipts": []}


def test_bytes_that_somebody_else_still_reads_are_no_proof(run: Run, tmp_path: Path) -> None:
    run("remember", "The key lies in the Zwetschgenkorb")
    copy = tmp_path / "home" / "notes.txt"
    copy.write_text("Zwetschgenkorb")
    code, out, _ = run("erase", "1", "--text", "Zwetschgenkorb", "--yes")
    assert code == 0
    assert f"still there, once: {copy}" in out


def test_a_scan_lists_secrets_and_a_fix_takes_them_out_of_the_file(run: Run, tmp_path: Path) -> None:
    run("remember", "deploy from the orchard machine")
    with closing(sqlite3.connect(tmp_path / "home" / "backstory.db", isolation_level=None)) as raw:
        raw.execute("UPDATE memories SET content = ?", (f"deploy with {TOKEN}",))
        raw.execute("UPDATE change_edits SET after = json_set(after, '$.content', ?)", (f"deploy with {TOKEN}",))
    code, out, err = run("scan")
    assert code == NOT_PROVEN
    assert "github-token  memories" in out
    assert "scan --fix" in err
    assert TOKEN not in out
    assert as_json(run, "scan", "--fix", "--dry-run", code=NOT_PROVEN)["fixed"] is False
    told = as_json(run, "scan", "--fix")
    assert told["kinds"] == {"github-token": 2}
    assert (told["left"], told["receipt"]["traces"]) == ([], [])
    assert files_with(tmp_path / "home", TOKEN) == []
    assert "No secret was found." in run("scan")[1]
    assert run("check")[0] == 0
