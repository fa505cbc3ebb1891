"""The files in ``deploy/`` as far as they can be judged without Docker: their structure, and what it promises."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

DEPLOY = Path(__file__).resolve().parents[2] / "deploy"
SERVICES = ("postgres", "ollama")

# What Compose knows, as far as a server like these may want it; anything else is a typing error that it would refuse.
TOP = {"name", "services", "volumes", "networks", "configs", "secrets"}
OF_SERVICE = {
    "image", "restart", "user", "environment", "volumes", "ports", "healthcheck", "stop_grace_period", "shm_size",
    "read_only", "tmpfs", "cap_drop", "security_opt", "pids_limit", "logging", "profiles", "command", "depends_on",
    "mem_limit", "networks", "secrets",
}  # fmt: skip
OF_HEALTHCHECK = {"test", "interval", "timeout", "retries", "start_period", "start_interval", "disable"}
DURATION = re.compile(r"(\d+(h|m|s|ms))+")
REQUIRED = re.compile(r"\$\{[A-Z_]+:\?[^}]+\}")  # a variable without which Compose ends with these words


@pytest.fixture(scope="module")
def compose() -> Mapping[str, Any]:  # Any: YAML of any shape
    yaml = pytest.importorskip("yaml", reason="PyYAML is not installed")
    loaded: Mapping[str, Any] = yaml.safe_load((DEPLOY / "compose.yaml").read_text())
    return loaded


@pytest.fixture(params=SERVICES)
def service(request: pytest.FixtureRequest, compose: Mapping[str, Any]) -> Mapping[str, Any]:
    found: Mapping[str, Any] = compose["services"][request.param]
    return found


def test_compose_knows_every_key(compose: Mapping[str, Any]) -> None:
    assert set(compose) <= TOP
    assert set(compose["services"]) == set(SERVICES)
    for service in compose["services"].values():
        assert set(service) <= OF_SERVICE
        assert set(service["healthcheck"]) <= OF_HEALTHCHECK
        assert set(service["logging"]) == {"driver", "options"}


def test_nothing_but_this_machine_reaches_a_port(service: Mapping[str, Any]) -> None:
    assert service["ports"]
    for port in service["ports"]:
        assert re.fullmatch(r"127\.0\.0\.1:(\d+|\$\{[A-Z_]+:-\d+\}):\d+", port), port
    assert "network_mode" not in service


def test_a_server_that_does_not_answer_is_told(service: Mapping[str, Any]) -> None:
    check = service["healthcheck"]
    assert check["test"][0] == "CMD"
    assert all(isinstance(word, str) for word in check["test"])
    assert check["retries"] >= 3
    for name in ("interval", "timeout", "start_period"):
        assert DURATION.fullmatch(check[name])


def test_a_container_has_no_rights_that_it_does_not_need(service: Mapping[str, Any]) -> None:
    assert service["read_only"] is True
    assert service["cap_drop"] == ["ALL"]
    assert service["security_opt"] == ["no-new-privileges:true"]
    assert service["pids_limit"] > 0
    assert any(place.startswith("/tmp") for place in service["tmpfs"])
    assert "privileged" not in service
    assert "cap_add" not in service


def test_no_password_stands_in_a_file(compose: Mapping[str, Any]) -> None:
    environment = compose["services"]["postgres"]["environment"]
    passwords = {name: value for name, value in environment.items() if "PASSWORD" in name or "SECRET" in name}
    assert passwords
    assert all(REQUIRED.fullmatch(value) for value in passwords.values())
    assert "trust" not in environment["POSTGRES_INITDB_ARGS"]
    for script in DEPLOY.glob("*.sql"):
        assert not re.search(r"password\s+'", script.read_text(), re.IGNORECASE), script.name


def test_data_is_on_named_volumes_and_files_from_here_cannot_be_written(compose: Mapping[str, Any]) -> None:
    used = set()
    for service in compose["services"].values():
        for source, _, rest in (volume.partition(":") for volume in service["volumes"]):
            if source.startswith("."):
                assert (DEPLOY / source).is_file()
                assert rest.endswith(":ro")
            else:
                used.add(source)
    assert used == set(compose["volumes"])


def test_roles_are_made_before_they_get_passwords(compose: Mapping[str, Any]) -> None:
    scripts = [volume.split(":")[1] for volume in compose["services"]["postgres"]["volumes"] if volume.startswith("./")]
    assert scripts == sorted(scripts)
    assert [script.rpartition("-")[2] for script in scripts] == ["roles.sql", "passwords.sql"]
