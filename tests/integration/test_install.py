"""`backstory install`, `uninstall` and `doctor` as commands, with a stand-in for OpenCode and for the Python half."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from backstory.__about__ import __version__

STAND_IN_BRIDGE = f"""
import json, os, sys
for line in sys.stdin:
    message = json.loads(line)
    note = {{"home": os.environ.get("BACKSTORY_HOME"), "safe": sys.flags.safe_path, "cwd": os.getcwd(), **message}}
    open(os.environ["HEARD"], "a").write(json.dumps(note) + chr(10))
    if "id" in message:
        print("not json", flush=True)
        result = {{"protocol": 1, "version": "{__version__}"}}
        print(json.dumps({{"jsonrpc": "2.0", "id": message["id"], "result": result}}), flush=True)
"""
STAND_IN_OPENCODE = """#!/bin/sh
case "$1" in
--version) echo "$STAND_IN_VERSION" ;;
debug) echo "$STAND_IN_SAYS"; exit 1 ;;
esac
"""


@dataclass
class Machine:
    """A home, a project that is a checkout, and an ``opencode`` on PATH that is a shell script."""

    root: Path

    def __post_init__(self) -> None:
        self.home = self.root / "home"
        self.project = self.root / "project"
        self.config = self.home / ".config" / "opencode"
        self.plugins = self.config / "plugins"
        self.heard = self.root / "heard.jsonl"
        self.home.mkdir()
        (self.project / ".git").mkdir(parents=True)
        (self.project / ".git" / "HEAD").write_text("ref: refs/heads/main\n")
        program = self.root / "bin" / "opencode"
        program.parent.mkdir()
        program.write_text(STAND_IN_OPENCODE)
        program.chmod(0o755)
        self.env = {
            "HOME": str(self.home),
            "PATH": f"{program.parent}:/usr/bin:/bin",
            "BACKSTORY_EMBEDDER_PROVIDER": "none",
            "HEARD": str(self.heard),
            "STAND_IN_VERSION": "1.18.33",
        }

    def run(self, *arguments: str, cwd: Path | None = None, **env: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-m", "backstory", *arguments],
            cwd=cwd or self.project,
            env={**self.env, **env},
            capture_output=True,
            text=True,
            timeout=240,
        )

    def json(self, *arguments: str, **env: str) -> Any:
        done = self.run(*arguments, "--json", cwd=None, **env)
        assert done.stdout, done.stderr
        return json.loads(done.stdout)

    def checks(self, *arguments: str, **env: str) -> dict[str, Mapping[str, str]]:
        return {check["name"]: check for check in self.json("doctor", *arguments, **env)["checks"]}

    def use_bridge(self, command: list[str], folder: Path | None = None, **fields: object) -> None:
        """Let the installed sidecar start something else."""
        path = (folder or self.plugins) / "backstory.json"
        path.write_text(json.dumps({**json.loads(path.read_text()), "command": command, **fields}))


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    return Machine(tmp_path)


def test_installing_says_what_was_written_how_to_prove_it_and_what_the_first_start_does(machine: Machine) -> None:
    done = machine.run("install", "opencode")
    assert done.returncode == 0, done.stderr
    written, prove, first_start = done.stdout.splitlines()
    assert written == f"wrote {machine.plugins}/backstory.json, {machine.plugins}/backstory.js"
    assert "backstory doctor" in prove
    assert "npm" in first_start
    assert machine.run("install", "opencode").stdout.startswith("kept ")


def test_the_settings_of_opencode_are_not_touched(machine: Machine) -> None:
    machine.config.mkdir(parents=True)
    text = '{\n  // my own words\n  "plugin": ["opencode-other",],\n}\n'
    (machine.config / "opencode.jsonc").write_text(text)
    machine.run("install", "opencode")
    assert (machine.config / "opencode.jsonc").read_text() == text
    assert sorted(path.name for path in machine.config.iterdir()) == ["opencode.jsonc", "plugins"]


def test_a_dry_run_shows_everything_and_writes_nothing(machine: Machine) -> None:
    done = machine.run("install", "opencode", "--dry-run")
    assert f"would write {machine.plugins}/backstory.json" in done.stdout
    assert json.loads(done.stdout.partition("would hold:\n")[2])["command"][1:] == ["-m", "backstory", "bridge"]
    assert not machine.config.exists()
    told = machine.json("install", "opencode", "--print")
    assert told["dry_run"] is True
    assert {entry["action"] for entry in told["files"]} == {"create"}


def test_the_folders_that_are_set_at_install_time_go_into_the_sidecar(machine: Machine, tmp_path: Path) -> None:
    machine.run("install", "opencode", BACKSTORY_HOME=str(tmp_path / "elsewhere"))
    sidecar = json.loads((machine.plugins / "backstory.json").read_text())
    assert sidecar["env"] == {"BACKSTORY_HOME": str(tmp_path / "elsewhere")}
    assert sidecar["command"] == [sys.executable, "-m", "backstory", "bridge"]


@pytest.mark.parametrize(
    "arguments", [("opencode", "--project"), ("--project", "opencode"), ("opencode", "--project", ".")]
)
def test_a_project_installation_lies_at_the_root_of_the_checkout_with_a_word_of_caution(
    machine: Machine, arguments: tuple[str, ...]
) -> None:
    (machine.project / "src").mkdir()
    done = machine.run("install", *arguments, cwd=machine.project / "src")
    assert done.returncode == 0, done.stderr
    assert (machine.project / ".opencode" / "plugins" / "backstory.js").exists()
    assert not machine.config.exists()
    assert "version control" in done.stderr
    assert not (machine.project / ".gitignore").exists()


def test_a_second_installation_in_a_project_is_warned_about(machine: Machine) -> None:
    machine.run("install", "opencode")
    assert "more than once" in machine.run("install", "opencode", "--project").stderr
    assert "still installed" in machine.run("uninstall", "opencode").stderr


def test_a_foreign_file_stops_the_installation_with_its_own_exit_code(machine: Machine) -> None:
    machine.plugins.mkdir(parents=True)
    (machine.plugins / "backstory.js").write_text("export default {}")
    done = machine.run("install", "opencode")
    assert done.returncode == 11
    assert str(machine.plugins / "backstory.js") in done.stderr
    assert not (machine.plugins / "backstory.json").exists()


@pytest.mark.parametrize(
    "arguments", [("install",), ("install", "emacs"), ("install", "opencode", "--global", "--project")]
)
def test_a_wrong_use_is_a_usage_error(machine: Machine, arguments: tuple[str, ...]) -> None:
    done = machine.run(*arguments)
    assert done.returncode == 2
    assert "backstory: " in done.stderr


def test_without_a_home_the_error_says_what_to_set(machine: Machine) -> None:
    done = machine.run("install", "opencode", HOME="", BACKSTORY_HOME="/nonexistent")
    assert done.returncode == 11
    assert "HOME" in done.stderr
    assert machine.run("install", "opencode", "--project", HOME="", BACKSTORY_HOME="/nonexistent").returncode == 0


def test_uninstalling_removes_our_files_and_says_where_the_memories_are(machine: Machine) -> None:
    machine.run("install", "opencode")
    (machine.plugins / "other.js").write_text("export default {}")
    done = machine.run("uninstall", "opencode")
    assert done.returncode == 0
    assert [path.name for path in machine.plugins.iterdir()] == ["other.js"]
    assert done.stdout.startswith(f"removed {machine.plugins}/backstory.js, {machine.plugins}/backstory.json\n")
    assert "memories stay in" in done.stdout
    assert str(machine.home / ".local" / "share" / "backstory" / "backstory.db") in done.stdout
    again = machine.run("uninstall", "opencode")
    assert again.returncode == 0
    assert "not installed" in again.stdout


def test_uninstalling_names_the_store_that_the_installation_named(machine: Machine, tmp_path: Path) -> None:
    machine.run("install", "opencode", BACKSTORY_HOME=str(tmp_path / "elsewhere"))
    assert machine.json("uninstall", "opencode")["store"] == str(tmp_path / "elsewhere" / "backstory.db")


def test_uninstalling_works_although_a_setting_is_wrong(machine: Machine) -> None:
    machine.run("install", "opencode")
    assert machine.run("uninstall", "opencode", BACKSTORY_RECALL_LIMIT="many").returncode == 0
    assert not list(machine.plugins.iterdir())


def test_seeding_for_offline_use_warns_and_is_undone(machine: Machine) -> None:
    done = machine.run("install", "opencode", "--offline-seed")
    assert "no longer" in done.stderr
    assert (machine.config / "package-lock.json").exists()
    machine.run("uninstall", "opencode")
    assert not (machine.config / "package-lock.json").exists()
    assert not (machine.config / "node_modules").exists()


def test_doctor_without_an_installation_warns_and_succeeds(machine: Machine) -> None:
    done = machine.run("doctor")
    assert done.returncode == 0, done.stdout
    assert "warn  plugin: Backstory is not installed in OpenCode" in done.stdout
    assert "mend: `backstory install opencode`" in done.stdout
    assert "\x1b" not in done.stdout


def test_doctor_starts_the_bridge_like_the_plugin_but_away_from_the_store(machine: Machine) -> None:
    machine.run("install", "opencode")
    machine.use_bridge([sys.executable, "-c", STAND_IN_BRIDGE])
    checks = machine.checks()
    assert checks["bridge"]["state"] != "fail", checks
    (hello,) = map(json.loads, machine.heard.read_text().splitlines())
    assert hello["method"] == "hello"
    assert hello["params"]["protocol"] == 1
    assert hello["safe"] is True
    assert hello["cwd"] == str(machine.plugins)
    assert hello["home"] not in (None, str(machine.home))
    assert not Path(hello["home"]).exists()


@pytest.mark.parametrize(
    ("command", "words"),
    [
        (["/nonexistent/python"], "cannot be started"),
        ([sys.executable, "-c", "import sys; sys.exit('no module named backstory')"], "no module named backstory"),
        ([sys.executable, "-c", "import json; input(); print(json.dumps({'id': 1, 'error': {'code': 7}}))"], "error"),
        ([sys.executable, "-c", 'input(); print(\'{"id": 1, "result": {"protocol": 2}}\')'], "protocol 2"),
        ([], "no usable command"),
    ],
)
def test_doctor_says_why_the_bridge_does_not_answer(machine: Machine, command: list[str], words: str) -> None:
    machine.run("install", "opencode")
    machine.use_bridge(command)
    done = machine.run("doctor", "--json")
    assert done.returncode == 1
    checks = {check["name"]: check for check in json.loads(done.stdout)["checks"]}
    assert checks["bridge"]["state"] == "fail"
    assert words in checks["bridge"]["message"]
    assert checks["bridge"]["mend"]


def test_doctor_never_runs_a_command_that_came_with_a_project(machine: Machine) -> None:
    machine.run("install", "opencode", "--project")
    machine.use_bridge(["/bin/sh", "-c", f"touch {machine.root}/owned"], machine.project / ".opencode" / "plugins")
    checks = machine.checks()
    assert checks["bridge"]["state"] == "warn"
    assert not (machine.root / "owned").exists()


def test_doctor_tells_a_plugin_of_another_version(machine: Machine) -> None:
    machine.run("install", "opencode")
    with (machine.plugins / "backstory.js").open("a") as file:
        file.write("// edited\n")
    check = machine.checks()["plugin"]
    assert check["state"] == "warn"
    assert "edited" in check["message"]


def test_doctor_tells_settings_that_changed_since(machine: Machine) -> None:
    machine.run("install", "opencode")
    check = machine.checks(BACKSTORY_CONTEXT_DEADLINE_MS="2000")["plugin"]
    assert check["state"] == "warn"
    assert "deadlines" in check["message"]


def test_doctor_reads_the_note_of_the_last_load(machine: Machine) -> None:
    machine.run("install", "opencode")
    assert machine.checks()["load"]["state"] == "warn"
    folder = machine.home / ".local" / "share" / "backstory"
    folder.mkdir(parents=True)
    note = {"pid": 1, "plugin_version": __version__, "backstory_version": __version__, "directory": "/work"}
    file = folder / "opencode-handshake.json"
    file.write_text(json.dumps({**note, "time": "2999-01-01T00:00:00Z"}))
    check = machine.checks()["load"]
    assert check["state"] == "ok"
    assert "/work" in check["message"]
    file.write_text(json.dumps({**note, "time": "2999-01-01T00:00:00Z", "outdated": True}))
    check = machine.checks()["load"]
    assert (check["state"], check["mend"]) == ("warn", "restart OpenCode")
    assert "other tools" in check["message"]
    file.write_text(json.dumps({**note, "time": "2020-01-01T00:00:00Z"}))
    assert "before it was last installed" in machine.checks()["load"]["message"]
    file.write_text("[]")
    assert machine.checks()["load"]["state"] == "warn"


def test_doctor_tells_opencode_of_other_versions_apart(machine: Machine) -> None:
    assert machine.checks()["opencode"]["state"] == "ok"
    assert machine.checks(STAND_IN_VERSION="1.4.0")["opencode"]["state"] == "warn"
    assert "documentation" in machine.checks(STAND_IN_VERSION="2.0.20")["opencode"]["message"]
    assert machine.checks(STAND_IN_VERSION="gibberish")["opencode"]["state"] == "warn"
    assert "not found" in machine.checks(PATH="/usr/bin:/bin")["opencode"]["message"]


def test_a_probe_without_an_installation_fails(machine: Machine) -> None:
    done = machine.run("doctor", "--probe")
    assert done.returncode == 1
    assert "there is no plugin to load" in done.stdout


def test_a_probe_tells_why_opencode_ended_but_not_what_its_settings_hold(machine: Machine) -> None:
    machine.run("install", "opencode")
    says = 'Error: Config file is not valid\n--- Input ---\n{"apiKey": "hunter2"}'
    done = machine.run("doctor", "--probe", STAND_IN_SAYS=says)
    assert done.returncode == 1
    assert "OpenCode ended by itself: Error: Config file is not valid" in done.stdout
    assert "hunter2" not in done.stdout + done.stderr


def test_doctor_goes_no_further_with_settings_that_are_wrong(machine: Machine) -> None:
    done = machine.run("doctor", "--json", BACKSTORY_RECALL_LIMIT="many")
    assert done.returncode == 1
    told = json.loads(done.stdout)
    assert told["ok"] is False
    assert [check["name"] for check in told["checks"]] == ["package", "settings"]
    assert set(told["checks"][0]) == {"name", "state", "message", "mend"}


def test_doctor_names_the_tools_of_a_strategy_that_were_not_installed(machine: Machine) -> None:
    machine.run("install", "opencode")
    checks = machine.json("doctor", BACKSTORY_SESSION_STRATEGY="tree")["checks"]
    told = [(check["state"], check["message"]) for check in checks if check["name"] == "long sessions"]
    assert [state for state, _ in told] == ["ok", "warn"]
    assert "without search_memory_tree" in told[1][1]
    machine.run("install", "opencode", BACKSTORY_SESSION_STRATEGY="tree")
    checks = machine.json("doctor", BACKSTORY_SESSION_STRATEGY="tree")["checks"]
    assert [check["state"] for check in checks if check["name"] == "long sessions"] == ["ok"]
