"""``check``, ``reindex``, ``backup`` and ``restore`` as people and scripts use them: real processes on a real file."""

from __future__ import annotations

import json
import os
import sqlite3
import stat
import subprocess
import sys
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

DAMAGED, OUT_OF_STEP, NO_STORE, USAGE = 8, 1, 7, 2


@dataclass
class Shell:
    """A person's shell in a folder of theirs, without an embedder."""

    home: Path
    folder: Path

    @property
    def store(self) -> Path:
        return self.home / "backstory.db"

    def run(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        kept = {name: value for name, value in os.environ.items() if not name.startswith("BACKSTORY_")}
        env = {**kept, "BACKSTORY_HOME": str(self.home), "BACKSTORY_EMBEDDER_PROVIDER": "none"}
        return subprocess.run(
            [sys.executable, "-m", "backstory", *arguments],
            cwd=self.folder, env=env, capture_output=True, text=True, stdin=subprocess.DEVNULL, timeout=240,
        )  # fmt: skip

    def ok(self, *arguments: str) -> str:
        done = self.run(*arguments)
        assert (done.returncode, done.stderr) == (0, "")
        return done.stdout

    def json(self, *arguments: str, code: int = 0) -> Any:  # Any: JSON of any shape
        done = self.run(*arguments, "--json")
        assert (done.returncode, done.stderr) == (code, "")
        return json.loads(done.stdout)

    def error(self, *arguments: str) -> Any:
        done = self.run(*arguments, "--json")
        assert done.stdout == ""
        return json.loads(done.stderr)["error"]

    def damage(self, statement: str) -> None:
        with closing(sqlite3.connect(self.store, isolation_level=None)) as raw:
            raw.execute(statement)


@pytest.fixture
def shell(tmp_path: Path) -> Shell:
    folder = tmp_path / "orchard"
    folder.mkdir()
    return Shell(home=tmp_path / "home", folder=folder)


def test_where_there_is_no_store_checking_makes_none(shell: Shell) -> None:
    assert "no store yet" in shell.ok("check")
    assert shell.json("check")["findings"] == []
    assert shell.error("backup", "copy.db")["exit_code"] == NO_STORE
    assert not shell.store.exists()
    assert list(shell.folder.iterdir()) == []


def test_a_whole_store_is_said_to_be_whole(shell: Shell) -> None:
    shell.ok("remember", "The cluster is called heron-2.")
    assert shell.ok("check") == f"{shell.store} is whole\n"
    assert shell.json("check", "--full") == {"store": str(shell.store), "full": True, "ok": True, "findings": []}


def test_what_is_out_of_step_is_named_and_mended_by_reindexing(shell: Shell) -> None:
    shell.ok("remember", "The cluster is called heron-2.")
    shell.damage("UPDATE memory_words SET tokens = 'nonsense'")
    done = shell.run("check")
    assert done.returncode == OUT_OF_STEP
    assert "11 words: #1" in done.stdout
    assert "backstory reindex" in done.stdout
    [finding, *_] = shell.json("check", code=OUT_OF_STEP)["findings"]
    assert finding == {
        "invariant": "words",
        "number": 11,
        "severity": "out-of-step",
        "where": "#1",
        "what": "its words are not those of its text in the index",
        "way_out": "`backstory reindex` makes it anew; nothing is lost",
    }
    assert "were wrong and are put right" in shell.ok("reindex")
    assert "is whole" in shell.ok("check")
    assert "heron-2" in shell.run("recall", "cluster").stdout
    again = shell.json("reindex", "--vectors")
    assert (again["memories"], again["corrected"]) == (1, 0)
    assert again["not_embedded_because"]


def test_damage_is_named_with_the_ways_out_and_what_can_be_read_is_saved(shell: Shell) -> None:
    shell.ok("remember", "The cluster is called heron-2.")
    shell.ok("remember", "Releases are cut on Tuesdays.", "--global")
    shell.damage("UPDATE memories SET status = '{' WHERE n = 1")
    done = shell.run("check", "--salvage", "saved.jsonl")
    assert done.returncode == DAMAGED
    assert "readable: #1" in done.stdout
    assert "backstory restore" in done.stdout
    assert "Saved 2 memories to saved.jsonl" in done.stdout
    assert "taken from its history" in done.stdout
    saved = shell.folder / "saved.jsonl"
    assert stat.S_IMODE(saved.stat().st_mode) == 0o600
    assert shell.error("check", "--salvage", "saved.jsonl")["exit_code"] == USAGE
    shell.store.rename(shell.home / "damaged.db")
    shell.ok("import", "--keep-projects", "--trust", "saved.jsonl")
    assert sorted(line.split("\t")[0] for line in shell.ok("list", "--all-projects").splitlines()) == ["1", "2"]


def test_doctor_names_damage_and_the_ways_out(shell: Shell) -> None:
    shell.ok("remember", "The cluster is called heron-2.")

    def integrity() -> tuple[str, str]:
        checks = json.loads(shell.run("doctor", "--json").stdout)["checks"]
        return next((check["state"], check["mend"]) for check in checks if check["name"] == "integrity")

    assert integrity() == ("ok", "")
    shell.damage("UPDATE word_statistics SET documents = 9")
    state, mend = integrity()
    assert state == "warn"
    assert "reindex" in mend
    shell.damage("UPDATE memories SET content = 'forged'")
    state, mend = integrity()
    assert state == "fail"
    assert "restore" in mend
    assert "--salvage" in mend
    shell.store.write_bytes(b"dear diary" * 1000)
    checks = json.loads(shell.run("doctor", "--json").stdout)["checks"]
    store = next(check for check in checks if check["name"] == "store")
    assert store["state"] == "fail"
    assert all(word in store["mend"] for word in ("restore", "--salvage", "import"))


def test_a_store_is_backed_up_and_brought_back(shell: Shell) -> None:
    shell.ok("remember", "The cluster is called heron-2.")
    told = shell.json("backup", "copy.db")
    copy = shell.folder / "copy.db"
    assert told == {"file": "copy.db", "bytes": copy.stat().st_size, "made_folder": None}
    assert stat.S_IMODE(copy.stat().st_mode) == 0o600
    assert shell.error("backup", "copy.db")["hint"] == "name another file, or add --force"
    shell.ok("backup", "copy.db", "--force")
    shell.ok("remember", "Releases are cut on Tuesdays.")
    restored = shell.json("restore", "copy.db")
    assert (restored["memories"], restored["messages"]) == (1, 0)
    assert "Tuesdays" not in shell.ok("list")
    assert "Tuesdays" in shell.ok("list", "--store", f"sqlite://{restored['kept']}")
    assert "heron-2" in shell.run("recall", "cluster").stdout


def test_a_damaged_backup_is_refused_and_the_store_untouched(shell: Shell) -> None:
    shell.ok("remember", "The cluster is called heron-2.")
    shell.ok("backup", "copy.db")
    copy, before = shell.folder / "copy.db", shell.store.read_bytes()
    copy.write_bytes(copy.read_bytes()[:20_000])
    assert shell.error("restore", "copy.db")["type"] == "StoreDamaged"
    assert shell.store.read_bytes() == before
    assert shell.run("restore", "missing.db").returncode == USAGE
