"""Which agents Backstory can be set up in: their configuration files, and what is written there.

Read from each agent's documentation. What a file holds beside our entries is never touched.
"""

from __future__ import annotations

import shlex
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from backstory.config.locations import CONFIG, HOME, home_folder, user_config_file
from backstory.entrypoints.agents.claude_code import EVENTS as CLAUDE_EVENTS
from backstory.errors import InstallError

NAME = "backstory"
HOOK_TIMEOUT_S = 10
"""After which Claude Code gives a hook up. Ours ends long before, by itself."""

Syntax = Literal["json", "toml"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """One entry of ours: ``value`` at ``path`` in ``file``; ``in_list`` if it is one item of the list there."""

    file: Path
    path: tuple[str, ...]
    value: Mapping[str, object]
    syntax: Syntax = "json"
    in_list: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Launch:
    """How an agent starts us: our Python, and the folders of ours that the environment names."""

    python: str
    env: Mapping[str, str]

    def server(self, *, project: Path | None = None) -> dict[str, object]:
        """The MCP server. ``project`` is named for agents that do not say where they work."""
        where = [] if project is None else ["--project", str(project)]
        # -P: a folder that somebody cloned must not lend its modules to Python
        command: dict[str, object] = {"command": self.python, "args": ["-P", "-m", "backstory", "mcp", *where]}
        return command | ({"env": dict(self.env)} if self.env else {})

    def hook(self, event: str, agent: str) -> str:
        """The shell command of a hook."""
        named = ["env", *(f"{name}={value}" for name, value in self.env.items())] if self.env else []
        return shlex.join([*named, self.python, "-P", "-m", "backstory", "hook", event, "--agent", agent])


@dataclass(frozen=True, slots=True, kw_only=True)
class Surroundings:
    """Where to look: the environment, the platform (``sys.platform``), and a project's root if it is for one."""

    env: Mapping[str, str]
    platform: str
    root: Path | None = None

    def home(self) -> Path:
        """Raises InstallError where HOME names no folder."""
        path = Path(self.env.get("HOME", ""))
        if not path.is_absolute():
            raise InstallError("HOME is not set to an absolute path, so the agent's configuration is not known")
        return path

    def folder(self, variable: str, default: str) -> Path:
        """The folder that a variable names, else one in the home folder."""
        named = self.env.get(variable, "")
        return Path(named) if Path(named).is_absolute() else self.home() / default

    def application(self, name: str) -> Path:
        """Where a desktop program keeps its settings."""
        if self.platform == "darwin":
            return self.home() / "Library" / "Application Support" / name
        return self.folder("XDG_CONFIG_HOME", ".config") / name

    def project(self, agent: str) -> Path:
        """The project's root. Raises InstallError where none was named."""
        if self.root is None:
            raise InstallError(f"{agent} is set up for one project; name it with --project")
        return self.root


@dataclass(frozen=True, slots=True, kw_only=True)
class Host:
    """One agent. ``entries`` are all that an installation consists of; ``in_projects`` whether a project can have one
    of its own, ``with_hooks`` whether it calls us at every prompt. ``after`` says what to do then."""

    name: str
    title: str
    entries: Callable[[Surroundings, Launch], Sequence[Entry]]
    after: str
    in_projects: bool = True
    with_hooks: bool = False


def launch(env: Mapping[str, str]) -> Launch:
    """How this very Backstory is started. Raises InstallError, and ConfigError for an impossible folder in ``env``."""
    if not sys.executable:
        raise InstallError("this Python does not know its own path, so no agent could start it")
    named = {HOME: str(home) if (home := home_folder(env)) else ""}
    named[CONFIG] = str(user_config_file(env)) if env.get(CONFIG, "").strip() else ""
    return Launch(python=sys.executable, env={name: value for name, value in named.items() if value})


def is_ours(value: object) -> bool:
    """Whether an entry starts our MCP server, whatever Python it names."""
    if not isinstance(value, Mapping):
        return False
    args = value.get("args")
    words = [str(value.get("command", "")), *(map(str, args) if isinstance(args, list) else [])]
    is_module = any(words[at : at + 3] == ["-m", "backstory", "mcp"] for at in range(len(words)))
    return is_module or (Path(words[0]).name == "backstory" and words[1:2] == ["mcp"])


def is_our_hook(group: object) -> bool:
    """Whether a group of Claude Code's hooks runs nothing but ours."""
    hooks = group.get("hooks") if isinstance(group, Mapping) else None
    commands = [hook.get("command") if isinstance(hook, Mapping) else None for hook in hooks or []]
    return bool(commands) and all(isinstance(text, str) and " -m backstory hook " in text for text in commands)


# --- each agent -------------------------------------------------------------------------------------------------------


def _servers(file: Path, value: Mapping[str, object], key: str = "mcpServers") -> Entry:
    return Entry(file=file, path=(key, NAME), value=value)


def _claude_code(around: Surroundings, start: Launch) -> list[Entry]:
    """Hooks go where they stay out of version control; the server of one project into its ``.mcp.json``."""
    server = {"type": "stdio", **start.server()}
    if around.root is not None:
        settings, servers = around.root / ".claude" / "settings.local.json", around.root / ".mcp.json"
    else:
        settings = around.folder("CLAUDE_CONFIG_DIR", ".claude") / "settings.json"
        servers = around.folder("CLAUDE_CONFIG_DIR", "") / ".claude.json"
    hooks = [
        Entry(file=settings, path=("hooks", name), value=_hooks(start.hook(event, "claude-code")), in_list=True)
        for event, name in CLAUDE_EVENTS.items()
    ]
    return [*hooks, _servers(servers, server)]


def _hooks(command: str) -> dict[str, object]:
    return {"hooks": [{"type": "command", "command": command, "timeout": HOOK_TIMEOUT_S}]}


def _cursor(around: Surroundings, start: Launch) -> list[Entry]:
    folder = around.root or around.home()
    return [_servers(folder / ".cursor" / "mcp.json", start.server(project=around.root))]


def _codex(around: Surroundings, start: Launch) -> list[Entry]:
    folder = around.folder("CODEX_HOME", ".codex") if around.root is None else around.root / ".codex"
    value = start.server(project=around.root)
    return [Entry(file=folder / "config.toml", path=("mcp_servers", NAME), value=value, syntax="toml")]


def _vscode(around: Surroundings, start: Launch) -> list[Entry]:
    folder = around.application("Code") / "User" if around.root is None else around.root / ".vscode"
    value = {"type": "stdio", **start.server(project=around.root)}
    return [_servers(folder / "mcp.json", value, "servers")]


def _windsurf(around: Surroundings, start: Launch) -> list[Entry]:
    return [_servers(around.home() / ".codeium" / "windsurf" / "mcp_config.json", start.server())]


def _gemini(around: Surroundings, start: Launch) -> list[Entry]:
    folder = around.root or around.home()
    return [_servers(folder / ".gemini" / "settings.json", start.server(project=around.root))]


def _zed(around: Surroundings, start: Launch) -> list[Entry]:
    folder = around.home() / ".config" if around.platform == "darwin" else around.folder("XDG_CONFIG_HOME", ".config")
    value = {"source": "custom", **start.server(), "env": dict(start.env)}
    return [_servers(folder / "zed" / "settings.json", value, "context_servers")]


def _claude_desktop(around: Surroundings, start: Launch) -> list[Entry]:
    return [_servers(around.application("Claude") / "claude_desktop_config.json", start.server())]


AGENTS = {
    host.name: host
    for host in (
        Host(
            name="claude-code", title="Claude Code", entries=_claude_code, with_hooks=True,
            after="start Claude Code anew; /hooks and /mcp list what it has found",
        ),
        Host(name="cursor", title="Cursor", entries=_cursor, after="restart Cursor"),
        Host(name="codex", title="Codex", entries=_codex, after="start Codex anew; /mcp lists what it has found"),
        Host(name="vscode", title="VS Code", entries=_vscode, after="start it from VS Code's list of MCP servers"),
        Host(name="windsurf", title="Windsurf", entries=_windsurf, in_projects=False, after="restart Windsurf"),
        Host(name="gemini", title="Gemini CLI", entries=_gemini, after="start Gemini CLI anew; /mcp lists what it has"),
        Host(name="zed", title="Zed", entries=_zed, in_projects=False, after="Zed takes it over at once"),
        Host(
            name="claude-desktop", title="Claude Desktop", entries=_claude_desktop, in_projects=False,
            after="restart Claude Desktop",
        ),
    )
}  # fmt: skip
"""Every agent but OpenCode, which has a plugin instead."""
