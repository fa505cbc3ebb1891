"""``check``, ``reindex``, ``backup``, ``restore`` and ``doctor`` over stores that are no file: the same for all."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from backstory.testing.postgres import postgres_for_tests, why_there_is_none

DAMAGED, OUT_OF_STEP, NO_STORE = 8, 1, 7


@dataclass
class Shell:
    """A person's shell in a repository, with a store of some kind."""

    home: Path
    folder: Path
    store: dict[str, str]
    spoil: Callable[[], None]

    def run(self, *arguments: str, **env: str) -> subprocess.CompletedProcess[str]:
        kept = {name: value for name, value in os.environ.items() if not name.startswith("BACKSTORY_")}
        settings = {"BACKSTORY_HOME": str(self.home), "BACKSTORY_EMBEDDER_PROVIDER": "none"} | self.store | env
        return subprocess.run(
            [sys.executable, "-m", "backstory", *arguments],
            cwd=self.folder, env=kept | settings, capture_output=True, text=True, stdin=subprocess.DEVNULL, timeout=240,
        )  # fmt: skip

    def ok(self, *arguments: str, **env: str) -> str:
        done = self.run(*arguments, **env)
        assert (done.returncode, done.stderr) == (0, "")
        return done.stdout

    def json(self, *arguments: str, code: int = 0) -> Any:  # Any: JSON of any shape
        done = self.run(*arguments, "--json")
        assert (done.returncode, done.stderr) == (code, "")
        return json.loads(done.stdout)

    def examine(self) -> dict[str, dict[str, str]]:
        done = self.run("doctor", "--json")
        return {check["name"]: check for check in json.loads(done.stdout)["checks"]}


def _postgres(tmp_path: Path) -> tuple[dict[str, str], Callable[[], None]]:
    if (reason := why_there_is_none()) is not None:
        pytest.skip(reason)
    server = postgres_for_tests()
    schema = server.new_name()
    store = {
        "BACKSTORY_STORE": f"postgresql://team@/backstory?host={server.socket_folder}",
        "BACKSTORY_STORE_SCHEMA": schema,
    }
    return store, lambda: (server.run(f"DELETE FROM {schema}.memory_terms WHERE term = 'heron'"), None)[1]


def _git(tmp_path: Path) -> tuple[dict[str, str], Callable[[], None]]:
    import sqlite3
    from contextlib import closing

    def spoil() -> None:
        [file] = (tmp_path / "home" / "git").glob("*.db")
        with closing(sqlite3.connect(file)) as raw, raw:
            raw.execute("DELETE FROM memory_words")

    return {"BACKSTORY_STORE": "git"}, spoil


@pytest.fixture(params=[_postgres, _git], ids=["postgres", "git"])
def shell(request: pytest.FixtureRequest, tmp_path: Path) -> Shell:
    folder = tmp_path / "orchard"
    subprocess.run(["git", "init", "-q", str(folder)], check=True)
    store, spoil = request.param(tmp_path)
    return Shell(home=tmp_path / "home", folder=folder, store=store, spoil=spoil)


def test_where_there_is_no_store_checking_makes_none(shell: Shell) -> None:
    assert "no store yet" in shell.ok("check")
    assert shell.json("check")["findings"] == []
    assert shell.run("backup", "copy.db").returncode == NO_STORE
    assert shell.examine()["store"]["state"] == "ok"
    assert "no store yet" in shell.ok("check")


def test_where_there_is_no_store_reading_finds_nothing_and_makes_none(shell: Shell) -> None:
    assert "stores the first" in shell.ok("recall", "heron")
    assert shell.json("list")["memories"] == []
    store = shell.json("status")["store"]
    assert (store["exists"], store["kind"] in store["location"] or store["kind"] == "git") == (False, True)
    assert "no store yet" in shell.ok("check")


def test_a_store_is_checked_mended_and_said_to_be_whole(shell: Shell) -> None:
    shell.ok("remember", "The cluster is called heron-2.")
    assert "is whole" in shell.ok("check", "--full")
    shell.spoil()
    spoilt = shell.json("check", code=OUT_OF_STEP)
    assert {found["invariant"] for found in spoilt["findings"]} == {"words"}
    assert shell.examine()["integrity"]["state"] == "warn"
    shell.ok("reindex")
    assert "is whole" in shell.ok("check", "--full")


def test_the_doctor_names_the_store_and_looks_at_all_of_it(shell: Shell) -> None:
    shell.ok("remember", "The cluster is called heron-2.")
    found = shell.examine()
    assert {name: found[name]["state"] for name in ("store", "integrity", "writable", "embedder")} == {
        "store": "ok", "integrity": "ok", "writable": "ok", "embedder": "ok",
    }  # fmt: skip
    assert "opens and holds 1 memory" in found["store"]["message"]
    assert shell.json("check")["store"] in found["store"]["message"]


def test_a_backup_comes_back_and_moves_to_sqlite_and_back(shell: Shell) -> None:
    shell.ok("remember", "The cluster is called heron-2.")
    assert shell.json("backup", "copy.db")["bytes"] > 0
    shell.ok("remember", "Deploy on Tuesdays.")
    restored = shell.json("restore", "copy.db")
    assert restored["memories"] == 1
    assert Path(restored["kept"]).exists()
    assert "Tuesdays" not in shell.ok("list")
    assert "is whole" in shell.ok("check", "--full")
    shell.ok("restore", "copy.db", BACKSTORY_STORE="sqlite")
    assert "heron-2" in shell.ok("list", BACKSTORY_STORE="sqlite")
    assert "is whole" in shell.ok("check", "--full", BACKSTORY_STORE="sqlite")
    shell.ok("backup", "moved.db", BACKSTORY_STORE="sqlite")
    shell.ok("restore", "moved.db")
    assert "heron-2" in shell.ok("list")
    assert "is whole" in shell.ok("check", "--full")


def test_everything_is_salvaged_into_a_file(shell: Shell) -> None:
    shell.ok("remember", "The cluster is called heron-2.")
    shell.ok("check", "--salvage", "saved.jsonl")
    assert "heron-2" in (shell.folder / "saved.jsonl").read_text()


def test_a_project_that_came_with_an_import_is_named_and_brought_into_a_folder(shell: Shell, tmp_path: Path) -> None:
    shell.ok("remember", "The cluster is called heron-2.")
    shell.ok("check", "--salvage", "saved.jsonl")
    text = (shell.folder / "saved.jsonl").read_text()
    [record] = [json.loads(line) for line in text.splitlines()[1:]]
    stray = "01KAAAAAAAAAAAAAAAAAAAAAAA"
    strange = {"id": "01KBBBBBBBBBBBBBBBBBBBBBBB", "project": stray, "project_name": "old orchard"}
    moved = json.dumps(record | strange | {"content": "There are nine plum trees."})
    (shell.folder / "moved.jsonl").write_text(text.splitlines()[0] + "\n" + moved + "\n")
    arguments = ("import", "--keep-projects", "moved.jsonl")
    assert shell.json(*arguments, "--dry-run")["projects"] == [{"id": stray, "name": "old orchard", "root": ""}]
    told = shell.ok(*arguments)
    assert "The project old orchard was not known here" in told
    assert f"backstory projects merge {stray} ." in told
    assert shell.json(*arguments)["projects"] == []
    assert "old orchard" in shell.ok("projects", "list")
    assert shell.json("list")["total"] == 1
    assert "is whole" in shell.ok("check", "--full")
    shell.ok("projects", "merge", stray, ".", "--yes")
    assert shell.json("list")["total"] == 2
    assert "is whole" in shell.ok("check", "--full")


def test_a_store_is_made_with_nothing_in_it(shell: Shell) -> None:
    assert shell.json("check")["ok"] is True
    assert "no store yet" in shell.ok("check")
    done = shell.json("reindex", "--create")
    assert (done["made"], done["memories"], done["corrected"]) == (True, 0, 0)
    assert "is whole" in shell.ok("check", "--full")
    assert shell.json("projects") == {"projects": []}
    assert "Made a new store" not in shell.ok("reindex", "--create")
    shell.ok("remember", "The cluster is called heron-2.")
    assert shell.json("list")["total"] == 1
