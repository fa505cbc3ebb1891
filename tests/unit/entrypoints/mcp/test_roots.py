"""Roots of clients: which folder of this machine they name, and which of several is the project."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from backstory.entrypoints.mcp.roots import MAX_ROOTS, folder_of, is_one_place, project_folder


@pytest.fixture
def places(tmp_path: Path) -> Path:
    for name in ("plain", "ferry", "with space", "hash#tag", "größe"):
        (tmp_path / name).mkdir()
    subprocess.run(["git", "init", "-q", str(tmp_path / "ferry")], check=True)
    (tmp_path / "ferry" / "docs").mkdir()
    (tmp_path / "a file").write_text("x")
    return tmp_path


@pytest.mark.parametrize(
    ("form", "name"),
    [
        ("file://{}/plain", "plain"),
        ("file://localhost{}/plain", "plain"),
        ("file:{}/plain", "plain"),
        ("FILE://{}/plain/", "plain"),
        ("file://{}/with%20space", "with space"),
        ("file://{}/with space", "with space"),
        ("file://{}/hash%23tag", "hash#tag"),
        ("file://{}/gr%C3%B6%C3%9Fe", "größe"),
    ],
)
def test_a_file_address_names_its_folder(places: Path, form: str, name: str) -> None:
    assert folder_of(form.format(places)) == places / name


@pytest.mark.parametrize(
    "form",
    [
        "file://{}/missing",
        "file://{}/a%20file",
        "file://elsewhere{}/plain",
        "https://example.invalid{}/plain",
        "vscode-remote://ssh{}/plain",
        "{}/plain",
        "",
        "file://{}/plain%00",
        "file://{}/" + "x" * 5000,
    ],
)
def test_what_is_no_folder_of_this_machine_is_passed_over(places: Path, form: str) -> None:
    assert folder_of(form.format(places)) is None


def test_of_several_roots_the_first_repository_is_the_project(places: Path) -> None:
    roots = [f"file://{places}/{name}" for name in ("missing", "plain", "ferry/docs", "with space")]
    assert project_folder(["vscode-remote://ssh/srv", *roots]) == places / "ferry" / "docs"


def test_without_a_repository_the_first_folder_is_the_project(places: Path) -> None:
    assert project_folder([f"file://{places}/with%20space", f"file://{places}/plain"]) == places / "with space"
    assert project_folder([]) is None


def test_the_root_of_all_files_and_a_home_are_no_project(places: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(places))
    assert not is_one_place(places)
    assert not is_one_place(Path("/"))
    assert is_one_place(places / "plain")
    assert project_folder(["file:///", f"file://{places}"]) is None
    (places / "plain" / "link").symlink_to(places)
    assert not is_one_place(places / "plain" / "link")


def test_a_home_that_is_a_repository_is_a_project(places: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(places / "ferry"))
    assert project_folder([f"file://{places}/ferry"]) == places / "ferry"


def test_only_so_many_roots_are_looked_at(places: Path) -> None:
    assert project_folder([f"file://{places}/missing"] * MAX_ROOTS + [f"file://{places}/ferry"]) is None
