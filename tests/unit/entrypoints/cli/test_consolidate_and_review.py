"""``consolidate`` and ``review`` over a SQLite file, in this process."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from backstory.entrypoints.cli.main import main

Run = Callable[..., Any]


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    """Runs a command; gives back what it printed, or its JSON where ``--json`` is among the arguments."""
    monkeypatch.setenv("BACKSTORY_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("BACKSTORY_EMBEDDER_PROVIDER", "none")
    monkeypatch.setenv("BACKSTORY_NO_BACKGROUND", "1")
    monkeypatch.delenv("BACKSTORY_STORE", raising=False)
    monkeypatch.chdir(tmp_path)

    def command(*arguments: str, code: int = 0) -> Any:  # Any: JSON of any shape
        assert main(list(arguments)) == code, capsys.readouterr().err
        told = capsys.readouterr()
        text = told.out if code == 0 else told.err
        return json.loads(text) if "--json" in arguments else text

    return command


def fill(run: Run) -> None:
    for text in ("Use uv for every install.", "Please use uv for every install.", "The port is 80.", "The port is 81."):
        run("remember", text)


def test_a_dry_run_shows_the_groups_of_the_real_run_and_changes_nothing(run: Run) -> None:
    fill(run)
    plan = run("consolidate", "--dry-run", "--json")
    assert (plan["dry_run"], plan["change"], plan["compared"]) == (True, None, 4)
    [group] = plan["groups"]
    assert (group["found_by"], group["kept"]["n"], [memory["n"] for memory in group["removed"]]) == ("wording", 2, [1])
    [pair] = plan["uncertain"]
    assert ([memory["n"] for memory in pair["memories"]], pair["reasons"]) == ([4, 3], ["81 against 80"])
    assert list(plan["skipped"]) == ["meaning"]
    assert run("list", "--json")["total"] == 4
    done = run("consolidate", "--yes", "--json")
    assert done["groups"] == plan["groups"]
    assert done["uncertain"] == plan["uncertain"]
    assert run("list", "--json")["total"] == 3
    run("undo", done["change"])
    assert run("list", "--json")["total"] == 4


def test_what_goes_is_told_in_full_and_can_be_undone(run: Run) -> None:
    fill(run)
    told = run("consolidate", "--yes")
    assert "removed #1:\n    Use uv for every install.\n" in told
    assert "Removed 1 memory in 1 group." in told
    assert "#4 and #3 both stay: 81 against 80" in told
    assert "Undo with: backstory undo " in told
    run("undo")
    assert "Would remove 1 memory" in run("consolidate", "--dry-run")


def test_nobody_is_taken_to_have_agreed(run: Run) -> None:
    fill(run)
    error = run("consolidate", "--json", code=2)["error"]
    assert error["hint"] == "repeat it with --yes"
    assert run("list", "--json")["total"] == 4


def test_nothing_to_do_is_said_without_asking(run: Run) -> None:
    assert "No duplicates among 0 memories." in run("consolidate")
    run("remember", "The port is 80.")
    assert "No duplicates among 1 memory." in run("consolidate")
    assert run("consolidate", "--pass", "exact", "--json")["skipped"] == {}


def test_a_pass_alone_is_done_alone(run: Run) -> None:
    fill(run)
    assert run("consolidate", "--pass", "exact", "--dry-run", "--json")["groups"] == []
    assert "exact" in run("consolidate", "--pass", "all", code=2)


def outside(run: Run, tmp_path: Path) -> None:
    """Two memories from a file."""
    run("remember", "Deploys are on Mondays.", "--tag", "deploy")
    run("remember", "Deploys are done by hand.")
    lines = run("export").splitlines()
    run("forget", "1", "2")
    header, records = lines[0], [json.loads(line) for line in lines[1:]]
    for place, record in enumerate(records):
        record["id"] = f"01J0000000000000000000000{place}"
    (tmp_path / "other.jsonl").write_text("\n".join([header, *map(json.dumps, records)]) + "\n", encoding="utf-8")
    run("import", str(tmp_path / "other.jsonl"))


def test_what_came_from_a_file_waits_until_a_person_accepts_or_rejects_it(run: Run, tmp_path: Path) -> None:
    assert "No memory waits for review." in run("review")
    outside(run, tmp_path)
    waiting = run("review", "--json")
    assert waiting["total"] == 2
    short = run("review", "--limit", "1", "--json")
    assert (short["total"], short["memories"]) == (2, waiting["memories"][:1])
    assert run("review", "list", "--limit", "1", "--json") == short
    assert {memory["origin"] for memory in waiting["memories"]} == {"imported"}
    assert run("status", "--json")["review"] == {"waiting": 2}
    assert "2 memories wait for review" in run("status")
    assert "from imported" in run("review")
    first, second = (str(memory["n"]) for memory in waiting["memories"])
    assert f"Accepted #{first}: " in run("review", "accept", first)
    assert f"Rejected #{second}: " in run("review", "reject", second)
    assert run("show", first, "--json")["origin"] == "user"
    assert run("review", "list", "--json")["memories"] == []
    assert "review" not in run("status")
    run("undo")
    run("undo")
    assert run("review", "--json")["total"] == 2


def test_what_does_not_wait_is_refused(run: Run) -> None:
    run("remember", "Deploys are on Mondays.")
    assert "does not wait for review" in run("review", "accept", "1", "--json", code=2)["error"]["message"]
    assert "does not wait for review" in run("review", "reject", "1", "--json", code=2)["error"]["message"]
    assert run("review", "accept", "7", "--json", code=3)["error"]["type"] == "NotFound"
