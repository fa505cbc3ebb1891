"""The command line among terminals, pipes, disks, locales and signals: what is said is true, and nothing is lost."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.integration.shell import Shell, eventually
from tests.integration.shell import shell as shell


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
        shell.command("export"), stdout=write, stderr=subprocess.PIPE, cwd=shell.folder, env=shell.env, timeout=240
    )
    os.close(write)
    assert (done.returncode, done.stderr) == (141, b"")


def test_a_full_disk_behind_the_output_is_said(shell: Shell) -> None:
    with Path("/dev/full").open("wb") as full:
        done = subprocess.run(
            shell.command("config"), stdout=full, stderr=subprocess.PIPE, cwd=shell.folder, env=shell.env, timeout=240
        )
    assert done.returncode != 0
    assert b"No space left" in done.stderr
    assert b"Traceback" not in done.stderr


def test_a_closed_output_is_no_failure(shell: Shell) -> None:
    script = f'{sys.executable} -m backstory remember "Said to nobody" >&- 2>&-'
    done = subprocess.run(["sh", "-c", script], cwd=shell.folder, env=shell.env, timeout=240)
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
    _, stderr = process.communicate(timeout=240)
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
    done = subprocess.run(["sh", "-c", script], capture_output=True, env=shell.env, timeout=240)
    assert done.returncode == 2
    assert b"--project" in done.stderr


def test_a_full_output_does_not_make_a_stored_memory_look_lost(shell: Shell) -> None:
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(
            shell.command("remember", "kept all the same"),
            stdin=subprocess.DEVNULL, stdout=full, stderr=subprocess.PIPE, cwd=shell.folder, env=shell.env,
            text=True, timeout=240,
        )  # fmt: skip
    assert done.returncode == 1
    assert "what the command had to do is done" in done.stderr
    assert len(done.stderr.splitlines()) == 1
    assert "kept all the same" in shell.ok("list")
