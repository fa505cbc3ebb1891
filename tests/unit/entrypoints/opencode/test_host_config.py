"""What in OpenCode's settings gets in the plugin's way, and that nothing is said when nothing does."""

from __future__ import annotations

from pathlib import Path

import pytest

from backstory.entrypoints.opencode.host_config import obstacles
from backstory.entrypoints.opencode.install import carry_out, packaged_plugin, plan_install
from backstory.entrypoints.opencode.locations import Place, global_place, project_place
from backstory.entrypoints.opencode.sidecar import Sidecar

SIDECAR = Sidecar(command=("/opt/python",), env={}, manifest=[], deadlines_ms={})


class User:
    """A home with a global installation, and a project that is a checkout."""

    def __init__(self, root: Path) -> None:
        self.env = {"HOME": str(root / "home")}
        self.project = root / "project"
        (self.project / ".git").mkdir(parents=True)
        (self.project / ".git" / "HEAD").write_text("ref: refs/heads/main\n")
        self.config = global_place(self.env).config
        self.install(global_place(self.env))

    def install(self, place: Place) -> None:
        carry_out(plan_install(place, SIDECAR))

    def obstacles(self, **env: str) -> list[str]:
        return obstacles({**self.env, **env}, self.project)


@pytest.fixture
def user(tmp_path: Path) -> User:
    return User(tmp_path)


def test_an_ordinary_configuration_with_other_plugins_is_no_obstacle(user: User) -> None:
    text = '{ // mine\n "plugin": ["opencode-other", ["./own.js", {"a": 1}], 7, {}, []], "plugins": "x", }'
    (user.config / "opencode.jsonc").write_text(text)
    (user.project / "opencode.json").write_text("[]")
    assert user.obstacles() == []


@pytest.mark.parametrize(
    "entry",
    ['"./plugins/backstory.js"', '["./plugins/backstory.js", {"x": 1}]', '"file://{config}/plugins/backstory.js"'],
)
def test_an_entry_for_our_file_is_not_needed(user: User, entry: str) -> None:
    (user.config / "opencode.json").write_text(f'{{"plugin": [{entry.replace("{config}", str(user.config))}]}}')
    (told,) = user.obstacles()
    assert str(user.config / "opencode.json") in told
    assert "finds by itself" in told


def test_an_entry_for_a_copy_under_another_name_is_told(user: User) -> None:
    (user.project / "copy.js").write_bytes(packaged_plugin())
    (user.project / "opencode.json").write_text('{"plugin": ["./copy.js"]}')
    (told,) = user.obstacles()
    assert "'./copy.js'" in told


def test_an_npm_package_of_our_name_is_not_ours(user: User) -> None:
    (user.config / "opencode.json").write_text('{"plugin": ["backstory@latest"]}')
    (told,) = user.obstacles()
    assert "npm package" in told


def test_a_configuration_that_cannot_be_parsed_is_told_without_quoting_it(user: User) -> None:
    (user.config / "opencode.json").write_text('{"apiKey": "hunter2", oops')
    (user.config / "config.json").write_bytes(b"\xff\xfe")
    told = user.obstacles()
    assert len(told) == 2
    assert all("will not start" in line and "hunter2" not in line for line in told)


def test_a_configuration_that_is_a_folder_is_told(user: User) -> None:
    (user.project / "opencode.json").mkdir()
    (told,) = user.obstacles()
    assert "cannot be read" in told


def test_entries_that_no_path_can_be_are_passed_over(user: User) -> None:
    entries = r'["./a\u0000b", "file://[", "file:", "./", "", "/", "./%s", "./\ud800.js"]' % ("x" * 5_000)
    (user.project / "opencode.json").write_text(f'{{"plugin": {entries}}}')
    assert user.obstacles() == []


def test_two_installations_are_told_once(user: User) -> None:
    user.install(project_place(user.project))
    (told,) = user.obstacles()
    assert "more than once" in told
    assert str(user.project) in told


def test_a_copy_beside_the_installed_file_is_told(user: User) -> None:
    (user.config / "plugins" / "backstory-old.js").write_bytes(packaged_plugin())
    (told,) = user.obstacles()
    assert "backstory-old.js" in told


def test_switches_in_the_environment_that_keep_plugins_out_are_told(user: User) -> None:
    assert "OPENCODE_PURE" in user.obstacles(OPENCODE_PURE="1")[0]
    assert user.obstacles(OPENCODE_PURE="0") == []
    assert user.obstacles(OPENCODE_DISABLE_PROJECT_CONFIG="1") == []


def test_a_project_installation_alone_is_lost_where_project_settings_are_off(tmp_path: Path) -> None:
    user = User(tmp_path)
    for path in user.config.rglob("backstory.*"):
        path.unlink()
    user.install(project_place(user.project))
    assert "OPENCODE_DISABLE_PROJECT_CONFIG" in user.obstacles(OPENCODE_DISABLE_PROJECT_CONFIG="true")[0]


def test_a_settings_file_named_in_the_environment_is_read_too(user: User, tmp_path: Path) -> None:
    (tmp_path / "named.json").write_text("{")
    (told,) = user.obstacles(OPENCODE_CONFIG=str(tmp_path / "named.json"))
    assert "named.json" in told


def test_without_a_home_only_the_project_is_looked_at(user: User) -> None:
    (user.project / "opencode.json").write_text("{")
    assert len(obstacles({}, user.project)) == 1
