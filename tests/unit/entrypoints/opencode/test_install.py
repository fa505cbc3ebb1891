"""What is written where, what is left alone, and what an installation looks like afterwards."""

from __future__ import annotations

import json
import os
import stat
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

from backstory.__about__ import __version__
from backstory.config import Settings
from backstory.entrypoints.opencode.install import (
    MARKER,
    FileState,
    carry_out,
    differs,
    installations,
    packaged_plugin,
    plan_install,
    plan_uninstall,
)
from backstory.entrypoints.opencode.locations import Place, global_place, places, project_place
from backstory.entrypoints.opencode.offline import SEED_FILES, is_seeded
from backstory.entrypoints.opencode.sidecar import Sidecar, is_short_lived, sidecar_for
from backstory.errors import ConfigError, InstallError

TOOL = {"name": "memory_recall", "description": "Grüße", "parameters": {"type": "object"}}
SIDECAR = Sidecar(
    command=("/opt/python", "-m", "backstory", "bridge"), env={}, manifest=[TOOL], deadlines_ms={"chat.message": 800}
)
needs_permissions = pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(scope="global", config=tmp_path / "config" / "opencode")


def install(place: Place, *, offline_seed: bool = False) -> None:
    carry_out(plan_install(place, SIDECAR, offline_seed=offline_seed))


def contents(folder: Path) -> Mapping[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


def test_installing_writes_the_plugin_and_its_sidecar_and_nothing_else(place: Place) -> None:
    install(place)
    assert set(contents(place.config)) == {"plugins/backstory.js", "plugins/backstory.json"}
    assert (place.plugins / "backstory.js").read_bytes() == packaged_plugin()
    sidecar = json.loads((place.plugins / "backstory.json").read_text())
    assert sidecar["command"] == ["/opt/python", "-m", "backstory", "bridge"]
    assert sidecar["manifest"] == [TOOL]
    assert sidecar["version"] == __version__


def test_the_installed_plugin_is_the_packaged_one_under_a_marking_line() -> None:
    first, _, rest = packaged_plugin().partition(b"\n")
    assert first.decode().startswith(f"{MARKER}{__version__}")
    assert b"export default" in rest


def test_files_are_readable_by_all_and_writable_by_their_owner(place: Place) -> None:
    old = os.umask(0o077)
    try:
        install(place)
    finally:
        os.umask(old)
    modes = {stat.S_IMODE(path.stat().st_mode) for path in place.plugins.iterdir()}
    assert modes == {0o644}


def test_installing_again_changes_nothing(place: Place) -> None:
    install(place)
    before = (place.plugins / "backstory.js").stat()
    plan = plan_install(place, SIDECAR)
    carry_out(plan)
    assert {change.action for change in plan.changes} == {"keep"}
    assert (place.plugins / "backstory.js").stat().st_mtime_ns == before.st_mtime_ns


def test_an_older_version_of_ours_is_renewed(place: Place) -> None:
    place.plugins.mkdir(parents=True)
    (place.plugins / "backstory.js").write_text(f"{MARKER}0.0.1, as it was then\nexport default 1\n")
    (place.plugins / "backstory.json").write_text('{"backstory": 1, "version": "0.0.1"}')
    plan = plan_install(place, SIDECAR)
    carry_out(plan)
    assert {change.action for change in plan.changes} == {"update"}
    assert (place.plugins / "backstory.js").read_bytes() == packaged_plugin()


def test_an_earlier_installation_in_the_other_plugin_folder_is_removed(place: Place) -> None:
    other = place.config / "plugin"
    other.mkdir(parents=True)
    (other / "backstory.js").write_bytes(packaged_plugin())
    (other / "backstory.json").write_bytes(SIDECAR.content())
    (other / "mine.js").write_text("export default {}")
    install(place)
    assert contents(other) == {"mine.js": b"export default {}"}


@pytest.mark.parametrize("name", ["backstory.js", "backstory.json"])
@pytest.mark.parametrize(
    "content", [b"", b"export default {}\n", b'{"command": ["rm"]}', b"[]", b"\xff\xfe", b"}\n", b"[" * 100_000]
)
def test_a_foreign_file_with_our_name_is_never_replaced(place: Place, name: str, content: bytes) -> None:
    place.plugins.mkdir(parents=True)
    (place.plugins / name).write_bytes(content)
    with pytest.raises(InstallError, match=name):
        install(place)
    assert contents(place.config) == {f"plugins/{name}": content}


@pytest.mark.parametrize("kind", ["folder", "pipe", "dangling link"])
def test_what_is_no_file_but_has_our_name_is_left_alone(place: Place, kind: str) -> None:
    place.plugins.mkdir(parents=True)
    path = place.plugins / "backstory.js"
    if kind == "folder":
        path.mkdir()
    elif kind == "pipe":
        os.mkfifo(path)
    else:
        path.symlink_to("nowhere")
    with pytest.raises(InstallError, match=r"backstory\.js"):
        install(place)
    assert path.is_symlink() or path.exists()
    assert plan_uninstall(place).left == (path,)


def test_a_link_to_the_packaged_file_is_replaced_and_its_target_left_alone(place: Place, tmp_path: Path) -> None:
    target = tmp_path / "elsewhere.js"
    target.write_bytes(packaged_plugin())
    place.plugins.mkdir(parents=True)
    (place.plugins / "backstory.js").symlink_to(target)
    carry_out(plan_uninstall(place))
    assert target.read_bytes() == packaged_plugin()
    assert not (place.plugins / "backstory.js").is_symlink()


def test_a_plugins_folder_that_is_a_link_of_the_user_is_followed(place: Place, tmp_path: Path) -> None:
    dotfiles = tmp_path / "dotfiles"
    dotfiles.mkdir()
    place.config.mkdir(parents=True)
    place.plugins.symlink_to(dotfiles)
    install(place)
    assert set(contents(dotfiles)) == {"backstory.js", "backstory.json"}


def test_a_plugins_folder_that_is_no_folder_is_an_error_with_its_path(place: Place) -> None:
    place.config.mkdir(parents=True)
    place.plugins.symlink_to("nowhere")
    with pytest.raises(InstallError, match=str(place.plugins)):
        install(place)
    place.plugins.unlink()
    place.plugins.write_text("a file")
    with pytest.raises(InstallError, match=str(place.plugins)):
        install(place)


@pytest.mark.parametrize("link", [".opencode", ".opencode/plugins"])
def test_a_project_cannot_send_the_installation_out_of_itself(tmp_path: Path, link: str) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (tmp_path / "project" / link).parent.mkdir(parents=True)
    (tmp_path / "project" / link).symlink_to(outside)
    with pytest.raises(InstallError, match="out of the project"):
        install(project_place(tmp_path / "project"))
    assert not contents(outside)


@needs_permissions
def test_a_read_only_folder_is_an_error_with_the_path_and_leaves_no_litter(place: Place) -> None:
    place.plugins.mkdir(parents=True)
    place.plugins.chmod(0o555)
    with pytest.raises(InstallError, match=str(place.plugins)):
        install(place)
    place.plugins.chmod(0o755)
    assert not contents(place.config)


def test_a_path_through_a_file_is_an_error_with_the_path(tmp_path: Path) -> None:
    (tmp_path / "config").write_text("not a folder")
    with pytest.raises(InstallError, match=str(tmp_path)):
        install(Place(scope="global", config=tmp_path / "config" / "opencode"))


def test_uninstalling_leaves_everything_else_byte_for_byte(place: Place) -> None:
    place.plugins.mkdir(parents=True)
    (place.config / "opencode.jsonc").write_text('{ // mine\n "plugin": ["x",], }')
    (place.plugins / "other.js").write_text("export default {}")
    before = contents(place.config)
    install(place)
    plan = plan_uninstall(place)
    carry_out(plan)
    assert contents(place.config) == before
    assert [path.name for path in plan.paths("remove")] == ["backstory.js", "backstory.json"]
    assert not plan_uninstall(place).changes


def test_uninstalling_leaves_foreign_files_with_our_names_and_says_so(place: Place) -> None:
    place.plugins.mkdir(parents=True)
    (place.plugins / "backstory.js").write_text("export default {}")
    plan = plan_uninstall(place)
    carry_out(plan)
    assert plan.left == (place.plugins / "backstory.js",)
    assert (place.plugins / "backstory.js").exists()


def test_seeding_for_offline_use_is_done_only_when_asked_for_and_undone_by_uninstalling(place: Place) -> None:
    install(place)
    assert not is_seeded(place.config)
    install(place, offline_seed=True)
    assert is_seeded(place.config)
    assert {change.action for change in plan_install(place, SIDECAR, offline_seed=True).changes} == {"keep"}
    carry_out(plan_uninstall(place))
    assert not contents(place.config)
    assert not (place.config / "node_modules").exists()


def test_seeding_never_touches_what_npm_or_the_user_has_made(place: Place) -> None:
    place.config.mkdir(parents=True)
    (place.config / "package.json").write_text('{"dependencies": {"left-pad": "1"}}')
    with pytest.raises(InstallError, match=r"package\.json"):
        install(place, offline_seed=True)
    assert contents(place.config) == {"package.json": b'{"dependencies": {"left-pad": "1"}}'}


def test_seeds_that_npm_has_since_taken_over_stay_when_uninstalling(place: Place) -> None:
    install(place, offline_seed=True)
    (place.config / "package-lock.json").write_text('{"lockfileVersion": 3, "packages": {}}')
    carry_out(plan_uninstall(place))
    assert set(contents(place.config)) == set(SEED_FILES)


@pytest.mark.parametrize(
    "lock", ["", "[]", '{"packages": []}', '{"packages": {"": 1}}', "{", '{"packages": {"": {"dependencies": []}}}']
)
def test_a_strange_lock_file_does_not_count_as_seeded(place: Place, lock: str) -> None:
    (place.config / "node_modules").mkdir(parents=True)
    (place.config / "package-lock.json").write_text(lock)
    assert not is_seeded(place.config)


def test_the_global_folder_follows_xdg_and_home(tmp_path: Path) -> None:
    assert global_place({"HOME": "/home/ann"}).plugins == Path("/home/ann/.config/opencode/plugins")
    assert global_place({"HOME": "/home/ann", "XDG_CONFIG_HOME": "/etc/ann"}).plugins == Path(
        "/etc/ann/opencode/plugins"
    )
    assert global_place({"HOME": "/home/ann", "OPENCODE_CONFIG_DIR": "/x"}).config == Path("/home/ann/.config/opencode")


@pytest.mark.parametrize("env", [{}, {"HOME": ""}, {"HOME": "ann"}, {"HOME": "/home/ann", "XDG_CONFIG_HOME": "cfg"}])
def test_without_a_usable_home_the_error_names_the_variable(env: dict[str, str]) -> None:
    with pytest.raises(InstallError, match="HOME"):
        global_place(env)


def test_a_project_is_installed_into_at_the_root_of_the_checkout(tmp_path: Path) -> None:
    (tmp_path / ".git").mkdir()
    (tmp_path / ".git" / "HEAD").write_text("ref: refs/heads/main\n")
    (tmp_path / "src" / "deep").mkdir(parents=True)
    assert project_place(tmp_path / "src" / "deep").plugins == tmp_path / ".opencode" / "plugins"


def test_installations_are_found_wherever_opencode_would_look(tmp_path: Path) -> None:
    project = tmp_path / "project"
    (project / ".git").mkdir(parents=True)
    (project / ".git" / "HEAD").write_text("ref: refs/heads/main\n")
    env = {"HOME": str(tmp_path), "OPENCODE_CONFIG_DIR": str(tmp_path / "extra")}
    for config in (tmp_path / ".config/opencode", tmp_path / ".opencode", tmp_path / "extra", project / ".opencode"):
        install(Place(scope="global", config=config))
    found = installations(places(env, project))
    assert len(found) == 4
    assert found[0].folder == tmp_path / ".config" / "opencode" / "plugins"
    assert [installation.place.scope for installation in found] == ["global", "global", "global", "project"]
    assert {(installation.plugin, installation.sidecar) for installation in found} == {
        (FileState.CURRENT, FileState.CURRENT)
    }


def test_an_installation_says_whether_it_is_current_stale_foreign_or_incomplete(place: Place) -> None:
    install(place)
    plugin, sidecar = place.plugins / "backstory.js", place.plugins / "backstory.json"
    plugin.write_bytes(plugin.read_bytes() + b"// edited\n")
    sidecar.unlink()
    found = installations([place])[0]
    assert (found.plugin, found.sidecar, found.is_ours) == (FileState.STALE, FileState.MISSING, True)
    plugin.write_text("export default {}")
    sidecar.write_text('{"backstory": 1, "version": "0.0.1", "command": "sh -c evil", "env": []}')
    found = installations([place])[0]
    assert (found.plugin, found.sidecar, found.is_ours) == (FileState.FOREIGN, FileState.STALE, False)
    assert (found.version, found.command, found.env) == ("0.0.1", (), {})


def test_a_sidecar_of_other_settings_is_told_by_what_differs(place: Place) -> None:
    install(place)
    found = installations([place])[0]
    assert differs(found, SIDECAR) == []
    other = Sidecar(command=("/other",), env={"BACKSTORY_HOME": "/x"}, manifest=[], deadlines_ms={"chat.message": 800})
    assert differs(found, other) == ["tools", "folders"]


def test_the_sidecar_starts_this_interpreter_and_carries_the_settings(tmp_path: Path) -> None:
    sidecar = sidecar_for(Settings(), {"BACKSTORY_HOME": str(tmp_path), "BACKSTORY_CONFIG": "", "PATH": "/bin"})
    assert sidecar.command == (sys.executable, "-m", "backstory", "bridge")
    assert sidecar.env == {"BACKSTORY_HOME": str(tmp_path)}
    assert sidecar.deadlines_ms == {"chat.message": Settings().context.deadline_ms}
    assert {tool["name"] for tool in sidecar.manifest} >= {"memory_remember", "memory_recall"}
    assert sidecar_for(Settings(), {}).env == {}


def test_an_impossible_folder_in_the_environment_is_refused() -> None:
    with pytest.raises(ConfigError, match="BACKSTORY_HOME"):
        sidecar_for(Settings(), {"BACKSTORY_HOME": "relative"})


def test_an_interpreter_path_that_is_not_text_is_refused() -> None:
    with pytest.raises(InstallError, match="UTF-8"):
        Sidecar(command=("/opt/\udcff/python",), env={}, manifest=[], deadlines_ms={}).content()


def test_an_interpreter_in_a_cache_or_a_temporary_folder_is_short_lived() -> None:
    assert is_short_lived("/home/ann/.cache/uv/archive-v0/x/bin/python")
    assert is_short_lived("/tmp/venv/bin/python")
    assert not is_short_lived("/home/ann/.local/pipx/venvs/backstory/bin/python")
