"""Installing into the real OpenCode, proving that it loads, saying why it does not, and taking it out again."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from backstory.testing.opencode import OpenCode, wait_for
from backstory.testing.opencode_binary import OpenCodeMissing, find_opencode
from backstory.testing.scripted_model import ScriptedModel

pytestmark = pytest.mark.opencode

REFUSING = "http://127.0.0.1:9/"


@pytest.fixture(scope="module")
def binary() -> Path:
    try:
        return find_opencode()
    except OpenCodeMissing as missing:
        pytest.skip(str(missing))


@pytest.fixture(scope="module")
def model() -> Iterator[ScriptedModel]:
    with ScriptedModel() as model:
        yield model


class Installed:
    """A home with OpenCode and the command ``backstory``."""

    def __init__(self, root: Path, model: ScriptedModel, binary: Path) -> None:
        environ = {"BACKSTORY_EMBEDDER_PROVIDER": "none", "npm_config_registry": REFUSING}
        self.opencode = OpenCode(root, model.url, binary=binary, environ=environ)
        self.project = self.opencode.project()
        self.plugin = self.opencode.config_folder / "plugins" / "backstory.js"
        self.data = self.opencode.home / ".local" / "share" / "backstory"

    def backstory(self, *arguments: str, environ: Mapping[str, str] | None = None) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-m", "backstory", *arguments],
            cwd=self.project,
            env=self.opencode.environment(environ),
            capture_output=True,
            text=True,
            timeout=240,
        )

    def install(self, *arguments: str) -> None:
        done = self.backstory("install", "opencode", *arguments)
        assert done.returncode == 0, done.stderr

    def doctor(self, *arguments: str, environ: Mapping[str, str] | None = None) -> dict[str, Mapping[str, str]]:
        program = str(self.opencode.binary)
        done = self.backstory("doctor", "--json", "--opencode", program, *arguments, environ=environ)
        told = json.loads(done.stdout)
        assert told["ok"] is (done.returncode == 0)
        return {check["name"]: check for check in told["checks"]}


@pytest.fixture
def machine(tmp_path: Path, model: ScriptedModel, binary: Path) -> Installed:
    return Installed(tmp_path, model, binary)


def test_a_probe_proves_that_opencode_loads_what_was_installed_and_keeps_nothing(machine: Installed) -> None:
    machine.install()
    checks = machine.doctor("--probe")
    assert checks["load"]["state"] == "ok", checks
    assert checks["bridge"]["state"] != "fail"
    assert "1.18" in checks["opencode"]["message"]
    assert not machine.data.exists()
    assert not list((machine.opencode.home / ".local" / "share" / "opencode").glob("*.db"))


def test_after_one_prompt_doctor_knows_without_a_probe_that_the_plugin_was_loaded(machine: Installed) -> None:
    machine.install()
    assert machine.doctor()["load"]["state"] == "warn"
    run = machine.opencode.run("hello", cwd=machine.project)
    assert run.exit_code == 0, run.stderr
    assert wait_for((machine.data / "opencode-handshake.json").exists)
    check = machine.doctor()["load"]
    assert check["state"] == "ok"
    assert str(machine.project) in check["message"]


def test_tools_of_changed_settings_come_with_the_second_start_and_doctor_tells_in_between(
    machine: Installed, model: ScriptedModel
) -> None:
    machine.install()
    sidecar = machine.plugin.with_name("backstory.json")
    installed = sidecar.read_bytes()
    config = machine.opencode.home / ".config" / "backstory" / "config.toml"
    config.parent.mkdir()
    config.write_text('[session]\nstrategy = "tree"\n')
    assert machine.doctor("--probe")["plugin"]["state"] == "warn"
    assert sidecar.read_bytes() == installed, "doctor changes nothing"

    def start() -> list[str]:
        model.forget_requests()
        run = machine.opencode.run("hello", cwd=machine.project)
        assert run.exit_code == 0, run.stderr
        return model.requests("chat")[0].tool_names()

    assert "search_memory_tree" not in start()
    assert sidecar.read_bytes() != installed
    checks = machine.doctor()
    assert (checks["plugin"]["state"], checks["load"]["state"]) == ("ok", "warn")
    assert checks["load"]["mend"] == "restart OpenCode"
    assert "search_memory_tree" in start()
    assert machine.doctor()["load"]["state"] == "ok"


def test_a_project_installation_is_probed_in_the_project(machine: Installed) -> None:
    machine.install("--project", "--offline-seed")
    assert not machine.plugin.exists()
    checks = machine.doctor("--probe")
    assert checks["load"]["state"] == "ok", checks


def test_a_plugin_that_opencode_silently_drops_is_found_out(
    machine: Installed, monkeypatch: pytest.MonkeyPatch
) -> None:
    machine.install()
    machine.plugin.write_text('import missing from "a-package-that-is-not-there"\n' + machine.plugin.read_text())
    machine.plugin.write_text("// backstory:plugin 0.0.1\n" + machine.plugin.read_text())
    checks = _short_probe(machine, monkeypatch)
    assert checks["load"] == "fail"
    assert "could not load it" in checks["said"]


def test_a_switch_that_keeps_plugins_out_is_named(machine: Installed, monkeypatch: pytest.MonkeyPatch) -> None:
    machine.install()
    monkeypatch.setenv("OPENCODE_PURE", "1")
    checks = _short_probe(machine, monkeypatch)
    assert checks["load"] == "fail"
    assert "OPENCODE_PURE" in checks["configuration"]


def _short_probe(machine: Installed, monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    """The checks in this process, where the time to wait for a hello that never comes can be cut."""
    import os

    from backstory.config import load
    from backstory.entrypoints.opencode.doctor import Patient, check_opencode
    from backstory.entrypoints.opencode.sidecar import sidecar_for

    monkeypatch.setattr("backstory.entrypoints.opencode.probe.PROBE_TIMEOUT_S", 8.0)
    pure = {name: value for name, value in os.environ.items() if name == "OPENCODE_PURE"}
    env = machine.opencode.environment(pure)
    settings = load(env={**env, "BACKSTORY_HOME": str(machine.data)}, project_root=None).settings
    patient = Patient(
        env=env,
        directory=machine.project,
        settings=settings,
        wanted=sidecar_for(settings, env),
        program=machine.opencode.binary,
    )
    checks = {check.name: check for check in check_opencode(patient, probe=True)}
    told = checks.get("configuration")
    return {
        "load": checks["load"].state,
        "said": checks["load"].message,
        "configuration": told.message if told else "",
    }


def test_settings_that_opencode_cannot_read_are_blamed_and_not_shown(machine: Installed) -> None:
    machine.install()
    (machine.opencode.config_folder / "opencode.json").write_text('{"apiKey": "hunter2", ')
    done = machine.backstory("doctor", "--probe", "--opencode", str(machine.opencode.binary))
    assert done.returncode == 1
    assert "OpenCode ended by itself" in done.stdout
    assert "so OpenCode will not start" in done.stdout
    assert "hunter2" not in done.stdout + done.stderr


def test_an_offline_seed_spares_opencode_its_npm_run(machine: Installed) -> None:
    for name in ("node_modules", "package.json", "package-lock.json"):  # what the harness itself has seeded
        path = machine.opencode.config_folder / name
        shutil.rmtree(path) if path.is_dir() else path.unlink()
    machine.install("--offline-seed")
    checks = machine.doctor("--probe")
    assert checks["load"]["state"] == "ok", checks
    assert not (machine.opencode.home / ".npm").exists()
    machine.backstory("uninstall", "opencode")
    left = {path.name for path in machine.opencode.config_folder.rglob("*")}
    assert left <= {"plugins", ".gitignore"}  # OpenCode itself writes the latter


def test_after_uninstalling_opencode_lists_no_plugin(machine: Installed) -> None:
    machine.install()
    machine.backstory("uninstall", "opencode")
    done = subprocess.run(
        [str(machine.opencode.binary), "debug", "config"],
        cwd=machine.project,
        env=machine.opencode.environment(),
        capture_output=True,
        text=True,
        timeout=240,
    )
    assert json.loads(done.stdout).get("plugin", []) == []
