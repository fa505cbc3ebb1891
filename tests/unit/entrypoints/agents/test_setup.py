"""Setting Backstory up in agents: what is written where, what is left alone, and how it goes again."""

from __future__ import annotations

import json
import stat
import tomllib
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

import pytest

from backstory.domain.ids import SessionId
from backstory.entrypoints.agents.calls import Event, HookCall, made_id
from backstory.entrypoints.agents.doctor import check_agents
from backstory.entrypoints.agents.hosts import AGENTS, Entry, Launch, Surroundings, is_our_hook, is_ours
from backstory.entrypoints.agents.last_calls import last_call, note_call
from backstory.entrypoints.agents.setup import backup_of, carry_out, is_set_up, plan_removal, plan_setup
from backstory.errors import InstallError

START = Launch(python="/opt/my python/bin/python", env={"BACKSTORY_HOME": "/data/o'clock"})
FILES = {
    "claude-code": [".claude/settings.json", ".claude.json"],
    "cursor": [".cursor/mcp.json"],
    "codex": [".codex/config.toml"],
    "vscode": [".config/Code/User/mcp.json"],
    "windsurf": [".codeium/windsurf/mcp_config.json"],
    "gemini": [".gemini/settings.json"],
    "zed": [".config/zed/settings.json"],
    "claude-desktop": [".config/Claude/claude_desktop_config.json"],
}
IN_PROJECTS = {
    "claude-code": [".claude/settings.local.json", ".mcp.json"],
    "cursor": [".cursor/mcp.json"],
    "codex": [".codex/config.toml"],
    "vscode": [".vscode/mcp.json"],
    "gemini": [".gemini/settings.json"],
}


def around(home: Path, *, root: Path | None = None, platform: str = "linux", **env: str) -> Surroundings:
    return Surroundings(env={"HOME": str(home), **env}, platform=platform, root=root)


def entries(agent: str, home: Path, *, root: Path | None = None, start: Launch = START) -> Sequence[Entry]:
    return AGENTS[agent].entries(around(home, root=root), start)


def set_up(agent: str, home: Path, *, force: bool = False) -> None:
    carry_out(plan_setup(entries(agent, home), root=None, force=force), backups=home / "backups")


def take_out(agent: str, home: Path) -> None:
    carry_out(plan_removal(entries(agent, home), root=None), backups=home / "backups")


@pytest.mark.parametrize("agent", AGENTS)
def test_each_agent_gets_its_documented_files_and_keeps_nothing_of_ours(agent: str, tmp_path: Path) -> None:
    set_up(agent, tmp_path)
    written = sorted(path.relative_to(tmp_path).as_posix() for path in tmp_path.rglob("*") if path.is_file())
    assert written == sorted(FILES[agent])
    assert is_set_up(entries(agent, tmp_path))
    assert [edit.action for edit in plan_setup(entries(agent, tmp_path), root=None).edits] == ["keep"] * len(written)
    take_out(agent, tmp_path)
    assert [path for path in tmp_path.rglob("*") if path.is_file()] == []


@pytest.mark.parametrize("agent", IN_PROJECTS)
def test_a_project_gets_files_of_its_own(agent: str, tmp_path: Path) -> None:
    planned = plan_setup(entries(agent, tmp_path / "home", root=tmp_path), root=tmp_path)
    assert [edit.path.relative_to(tmp_path).as_posix() for edit in planned.edits] == IN_PROJECTS[agent]


def test_the_other_agents_have_no_projects() -> None:
    assert {name for name, host in AGENTS.items() if not host.in_projects} == set(FILES) - set(IN_PROJECTS)


def test_variables_and_platforms_move_the_files(tmp_path: Path) -> None:
    claude = AGENTS["claude-code"].entries(around(tmp_path, CLAUDE_CONFIG_DIR="/c"), START)
    assert {entry.file for entry in claude} == {Path("/c/settings.json"), Path("/c/.claude.json")}
    assert AGENTS["codex"].entries(around(tmp_path, CODEX_HOME="/x"), START)[0].file == Path("/x/config.toml")
    desktop = AGENTS["claude-desktop"].entries(around(tmp_path, platform="darwin"), START)[0].file
    assert desktop == tmp_path / "Library/Application Support/Claude/claude_desktop_config.json"
    with pytest.raises(InstallError, match="HOME"):
        AGENTS["cursor"].entries(Surroundings(env={}, platform="linux"), START)


def test_claude_code_gets_a_hook_for_each_event_and_a_server(tmp_path: Path) -> None:
    set_up("claude-code", tmp_path)
    hooks = json.loads((tmp_path / ".claude/settings.json").read_text())["hooks"]
    assert set(hooks) == {"UserPromptSubmit", "SessionStart", "Stop", "PreCompact", "SessionEnd"}
    command = hooks["UserPromptSubmit"][0]["hooks"][0]["command"]
    assert command == (
        """env 'BACKSTORY_HOME=/data/o'"'"'clock' '/opt/my python/bin/python' -P -m backstory hook prompt"""
        " --agent claude-code"
    )
    server = json.loads((tmp_path / ".claude.json").read_text())["mcpServers"]["backstory"]
    assert server["args"] == ["-P", "-m", "backstory", "mcp"]
    assert server["env"] == START.env


def test_hooks_of_others_stay_where_they_are_and_ours_are_renewed(tmp_path: Path) -> None:
    settings = tmp_path / ".claude" / "settings.json"
    settings.parent.mkdir()
    old = Launch(python="/old/python", env={}).hook("stop", "claude-code")
    before = {
        "model": "x",
        "hooks": {
            "Stop": [
                {"matcher": "", "hooks": [{"type": "command", "command": "say done"}]},
                {"hooks": [{"type": "command", "command": old}]},
                {"hooks": [{"type": "command", "command": "say"}, {"type": "command", "command": old}]},
            ],
            "PreToolUse": [{"matcher": "Bash", "hooks": []}],
        },
    }
    settings.write_text(json.dumps(before, indent=4))
    set_up("claude-code", tmp_path)
    after = json.loads(settings.read_text())
    assert [is_our_hook(group) for group in after["hooks"]["Stop"]] == [False, False, True]
    assert after["hooks"]["PreToolUse"] == before["hooks"]["PreToolUse"]  # type: ignore[index]  # of this very shape
    take_out("claude-code", tmp_path)
    left = json.loads(settings.read_text())
    del before["hooks"]["Stop"][1]  # type: ignore[index]
    assert left == before


def test_an_entry_of_our_name_that_is_not_ours_stays_unless_forced(tmp_path: Path) -> None:
    file = tmp_path / ".cursor" / "mcp.json"
    file.parent.mkdir()
    file.write_text('{"mcpServers": {"backstory": {"command": "npx", "env": {"KEY": "secret"}}}}')
    with pytest.raises(InstallError, match="--force"):
        set_up("cursor", tmp_path)
    assert plan_removal(entries("cursor", tmp_path), root=None).left == (f"{file}: mcpServers.backstory",)
    take_out("cursor", tmp_path)
    assert "npx" in file.read_text()
    forced = plan_setup(entries("cursor", tmp_path), root=None, force=True)
    assert "secret" not in str(forced.edits[0].lines)
    set_up("cursor", tmp_path, force=True)
    assert is_ours(json.loads(file.read_text())["mcpServers"]["backstory"])


def test_what_is_shown_holds_nothing_of_others(tmp_path: Path) -> None:
    file = tmp_path / ".cursor" / "mcp.json"
    file.parent.mkdir()
    file.write_text('{"mcpServers": {"a": {"env": {"KEY": "secret"}}}}')
    (edit,) = plan_setup(entries("cursor", tmp_path), root=None).edits
    assert edit.action == "update"
    assert [line[:30] for line in edit.lines] == ['+ mcpServers.backstory: {"comm']


@pytest.mark.parametrize(
    ("agent", "file", "content"),
    [
        ("cursor", ".cursor/mcp.json", b'{"mcpServers": '),
        ("cursor", ".cursor/mcp.json", b"[]"),
        ("cursor", ".cursor/mcp.json", b'{"a": "\xff"}'),
        ("cursor", ".cursor/mcp.json", '{"a": 1}'.encode("utf-16")),
        ("cursor", ".cursor/mcp.json", b'{"mcpServers": {}, "mcpServers": {}}'),
        ("codex", ".codex/config.toml", b"model = "),
        ("codex", ".codex/config.toml", b"mcp_servers = {}\n"),
    ],
)
def test_what_cannot_be_changed_safely_is_untouched(agent: str, file: str, content: bytes, tmp_path: Path) -> None:
    path = tmp_path / file
    path.parent.mkdir()
    path.write_bytes(content)
    with pytest.raises(InstallError, match="left as it is"):
        set_up(agent, tmp_path)
    assert path.read_bytes() == content
    assert [item for item in tmp_path.rglob("*") if item.is_file()] == [path]


def test_links_are_followed_in_the_home_and_refused_out_of_a_project(tmp_path: Path) -> None:
    dotfiles, home, project = tmp_path / "dotfiles", tmp_path / "home", tmp_path / "project"
    for folder in (dotfiles, home / ".codex", project / ".cursor"):
        folder.mkdir(parents=True)
    (dotfiles / "config.toml").write_text('model = "x"\n')
    (home / ".codex" / "config.toml").symlink_to(dotfiles / "config.toml")
    set_up("codex", home)
    assert (home / ".codex" / "config.toml").is_symlink()
    assert "mcp_servers" in tomllib.loads((dotfiles / "config.toml").read_text())
    (project / ".cursor" / "mcp.json").symlink_to(dotfiles / "config.toml")
    with pytest.raises(InstallError, match="leads out of the project"):
        plan_setup(entries("cursor", home, root=project), root=project)
    (home / ".cursor").mkdir()
    (home / ".cursor" / "mcp.json").symlink_to(tmp_path / "nowhere")
    with pytest.raises(InstallError, match="leads nowhere"):
        set_up("cursor", home)


def test_permissions_stay_and_a_copy_is_kept_for_its_owner(tmp_path: Path) -> None:
    file = tmp_path / ".cursor" / "mcp.json"
    file.parent.mkdir()
    file.write_text('{"a": 1}')
    file.chmod(0o640)
    set_up("cursor", tmp_path)
    assert stat.S_IMODE(file.stat().st_mode) == 0o640
    copy = backup_of(file, tmp_path / "backups")
    assert copy.read_text() == '{"a": 1}'
    assert stat.S_IMODE(copy.stat().st_mode) == 0o600


def test_a_file_that_changes_meanwhile_is_not_overwritten(tmp_path: Path) -> None:
    file = tmp_path / ".cursor" / "mcp.json"
    file.parent.mkdir()
    file.write_text('{"a": 1}')
    plan = plan_setup(entries("cursor", tmp_path), root=None)
    file.write_text('{"a": 2}')
    with pytest.raises(InstallError, match="meanwhile"):
        carry_out(plan, backups=tmp_path / "backups")
    assert file.read_text() == '{"a": 2}'


@pytest.mark.parametrize(
    ("value", "ours"),
    [
        ({"command": "/x/python", "args": ["-m", "backstory", "mcp"]}, True),
        ({"command": "/x/backstory", "args": ["mcp", "--project", "/p"]}, True),
        ({"command": "uvx", "args": ["backstory", "mcp"]}, False),
        ({"command": "backstory", "args": "mcp"}, False),
        ({"url": "http://127.0.0.1:4747/mcp"}, False),
        ("backstory mcp", False),
        (None, False),
    ],
)
def test_only_what_starts_our_server_is_ours(value: object, ours: bool) -> None:
    assert is_ours(value) is ours


def test_the_doctor_tells_of_each_agent_that_has_us_and_of_its_last_hook(tmp_path: Path) -> None:
    def told() -> dict[str, tuple[str, str]]:
        found = check_agents(around(tmp_path), tmp_path / "project", START, tmp_path / "data")
        return {check.name: (check.state, check.message) for check in found}

    assert told() == {}
    set_up("claude-code", tmp_path)
    set_up("cursor", tmp_path)
    assert told()["cursor"][0] == "ok"
    assert told()["claude-code"][0] == "warn"
    assert "no hook has called yet" in told()["claude-code"][1]
    session = SessionId("s")
    call = HookCall(
        event=Event.STOP, agent="claude-code", session=session, message=made_id(session), directory=Path("/work")
    )
    note_call(call, tmp_path / "data", now=datetime(2026, 5, 4, 3, 2, tzinfo=UTC))
    assert told()["claude-code"][0] == "ok"
    assert "its last hook was stop on" in told()["claude-code"][1]
    (tmp_path / "data" / "hook-claude-code.json").write_text("[]")
    assert last_call("claude-code", tmp_path / "data") is None
    other = Launch(python="/new/python", env={})
    assert {check.state for check in check_agents(around(tmp_path), tmp_path, other, tmp_path)} == {"warn"}
    (tmp_path / ".cursor" / "mcp.json").write_text("{")
    assert "cursor" not in told()


AS_FOUND = {
    "claude-code": (
        "",
        "{}\n",
        '{"hooks": {}}',
        '{\n  "hooks": {"Stop": []}\n}',
        "// mine\n",
        '{\n "a": 1\n /* x */ }',
    ),
    "cursor": ("{ }", '{"mcpServers": {}}', '{"a": 1}', '\ufeff{\r\n\t"a": [1],\r\n}'),
    "codex": ("", "\n", "a = 1", "a = 1\n\n\n", "[mcp_servers.o]\r\ncommand = 'x'\r\n\r\n\r\n"),
}


@pytest.mark.parametrize(("agent", "text"), [(agent, text) for agent, texts in AS_FOUND.items() for text in texts])
def test_a_file_that_nobody_else_changed_becomes_what_it_was_byte_for_byte(
    tmp_path: Path, agent: str, text: str
) -> None:
    files = [tmp_path / name for name in FILES[agent]]
    for file in files:
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(text.encode())
    set_up(agent, tmp_path)
    set_up(agent, tmp_path)
    backups = tmp_path / "backups"
    carry_out(plan_removal(entries(agent, tmp_path), root=None, backups=backups), backups=backups)
    assert [file.read_bytes().decode() for file in files] == [text] * len(files)


def test_what_was_set_up_again_in_part_is_taken_out_whole(tmp_path: Path) -> None:
    file, backups = tmp_path / ".claude" / "settings.json", tmp_path / "backups"
    file.parent.mkdir()
    file.write_text('{"a": 1}')
    set_up("claude-code", tmp_path)
    settings = json.loads(file.read_text())
    del settings["hooks"]["Stop"]
    file.write_text(json.dumps(settings))
    set_up("claude-code", tmp_path)
    carry_out(plan_removal(entries("claude-code", tmp_path), root=None, backups=backups), backups=backups)
    assert json.loads(file.read_text()) == {"a": 1}
