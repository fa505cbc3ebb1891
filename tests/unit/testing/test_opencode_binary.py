"""Finding and installing the OpenCode program, with small stand-ins for the binary and for npm."""

from __future__ import annotations

from pathlib import Path

import pytest

from backstory.testing.opencode_binary import OpenCodeMissing, binary_below, find_opencode, install_opencode

REAL_BYTES = 1_100_000


def put(path: Path, *, size: int = REAL_BYTES) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(b"\0" * size)
    path.chmod(0o755)
    return path


def put_npm(folder: Path, script: str) -> Path:
    folder.mkdir(exist_ok=True)
    npm = folder / "npm"
    npm.write_text(f"#!/bin/sh\n{script}\n")
    npm.chmod(0o755)
    return folder


def test_the_named_binary_wins_over_the_prefix(tmp_path: Path) -> None:
    named = put(tmp_path / "named")
    put(tmp_path / "node_modules" / "opencode-ai" / "bin" / "opencode.exe")
    assert find_opencode({"BACKSTORY_OPENCODE": str(named), "OPENCODE_PREFIX": str(tmp_path)}) == named


def test_the_installed_binary_is_found_below_the_prefix(tmp_path: Path) -> None:
    installed = put(tmp_path / "node_modules" / "opencode-ai" / "bin" / "opencode.exe")
    put(tmp_path / "node_modules" / "opencode-linux-x64" / "bin" / "opencode")
    assert find_opencode({"OPENCODE_PREFIX": str(tmp_path)}) == installed


def test_the_platform_package_serves_where_npm_left_a_placeholder(tmp_path: Path) -> None:
    modules = tmp_path / "node_modules"
    put(modules / "opencode-ai" / "bin" / "opencode.exe", size=200)
    put(modules / "opencode-linux-x64-baseline" / "bin" / "opencode")
    platform = put(modules / "opencode-linux-x64" / "bin" / "opencode")
    assert binary_below(tmp_path) == platform


def test_a_variable_that_leads_nowhere_is_said_rather_than_passed_over(tmp_path: Path) -> None:
    with pytest.raises(OpenCodeMissing, match=r"BACKSTORY_OPENCODE names .*nothing"):
        find_opencode({"BACKSTORY_OPENCODE": str(tmp_path / "nothing")})
    with pytest.raises(OpenCodeMissing, match="OPENCODE_PREFIX is"):
        find_opencode({"OPENCODE_PREFIX": str(tmp_path)})


def test_a_missing_npm_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(OpenCodeMissing, match=r"npm was not found; install Node\.js"):
        install_opencode(tmp_path / "cache")


def test_why_npm_failed_is_said_in_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    script = "echo 'npm error code ENOTFOUND' >&2; echo 'npm error network' >&2; exit 1"
    monkeypatch.setenv("PATH", str(put_npm(tmp_path / "bin", script)), prepend=":")
    with pytest.raises(OpenCodeMissing, match=r"registry reachable\?\): code ENOTFOUND; network$"):
        install_opencode(tmp_path / "cache")


def test_an_installation_is_made_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    target = tmp_path / "cache" / "node_modules" / "opencode-linux-x64" / "bin" / "opencode"
    script = f'mkdir -p "{target.parent}" && head -c {REAL_BYTES} /dev/zero > "{target}" && chmod +x "{target}"'
    monkeypatch.setenv("PATH", str(put_npm(tmp_path / "bin", script)), prepend=":")
    assert install_opencode(tmp_path / "cache") == target
    put_npm(tmp_path / "bin", "exit 1")
    assert install_opencode(tmp_path / "cache") == target


def test_an_installation_that_brings_no_program_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(put_npm(tmp_path / "bin", "exit 0")), prepend=":")
    with pytest.raises(OpenCodeMissing, match="no program for this machine"):
        install_opencode(tmp_path / "cache")
