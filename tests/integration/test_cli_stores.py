"""What commands do to a store, and what they leave alone: which store, transfer, reading, embedding beside."""

from __future__ import annotations

import fcntl
import json
from pathlib import Path

import pytest

from backstory.adapters.embedders import minilm
from tests.integration.shell import Shell, eventually
from tests.integration.shell import shell as shell


def test_another_store_can_be_named(shell: Shell, tmp_path: Path) -> None:
    url = f"sqlite://{tmp_path}/other.db"
    shell.ok("remember", "Kept elsewhere", "--store", url)
    assert shell.json("--store", url, "list")["total"] == 1
    assert not shell.home.exists()


def test_a_store_that_keeps_nothing_is_said_to(shell: Shell) -> None:
    assert "keeps nothing" in shell.run("remember", "Gone soon", "--store", "memory").stderr


def test_an_export_can_be_imported_elsewhere_and_twice(shell: Shell, tmp_path: Path) -> None:
    shell.ok("remember", "Juice is pasteurised at 72 degrees", "--tag", "juice")
    shell.ok("remember", "The safe is behind the clock", "--local-only")
    file = tmp_path / "notes.jsonl"
    assert shell.json("export", str(file)) == {"exported": 1, "file": str(file)}
    assert file.stat().st_mode & 0o077 == 0
    piped = shell.run("export")
    assert file.read_text().splitlines()[1:] == piped.stdout.splitlines()[1:]
    assert (piped.returncode, piped.stderr) == (0, "backstory: left out: 1 local-only\n")
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
